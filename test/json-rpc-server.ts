/** A JSON-RPC endpoint on a real socket whose manners are traits: rates, batches, latency, failures and resets. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Limit, RpcErrorReply } from './virtual-chain/endpoint-profile.ts';

export interface JsonRpcCall {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What has nothing to do with the chain that is served. */
export interface EndpointTraits {
  /** Calls in one HTTP request. */
  readonly batch?: Limit;
  /** Calls a second, with a burst of one second. The error may carry a `Retry-After` in seconds. */
  readonly rate?: Limit & { readonly retryAfterSeconds?: number };
  /** Calls in all; what comes after is rejected for good. */
  readonly cap?: Limit;
  /** One HTTP request in so many ends with a reset connection. */
  readonly resetsEvery?: number;
  /** One HTTP request in so many gets this answer. */
  readonly fails?: { readonly every: number; readonly error: RpcErrorReply };
  readonly latencyMs?: number;
}

/** A call that is not answered; `data` goes into the JSON-RPC error. */
export class RpcError extends Error {
  readonly wording: RpcErrorReply;
  readonly data: unknown;
  constructor(
    { message, ...rest }: RpcErrorReply,
    values: Readonly<Record<string, string | number>> = {},
    data?: unknown,
  ) {
    super(message.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? '')));
    this.wording = { message: this.message, ...rest };
    this.data = data;
  }
}

export interface JsonRpcServer<Traits extends EndpointTraits> {
  readonly url: URL;
  /** May be replaced at any time. */
  profile: Traits;
  /** HTTP requests so far. */
  readonly requests: number;
  /** JSON-RPC calls so far, by method. */
  readonly callsByMethod: ReadonlyMap<string, number>;
  /** Called with every JSON-RPC call as it arrives. */
  onCall: (call: JsonRpcCall) => void;
  /** Forgets the counts, also that of a cap. */
  resetCounts(): void;
  close(): Promise<void>;
}

/** The server as those who answer its calls see it. */
export type ServedEndpoint<Traits extends EndpointTraits> = Pick<
  JsonRpcServer<Traits>,
  'profile' | 'requests'
>;

export interface JsonRpcServerOptions<Traits extends EndpointTraits> {
  readonly profile: Traits;
  readonly port?: number | undefined;
  /** Called once; what it returns gives the result of a call, or throws a RpcError. */
  readonly answererOf: (endpoint: ServedEndpoint<Traits>) => (call: JsonRpcCall) => unknown;
}

export async function startJsonRpcServer<Traits extends EndpointTraits>(
  options: JsonRpcServerOptions<Traits>,
): Promise<JsonRpcServer<Traits>> {
  let requests = 0;
  let calls = 0;
  let callsByMethod = new Map<string, number>();
  let tokens: number | undefined;
  let filledAtMs = performance.now();

  /** Whether the rate allows so many calls now. */
  const takeTokens = (count: number, perSecond: number): boolean => {
    const nowMs = performance.now();
    const filled = (tokens ?? perSecond) + ((nowMs - filledAtMs) / 1000) * perSecond;
    tokens = Math.min(perSecond, filled);
    filledAtMs = nowMs;
    if (tokens < count) return false;
    tokens -= count;
    return true;
  };

  /** Refuses a whole HTTP request. */
  const admit = (asked: readonly JsonRpcCall[], isBatch: boolean): void => {
    const { cap, rate, fails, batch } = server.profile;
    if (cap && calls > cap.max) throw new RpcError(cap.error, { max: cap.max });
    if (rate && !takeTokens(asked.length, rate.max)) throw new RpcError(rate.error, { max: rate.max });
    if (fails && isOneIn(fails.every, requests)) throw new RpcError(fails.error);
    if (batch && isBatch && asked.length > batch.max)
      throw new RpcError(batch.error, { max: batch.max, count: asked.length });
  };

  const respond = async (body: string, response: ServerResponse): Promise<void> => {
    requests++;
    const { profile } = server;
    const asked = JSON.parse(body) as unknown;
    const isBatch = Array.isArray(asked);
    // Some clients leave out the parameters where there are none.
    const list: readonly JsonRpcCall[] = (isBatch ? asked : [asked]).map((call) => ({ params: [], ...call }));
    calls += list.length;
    for (const call of list) {
      callsByMethod.set(call.method, (callsByMethod.get(call.method) ?? 0) + 1);
      server.onCall(call);
    }
    if (profile.latencyMs !== undefined) await delay(profile.latencyMs, undefined, { ref: false });
    if (profile.resetsEvery !== undefined && isOneIn(profile.resetsEvery, requests)) {
      response.socket?.resetAndDestroy();
      return;
    }
    try {
      admit(list, isBatch);
    } catch (error) {
      sendError(response, error, isBatch ? null : list[0]?.id, profile);
      return;
    }
    const [first] = list;
    if (!isBatch && first) {
      try {
        sendJson(response, { jsonrpc: '2.0', id: first.id, result: answerTo(first) });
      } catch (error) {
        sendError(response, error, first.id, profile);
      }
      return;
    }
    sendJson(
      response,
      list.map((call) => {
        try {
          return { jsonrpc: '2.0', id: call.id, result: answerTo(call) };
        } catch (error) {
          return { jsonrpc: '2.0', id: call.id, error: errorOf(error) };
        }
      }),
    );
  };

  const http = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      // A fault of the kit itself is an unhandled rejection, so that it never looks like one of the endpoint.
      void respond(Buffer.concat(chunks).toString('utf8'), response);
    });
  });
  await new Promise<void>((resolve) => http.listen(options.port ?? 0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  const server: JsonRpcServer<Traits> = {
    url: new URL(`http://127.0.0.1:${port}/`),
    profile: options.profile,
    get requests() {
      return requests;
    },
    get callsByMethod() {
      return callsByMethod;
    },
    onCall: () => undefined,
    resetCounts() {
      requests = 0;
      calls = 0;
      callsByMethod = new Map();
    },
    close: () =>
      new Promise<void>((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
  const answerTo = options.answererOf(server);
  return server;
}

/** Whether it is the turn of the n-th: one in so many, scattered, so that no rhythm of the client ever meets them all. */
export function isOneIn(many: number, nth: number): boolean {
  return (Math.imul(nth, 0x9e37_79b1) >>> 8) % many === 0;
}

function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
}

function sendError(response: ServerResponse, error: unknown, id: unknown, { rate }: EndpointTraits): void {
  if (!(error instanceof RpcError)) throw error;
  const { message, status = 200, isPlainText, isReset } = error.wording;
  if (isReset) {
    response.socket?.resetAndDestroy();
    return;
  }
  if (rate?.retryAfterSeconds !== undefined && status === 429)
    response.setHeader('Retry-After', String(rate.retryAfterSeconds));
  if (isPlainText) response.writeHead(status, { 'Content-Type': 'text/plain' }).end(message);
  else sendJson(response, { jsonrpc: '2.0', id: id ?? null, error: errorOf(error) }, status);
}

/** The JSON-RPC error of a rejected call. Throws what is none. */
export function errorOf(error: unknown): {
  readonly code?: number;
  readonly message: string;
  readonly data?: unknown;
} {
  if (!(error instanceof RpcError)) throw error;
  const { code, message } = error.wording;
  return {
    ...(code !== undefined && { code }),
    message,
    ...(error.data !== undefined && { data: error.data }),
  };
}
