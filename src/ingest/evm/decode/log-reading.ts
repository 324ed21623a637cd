/** What reading a log starts from and comes to; shared by the readers of all versions. */

import { addressFromBytes, type ChainFamily, zeroAddresses } from '../../../domain/addresses.ts';
import type {
  Executed,
  ExecutionDetails,
  Fact,
  Observation,
  RangeFact,
  Sent,
  SentMessage,
} from '../../../domain/facts.ts';
import type { NetworkInfo } from '../../../domain/message.ts';
import { parseMessage } from '../../../domain/message-parser.ts';
import { type Network, networkBySelector } from '../../../domain/networks.ts';
import type { ChainLog, Hex, Transaction } from '../chain.ts';
import type { GenuineContract } from '../contracts.ts';

export interface LogContext<C extends GenuineContract = GenuineContract> {
  readonly log: ChainLog;
  readonly emitter: C;
  readonly network: Network;
  readonly book: ReadonlyMap<Hex, GenuineContract>;
  readonly seen: Observation;
  /** Of the log; there only where the reader of its event asks for it. */
  readonly transaction: Transaction | undefined;
}

export interface LogReading {
  readonly facts: readonly Fact[];
  /** What of the log could not be read, where the rest could. */
  readonly problems: readonly string[];
}

export const nothing: LogReading = { facts: [], problems: [] };

/** The log says something that no record can hold; the message is for people. */
export class UnreadableLogError extends Error {}

/** What the event of each version says of a message; the rest of what was sent, `sentFact` knows from the log itself. */
export type SentParts = Omit<
  SentMessage,
  | 'origin'
  | 'onramp'
  | 'sourceNetworkInfo'
  | 'destNetworkInfo'
  | 'sendTransactionHash'
  | 'sendTimestamp'
  | 'sendBlockNumber'
  | 'sendLogIndex'
>;

/**
 * The fact that a message was sent. Its record goes through the parser that imports go through: whatever a contract
 * has emitted, nothing enters that could not be exported and imported again.
 */
export function sentFact(
  { log, network, seen, transaction }: LogContext,
  dest: Network,
  parts: SentParts,
  execution: NonNullable<Sent['execution']>,
): Sent {
  const parsed = parseMessage({
    ...parts,
    origin: transaction?.from,
    onramp: log.address,
    sourceNetworkInfo: networkInfo(network),
    destNetworkInfo: networkInfo(dest),
    sendTransactionHash: log.transactionHash,
    sendTimestamp: seen.at,
    sendBlockNumber: log.blockNumber,
    sendLogIndex: log.logIndex,
    status: 'SENT',
    readyForManualExecution: false,
  });
  if (!parsed.ok) {
    throw new UnreadableLogError(parsed.problems.map(({ path, problem }) => `${path} ${problem}`).join('; '));
  }
  const {
    status,
    receiptTransactionHash,
    receiptTimestamp,
    deliveryTime,
    readyForManualExecution,
    ...message
  } = parsed.message;
  return { kind: 'Sent', message, execution, seen };
}

function networkInfo({ name, selector, chainId, family, displayName }: Network): NetworkInfo {
  return { name, chainSelector: selector, chainId, chainFamily: family, displayName };
}

const SUCCEEDED = 2;
const FAILED = 3;
/** What is kept of return data, in hexadecimal digits. Reasons are shorter; a contract can return what it wants. */
const MAX_RETURN_DATA = 2 * 4_096;

/** What `ExecutionStateChanged` says of a message. */
export interface Execution {
  readonly messageId: Hex;
  readonly state: number;
  readonly returnData: Hex;
  /** From 1.6 on. */
  readonly gasUsed?: bigint;
}

/** The last two states are outcomes; the others, untouched and in progress, tell nothing. */
export function executedFacts(
  { messageId, state, returnData, gasUsed }: Execution,
  { seen, transaction, network }: LogContext,
): readonly (Executed | ExecutionDetails)[] {
  if (state > FAILED) throw new UnreadableLogError(`${state} is no execution state`);
  if (state < SUCCEEDED) return [];
  const details: ExecutionDetails = {
    kind: 'ExecutionDetails',
    messageId,
    returnData: returnData.slice(0, 2 + MAX_RETURN_DATA),
    gasUsed: gasUsed?.toString() ?? null,
    caller: transaction ? spelled(transaction.from, network.family, 'caller') : null,
    seen,
  };
  const hasDetails = returnData !== '0x' || details.gasUsed !== null || details.caller !== null;
  return [
    { kind: 'Executed', messageId, success: state === SUCCEEDED, seen },
    ...(hasDetails ? [details] : []),
  ];
}

/** Who tried is asked for where it failed: a transaction is one more request. */
export function isFailed({ state }: Execution): boolean {
  return state === FAILED;
}

/** As many sequence numbers as the store takes in one fact; no merkle root has more than 256 leaves. */
const MAX_RANGE = 1_048_576n;

export function committedFact(
  range: { readonly min: bigint; readonly max: bigint; readonly merkleRoot: Hex; readonly offramp: string },
  lane: RangeFact['lane'],
  seen: Observation,
): RangeFact {
  const { min, max, merkleRoot, offramp } = range;
  if (min > max || max - min >= MAX_RANGE || max >= 2n ** 64n) {
    throw new UnreadableLogError(
      `a root commits to the sequence numbers ${min} to ${max}, which no root can`,
    );
  }
  return {
    kind: 'Committed',
    lane,
    fromSequenceNumber: min.toString(),
    toSequenceNumber: max.toString(),
    merkleRoot,
    offramp,
    seen,
  };
}

export function knownNetwork(selector: bigint | string, end: 'source' | 'destination'): Network {
  const network = networkBySelector(selector.toString());
  if (!network)
    throw new UnreadableLogError(
      `chain selector ${selector} of the ${end} is unknown: define that chain under \`chains\` in lanescan.yaml`,
    );
  return network;
}

/** An on-ramp speaks for its own chain alone. */
export function refuseOtherSource(selector: bigint, network: Network): void {
  if (selector.toString() !== network.selector) {
    throw new UnreadableLogError(
      `it names ${selector} as its source; ${network.name} is ${network.selector}`,
    );
  }
}

/** An address of another chain, or of this one, that a contract tells as bytes. */
export function spelled(bytes: Hex, family: ChainFamily, what: string): string {
  const spelling = addressFromBytes(bytes.slice(2), family);
  if (!spelling) throw new UnreadableLogError(`its ${what} ${shortened(bytes)} is no ${family} address`);
  return spelling.text;
}

/**
 * The token on the destination. It is the word of a token pool, which anybody may write: a false one must not hide the
 * message, and so stands as the zero address.
 */
export function spelledToken(bytes: Hex, family: ChainFamily): string {
  return addressFromBytes(bytes.slice(2), family)?.text ?? zeroAddresses[family];
}

export function shortened(text: string, length = 80): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
