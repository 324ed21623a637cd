/**
 * The JSON-RPC server of all simulated endpoints, on a real socket: batches, the limits and failures of a profile, and faults
 * that a test injects into single HTTP requests.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Limit, RpcErrorReply } from './virtual-chain/endpoint-profile.ts';

export interface JsonRpcCall {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

export interface JsonRpcAnswer {
  readonly jsonrpc?: '2.0';
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code?: number; readonly message: string; readonly data?: unknown };
}

/** Traits that do not depend on the chain being served. */
export interface EndpointTraits {
  /** Calls in one HTTP request. */
  readonly batch?: Limit;
  /** Calls a second, with a burst of one second. The error may carry a `Retry-After` in seconds. */
  readonly rate?: Limit & { readonly retryAfterSeconds?: number };
  /** Calls in all; later ones are rejected for good. */
  readonly cap?: Limit;
  /** One HTTP request in so many ends with a reset connection. */
  readonly resetsEvery?: number;
  /** One HTTP request in so many gets this answer. */
  readonly fails?: { readonly every: number; readonly error: RpcErrorReply };
  readonly latencyMs?: number;
}

/** How one HTTP request is answered instead of with 200 and the whole answer. */
export type Fault =
  /** Never. */
  | 'hang'
  | 'reset'
  /** Half of the answer, then the end of the connection. */
  | 'cut'
  /** Half of the answer, as if it were whole. */
  | 'truncate'
  /** Half of the answer, then nothing. */
  | 'stall'
  | { readonly delayMs: number }
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  /** The answer, changed. */
  | { readonly change: (answer: unknown) => unknown };

/** What goes wrong with one HTTP request. */
export interface Interference {
  readonly fault?: Fault | undefined;
  /** Replaces the answer to one of its calls. */
  answer?(call: JsonRpcCall, truth: JsonRpcAnswer): JsonRpcAnswer | Promise<JsonRpcAnswer>;
}

/** A call that is answered with an error; `data` goes into the JSON-RPC error. */
export class RpcError extends Error {
  readonly reply: RpcErrorReply;
  readonly data: unknown;
  constructor(
    { message, ...rest }: RpcErrorReply,
    values: Readonly<Record<string, string | number>> = {},
    data?: unknown,
  ) {
    super(message.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? '')));
    this.reply = { message: this.message, ...rest };
    this.data = data;
  }
}

export function rpcError(code: number, message: string): RpcError {
  return new RpcError({ code, message });
}

export type JsonRpcServer<Traits extends EndpointTraits> = Awaited<
  ReturnType<typeof startJsonRpcServer<Traits>>
>;

/** The server as the code that answers its calls sees it. */
export interface ServedEndpoint<Traits extends EndpointTraits> {
  readonly profile: Traits;
  /** HTTP requests so far. */
  readonly requests: number;
}

export interface JsonRpcServerOptions<Traits extends EndpointTraits> {
  readonly profile: Traits;
  readonly port?: number | undefined;
  /** Called once. The function it returns gives the result of a call, or throws an RpcError. */
  readonly answererOf: (
    endpoint: ServedEndpoint<Traits>,
  ) => (call: JsonRpcCall) => unknown | Promise<unknown>;
  /** Called for every HTTP request that the profile admits. */
  readonly interfere?: (
    calls: readonly JsonRpcCall[],
    request: IncomingMessage,
    isBatch: boolean,
  ) => Interference | undefined | Promise<Interference | undefined>;
}

