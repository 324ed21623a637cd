/** Why an execution failed, in words: what happened, who can fix it, and what to do. */

import { usesVerifiers } from '../lifecycle.ts';
import { quoted } from '../names/claimed-text.ts';
import {
  type Explanation,
  explainError,
  explainPanic,
  explainText,
  type Fixer,
  isExplained,
  lowerFirst,
  type Origin,
  panicText,
  titleOfError,
} from './explanations.ts';
import { type DecodedError, decodeRevertData, type ErrorTable, type RevertData } from './revert-data.ts';
import type { Speaker } from './speakers.ts';

export interface FailedAttempt {
  readonly returnData: Uint8Array;
  /** Of the whole execution, where the off-ramp says so. */
  readonly gasUsed?: bigint | undefined;
  /** That the message has for its receiver. */
  readonly gasLimit?: bigint | undefined;
  readonly version?: string | null | undefined;
  /** Whether it is of the whole call of the off-ramp, which checks the message before it executes it. */
  readonly isWhole?: boolean;
}

export interface FailureReason extends RevertData {
  /**
   * For grouping: the name of the innermost error, or one of `out-of-gas`, `no-reason`, `unknown-error`; on Solana also
   * `out-of-compute`, `program-error` (a number without a name) and `transaction-failed`. Any contract can use any name: see
   * `saidBy`.
   */
  readonly code: string;
  readonly saidBy: Speaker;
  /** One sentence, which says whose claim it is. It may hold text of untrusted contracts. */
  readonly text: string;
  readonly fixableBy: Fixer;
  readonly advice: string;
}

export interface GroupedReason extends FailureReason {
  /** What reasons of one group have in common. */
  readonly group: { readonly title: string; readonly detail: string };
}

type Words = Pick<GroupedReason, 'code' | 'text' | 'fixableBy' | 'advice' | 'group'>;

/** `0x` and four bytes. */
const SELECTOR_LENGTH = 10;
const OPERATOR_NAMED = "The error's name comes from the ABIs that this server's operator has added.";
const BORROWED_NAME =
  'Any contract can use the name of this error, so that it proves nothing about the lane.';

export function failureReason(attempt: FailedAttempt, errors?: readonly ErrorTable[]): GroupedReason {
  const decoded = decodeRevertData(attempt.returnData, errors);
  const origin = originOf(decoded, attempt);
  // From 2.0 on, off-ramps ask receivers, pools and verifiers during the execution and hand on what these revert with.
  const isGuarded = origin !== 'execution' || (attempt.version != null && !usesVerifiers(attempt.version));
  const place = isGuarded ? places[origin] : handedOn;
  return { ...decoded, saidBy: place.saidBy, ...wordsOf(decoded, place, origin, attempt) };
}

function wordsOf(decoded: RevertData, place: Place, origin: Origin, attempt: FailedAttempt): Words {
  const { error, data } = decoded;
  const { subject, fixableBy, advice, saidBy } = place;
  if (!error) return data === '0x' ? withoutReason(place, attempt) : unknownError(place, data);
  const { name } = error;
  const isFromOperator = error.namedBy === 'operator';
  const first = error.arguments[0]?.value;
  const explained = (explanation: Explanation, title: string, detail = ''): Words => ({
    code: name,
    text: explanation.text,
    fixableBy: explanation.fixableBy === 'called-contract' ? fixableBy : explanation.fixableBy,
    advice: explanation.advice,
    group: { title, detail },
  });
  // Explanations are of the errors of our tables: another contract may mean something else by the same name.
  if (!isFromOperator) {
    if (name === 'Error') {
      const message = first === undefined ? 'a message that was cut off' : quoted(first);
      const title = `${subject} reverted with ${message}`;
      // Messages that differ in numbers and addresses only are of one group.
      const detail = (first ?? '').replace(/0x[0-9a-f]+|\d+/gi, '#');
      return explained(explainText(subject, first, error.cut), title, detail);
    }
    if (name === 'Panic' && first)
      return explained(explainPanic(subject, first), `${subject} stopped: ${panicText(first)}`, first);
    const explanation = explainError(error, origin);
    if (explanation) {
      const said = (text: string) => (saidBy === 'ccip' ? text : `${subject} says: ${lowerFirst(text)}`);
      const title = said(titleOfError(name, origin) ?? name);
      return explained({ ...explanation, text: said(explanation.text) }, title);
    }
  }
  const about = isFromOperator ? ` ${OPERATOR_NAMED}` : isExplained(name) ? ` ${BORROWED_NAME}` : '';
  return {
    code: name,
    text: `${subject} reverted with ${writtenError(error)}.${about}`,
    fixableBy,
    advice,
    group: { title: `${subject} reverted with ${name}`, detail: isFromOperator ? 'operator' : '' },
  };
}

/** The part of an execution that an error came from. */
export interface Place {
  readonly saidBy: Speaker;
  readonly subject: string;
  readonly fixableBy: Fixer;
  readonly advice: string;
}

