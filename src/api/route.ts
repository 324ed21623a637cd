/**
 * A route is a declaration: where it is, what it takes, what it answers, and one function.
 *
 * The server, the OpenAPI document and the 405 answers all read these declarations, so that they cannot
 * disagree. Every route reads; there is no other kind. The store comes with each request, so that the
 * declarations stand without one.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { TSchema } from 'typebox';
import type { RawParameters } from '../domain/search-parameters.ts';
import type { Store } from '../store/store.ts';
import type { ChangeFeed } from './change-feed.ts';

export interface RouteParameter {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly example?: string | boolean;
}

export interface RouteRequest {
  readonly path: Readonly<Record<string, string>>;
  readonly query: RawParameters;
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** Address of the client. */
  readonly client: string;
  /** Aborted when the client goes away or the server stops: for answers that take their time. */
  readonly signal: AbortSignal;
}

/** What handlers work with, made once for the server. */
export interface RouteContext {
  readonly store: Store;
  readonly feed: ChangeFeed;
}

export interface RouteAnswer {
  /** Text that is whole, or a stream of what has no end or no bounds. */
  readonly body: string | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
}

export type MediaType = 'application/json' | 'text/html' | 'text/event-stream' | 'text/plain';

export interface Route {
  /** As OpenAPI writes it: `/v2/messages/{messageId}`. */
  readonly path: string;
  /** Other paths with the same meaning, for clients whose base URL carries no version. */
  readonly aliases?: readonly string[];
  readonly mediaType: MediaType;
  readonly operationId: string;
  readonly tag: 'Messages' | 'Operations' | 'Documentation';
  readonly summary: string;
  readonly description: string;
  readonly pathParameters?: readonly RouteParameter[];
  readonly queryParameters?: readonly RouteParameter[];
  readonly success: { readonly description: string; readonly schema?: TSchema };
  /** The statuses of the catalogue that this route can answer besides those of every route. */
  readonly errors: readonly number[];
  readonly handle: (request: RouteRequest, context: RouteContext) => Promise<RouteAnswer> | RouteAnswer;
}
