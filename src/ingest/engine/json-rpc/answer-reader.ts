/** Turns the answers of one endpoint into results, or into errors that name the endpoint, the method and the reason. */
import type { ProblemKind } from '../../../domain/networks/indexing-problem.ts';
import { NodeError, RequestRejectedError } from '../faults.ts';
import type { RpcAnswer } from './endpoint.ts';
import type { RpcError, RpcErrorKind } from './rpc-error.ts';

/** What visitors are told of an RPC error; `rejected` where it is not listed. */
const problemOfError: Partial<Record<RpcErrorKind, ProblemKind>> = {
  range: 'range-refused',
  rate: 'rate-limited',
  slow: 'slow',
  pruned: 'history-missing',
  behind: 'behind',
  denied: 'denied',
};

/** RPC errors after which the endpoint would reject the next request too. */
const lastingErrors: ReadonlySet<RpcErrorKind> = new Set<RpcErrorKind>(['denied', 'behind']);

/** Bytes, text or an answer of a node that cannot be what it should be; the message says why. */
export class UnreadableDataError extends Error {
  override readonly name = 'UnreadableDataError';
}

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UnreadableDataError(`no ${what}`);
  return value as Fields;
}

export function listOf(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new UnreadableDataError(`no ${what}`);
  return value;
}

/**
 * @param name of the endpoint
 * @param explanations what is said before the node's own words
 */
export function createAnswerReader(name: string, explanations: Partial<Record<RpcErrorKind, string>> = {}) {
  const fault = (method: string, what: string, kind?: ProblemKind, Fault = NodeError) =>
    new Fault(`${name}: ${method}: ${what}`, kind);

  const rejected = (method: string, { kind, code, message }: RpcError): NodeError => {
    const words = `${explanations[kind] ?? ''}${message}${code === undefined ? '' : ` (${code})`}`;
    const Fault = lastingErrors.has(kind) ? NodeError : RequestRejectedError;
    return fault(method, words, problemOfError[kind] ?? 'refused', Fault);
  };

  return {
    fault,
    rejected,
    /** What `read` makes of it; an answer that has not the shape it should have is the node's fault. */
    parsed<T>(method: string, read: () => T): T {
      try {
        return read();
      } catch (error) {
        if (error instanceof UnreadableDataError) throw fault(method, `the answer has ${error.message}`);
        throw error;
      }
    },
    resultOf(answer: RpcAnswer | undefined, method: string): unknown {
      if (answer === undefined) throw fault(method, 'no answer');
      if ('error' in answer) throw rejected(method, answer.error);
      return answer.result;
    },
  };
}
