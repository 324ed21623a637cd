/**
 * A route is a declaration: path, parameters, response, and one handler, which only reads. The server, the OpenAPI document and
 * the 405 responses all read these declarations, so they cannot disagree.
 */
import type { TSchema } from 'typebox';
import type { Store } from '../../store/store.ts';
import type { Diagnoses } from '../execution/diagnoses.ts';
import type { Preparations } from '../execution/execution-preparation.ts';
import type { ChangeFeed } from '../live/change-feed.ts';
import type { Live } from '../live/live.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { FailureReports } from '../routes/failure-report.ts';
import type { ResponseValidator, RouteResponse } from './caching.ts';
import type { HeaderName } from './header-fields.ts';
import type { ResponseCache } from './response-cache.ts';
import type { RouteRequest } from './route-request.ts';

export interface RouteParameter {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly example?: string | boolean;
  /** Whether a request without it is rejected. */
  readonly isRequired?: boolean;
}

/** What handlers use; created once for the server. */
export interface RouteContext {
  readonly store: Store;
  readonly feed: ChangeFeed;
  readonly live: Live;
  readonly metrics: Metrics;
  readonly responseCache: ResponseCache;
  readonly preparations: Preparations;
  readonly diagnoses: Diagnoses;
  readonly failures: FailureReports;
}

export type MediaType =
  | 'application/json'
  | 'application/x-ndjson'
  | 'image/svg+xml'
  | 'text/css'
  | 'text/csv'
  | 'text/event-stream'
  | 'text/html'
  | 'text/javascript'
  | 'text/plain';

/** What the server needs to know of a path. */
export interface ServedPath {
  /** As OpenAPI writes it: `/v2/messages/{messageId}`. */
  readonly path: string;
  /** JSON by default. A parameter can select others than the first. */
  readonly mediaTypes?: readonly MediaType[];
  /** Whether the body is a stream: it has no validator and no length. */
  readonly isStreamed?: boolean;
  /** Exempt from the rate limit: for health checks, whose address may be shared with clients. */
  readonly isUnlimited?: boolean;
  /** It computes much or asks RPC endpoints: it has a second rate limit, apart from the general one. */
  readonly isCostly?: boolean;
  /** Request headers that the response depends on, for `Vary`. */
  readonly variesBy?: readonly string[];
  /**
   * The validator of the response that `handle` would make, where it is cheaper to compute: a client that has that
   * response gets a 304. Undefined: `handle` must run (and may throw an error).
   */
  readonly validate?: (
    request: RouteRequest,
    context: RouteContext,
  ) => Promise<ResponseValidator | undefined>;
  readonly handle: (request: RouteRequest, context: RouteContext) => Promise<RouteResponse> | RouteResponse;
}

/** A path of the API, with its documentation. */
export interface Route extends ServedPath {
  readonly operationId: string;
  readonly tag: 'Messages' | 'Lanes' | 'Networks' | 'Operations' | 'Documentation';
  readonly summary: string;
  readonly description: string;
  /** A route without parameters rejects all of them. */
  readonly queryParameters?: readonly RouteParameter[];
  readonly success: {
    readonly description: string;
    readonly schema?: TSchema;
    /** Header fields of this response beside the common ones. */
    readonly headers?: readonly HeaderName[];
  };
  /** Error statuses of this route beside the common ones. */
  readonly errors?: readonly number[];
}

export function mediaTypesOf({ mediaTypes = ['application/json'] }: ServedPath): readonly MediaType[] {
  return mediaTypes;
}

/** The paths of a route: its own, and for clients whose base URL carries no version the same without `/v2`. */
export function pathsOf({ path }: Pick<ServedPath, 'path'>): readonly string[] {
  return path.startsWith('/v2/') ? [path, path.slice('/v2'.length)] : [path];
}
