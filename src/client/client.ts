/**
 * A typed client of the /v2 API, for browsers and Node. Published as `lanescan/client`.
 *
 * Responses are bounded in time and size. A request that the server rejects by its rate limit or in overload is repeated after
 * the wait that the server asks for.
 *
 * @example
 * const lanescan = createClient({ url: 'https://lanescan.example' });
 * for await (const { data } of lanescan.pages({ status: 'FAILED' })) console.log(data);
 */
import { chunksOf, ResponseTooLongError, readBody, withDeadline } from '../base/bounded-exchange.ts';
import { basicAuthorization, parseRetryAfterMs } from '../base/http-headers.ts';
import { withoutCredentials } from '../base/url-parts.ts';
import type * as api from './api-types.ts';

export type * from './api-types.ts';

export interface ClientOptions {
  /** The part before /v2, with or without credentials. In a browser, a path or empty: the server of the page. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends a request; default: the global `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Aborts every request that has no signal. */
  readonly signal?: AbortSignal;
  /** For a whole response; for a stream, between two pieces of it. */
  readonly timeoutMs?: number;
  /** How often a request is repeated that the server rejects by its rate limit or in overload. */
  readonly maxRetries?: number;
}

/** Pairs, where a name occurs more than once or the order matters. Undefined values are left out. */
export type Query =
  | Iterable<readonly [name: string, value: string]>
  | Readonly<Record<string, string | number | boolean | undefined>>;

export interface RequestOptions {
  readonly query?: Query | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** A response of any status. */
export interface ApiResponse {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined where there is none, and where that of an error is not JSON. */
  readonly body: unknown;
  readonly bytes: number;
  readonly isSimulated: boolean;
}

/** No usable response arrived: the server could not be reached, was too slow, or sent broken JSON. */
export class TransportError extends Error {
  /** Without the subject: `did not answer within 60 s`. */
  readonly problem: string;

  constructor(server: string, problem: string, options?: { cause?: unknown }) {
    super(`${server || 'The server'} ${problem}.`, options);
    this.problem = problem;
  }
}

/** An error response. */
export class ResponseError extends Error {
  readonly status: number;
  /** Of the catalogue of errors; null where the response is not one of Lanescan's. */
  readonly code: string | null;
  /** The parameters that were wrong. */
  readonly parameters: readonly string[];
  readonly retryAfterMs: number | null;
  /** Where a redirect leads. */
  readonly location: string | null;

  constructor({ status, headers, body }: Pick<ApiResponse, 'status' | 'headers' | 'body'>) {
    // Any member may be missing: the response may come from a proxy.
    const { error, message, details } = (body ?? {}) as { [key in keyof api.ErrorBody]?: unknown };
    super(typeof message === 'string' ? message : `The server answered with status ${status}.`);
    this.status = status;
    this.code = typeof error === 'string' ? error : null;
    this.parameters = Array.isArray(details) ? details.map((detail) => String(detail?.parameter)) : [];
    this.retryAfterMs = parseRetryAfterMs(headers.get('retry-after'), Date.now());
    this.location = status >= 300 && status < 400 ? headers.get('location') : null;
  }

