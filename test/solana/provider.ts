/** A Solana JSON-RPC endpoint on a real socket that serves a ledger the way a personality does. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Wording } from '../chain/zoo/personality.ts';
import type { Ledger } from './ledger.ts';
import { createNode, isOneIn, RefusedError, type RpcCall } from './node.ts';
import { archiveNode, type SolanaPersonality } from './personality.ts';

export interface SolanaProvider {
  readonly url: URL;
  readonly ledger: Ledger;
  /** May be replaced at any time. */
  personality: SolanaPersonality;
  /** HTTP requests so far. */
  readonly requests: number;
  /** JSON-RPC calls so far, by method. */
  readonly callsByMethod: ReadonlyMap<string, number>;
  /** Called with every JSON-RPC call as it arrives. */
  onCall: (call: RpcCall) => void;
  resetCounts(): void;
  close(): Promise<void>;
}

export interface SolanaProviderOptions {
  readonly personality?: SolanaPersonality;
  readonly port?: number;
}

export async function startSolanaProvider(
  ledger: Ledger,
  options: SolanaProviderOptions = {},
): Promise<SolanaProvider> {
  let requests = 0;
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
  const admit = (asked: readonly RpcCall[], isBatch: boolean): void => {
    const { rate, fails, batch } = provider.personality;
    if (rate && !takeTokens(asked.length, rate.max)) throw new RefusedError(rate.refusal, { max: rate.max });
    if (fails && isOneIn(fails.every, requests)) throw new RefusedError(fails.refusal);
    if (batch && isBatch && asked.length > batch.max)
      throw new RefusedError(batch.refusal, { max: batch.max, count: asked.length });
  };

  const node = createNode(ledger, {
    personality: () => provider.personality,
    requests: () => requests,
  });

  const respond = async (body: string, response: ServerResponse): Promise<void> => {
    requests++;
    const { personality } = provider;
    const asked = JSON.parse(body) as RpcCall | RpcCall[];
    const list = Array.isArray(asked) ? asked : [asked];
    for (const call of list) {
      callsByMethod.set(call.method, (callsByMethod.get(call.method) ?? 0) + 1);
      provider.onCall(call);
    }
    if (personality.latencyMs !== undefined) await delay(personality.latencyMs, undefined, { ref: false });
    if (personality.resetsEvery !== undefined && isOneIn(personality.resetsEvery, requests)) {
      response.socket?.resetAndDestroy();
      return;
    }
    try {
      admit(list, Array.isArray(asked));
    } catch (error) {
      sendRefusal(response, error, Array.isArray(asked) ? null : list[0]?.id, personality);
      return;
    }
    if (!Array.isArray(asked)) {
      try {
        sendJson(response, { jsonrpc: '2.0', id: asked.id, result: node.answerTo(asked) });
      } catch (error) {
        sendRefusal(response, error, asked.id, personality);
      }
      return;
    }
    sendJson(
      response,
      list.map((call) => {
        try {
          return { jsonrpc: '2.0', id: call.id, result: node.answerTo(call) };
        } catch (error) {
          return { jsonrpc: '2.0', id: call.id, error: errorOf(error) };
        }
      }),
    );
  };

  const provider: Omit<SolanaProvider, 'url' | 'close'> = {
    ledger,
    personality: options.personality ?? archiveNode,
    get requests() {
      return requests;
    },
    get callsByMethod() {
      return callsByMethod;
    },
    onCall: () => undefined,
    resetCounts() {
      requests = 0;
      callsByMethod = new Map();
    },
  };

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      // A fault of the kit itself is an unhandled rejection, so that it never looks like one of the endpoint.
      void respond(Buffer.concat(chunks).toString('utf8'), response);
    });
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.defineProperties(provider, {
    url: { value: new URL(`http://127.0.0.1:${port}/`) },
    close: {
      value: () =>
        new Promise<void>((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    },
  }) as SolanaProvider;
}

function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
}

function sendRefusal(
  response: ServerResponse,
  error: unknown,
  id: unknown,
  { rate }: SolanaPersonality,
): void {
  if (!(error instanceof RefusedError)) throw error;
  const { message, status = 200, isPlainText, isReset }: Wording = error.wording;
  if (isReset) {
    response.socket?.resetAndDestroy();
    return;
  }
  if (rate?.retryAfterSeconds !== undefined && status === 429)
    response.setHeader('Retry-After', String(rate.retryAfterSeconds));
  if (isPlainText) response.writeHead(status, { 'Content-Type': 'text/plain' }).end(message);
  else sendJson(response, { jsonrpc: '2.0', id: id ?? null, error: errorOf(error) }, status);
}

function errorOf(error: unknown): Record<string, unknown> {
  if (!(error instanceof RefusedError)) throw error;
  const { code, message } = error.wording;
  return {
    ...(code !== undefined && { code }),
    message,
    ...(error.data !== undefined && { data: error.data }),
  };
}
