/** The accounts of router and off-ramp that are read, at the byte offsets that every release from 0.1.0 to 1.6.3 has. */
import { base58 } from '@scure/base';
import { UnreadableDataError } from '../engine/json-rpc/answer-reader.ts';
import { discriminatorIn, discriminatorOf, littleEndian } from './decode/borsh.ts';

export interface Account {
  /** The program that alone can change it. */
  readonly owner: string;
  readonly data: Uint8Array;
}

/** Whether the router lets the off-ramp deliver from a source: the account is there and has nothing in it. */
export function isAllowedOffRamp(account: Account | undefined, router: string): boolean {
  return (
    account?.owner === router &&
    discriminatorIn(account.data) === discriminatorOf('account', 'AllowedOfframp')
  );
}

export function readRouterConfig(account: Account, router: string) {
  const data = dataOf(account, router, 'Config', 210);
  return { chainSelector: u64At(data, 10), rmnRemote: keyAt(data, 114) };
}

/** The number of the last message that was sent to a chain, and the last one before the latest renumbering of the lane. */
export function readDestChain(account: Account, router: string) {
  const data = dataOf(account, router, 'DestChain', 34);
  return { lastNumber: u64At(data, 17), numberLeft: data[33] === 0 ? undefined : u64At(data, 25) };
}

export function readReferencedRouter(account: Account, offRamp: string): string {
  return keyAt(dataOf(account, offRamp, 'ReferenceAddresses', 137), 9);
}

/** Seconds from a commit after which anybody may execute. */
export function readManualExecutionDelay(account: Account, offRamp: string): number {
  return Number(BigInt.asIntN(64, u64At(dataOf(account, offRamp, 'Config', 32), 24)));
}

/** The next number that will be committed, and the on-ramp. */
export function readSourceChain(account: Account, offRamp: string) {
  const data = dataOf(account, offRamp, 'SourceChain', 96);
  const length = Number(littleEndian(data.subarray(92, 96)));
  if (length > 64) throw new UnreadableDataError(`an on-ramp of ${length} bytes`);
  return { minSeqNr: u64At(data, 17), onRamp: data.subarray(28, 28 + length) };
}

const SUCCESS = 2n;

/** Whether a commit report says that the message with a number was executed: two bits for each message. */
export function isExecuted(account: Account, offRamp: string, number: bigint): boolean {
  const data = dataOf(account, offRamp, 'CommitReport', 89);
  const [first, last] = [u64At(data, 57), u64At(data, 65)];
  if (number < first || number > last) return false;
  return ((littleEndian(data.subarray(73, 89)) >> (2n * (number - first))) & 3n) === SUCCESS;
}

/** The account's bytes, if it is of this type and its program has written it. */
function dataOf({ owner, data }: Account, program: string, type: string, leastBytes: number): Uint8Array {
  if (owner !== program) throw new UnreadableDataError(`an account of ${owner} instead of ${program}`);
  const discriminator = discriminatorIn(data);
  if (discriminator !== discriminatorOf('account', type)) {
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
