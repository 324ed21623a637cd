/**
 * Runs the plans of virtual clusters in Solana's real virtual machine: its logs, stack heights, truncation, return data and
 * failures instead of the scripted runtime's. Every program is the stand-in, at the address that the plan calls.
 */
import { createRequire } from 'node:module';
import {
  addressOf,
  concat,
  fromBase58,
  pubkey,
  toBase58,
  toBase64,
  u8,
  u32,
  u64,
} from '../../solana/runtime/bytes.ts';
import type { LedgerTransaction, TransactionFault, TransactionMessage } from '../../solana/runtime/ledger.ts';
import {
  type AccountUse,
  type Call,
  composeMessage,
  type Runtime,
  type Step,
  SYSTEM_PROGRAM,
  type TransactionPlan,
} from '../../solana/runtime/runtime.ts';
import { assembleStandIn, scriptEntry, scripts } from './stand-in-program.ts';

// The virtual machine from npm. Its types are our own, of just what is used: the sources type-check without the lab's packages.

interface VmMetadata {
  logs(): string[];
  innerInstructions(): {
    instruction(): { programIdIndex(): number; accounts(): Uint8Array; data(): Uint8Array };
    stackHeight(): number;
  }[][];
  computeUnitsConsumed(): bigint;
  returnData(): { programId(): Uint8Array; data(): Uint8Array };
}

/** Of a transaction that failed. */
interface VmFailure {
  err(): { readonly index?: number; err?(): { readonly code?: number } };
  meta(): VmMetadata;
}

interface Vm {
  withSigverify(isOn: boolean): Vm;
  withBlockhashCheck(isOn: boolean): Vm;
  withTransactionHistory(capacity: bigint): Vm;
  setAccount(account: {
    readonly address: string;
    readonly data: Uint8Array;
    readonly executable: boolean;
    readonly lamports: bigint;
    readonly programAddress: string;
    readonly space: bigint;
  }): void;
  addProgram(address: string, elf: Uint8Array): void;
  warpToSlot(slot: bigint): void;
  sendTransaction(transaction: {
    readonly messageBytes: Uint8Array;
    readonly signatures: Readonly<Record<string, Uint8Array>>;
  }): VmMetadata | VmFailure;
}

const { LiteSVM } = createRequire(import.meta.url)('litesvm') as { LiteSVM: new () => Vm };

const LOOKUP_TABLE_PROGRAM = 'AddressLookupTab1e1111111111111111111111111';
const LAMPORTS = 10n ** 15n;
const FEE_LAMPORTS = 5_000;
/** The account that scripts are in: the one thing in a transaction that a cluster would not have. */
export const scriptAccount = addressOf('script of the stand-in program');

export function createVmRuntime(): Runtime {
  const vm = new LiteSVM().withSigverify(false).withBlockhashCheck(false).withTransactionHistory(0n);
  const standIn = assembleStandIn();
  const deployed = new Set<string>();

  const setAccount = (address: string, owner: string, data: Uint8Array = new Uint8Array()) =>
    vm.setAccount({
      address,
      data,
      executable: false,
      lamports: LAMPORTS,
      programAddress: owner,
      space: BigInt(data.length),
    });

  return (plan, { signature, slot, recentBlockhash }) => {
    const scripted = withScripts(plan);
    for (const program of programsOf(plan)) {
      if (deployed.has(program)) continue;
      vm.addProgram(program, standIn);
      deployed.add(program);
    }
    vm.warpToSlot(BigInt(slot));
    setAccount(plan.feePayer, SYSTEM_PROGRAM);
    setAccount(scriptAccount, SYSTEM_PROGRAM, scriptTable(plan));
    if (plan.lookup) setAccount(plan.lookup.table, LOOKUP_TABLE_PROGRAM, lookupTable(plan.lookup.addresses));
    const { keys, message, version } = composeMessage(scripted, recentBlockhash);
    const outcome = vm.sendTransaction({
      messageBytes: encodeMessage(message),
      signatures: { [plan.feePayer]: fromBase58(signature) },
    });
    const isFailure = 'err' in outcome;
    const meta: VmMetadata = isFailure ? outcome.meta() : outcome;
    const logMessages = meta.logs();
    if (isFailure && logMessages.length === 0)
      throw new Error(`The virtual machine rejected a transaction: ${outcome.toString()}`);
    const returned = meta.returnData();
    const transaction: LedgerTransaction = {
      signature,
      slot,
      version,
      message,
      meta: {
        err: isFailure ? faultOf(outcome) : null,
        fee: FEE_LAMPORTS,
        computeUnitsConsumed: Number(meta.computeUnitsConsumed()),
        logMessages,
        innerInstructions: meta
          .innerInstructions()
          .map((inner, index) => ({
            index,
            instructions: inner.map((one) => ({
              programIdIndex: one.instruction().programIdIndex(),
              accounts: [...one.instruction().accounts()],
              data: toBase58(one.instruction().data()),
              stackHeight: one.stackHeight(),
            })),
          }))
          .filter(({ instructions }) => instructions.length > 0),
        loadedAddresses: { writable: keys.loadedWritable, readonly: keys.loadedReadonly },
        ...(returned.data().length > 0 && {
          returnData: {
            programId: toBase58(returned.programId()),
            data: [toBase64(returned.data()), 'base64'] as const,
          },
        }),
      },
    };
    return transaction;
  };
}

