/**
 * A route is a declaration: where it is, what it takes, what it answers, and one function.
 *
 * The server, the OpenAPI document and the 405 answers all read these declarations, so that they cannot
 * disagree. Every route reads; there is no other kind. The store comes with each request, so that the
 * declarations stand without one.
 */
import type { TSchema } from 'typebox';
import type { RawParameters } from '../domain/search-parameters.ts';
import type { Store } from '../store/store.ts';

export interface RouteParameter {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly example?: string | boolean;
}

export interface RouteRequest {
  readonly path: Readonly<Record<string, string>>;
  readonly query: RawParameters;
}

export interface RouteAnswer {
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
}

export interface Route {
  /** As OpenAPI writes it: `/v2/messages/{messageId}`. */
  readonly path: string;
  /** Other paths with the same meaning, for clients whose base URL carries no version. */
  readonly aliases?: readonly string[];
  readonly mediaType: 'application/json' | 'text/html';
  readonly operationId: string;
  readonly tag: 'Messages' | 'Operations' | 'Documentation';
  readonly summary: string;
  readonly description: string;
  readonly pathParameters?: readonly RouteParameter[];
  readonly queryParameters?: readonly RouteParameter[];
  readonly success: { readonly description: string; readonly schema?: TSchema };
  /** The statuses of the catalogue that this route can answer besides those of every route. */
  readonly errors: readonly number[];
  readonly handle: (request: RouteRequest, store: Store) => Promise<RouteAnswer> | RouteAnswer;
}
