/**
 * A scripted Solana runtime: turns a tree of program calls into a transaction with the logs, inner instructions and
 * errors that the real one makes. What each program says and calls is given; grammar, stack heights, truncation and
 * the spread of failures are the runtime's.
 */
import { toBase58, toBase64 } from './bytes.ts';

// ---- Transactions

/** As `getTransaction` answers it in the encoding `json`, without what its profile changes. */
export interface LedgerTransaction {
  readonly signature: string;
  readonly slot: number;
  readonly version: 'legacy' | number;
  readonly message: TransactionMessage;
  readonly meta: TransactionMeta;
}

export interface TransactionMessage {
  readonly header: {
    readonly numRequiredSignatures: number;
    readonly numReadonlySignedAccounts: number;
    readonly numReadonlyUnsignedAccounts: number;
  };
  /** Those that are loaded from lookup tables are in the meta. */
  readonly accountKeys: readonly string[];
  readonly recentBlockhash: string;
  readonly instructions: readonly CompiledInstruction[];
  readonly addressTableLookups?: readonly {
    readonly accountKey: string;
    readonly writableIndexes: readonly number[];
    readonly readonlyIndexes: readonly number[];
  }[];
  /** Of version 1, in place of instructions to the compute budget program. */
  readonly transactionConfig?: { readonly computeUnitLimit: number; readonly priorityFee: number };
}

export interface CompiledInstruction {
  readonly programIdIndex: number;
  readonly accounts: readonly number[];
  /** Base58. */
  readonly data: string;
  readonly stackHeight: number | null;
}

export interface TransactionMeta {
  /** Null where it succeeded. */
  readonly err: TransactionFault | null;
  readonly fee: number;
  readonly computeUnitsConsumed: number;
  readonly logMessages: readonly string[];
  readonly innerInstructions: readonly {
    readonly index: number;
    readonly instructions: readonly CompiledInstruction[];
  }[];
  readonly loadedAddresses: { readonly writable: readonly string[]; readonly readonly: readonly string[] };
  readonly returnData?: { readonly programId: string; readonly data: readonly [string, 'base64'] };
}

/** As nodes write it, such as `{"InstructionError":[1,{"Custom":6001}]}`. */
export type TransactionFault = string | { readonly [kind: string]: unknown };

// ---- Plans of transactions

export interface AccountUse {
  readonly address: string;
  readonly isWritable?: boolean;
}

/** One invocation of a program. */
export interface Call {
  readonly program: string;
  readonly accounts?: readonly AccountUse[];
  readonly data?: Uint8Array;
  readonly steps?: readonly Step[];
  /** Built-in programs, which say nothing of compute units. */
  readonly isNative?: boolean;
}

export type Step =
  | { readonly log: string }
  /** An event, or several values in one line. */
  | { readonly data: Uint8Array | readonly Uint8Array[] }
  | { readonly call: Call }
  | { readonly returns: Uint8Array }
  | { readonly fails: Failure };

export interface Failure {
  /** As in `InstructionError`. */
  readonly error: string | { readonly Custom: number };
  /** As in the log. */
  readonly text: string;
}

export const customFailure = (code: number): Failure => ({
  error: { Custom: code },
  text: `custom program error: 0x${code.toString(16)}`,
});
export const budgetExceeded: Failure = {
  error: 'ComputationalBudgetExceeded',
  text: 'Computational budget exceeded',
};

export interface TransactionPlan {
  readonly feePayer: string;
  readonly instructions: readonly Call[];
  /** Accounts that come from an address lookup table. */
  readonly lookup?: { readonly table: string; readonly addresses: readonly string[] };
  /** Legacy, or 0 where a lookup table is used, unless it is given. Version 1 has no lookup tables. */
  readonly version?: 'legacy' | 0 | 1;
}

export const COMPUTE_BUDGET = 'ComputeBudget111111111111111111111111111111';
export const SYSTEM_PROGRAM = '11111111111111111111111111111111';

/** Bytes of log text that a transaction keeps. */
export const LOG_BYTES = 10_000;
const UNITS_PER_CALL = 1_500;
const UNIT_LIMIT = 400_000;
const FEE_LAMPORTS = 5_000;

/** Lines that do not fit are left out; later ones that are shorter may fit. */
function createLog() {
  const lines: string[] = [];
  let written = 0;
  let isTruncated = false;
  return {
    lines,
    write(line: string): void {
      if (written + line.length < LOG_BYTES) {
        written += line.length;
        lines.push(line);
      } else if (!isTruncated) {
        isTruncated = true;
        lines.push('Log truncated');
      }
    },
  };
}

/** Where a transaction lands. */
export interface Landing {
  readonly signature: string;
  readonly slot: number;
  readonly recentBlockhash: string;
}

