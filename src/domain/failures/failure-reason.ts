/** Why an execution failed, in words: what happened, who can fix it, and what to do. */
import type { ErrorTable } from './error-signatures.ts';
import { type Explanation, explainError, explainPanic, explainText, type Fixer } from './explanations.ts';
import { type DecodedError, decodeRevertData, type RevertData } from './revert-data.ts';

/** What is known of an attempt to execute a message. */
export interface FailedAttempt {
  /** What the execution returned. */
  readonly returnData: Uint8Array;
  /** Of the whole execution, where the off-ramp says so. */
  readonly gasUsed?: bigint | undefined;
  /** That the message has for its receiver. */
  readonly gasLimit?: bigint | undefined;
}

export interface FailureReason extends RevertData {
  /**
   * For grouping: the name of the innermost error, or one of `out-of-gas`, `no-reason`, `unknown-error`; on Solana also
   * `out-of-compute`, `program-error` (a number without a name) and `transaction-failed`.
   */
  readonly code: string;
  /** One sentence. It may hold text of untrusted contracts. */
  readonly text: string;
  readonly fixableBy: Fixer;
  /** What to do, in one or two sentences. */
  readonly advice: string;
  /** What reasons of one group have in common, where the error's name alone does not tell. */
  readonly group?: { readonly title: string; readonly detail: string };
}

/** `0x` and four bytes. */
const SELECTOR_LENGTH = 10;
const OPERATOR_NAMED = "The error's name comes from the ABIs that this server's operator has added.";

export function failureReason(attempt: FailedAttempt, errors?: readonly ErrorTable[]): FailureReason {
  const decoded = decodeRevertData(attempt.returnData, errors);
  return { ...decoded, ...reasonOf(decoded, attempt) };
}

function reasonOf(
  decoded: RevertData,
  attempt: FailedAttempt,
): Pick<FailureReason, 'code' | 'text' | 'fixableBy' | 'advice'> {
  const { error, data, wrappers } = decoded;
  const place = placeOf(wrappers);
  if (!error) return data === '0x' ? withoutReason(place, attempt) : unknownError(place, data);
  const explanation = explanationOf(error);
  if (explanation) {
    const { text, fixableBy, advice } = explanation;
    const fixer = fixableBy === 'called-contract' ? place.fixableBy : fixableBy;
    return { code: error.name, text, fixableBy: fixer, advice };
  }
  const origin = error.isFromOperator ? ` ${OPERATOR_NAMED}` : '';
  return {
    code: error.name,
    text: `${place.subject} reverted with ${writtenError(error)}.${origin}`,
    fixableBy: place.fixableBy,
    advice: place.advice,
  };
}

/** Explanations are of the errors of our tables: another contract may mean something else by the same name. */
function explanationOf(error: DecodedError): Explanation | undefined {
  if (error.isFromOperator) return undefined;
  const [first] = error.arguments;
  if (error.name === 'Error') return explainText(first?.value, error.isCut);
  if (error.name === 'Panic' && first) return explainPanic(first.value);
  return explainError(error);
}

interface Place {
  readonly subject: string;
  readonly fixableBy: Fixer;
  readonly advice: string;
}

const places: Readonly<Record<'receiver' | 'token' | 'offramp', Place>> = {
  receiver: {
    subject: 'The receiver',
    fixableBy: 'receiver-owner',
    advice:
      "The receiver's code says when it raises this. Once that no longer holds, execute the message manually.",
  },
  token: {
    subject: 'The token or its pool',
    fixableBy: 'pool-owner',
    advice: 'Ask the operator of the token. Once the pool can hand it out, execute the message manually.',
  },
  offramp: {
    subject: 'The execution',
    fixableBy: 'unknown',
    advice: 'Try a manual execution; if it fails too, its error says more.',
  },
};

/** Which contract raised the error, by what wraps it. */
function placeOf(wrappers: readonly DecodedError[]): Place {
  const names = wrappers.map(({ name }) => name);
  if (names.includes('ReceiverError')) return places.receiver;
  return names.includes('TokenHandlingError') ? places.token : places.offramp;
}

function withoutReason(
  { subject, fixableBy, advice }: Place,
  { gasUsed, gasLimit }: FailedAttempt,
): ReturnType<typeof reasonOf> {
  // The receiver gets exactly the limit. Where the whole execution took less, it had not used that up.
  const mayBeGas = gasUsed === undefined || gasLimit === undefined || gasUsed >= gasLimit;
  if (!mayBeGas)
    return { code: 'no-reason', text: `${subject} reverted without a reason.`, fixableBy, advice };
  const limit = gasLimit === undefined ? '' : `; its gas limit is ${gasLimit.toLocaleString('en')}`;
  const used = gasUsed === undefined ? '' : `, and the execution used ${gasUsed.toLocaleString('en')}`;
  return {
    code: 'out-of-gas',
    text: `${subject} reverted without a reason, as a contract does that runs out of gas${limit}${used}.`,
    fixableBy: 'anyone',
    advice: 'Execute the message manually with a higher gas limit.',
  };
}

function unknownError({ subject, fixableBy, advice }: Place, data: string): ReturnType<typeof reasonOf> {
  return {
    code: 'unknown-error',
    text: `${subject} reverted with an error that is not known here (selector ${data.slice(0, SELECTOR_LENGTH)}).`,
    fixableBy,
    advice: `${advice} The contract's ABI names the error.`,
  };
}

/** As in code: `TokenRateLimitReached(minWaitInSeconds: 60, …)`. */
export function writtenError({ name, arguments: given, isCut }: DecodedError): string {
  const list = given.map((argument) =>
    argument.name ? `${argument.name}: ${argument.value}` : argument.value,
  );
  return `${name}(${[...list, ...(isCut ? ['…'] : [])].join(', ')})`;
}
