/** The accounts of router and off-ramp that are read, at the byte offsets that every release from 0.1.0 to 1.6.3 has. */
import { base58 } from '@scure/base';
import { type Hex, hexOf, littleEndian, UnreadableDataError } from './decode/borsh.ts';
import { discriminatorIn, discriminatorOf } from './decode/discriminators.ts';

export interface Account {
  /** The program that alone can change it. */
  readonly owner: string;
  readonly isExecutable: boolean;
  readonly data: Uint8Array;
}

export interface RouterConfig {
  readonly chainSelector: bigint;
  readonly rmnRemote: string;
}

export interface DestChain {
  /** The number of the last message that was sent to a chain. */
  readonly lastNumber: bigint;
  /** The last number before the latest renumbering of the lane; undefined where there was none. */
  readonly numberLeft: bigint | undefined;
}

export interface SourceChain {
  /** The next number that will be committed. */
  readonly minSeqNr: bigint;
  readonly onRamp: Uint8Array;
}

export interface CommitReport {
  readonly minMsgNr: bigint;
  readonly maxMsgNr: bigint;
  /** Two bits for each message from `minMsgNr` on. */
  readonly executionStates: bigint;
}

/** Whether the router lets the off-ramp deliver from a source: the account is there and has nothing in it. */
export function isAllowedOffRamp(account: Account | undefined, router: string): boolean {
  return account?.owner === router && discriminatorIn(account.data) === discriminators.AllowedOfframp;
}

export function readRouterConfig(account: Account, router: string): RouterConfig {
  const data = dataOf(account, router, 'Config', 210);
  return { chainSelector: u64At(data, 10), rmnRemote: keyAt(data, 114) };
}

export function readDestChain(account: Account, router: string): DestChain {
  const data = dataOf(account, router, 'DestChain', 34);
  return { lastNumber: u64At(data, 17), numberLeft: data[33] === 0 ? undefined : u64At(data, 25) };
}

/** The router that an off-ramp delivers for. */
export function readReferencedRouter(account: Account, offRamp: string): string {
  return keyAt(dataOf(account, offRamp, 'ReferenceAddresses', 137), 9);
}

/** Seconds from a commit after which anybody may execute. */
export function readManualExecutionDelay(account: Account, offRamp: string): number {
  const seconds = BigInt.asIntN(64, u64At(dataOf(account, offRamp, 'Config', 32), 24));
  return Number(seconds);
}

export function readSourceChain(account: Account, offRamp: string): SourceChain {
  const data = dataOf(account, offRamp, 'SourceChain', 96);
  const length = Number(littleEndian(data.subarray(92, 96)));
  if (length > 64) throw new UnreadableDataError(`an on-ramp of ${length} bytes`);
  return { minSeqNr: u64At(data, 17), onRamp: data.subarray(28, 28 + length) };
}

export function readCommitReport(account: Account, offRamp: string): CommitReport & { readonly root: Hex } {
  const data = dataOf(account, offRamp, 'CommitReport', 89);
  return {
    root: hexOf(data.subarray(17, 49)),
    minMsgNr: u64At(data, 57),
    maxMsgNr: u64At(data, 65),
    executionStates: littleEndian(data.subarray(73, 89)),
  };
}

const SUCCESS = 2n;

export function isExecuted({ minMsgNr, maxMsgNr, executionStates }: CommitReport, number: bigint): boolean {
  if (number < minMsgNr || number > maxMsgNr) return false;
  return ((executionStates >> (2n * (number - minMsgNr))) & 3n) === SUCCESS;
}

const discriminators = {
  AllowedOfframp: discriminatorOf('account', 'AllowedOfframp'),
  Config: discriminatorOf('account', 'Config'),
  DestChain: discriminatorOf('account', 'DestChain'),
  ReferenceAddresses: discriminatorOf('account', 'ReferenceAddresses'),
  SourceChain: discriminatorOf('account', 'SourceChain'),
  CommitReport: discriminatorOf('account', 'CommitReport'),
};

/** The account's bytes, if it is of this type and its program has written it. */
function dataOf(
  { owner, data }: Account,
  program: string,
  type: keyof typeof discriminators,
  leastBytes: number,
): Uint8Array {
  if (owner !== program) throw new UnreadableDataError(`an account of ${owner} instead of ${program}`);
  const discriminator = discriminatorIn(data);
  if (discriminator !== discriminators[type]) {
    throw new UnreadableDataError(`an account with the discriminator ${discriminator} instead of ${type}`);
  }
  if (data.length < leastBytes) throw new UnreadableDataError(`a ${type} account of ${data.length} bytes`);
  return data;
}

function u64At(data: Uint8Array, offset: number): bigint {
  return littleEndian(data.subarray(offset, offset + 8));
}

function keyAt(data: Uint8Array, offset: number): string {
  return base58.encode(data.subarray(offset, offset + 32));
}