export function runTransaction(
  plan: TransactionPlan,
  { signature, slot, recentBlockhash }: Landing,
): LedgerTransaction {
  const { keys, ...composed } = composeMessage(plan, recentBlockhash);
  const log = createLog();
  const innerInstructions: { index: number; instructions: CompiledInstruction[] }[] = [];
  let units = 0;
  let returned: { readonly programId: string; readonly data: Uint8Array } | undefined;

  const invoke = (call: Call, height: number, inner: CompiledInstruction[]): Failure | undefined => {
    const { program, steps = [], isNative = false } = call;
    if (height > 1) inner.push(compileCall(call, keys, height));
    log.write(`Program ${program} invoke [${height}]`);
    returned = undefined;
    const unitsBefore = units;
    let failure: Failure | undefined;
    for (const step of steps) {
      if ('log' in step) log.write(`Program log: ${step.log}`);
      else if ('data' in step) log.write(`Program data: ${[step.data].flat().map(toBase64).join(' ')}`);
      else if ('returns' in step) returned = { programId: program, data: step.returns };
      else if ('call' in step) failure = invoke(step.call, height + 1, inner);
      else failure = step.fails;
      if (failure) break;
    }
    units += isNative ? 150 : UNITS_PER_CALL;
    if (!isNative) {
      log.write(
        `Program ${program} consumed ${units - unitsBefore} of ${UNIT_LIMIT - unitsBefore} compute units`,
      );
      if (returned) log.write(`Program return: ${program} ${toBase64(returned.data)}`);
    }
    log.write(failure ? `Program ${program} failed: ${failure.text}` : `Program ${program} success`);
    return failure;
  };

  let err: TransactionFault | null = null;
  for (const [index, call] of plan.instructions.entries()) {
    const inner: CompiledInstruction[] = [];
    const failure = invoke(call, 1, inner);
    if (inner.length > 0) innerInstructions.push({ index, instructions: inner });
    if (!failure) continue;
    err = { InstructionError: [index, failure.error] };
    break;
  }

  const meta: TransactionMeta = {
    err,
    fee: FEE_LAMPORTS,
    computeUnitsConsumed: units,
    logMessages: log.lines,
    innerInstructions,
    loadedAddresses: { writable: keys.loadedWritable, readonly: keys.loadedReadonly },
    ...(returned && {
      returnData: { programId: returned.programId, data: [toBase64(returned.data), 'base64'] as const },
    }),
  };
  return { ...composed, signature, slot, meta };
}

/** The message of a plan, without what came of it. */
function composeMessage(
  plan: TransactionPlan,
  recentBlockhash: string,
): Pick<LedgerTransaction, 'version' | 'message'> & { readonly keys: Keys } {
  const { lookup } = plan;
  const keys = compileKeys(plan);
  const version = plan.version ?? (lookup ? 0 : 'legacy');
  if (lookup && version !== 0) throw new RangeError(`Version ${version} has no lookup tables.`);
  const indexesFrom = (addresses: readonly string[]) =>
    addresses.map((address) => lookup?.addresses.indexOf(address) ?? 0);
  const message: TransactionMessage = {
    header: {
      numRequiredSignatures: 1,
      numReadonlySignedAccounts: 0,
      numReadonlyUnsignedAccounts: keys.readonlyCount,
    },
    accountKeys: keys.fixed,
    recentBlockhash,
    instructions: plan.instructions.map((call) => compileCall(call, keys, 1)),
    ...(version === 1 && { transactionConfig: { computeUnitLimit: UNIT_LIMIT, priorityFee: 0 } }),
    ...(version === 0 && {
      addressTableLookups: lookup
        ? [
            {
              accountKey: lookup.table,
              writableIndexes: indexesFrom(keys.loadedWritable),
              readonlyIndexes: indexesFrom(keys.loadedReadonly),
            },
          ]
        : [],
    }),
  };
  return { version, message, keys };
}

function compileCall(
  { program, accounts = [], data = new Uint8Array() }: Call,
  { all }: Keys,
  height: number,
): CompiledInstruction {
  const indexOf = (address: string): number => {
    const index = all.indexOf(address);
    if (index < 0) throw new Error(`${address} is not among the transaction's accounts.`);
    return index;
  };
  return {
    programIdIndex: indexOf(program),
    accounts: accounts.map(({ address }) => indexOf(address)),
    data: toBase58(data),
    stackHeight: height,
  };
}

interface Keys {
  /** In the message itself. */
  readonly fixed: readonly string[];
  readonly readonlyCount: number;
  readonly loadedWritable: readonly string[];
  readonly loadedReadonly: readonly string[];
  /** In the order that indexes count in. */
  readonly all: readonly string[];
}

function compileKeys({ feePayer, instructions, lookup }: TransactionPlan): Keys {
  const writable = new Set<string>();
  const named = new Set<string>();
  const fixedOnly = new Set([feePayer, ...instructions.map(({ program }) => program)]);
  const collect = ({ program, accounts = [], steps = [] }: Call) => {
    named.add(program);
    for (const { address, isWritable } of accounts) {
      named.add(address);
      if (isWritable) writable.add(address);
    }
    for (const step of steps) if ('call' in step) collect(step.call);
  };
  instructions.forEach(collect);
  named.delete(feePayer);
  writable.delete(feePayer);
  const isLoaded = (address: string) =>
    !fixedOnly.has(address) && (lookup?.addresses.includes(address) ?? false);
  const parted = (isFrom: boolean, canWrite: boolean) =>
    [...named].filter((address) => isLoaded(address) === isFrom && writable.has(address) === canWrite);
  const fixedReadonly = parted(false, false);
  const fixed = [feePayer, ...parted(false, true), ...fixedReadonly];
  const loadedWritable = parted(true, true);
  const loadedReadonly = parted(true, false);
  return {
    fixed,
    readonlyCount: fixedReadonly.length,
    loadedWritable,
    loadedReadonly,
    all: [...fixed, ...loadedWritable, ...loadedReadonly],
  };
}
