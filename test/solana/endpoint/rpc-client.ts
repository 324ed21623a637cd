/** A plain JSON-RPC client for tests that ask an endpoint directly. */

export interface RpcFault {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** An answer that is an error. */
export class RpcAnswerError extends Error {
  readonly fault: RpcFault;
  constructor(fault: RpcFault) {
    super(fault.message);
    this.fault = fault;
  }
}

export type Ask = <T = unknown>(method: string, ...params: readonly unknown[]) => Promise<T>;

export function createAsk(url: URL): Ask {
  return async (method, ...params) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const { result, error } = (await response.json()) as { result: never; error?: RpcFault };
    if (error) throw new RpcAnswerError(error);
    return result;
  };
}
