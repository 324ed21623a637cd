/** A proxy in front of a node: it passes every call on, and changes the answers as it is told. */
import {
  type JsonRpcAnswer,
  type JsonRpcCall,
  RpcError,
  rpcError,
  startJsonRpcServer,
} from '../json-rpc-server.ts';
import type { RawLog } from '../lab/lab.ts';

export type NodeProxy = Awaited<ReturnType<typeof startNodeProxy>>;
/** What a call is answered, given the truth. Throws an RpcError for an error. */
export type Interfere = (call: JsonRpcCall, truth: unknown) => unknown;

export const honest: Interfere = (_, truth) => truth;

/** Answers some calls with an error, all others with the truth. */
export const rejecting =
  (isRejected: (call: JsonRpcCall) => boolean, code: number, message: string): Interfere =>
  (call, truth) => {
    if (isRejected(call)) throw rpcError(code, message);
    return truth;
  };

/** Leaves out some logs; of a range only, it tells the truth of a single block. */
export const leavingOut =
  (isLeftOut: (log: RawLog) => boolean): Interfere =>
  (call, truth) =>
    rangeOf(call) ? (truth as readonly RawLog[]).filter((log) => !isLeftOut(log)) : truth;

export async function startNodeProxy(target: string) {
  const proxy = {
    /** Every call, in the order of arrival. */
    calls: [] as JsonRpcCall[],
    interfere: honest,
    /** Resets every connection. */
    isDown: false,
    /** How often it did. */
    hungUp: 0,
  };
  const change = async (call: JsonRpcCall, answer: JsonRpcAnswer): Promise<JsonRpcAnswer> => {
    if (answer.error) return answer;
    try {
      return { ...answer, result: (await proxy.interfere(call, answer.result)) ?? null };
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      return { jsonrpc: '2.0', id: call.id, error: error.reply };
    }
  };
  const server = await startJsonRpcServer({
    profile: {},
    answererOf: () => () => undefined,
    async interfere(calls, _request, isBatch) {
      if (proxy.isDown) {
        proxy.hungUp++;
        return { fault: 'reset' };
      }
      proxy.calls.push(...calls);
      try {
        const body = JSON.stringify(isBatch ? calls : calls[0]);
        const headers = { 'Content-Type': 'application/json' };
        const answered = await fetch(target, { method: 'POST', headers, body });
        const answers = [(await answered.json()) as JsonRpcAnswer | JsonRpcAnswer[]].flat();
        const changed = await Promise.all(
          calls.map((call) => change(call, answers.find(({ id }) => id === call.id) as JsonRpcAnswer)),
        );
        return { answer: (call) => changed[calls.indexOf(call)] as JsonRpcAnswer };
      } catch {
        // The node itself is gone.
        return { fault: 'reset' };
      }
    },
  });
  return Object.assign(proxy, { url: server.url, close: server.close });
}

/** The blocks that a request for logs of a range covers; undefined for any other call. */
export function rangeOf({
  method,
  params,
}: JsonRpcCall): { readonly from: number; readonly to: number } | undefined {
  const [filter] = params as [{ fromBlock?: string; toBlock?: string }?];
  if (method !== 'eth_getLogs' || filter?.fromBlock === undefined) return undefined;
  return { from: Number(filter.fromBlock), to: Number(filter.toBlock) };
}

/** Whether it asks for the logs of a range with this block in it. */
export function isInRange(call: JsonRpcCall, blockNumber: number): boolean {
  const range = rangeOf(call);
  return range !== undefined && range.from <= blockNumber && blockNumber <= range.to;
}

/** Whether it asks for the logs of all trusted contracts in a range, not for those of the router alone. */
export function isHistoryCall(call: JsonRpcCall): boolean {
  if (rangeOf(call) === undefined) return false;
  const { address } = call.params[0] as { readonly address?: readonly string[] };
  return address?.length !== 1;
}
