/** A transaction of Solana as the reader needs it, and its shape in the answer to `getTransaction`. */
import { parseAddress } from '../../domain/addresses.ts';
import { type Fields, fieldsOf, listOf, UnreadableDataError } from '../engine/json-rpc/answer-reader.ts';

export interface Instruction {
  readonly program: string;
  /** The instruction that called it; undefined at the top level, and where the node does not tell. */
  readonly caller: Instruction | undefined;
  /** The place of the top-level instruction that it is, or belongs to. */
  readonly outerIndex: number;
  /** Base58. */
  readonly data: string;
}

export interface SolanaTransaction {
  /** The first one, by which the transaction is known. */
  readonly signature: string;
  readonly slot: number;
  /** Seconds since 1970; null where the node does not say. */
  readonly blockTime: number | null;
  /** Nothing of a failed transaction has happened, and its logs are kept all the same. */
  readonly isFailed: boolean;
  /** Why it failed, as JSON; `null` where it did not. */
  readonly error: string;
  /** The place of the top-level instruction that failed; undefined where none did, or the error names none. */
  readonly failedIndex: number | undefined;
  /** Null where the node does not say. */
  readonly computeUnits: number | null;
  readonly feePayer: string;
  /** In the order of execution. */
  readonly instructions: readonly Instruction[];
  readonly logs: readonly string[];
}

/** In base58: four times the 10,240 bytes that the runtime allows. Decoding takes time, and a node may send anything. */
const MAX_DATA_CHARACTERS = 56_000;

/** Throws an UnreadableDataError where the answer has not the shape of a transaction, or lacks logs. */
export function parseTransaction(value: unknown, signature: string): SolanaTransaction {
  const answer = fieldsOf(value, 'transaction');
  const transaction = fieldsOf(answer.transaction, 'transaction');
  const message = fieldsOf(transaction.message, 'message');
  const meta = fieldsOf(answer.meta, 'meta');
  const [first] = listOf(transaction.signatures, 'signatures');
  if (first !== signature) throw new UnreadableDataError('another transaction than the one asked for');
  // Nodes that do not record them answer null, which does not mean that there were none.
  const logs = listOf(meta.logMessages, 'logMessages').map((line) => textOf(line, 'line of the logs'));
  const inner = listOf(meta.innerInstructions, 'innerInstructions');
  const keys = accountKeys(message, meta);
  const [feePayer] = keys;
  if (feePayer === undefined) throw new UnreadableDataError('no fee payer');
  return {
    signature,
    slot: countOf(answer.slot, 'slot'),
    blockTime:
      answer.blockTime === null || answer.blockTime === undefined
        ? null
        : countOf(answer.blockTime, 'blockTime'),
    isFailed: meta.err !== null,
    error: JSON.stringify(meta.err) ?? '',
    failedIndex: failedIndexOf(meta.err),
    computeUnits: unitsOf(meta.computeUnitsConsumed),
    feePayer,
    instructions: instructionsOf(listOf(message.instructions, 'instructions'), inner, keys),
    logs,
  };
}

/** Of `{"InstructionError":[1,"ProgramFailedToComplete"]}`. */
function failedIndexOf(error: unknown): number | undefined {
  const [index]: readonly unknown[] = [(error as Fields | null | undefined)?.InstructionError].flat();
  return typeof index === 'number' ? index : undefined;
}

function unitsOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/** Those of the message, then those that lookup tables add. */
function accountKeys(message: Fields, meta: Fields): readonly string[] {
  const loaded = meta.loadedAddresses == null ? {} : fieldsOf(meta.loadedAddresses, 'loadedAddresses');
  return [message.accountKeys, loaded.writable ?? [], loaded.readonly ?? []].flatMap((keys) =>
    listOf(keys, 'accountKeys').map((key) => {
      const text = textOf(key, 'account key');
      if (!parseAddress(text, 'SVM')) throw new UnreadableDataError('an account key that is not an address');
      return text;
    }),
  );
}

function instructionsOf(outer: readonly unknown[], inner: readonly unknown[], keys: readonly string[]) {
  const groups = new Map<number, readonly unknown[]>();
  for (const entry of inner) {
    const group = fieldsOf(entry, 'inner instructions');
    const index = countOf(group.index, 'index of inner instructions');
    if (index >= outer.length || groups.has(index)) {
      throw new UnreadableDataError('inner instructions of no instruction');
    }
    groups.set(index, listOf(group.instructions, 'inner instructions'));
  }
  return outer.flatMap((value, outerIndex) => {
    const { height: _, ...rest } = instructionOf(value, keys);
    const top: Instruction = { ...rest, caller: undefined, outerIndex };
    /** The calls from the top down; a height of 1 is the top. */
    const stack = [top];
    const below = (groups.get(outerIndex) ?? []).map((entry): Instruction => {
      const { height, ...called } = instructionOf(entry, keys);
      if (height === undefined) return { ...called, caller: undefined, outerIndex };
      const caller = stack[height - 2];
      if (caller === undefined) throw new UnreadableDataError('an inner instruction that nobody called');
      const instruction = { ...called, caller, outerIndex };
      stack.splice(height - 1, stack.length, instruction);
      return instruction;
    });
    return [top, ...below];
  });
}

function instructionOf(value: unknown, keys: readonly string[]) {
  const instruction = fieldsOf(value, 'instruction');
  const program = keys[countOf(instruction.programIdIndex, 'programIdIndex')];
  if (program === undefined) throw new UnreadableDataError('an instruction of no program');
  const { stackHeight } = instruction;
  const data = textOf(instruction.data, 'data of an instruction');
  if (data.length > MAX_DATA_CHARACTERS) {
    throw new UnreadableDataError(`an instruction with ${data.length} characters of data`);
  }
  return {
    program,
    data,
    height: typeof stackHeight === 'number' && stackHeight >= 2 ? stackHeight : undefined,
  };
}

export function textOf(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new UnreadableDataError(`no text as ${what}`);
  return value;
}

/** A number of slots, seconds or places: whole, and not negative. */
export function countOf(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new UnreadableDataError(`no number as ${what}`);
  }
  return value;
}
