/** Turns the answers of one endpoint into results, or into errors that name the endpoint, the method and the reason. */
import type { ProblemKind } from '../../../domain/networks/indexing-problem.ts';
import { NodeError, RequestRefusedError } from '../faults.ts';
import type { RpcAnswer } from './endpoint.ts';
import type { Refusal, RefusalKind } from './rpc-error.ts';

/** What visitors are told of a refusal; `refused` where it is not listed. */
const problemOfRefusal: Partial<Record<RefusalKind, ProblemKind>> = {
  range: 'range-refused',
  rate: 'rate-limited',
  slow: 'slow',
  pruned: 'history-missing',
  behind: 'behind',
  denied: 'denied',
};

/** Refusals after which the endpoint would refuse the next request too. */
const lastingRefusals: ReadonlySet<RefusalKind> = new Set<RefusalKind>(['denied', 'behind']);

export interface AnswerReaderOptions {
  /** Of the endpoint. */
  readonly name: string;
  /** The class of errors that the family's parsers throw where an answer has not the shape it should have. */
  readonly malformed: abstract new (
    ...args: never[]
  ) => Error;
  /** What is said before the node's own words. */
  readonly explanations?: Partial<Record<RefusalKind, string>>;
}

export interface AnswerReader {
  fault(method: string, what: string, kind?: ProblemKind, Fault?: typeof NodeError): NodeError;
  /** What `read` makes of it; an answer that has not the shape it should have is the node's fault. */
  believed<T>(method: string, read: () => T): T;
  refused(method: string, refusal: Refusal): NodeError;
  resultOf(answer: RpcAnswer | undefined, method: string): unknown;
}

export function createAnswerReader({
  name,
  malformed,
  explanations = {},
}: AnswerReaderOptions): AnswerReader {
  const fault: AnswerReader['fault'] = (method, what, kind, Fault = NodeError) =>
    new Fault(`${name}: ${method}: ${what}`, kind);

  const refused: AnswerReader['refused'] = (method, { kind, code, message }) => {
    const words = `${explanations[kind] ?? ''}${message}${code === undefined ? '' : ` (${code})`}`;
    const Fault = lastingRefusals.has(kind) ? NodeError : RequestRefusedError;
    return fault(method, words, problemOfRefusal[kind] ?? 'refused', Fault);
  };

  return {
    fault,
    refused,
    believed(method, read) {
      try {
        return read();
      } catch (error) {
        if (error instanceof malformed) throw fault(method, `the answer has ${error.message}`);
        throw error;
      }
    },
    resultOf(answer, method) {
      if (answer === undefined) throw fault(method, 'no answer');
      if ('refusal' in answer) throw refused(method, answer.refusal);
      return answer.result;
    },
  };
}
