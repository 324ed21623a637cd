/** A real HTTP proxy in front of a node of the lab: it passes everything on, but for what it is told to change. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Asked, Refused } from './faulty-node.ts';

export interface NodeProxy {
  readonly url: URL;
  /** Every call, in the order of arrival. */
  readonly calls: Asked[];
  /** Path and `Authorization` of every HTTP request. */
  readonly requests: { readonly path: string; readonly authorization: string | undefined }[];
  /** What a call is answered, given the truth. Throws a Refused for an error. */
  interfere: (call: Asked, truth: unknown) => unknown;
  /** Hangs up on everybody. */
  isDown: boolean;
  /** How often it did. */
  hungUp: number;
  /** Asked before a request is passed on; the answer to one that is not let in is 401. */
  letsIn: (request: IncomingMessage) => boolean;
  close(): Promise<void>;
}

interface RawAnswer {
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

export const honest: NodeProxy['interfere'] = (_, truth) => truth;

export async function startNodeProxy(target: string): Promise<NodeProxy> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    if (proxy.isDown) {
      proxy.hungUp++;
      response.socket?.resetAndDestroy();
      return;
    }
    proxy.requests.push({ path: request.url ?? '', authorization: request.headers.authorization });
    response.setHeader('Content-Type', 'application/json');
    if (!proxy.letsIn(request)) {
      response.writeHead(401).end('{"error":"who are you?"}');
      return;
    }
    const body = Buffer.concat(chunks).toString('utf8');
    const asked = JSON.parse(body) as Asked | Asked[];
    proxy.calls.push(...[asked].flat());
    try {
      const answered = await fetch(target, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body,
      });
      const answers = [(await answered.json()) as RawAnswer | RawAnswer[]].flat();
      const changed = await Promise.all(
        [asked].flat().map(async (call) => {
          const answer = answers.find(({ id }) => id === call.id);
          if (!answer) throw new Error(`The node does not answer ${call.method}.`);
          return change(call, answer);
        }),
      );
      response.end(JSON.stringify(Array.isArray(asked) ? changed : changed[0]));
    } catch {
      // The node itself is gone.
      response.socket?.resetAndDestroy();
    }
  });

  const change = async (call: Asked, answer: RawAnswer): Promise<unknown> => {
    if (answer.error) return answer;
    try {
      return { ...answer, result: (await proxy.interfere(call, answer.result)) ?? null };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { jsonrpc: '2.0', id: call.id, error: { code: error.code, message: error.message } };
    }
  };

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const proxy: NodeProxy = {
    url: new URL(`http://127.0.0.1:${port}/`),
    calls: [],
    requests: [],
    interfere: honest,
    isDown: false,
    hungUp: 0,
    letsIn: () => true,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return proxy;
}

/** The blocks that a request for logs of a range covers; undefined for any other call. */
export function rangeOf({
  method,
  params,
}: Asked): { readonly from: number; readonly to: number } | undefined {
  const [filter] = params as [{ fromBlock?: string; toBlock?: string }?];
  if (method !== 'eth_getLogs' || filter?.fromBlock === undefined) return undefined;
  return { from: Number(filter.fromBlock), to: Number(filter.toBlock) };
}

/** Whether it asks for the logs of all trusted contracts in a range, not for those of the router alone. */
export function isHistoryCall(call: Asked): boolean {
  if (rangeOf(call) === undefined) return false;
  const { address } = call.params[0] as { readonly address?: readonly string[] };
  return address?.length !== 1;
}