export async function startJsonRpcServer<Traits extends EndpointTraits>(
  options: JsonRpcServerOptions<Traits>,
) {
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

  /** Rejects a whole HTTP request. */
  const admit = (asked: readonly JsonRpcCall[], isBatch: boolean): void => {
    const { cap, rate, fails, batch } = server.profile;
    if (cap && calls > cap.max) throw new RpcError(cap.error, { max: cap.max });
    if (rate && !takeTokens(asked.length, rate.max)) throw new RpcError(rate.error, { max: rate.max });
    if (fails && isOneIn(fails.every, requests)) throw new RpcError(fails.error);
    if (batch && isBatch && asked.length > batch.max)
      throw new RpcError(batch.error, { max: batch.max, count: asked.length });
  };

  const respond = async (request: IncomingMessage, body: string, response: ServerResponse) => {
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
    if (profile.resetsEvery !== undefined && isOneIn(profile.resetsEvery, requests))
      return response.socket?.resetAndDestroy();
    try {
      admit(list, isBatch);
    } catch (error) {
      return sendError(response, error, isBatch ? null : list[0]?.id, profile);
    }
    const interference = await options.interfere?.(list, request, isBatch);
    let rejection: unknown;
    const answers = await Promise.all(
      list.map(async (call) => {
        let answer: JsonRpcAnswer;
        try {
          answer = { jsonrpc: '2.0', id: call.id, result: (await answerTo(call)) ?? null };
        } catch (error) {
          rejection = error;
          answer = { jsonrpc: '2.0', id: call.id, error: errorOf(error) };
        }
        const told = (await interference?.answer?.(call, answer)) ?? answer;
        if (told !== answer) rejection = undefined;
        return told;
      }),
    );
    // Alone, a call is rejected with the HTTP status that the profile has for it.
    if (rejection !== undefined && !isBatch && interference?.fault === undefined)
      return sendError(response, rejection, list[0]?.id, profile);
    await deliver(response, interference?.fault, isBatch ? answers : answers[0]);
  };

  const http = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      // A fault of the simulator itself is an unhandled rejection, so that it never looks like one of the endpoint.
      void respond(request, Buffer.concat(chunks).toString('utf8'), response);
    });
  });
  const listen = (port: number) => new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve));
  await listen(options.port ?? 0);
  const { port } = http.address() as AddressInfo;
  const server = {
    url: new URL(`http://127.0.0.1:${port}/`),
    /** May be replaced at any time. */
    profile: options.profile,
    /** HTTP requests so far. */
    get requests() {
      return requests;
    },
    /** JSON-RPC calls so far, by method. */
    get callsByMethod(): ReadonlyMap<string, number> {
      return callsByMethod;
    },
    /** Called with every JSON-RPC call as it arrives. */
    onCall: (_call: JsonRpcCall): void => undefined,
    /** Resets the counts, including that of a cap. */
    resetCounts() {
      requests = 0;
      calls = 0;
      callsByMethod = new Map();
    },
    /** Listens again on the same port after `close`. */
    reopen: () => listen(port),
    close: () =>
      new Promise<void>((resolve) => {
        // An error says that it is closed already.
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

async function deliver(response: ServerResponse, fault: Fault | undefined, answer: unknown): Promise<void> {
  const json = JSON.stringify(answer);
  const half = json.slice(0, json.length / 2);
  response.setHeader('Content-Type', 'application/json');
  if (fault === undefined) response.end(json);
  else if (fault === 'hang') return;
  else if (fault === 'reset') response.socket?.resetAndDestroy();
  else if (fault === 'truncate') response.end(half);
  else if (fault === 'stall' || fault === 'cut') {
    response.writeHead(200, { 'Content-Length': Buffer.byteLength(json) });
    response.write(half, () => {
      if (fault === 'cut') response.socket?.destroy();
    });
  } else if ('delayMs' in fault) {
    await delay(fault.delayMs, undefined, { ref: false });
    response.end(json);
  } else if ('change' in fault) response.end(JSON.stringify(fault.change(answer)));
  else response.writeHead(fault.status, fault.headers).end(fault.body ?? '');
}

function sendError(response: ServerResponse, error: unknown, id: unknown, { rate }: EndpointTraits): void {
  if (!(error instanceof RpcError)) throw error;
  const { message, status = 200, isPlainText, isReset } = error.reply;
  if (isReset) return void response.socket?.resetAndDestroy();
  if (rate?.retryAfterSeconds !== undefined && status === 429)
    response.setHeader('Retry-After', String(rate.retryAfterSeconds));
  const body = isPlainText
    ? message
    : JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: errorOf(error) });
  response.writeHead(status, { 'Content-Type': isPlainText ? 'text/plain' : 'application/json' }).end(body);
}

/** The JSON-RPC error of a rejected call. Throws what is none. */
function errorOf(error: unknown): NonNullable<JsonRpcAnswer['error']> {
  if (!(error instanceof RpcError)) throw error;
  const { code, message } = error.reply;
  const { data } = error;
  return { ...(code !== undefined && { code }), message, ...(data !== undefined && { data }) };
}