const callsIn = ({ steps = [] }: Call): readonly Call[] =>
  steps.flatMap((step) => ('call' in step ? [step.call] : []));

/** A call and all calls that come of it. */
function descentOf(call: Call): readonly Call[] {
  return [call, ...callsIn(call).flatMap(descentOf)];
}

function programsOf({ instructions }: TransactionPlan): ReadonlySet<string> {
  const calls = instructions.flatMap(descentOf).filter(({ isNative }) => !isNative);
  return new Set(calls.map(({ program }) => program));
}

/** A program can pass on only what it was given: each call gets the accounts and programs of all calls below it. */
function accountsOf(call: Call): readonly AccountUse[] {
  const own = call.accounts ?? [];
  const below = callsIn(call).flatMap((inner) => [...accountsOf(inner), { address: inner.program }]);
  const writable = new Set(
    [...own, ...below].flatMap(({ address, isWritable }) => (isWritable ? [address] : [])),
  );
  const known = new Set(own.map(({ address }) => address));
  const added = [...new Set(below.map(({ address }) => address))].filter(
    (address) => !known.has(address) && address !== scriptAccount,
  );
  const uses = [...own.map(({ address }) => address), ...added].map((address) => ({
    address,
    isWritable: writable.has(address),
  }));
  // The stand-in looks for its script in the last account.
  return [...uses, { address: scriptAccount }];
}

function withScripts(plan: TransactionPlan): TransactionPlan {
  const scripted = (call: Call): Call =>
    call.isNative
      ? call
      : {
          ...call,
          accounts: accountsOf(call),
          steps: (call.steps ?? []).map((step) => ('call' in step ? { call: scripted(step.call) } : step)),
        };
  return { ...plan, instructions: plan.instructions.map(scripted) };
}

function scriptTable({ instructions }: TransactionPlan): Uint8Array {
  const entries = new Map<string, Uint8Array>();
  for (const call of instructions.flatMap(descentOf)) {
    if (call.isNative) continue;
    const { program, data = new Uint8Array(), steps = [] } = call;
    const entry = scriptEntry(program, data, concat(...steps.map(recordOf)));
    const key = `${program} ${Buffer.from(data).toString('hex')}`;
    const known = entries.get(key);
    if (known && Buffer.compare(known, entry) !== 0)
      throw new Error(`Two calls of ${program} have the same data and do different things.`);
    entries.set(key, entry);
  }
  return concat(...entries.values());
}

function recordOf(step: Step): Uint8Array {
  if ('log' in step) return scripts.log(step.log);
  if ('returns' in step) return scripts.setReturnData(step.returns);
  if ('data' in step) {
    if (step.data instanceof Uint8Array) return scripts.logData(step.data);
    throw new Error('The stand-in logs one value a line.');
  }
  if ('fails' in step) {
    const { error } = step.fails;
    if (typeof error === 'string') throw new Error(`The stand-in fails with numbers, not with ${error}.`);
    return scripts.fail(error.Custom);
  }
  const { program, data = new Uint8Array() } = step.call;
  const accounts = accountsOf(step.call).map(({ address, isWritable = false }) => ({ address, isWritable }));
  return scripts.call(program, accounts, data);
}

/** As the virtual machine names it, in the words of a node. */
function faultOf(failure: VmFailure): TransactionFault {
  const fault = failure.err();
  const code = fault.err?.().code;
  if (fault.index === undefined || code === undefined)
    throw new Error(`A transaction failed otherwise than its plan: ${failure.toString()}`);
  return { InstructionError: [fault.index, { Custom: code }] };
}

/** A count in seven bits a byte. */
function count(value: number): Uint8Array {
  return value < 0x80 ? u8(value) : concat(u8((value & 0x7f) | 0x80), count(value >> 7));
}

const list = (values: readonly number[]) => concat(count(values.length), new Uint8Array(values));

function encodeMessage(message: TransactionMessage): Uint8Array {
  const { header, accountKeys, recentBlockhash, instructions, addressTableLookups } = message;
  return concat(
    ...(addressTableLookups ? [u8(0x80)] : []),
    u8(header.numRequiredSignatures),
    u8(header.numReadonlySignedAccounts),
    u8(header.numReadonlyUnsignedAccounts),
    count(accountKeys.length),
    ...accountKeys.map(pubkey),
    pubkey(recentBlockhash),
    count(instructions.length),
    ...instructions.map(({ programIdIndex, accounts, data }) => {
      const bytes = fromBase58(data);
      return concat(u8(programIdIndex), list(accounts), count(bytes.length), bytes);
    }),
    ...(addressTableLookups
      ? [
          count(addressTableLookups.length),
          ...addressTableLookups.map(({ accountKey, writableIndexes, readonlyIndexes }) =>
            concat(pubkey(accountKey), list(writableIndexes), list(readonlyIndexes)),
          ),
        ]
      : []),
  );
}

/** The account of an address lookup table that is in use for ever and has no authority. */
function lookupTable(addresses: readonly string[]): Uint8Array {
  const neverDeactivated = new Uint8Array(8).fill(0xff);
  const meta = concat(u32(1), neverDeactivated, u64(0n), u8(0), u8(0), new Uint8Array(34));
  return concat(meta, ...addresses.map(pubkey));
}
