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
import type { Freshness } from './caching.ts';
import type { ChangeFeed, Live } from './change-feed.ts';
import type { Coding } from './compression.ts';
import type { HeaderName } from './header-fields.ts';
import type { HotAnswers } from './hot-answers.ts';
import type { Metrics } from './metrics.ts';

export interface RouteParameter {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly example?: string | boolean;
  /** Whether a request without it is refused; every parameter of a path is. */
  readonly isRequired?: boolean;
}

export interface RouteRequest {
  /** A route that answers HEAD does no work for a body that nobody gets. */
  readonly method: string;
  readonly path: Readonly<Record<string, string>>;
  /** Path and query as they were sent. */
  readonly url: string;
  readonly query: RawParameters;
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** Address of the client. */
  readonly client: string;
  /** Aborted when the client goes away or the server stops: for answers that take their time. */
  readonly signal: AbortSignal;
  /** Aborted when the client goes away only: for answers that a server that stops gives time to finish. */
  readonly gone: AbortSignal;
  /** Cuts the connection: for a client that does not take its answer. */
  readonly hangUp: () => void;
}

/** What handlers work with, made once for the server. */
export interface RouteContext {
  readonly store: Store;
  readonly feed: ChangeFeed;
  readonly live: Live;
  readonly metrics: Metrics;
  readonly hotAnswers: HotAnswers;
}

export interface RouteAnswer {
  /** What is whole, or a stream of what has no end or no bounds. */
  readonly body: string | Buffer | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
  /** How long caches may keep it; `moving` where nothing is said, `never` for a stream. */
  readonly freshness?: Freshness;
  /** Changes exactly when the body does; made from the body where nothing is said. */
  readonly validator?: string;
  /** The body in codings that were made before. */
  readonly compressed?: Readonly<Partial<Record<Coding, Buffer>>>;
  /** Is given a coding that was made now, to be kept for when the answer is sent again. */
  readonly onCompressed?: (coding: Coding, coded: Buffer) => void;
}

/** What can be said of an answer before it is made. */
export type AnswerValidator = Required<Pick<RouteAnswer, 'validator' | 'freshness'>>;

export type MediaType =
  | 'application/json'
  | 'application/x-ndjson'
  | 'text/css'
  | 'text/csv'
  | 'text/event-stream'
  | 'text/html'
  | 'text/javascript'
  | 'text/plain';

/** All that the server needs to know of a path. */
export interface ServedPath {
  /** As OpenAPI writes it: `/v2/messages/{messageId}`. */
  readonly path: string;
  /** Other paths with the same meaning, for clients whose base URL carries no version. */
  readonly aliases?: readonly string[];
  readonly mediaType: MediaType;
  /** Whether bodies begin before they are whole: they have no validator, and no length. */
  readonly isStreamed?: boolean;
  /** Has no rate limit: asked by the machinery around the service, from addresses that it may share with clients. */
  readonly isUnlimited?: boolean;
  /** Others in which it answers when a parameter asks for them. */
  readonly otherMediaTypes?: readonly MediaType[];
  /**
   * The validator of what `handle` would answer, where it costs less than the answer: a client that has it already
   * is spared the rest. Undefined where only `handle` can tell (and refuse).
   */
  readonly validate?: (request: RouteRequest, context: RouteContext) => Promise<AnswerValidator | undefined>;
  readonly handle: (request: RouteRequest, context: RouteContext) => Promise<RouteAnswer> | RouteAnswer;
}

/** A path of the API, with what its documentation says. */
export interface Route extends ServedPath {
  readonly operationId: string;
  readonly tag: 'Messages' | 'Lanes' | 'Networks' | 'Operations' | 'Documentation';
  readonly summary: string;
  readonly description: string;
  readonly pathParameters?: readonly RouteParameter[];
  readonly queryParameters?: readonly RouteParameter[];
  readonly success: {
    readonly description: string;
    readonly schema?: TSchema;
    /** Header fields of this answer that not every answer has. */
    readonly headers?: readonly HeaderName[];
  };
  /** The statuses of the catalogue that this route can answer besides those of every route. */
  readonly errors: readonly number[];
}