  /** Whether a retry can succeed: rate limit or overload. */
  get isTemporary(): boolean {
    return this.status === 429 || this.status === 503;
  }
}

const MAX_BODY_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_BYTES = 1024 * 1024;
const TIMEOUT_MS = 60_000;
const MAX_RETRIES = 5;
/** A longer wait is not waited for. */
const MAX_WAIT_MS = 60_000;
/** The most ids or addresses in one request. */
const MAX_AT_ONCE = 100;

export type Client = ReturnType<typeof createClient>;

export function createClient(options: ClientOptions) {
  const { timeoutMs = TIMEOUT_MS, maxRetries = MAX_RETRIES } = options;
  const send = options.fetch ?? ((url, init) => fetch(url, init));
  const stop = options.signal ?? new AbortController().signal;
  const { server, authorization } = serverOf(options.url);
  const commonHeaders = {
    Accept: 'application/json',
    ...(authorization !== null && { Authorization: authorization }),
    ...options.headers,
  };

  /** @param path below the URL of the server, or a whole URL */
  const request = async (path: string, { query, headers }: RequestOptions, signal: AbortSignal) => {
    const target = /^https?:/.test(path) ? path : `${server}${path}`;
    try {
      return await send(`${target}${queryText(query)}`, {
        headers: { ...commonHeaders, ...headers },
        // A redirect could take a key to another host.
        redirect: 'manual',
        signal,
      });
    } catch (error) {
      if (signal.aborted) throw error;
      throw transportError(server, error);
    }
  };

  const inTime = <T>(stopped: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    withDeadline(stopped, (deadline) => {
      const timeout = new TransportError(server, `did not answer within ${timeoutMs / 1000} s`);
      deadline.restart(timeoutMs, timeout);
      return work(deadline.signal);
    });

  const get = (path: string, given: RequestOptions = {}): Promise<ApiResponse> =>
    inTime(given.signal ?? stop, async (signal) => {
      const response = await request(path, given, signal);
      const { status, headers } = response;
      const isSimulated = headers.get('x-lanescan-simulated') === 'true';
      try {
        return { status, headers, isSimulated, ...(await contentOf(response)) };
      } catch (error) {
        if (error instanceof ResponseTooLongError || signal.aborted) throw error;
        throw transportError(server, error);
      }
    });

  const read = async <T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> => {
    for (let retries = 0; ; retries++) {
      const response = await get(path, { query, signal });
      if (isSuccess(response)) return response.body as T;
      const error = new ResponseError(response);
      const { isTemporary, retryAfterMs } = error;
      const canRetry = isTemporary && retryAfterMs !== null && retryAfterMs <= MAX_WAIT_MS;
      if (!canRetry || retries >= maxRetries) throw error;
      await pause(retryAfterMs, signal ?? stop);
    }
  };

  /** The pieces of a response without end, or of unknown length. */
  const stream = async function* (
    path: string,
    given: RequestOptions,
    signal: AbortSignal = stop,
  ): AsyncGenerator<Uint8Array> {
    const controller = new AbortController();
    const next = <T>(work: () => Promise<T>) => inTime(signal, (deadline) => untilAborted(work(), deadline));
    try {
      const response = await next(() => request(path, given, controller.signal));
      if (!isSuccess(response)) {
        const { status, headers } = response;
        throw new ResponseError({ status, headers, ...(await next(() => contentOf(response))) });
      }
      const chunks = chunksOf(response);
      for (;;) {
        const { done, value } = await next(() => chunks.next());
        if (done) return;
        yield value;
      }
    } catch (error) {
      const isExplained = error instanceof TransportError || error instanceof ResponseError;
      throw signal.aborted || isExplained ? error : transportError(server, error);
    } finally {
      controller.abort();
    }
  };

  const ofMessage = <T>(rest: string) => {
    return (messageId: string, signal?: AbortSignal): Promise<T> =>
      read<T>(`/v2/messages/${encodeURIComponent(messageId)}${rest}`, undefined, signal);
  };
  const list = <T>(path: string) => {
    return (query?: Query, signal?: AbortSignal): Promise<T> => read<T>(path, query, signal);
  };
  /** The items of a list by ids or addresses, however many. */
  const listed = <T>(path: string, parameter: string) => {
    return async (values: readonly string[], signal?: AbortSignal): Promise<readonly T[]> => {
      const items: T[] = [];
      for (let at = 0; at < values.length; at += MAX_AT_ONCE) {
        const query = { [parameter]: values.slice(at, at + MAX_AT_ONCE).join(',') };
        items.push(...(await read<{ readonly data: readonly T[] }>(path, query, signal)).data);
      }
      return items;
    };
  };
  const search = list<api.MessagePage>('/v2/messages');

  return {
    /** The URL of the server without credentials. */
    server,
    /** The response to one request, of any status; throws only where there is none. */
    get,
    search,
    /** Every page of a search. */
    async *pages(query: Query, signal?: AbortSignal): AsyncGenerator<api.MessagePage> {
      let page = await search(query, signal);
      const { limit } = page.pagination;
      for (;;) {
        yield page;
        const { cursor } = page.pagination;
        if (!cursor) return;
        page = await search({ cursor, limit }, signal);
      }
    },
    message: ofMessage<api.Message>(''),
    history: ofMessage<api.MessageHistory>('/history'),
    attempts: ofMessage<api.Attempts>('/attempts'),
    diagnosis: ofMessage<api.Diagnosis>('/diagnosis'),
    executionInputs: ofMessage<api.ExecutionInputs>('/execution-inputs'),
    manualExecution: (messageId: string, gasLimit?: string, signal?: AbortSignal) =>
      read<api.ManualExecution>(`/v2/messages/${messageId}/manual-execution`, { gasLimit }, signal),
    reasons: listed<api.MessageReasons['data'][number]>('/v2/messages/reasons', 'messageId'),
    tokens: listed<api.TokenList['data'][number]>('/v2/tokens', 'address'),
    labels: list<api.LabelList>('/v2/labels'),
    lookup: (text: string, signal?: AbortSignal) => read<api.Lookup>('/v2/lookup', { text }, signal),
    lanes: list<api.LaneList>('/v2/lanes'),
    networks: list<api.NetworkList>('/v2/networks'),
    stats: list<api.Stats>('/v2/stats'),
    failures: list<api.Failures>('/v2/stats/failures'),
    readiness: list<api.Readiness>('/readyz'),
    /** The bytes of an export of all messages that match. */
    export: (query: Query, signal?: AbortSignal) =>
      stream('/v2/messages/export', { query, headers: { Accept: '*/*' } }, signal),
    /** Changes of messages that match, as they happen. Ends when the server closes the stream; `after` resumes. */
    async *changes(query: Query, signal?: AbortSignal): AsyncGenerator<StreamedChange> {
      const headers = { Accept: 'text/event-stream' };
      const decoder = new TextDecoder();
      let rest = '';
      for await (const chunk of stream('/v2/messages/stream', { query, headers }, signal)) {
        const events = `${rest}${decoder.decode(chunk, { stream: true })}`.split('\n\n');
        rest = events.pop() ?? '';
        for (const text of events) {
          const { id, event, data } = eventOf(text);
          if (data !== undefined && event !== undefined && changeNames.has(event))
            yield { position: id ?? '', ...(JSON.parse(data) as api.LiveChange) };
        }
      }
    },
  };
}

/** A change of a message, and its position, from which `changes` resumes by `after`. */
export interface StreamedChange extends api.LiveChange {
  readonly position: string;
}

const changeNames: ReadonlySet<string> = new Set(['created', 'updated', 'removed']);

/** The fields of a server-sent event. */
function eventOf(text: string): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(text.split('\n').map((line) => line.split(/: ?(.*)/s, 2)));
}

/** What is wrong with the URL of a server; null where it can be used. */
export function serverUrlProblem(text: string): string | null {
  if (!URL.canParse(text)) return 'is not a valid URL';
  const { protocol, search, hash } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:')
    return `begins with ${protocol}//, not http:// or https://`;
  return search !== '' || hash !== '' ? 'has a query or a fragment' : null;
}

/** The URL before /v2 without credentials, which go into a header: `fetch` rejects a URL that has any. */
function serverOf(text: string): { readonly server: string; readonly authorization: string | null } {
  if (!URL.canParse(text)) return { server: text.replace(/\/+$/, ''), authorization: null };
  const url = new URL(text);
  // The URL of the search itself is accepted too.
  url.pathname = url.pathname.replace(/\/+$/, '').replace(/\/v2(\/messages)?$/, '');
  return {
    server: withoutCredentials(url).href.replace(/\/+$/, ''),
    authorization: basicAuthorization(url),
  };
}

function queryText(query: Query = {}): string {
  const pairs = Symbol.iterator in query ? [...query] : Object.entries(query);
  const given = pairs.filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  return text === '' ? '' : `?${text}`;
}

function isSuccess({ status }: { readonly status: number }): boolean {
  return status >= 200 && status < 300;
}

async function contentOf(response: Response): Promise<Pick<ApiResponse, 'body' | 'bytes'>> {
  // The body of a redirect says nothing.
  const maxErrorBytes = response.status < 400 ? 0 : MAX_ERROR_BYTES;
  try {
    const content = await readBody(response, isSuccess(response) ? MAX_BODY_BYTES : maxErrorBytes);
    const text = new TextDecoder().decode(content);
    return { body: text === '' ? undefined : JSON.parse(text), bytes: content.length };
  } catch (error) {
    const isUseless = error instanceof SyntaxError || error instanceof ResponseTooLongError;
    if (isSuccess(response) || !isUseless) throw error;
    return { body: undefined, bytes: 0 };
  }
}

function transportError(server: string, error: unknown): TransportError {
  const { message, cause } = error as Error & { cause?: { code?: string; message?: string } };
  const problem =
    error instanceof SyntaxError
      ? 'answered with broken JSON'
      : `could not be read (${cause?.code ?? cause?.message ?? message})`;
  return new TransportError(server, problem, { cause: error });
}

/** The work's result, or the reason of the signal where that comes first. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort);
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const rest = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await untilAborted(rest, signal).finally(() => clearTimeout(timer));
}
