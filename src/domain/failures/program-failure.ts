/**
 * How a transaction of Solana failed: which program raised which error, from the transaction's error and its last log lines.
 *
 * A call that fails ends the whole transaction. So the first `failed` line names the program that raised the error, and those
 * that follow name its callers, up to the instruction of the transaction. What a program writes itself stands behind
 * `Program log:`; it is its own claim.
 *
 * A log is cut off where it gets too long, but shorter lines that still fit follow. A program can fill it so that its own
 * `failed` line is missing and that of its caller is there: of a log that was cut off, no line names the program.
 */
import { type CalledRole, programErrorNames } from './program-errors.ts';

/** What is kept of a failed transaction. */
export interface ProgramFailure {
  readonly offRamp: string;
  /** What the off-ramp called other programs for, by their addresses. */
  readonly roles: Readonly<Record<string, CalledRole>>;
  /** The error of the transaction as JSON: `{"InstructionError":[1,{"Custom":6001}]}`. */
  readonly error: string;
  /** The last lines of the log, shortened. */
  readonly logs: readonly string[];
}

/** `later`: a further instruction of the same transaction. */
export type FailedPart = CalledRole | 'off-ramp' | 'later' | 'unknown';

export interface RaisedError {
  /** The program that raised it; undefined where the log was cut off. */
  readonly program: string | undefined;
  readonly part: FailedPart;
  /** Of a custom error. */
  readonly number: number | undefined;
  /** Undefined where it is a number that is not known here. */
  readonly name: string | undefined;
  /** Whether the name is the program's own claim. */
  readonly isClaimed: boolean;
  /** The program's last words; undefined where it has none. */
  readonly words: string | undefined;
  /** Compute units that it had and used up. */
  readonly unitsUsedUp: number | undefined;
}

/** What Solana writes in place of the first line that does not fit. */
export const LOG_TRUNCATED = 'Log truncated';

/** The name of running out of compute units, for which the runtime has several. */
export const OUT_OF_COMPUTE = 'out-of-compute';

const ID = '([1-9A-HJ-NP-Za-km-z]{32,44})';
const FAILED = new RegExp(`^Program ${ID} failed: (.*)$`);
const FRAME = new RegExp(`^Program ${ID} (?:invoke \\[\\d+\\]|success)$`);
const CONSUMED = new RegExp(`^Program ${ID} consumed (\\d{1,10}) of (\\d{1,10}) compute units$`);
const LOG = 'Program log: ';
const ANCHOR_ERROR =
  /^AnchorError .*?Error Code: (\w{1,80})\. Error Number: (\d{1,10})\.(?: Error Message: (.*?)\.?)?$/;
const USED_UP = /exceeded CUs|computational budget exceeded/i;
const MAX_WORDS = 200;

export function raisedError(failure: ProgramFailure): RaisedError {
  const { logs } = failure;
  const isTruncated = logs.includes(LOG_TRUNCATED);
  const at = isTruncated ? -1 : logs.findIndex((line) => FAILED.test(line));
  const stack = isTruncated ? [] : logs.flatMap((line) => FAILED.exec(line)?.[1] ?? []);
  const [program] = stack;
  const part = partOf(stack, failure);
  const [, , failedText = ''] = (at >= 0 && FAILED.exec(logs[at] ?? '')) || [];
  // What the failing program wrote after its last call, without the prefix.
  const lines = logs.slice(0, Math.max(at, 0));
  const own = lines
    .slice(lines.findLastIndex((line) => FRAME.test(line)) + 1)
    .flatMap((line) => (line.startsWith(LOG) ? [line.slice(LOG.length)] : []));
  const runtime = runtimeError(failure.error);
  const units = logs.map((line) => CONSUMED.exec(line)).find((match) => match?.[1] === program);
  const isUsedUp =
    USED_UP.test(failedText) ||
    runtime.name === 'ComputationalBudgetExceeded' ||
    // The virtual machine's own line, which has no prefix of a program.
    logs.some((line) => line.startsWith('Program failed to complete: exceeded'));
  const common = { program, part, words: own.at(-1)?.slice(0, MAX_WORDS) };
  if (isUsedUp) {
    const unitsUsedUp = units && units[2] === units[3] ? Number(units[3]) : undefined;
    return { ...common, number: undefined, name: OUT_OF_COMPUTE, isClaimed: false, unitsUsedUp };
  }
  const { number } = runtime;
  if (number === undefined)
    return { ...common, number, name: runtime.name, isClaimed: false, unitsUsedUp: undefined };
  const anchor = own
    .map((line) => ANCHOR_ERROR.exec(line))
    .findLast((match) => Number(match?.[2]) === number);
  // A program that another one called in between does not act in the role that the off-ramp gave it.
  const isDirect = stack[1] === failure.offRamp;
  const role =
    program !== undefined && program === failure.offRamp
      ? 'off-ramp'
      : isDirect
        ? roleOf(program, failure)
        : undefined;
  const known = program === undefined ? [] : programErrorNames(program, role, number, anchor !== undefined);
  const claimed = anchor?.[1];
  const isKnown = claimed === undefined ? known.length === 1 : known.includes(claimed);
  return {
    ...common,
    words: anchor ? anchor[3]?.slice(0, MAX_WORDS) : common.words,
    number,
    name: claimed ?? (known.length === 1 ? known[0] : undefined),
    isClaimed: !isKnown,
    unitsUsedUp: undefined,
  };
}

/** @param stack the programs that failed, from the one that raised the error outwards */
function partOf(stack: readonly string[], failure: ProgramFailure): FailedPart {
  const place = stack.indexOf(failure.offRamp);
  if (stack.length === 0) return 'unknown';
  if (place < 0) return 'later';
  const called = stack[place - 1];
  return called === undefined ? 'off-ramp' : (roleOf(called, failure) ?? 'unknown');
}

function roleOf(program: string | undefined, { roles }: ProgramFailure): CalledRole | undefined {
  return program !== undefined && Object.hasOwn(roles, program) ? roles[program] : undefined;
}

/** Of the transaction's error: a custom number, or the name that the runtime has for it. */
function runtimeError(error: string): { readonly number?: number; readonly name?: string } {
  let value: unknown;
  try {
    value = JSON.parse(error);
  } catch {
    return {};
  }
  const inner = isFields(value) && Array.isArray(value.InstructionError) ? value.InstructionError[1] : value;
  if (typeof inner === 'string') return named(inner);
  if (!isFields(inner)) return {};
  const { Custom: number } = inner;
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return { number };
  return named(Object.keys(inner)[0] ?? '');
}

function named(text: string): { readonly name?: string } {
  return /^\w{1,80}$/.test(text) ? { name: text } : {};
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