const execution: Place = {
  saidBy: 'ccip',
  subject: 'The execution',
  fixableBy: 'unknown',
  advice: 'Try a manual execution; if it fails too, its error says more.',
};

export const places = {
  receiver: {
    saidBy: 'receiver',
    subject: 'The receiver',
    fixableBy: 'receiver-owner',
    advice:
      "The receiver's code shows when it raises this error. Once the cause is gone, execute the message manually.",
  },
  token: {
    saidBy: 'token-pool',
    subject: 'The token or its pool',
    fixableBy: 'pool-owner',
    advice: 'Contact the operator of the token. Once the pool can release it, execute the message manually.',
  },
  'off-ramp': execution,
  execution,
  validator: execution,
} as const satisfies Readonly<Record<Origin, Place>>;
const handedOn: Place = {
  ...execution,
  saidBy: 'unknown',
  subject: 'The off-ramp or a contract that it called',
};

/** Off-ramps put these around what an execution reverted with. */
const executionWrappers: readonly string[] = ['ExecutionError', 'NoStateProgressMade'];
const calledBehind: Readonly<Record<string, Origin>> = {
  MessageValidationError: 'validator',
  ReceiverError: 'receiver',
  TokenHandlingError: 'token',
};

/** By the outermost error of the execution: the called contract chose what is inside it. */
function originOf({ wrappers }: RevertData, { isWhole = false }: FailedAttempt): Origin {
  const inside = wrappers.findIndex(({ name }) => !executionWrappers.includes(name));
  const outermost = wrappers[inside]?.name;
  if (outermost !== undefined && Object.hasOwn(calledBehind, outermost))
    return calledBehind[outermost] ?? 'execution';
  return isWhole && wrappers.length === 0 ? 'off-ramp' : 'execution';
}

function withoutReason(place: Place, { gasUsed, gasLimit }: FailedAttempt): Words {
  const { subject, fixableBy, advice } = place;
  // The receiver gets exactly the limit. Where the whole execution took less, it had not used that up.
  const mayBeGas = gasUsed === undefined || gasLimit === undefined || gasUsed >= gasLimit;
  if (!mayBeGas) {
    const title = `${subject} reverted without a reason`;
    return { code: 'no-reason', text: `${title}.`, fixableBy, advice, group: { title, detail: '' } };
  }
  const limit =
    gasLimit === undefined || place !== places.receiver
      ? ''
      : `; its gas limit is ${gasLimit.toLocaleString('en')}`;
  const used = gasUsed === undefined ? '' : `, and the execution used ${gasUsed.toLocaleString('en')}`;
  return {
    code: 'out-of-gas',
    text: `${subject} reverted without a reason, as a contract does that runs out of gas${limit}${used}.`,
    fixableBy: 'anyone',
    advice: 'Execute the message manually with a higher gas limit.',
    group: {
      title: `Out of gas: ${lowerFirst(subject)} reverted without a reason, at the gas limit`,
      detail: '',
    },
  };
}

function unknownError({ subject, fixableBy, advice }: Place, data: string): Words {
  const selector = data.slice(0, SELECTOR_LENGTH);
  return {
    code: 'unknown-error',
    text: `${subject} reverted with an error that is not known here (selector ${selector}).`,
    fixableBy,
    advice: `${advice} The contract's ABI names the error.`,
    group: { title: `${subject} reverted with an unknown error (${selector})`, detail: selector },
  };
}

/** As in code: `TokenRateLimitReached(minWaitInSeconds: 60, …)`. Text that could be taken for more than a value is quoted. */
export function writtenError({ name, arguments: given, cut }: DecodedError): string {
  const list = given.map((argument) => {
    const value = /^[\w\s,[\]…-]*$/.test(argument.value) ? argument.value : quoted(argument.value);
    return argument.name ? `${argument.name}: ${value}` : value;
  });
  return `${name}(${[...list, ...(cut ? ['…'] : [])].join(', ')})`;
}

// ---- Groups: messages that failed for the same cause, whatever the numbers in their errors

export interface ReasonGroup {
  /** The same exactly for reasons of the same group. */
  readonly key: string;
  /** As in the reason; `not-known` where nothing was returned to us. */
  readonly code: string;
  /** What happened, without the numbers of a single message. It may quote untrusted contracts. */
  readonly title: string;
  readonly fixableBy: Fixer;
}

/** Without return data: imported and mirrored messages, and those of chains that do not report it. */
const notKnown: ReasonGroup = {
  key: 'not-known',
  code: 'not-known',
  title: 'The reason is not known here',
  fixableBy: 'unknown',
};

const MAX_TITLE_LENGTH = 160;

export function reasonGroup(reason: GroupedReason | null): ReasonGroup {
  if (!reason) return notKnown;
  const { code, saidBy, fixableBy } = reason;
  const { title, detail } = reason.group;
  return {
    key: `${code} ${saidBy} ${fixableBy} ${detail}`,
    code,
    title: title.length > MAX_TITLE_LENGTH ? `${title.slice(0, MAX_TITLE_LENGTH - 1)}…` : title,
    fixableBy,
  };
}
