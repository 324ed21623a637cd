/** What reading a log starts from and comes to; shared by the readers of all versions. */
import { zeroAddress } from 'viem';
import type {
  Executed,
  ExecutionDetails,
  Fact,
  Observation,
  RangeFact,
  Sent,
  SentMessage,
} from '../../../domain/facts.ts';
import type { Network } from '../../../domain/networks/networks.ts';
import { committedFact, parseSentMessage, spelled, UnreadableLogError } from '../../engine/event-facts.ts';
import type { CommonRamp, GenuineContract, LaneOnRamp } from '../contracts/contracts.ts';
import type { ChainLog, Hex, Transaction } from '../rpc/chain.ts';

export interface LogContext<C extends GenuineContract = GenuineContract> {
  readonly log: ChainLog;
  readonly emitter: C;
  readonly network: Network;
  readonly registry: ReadonlyMap<Hex, GenuineContract>;
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

export function sentFact(
  { log, network, seen, transaction }: LogContext,
  dest: Network,
  parts: SentParts,
  execution: NonNullable<Sent['execution']>,
): Sent {
  const message = parseSentMessage(
    {
      ...parts,
      origin: transaction?.from,
      onramp: log.address,
      sendTransactionHash: log.transactionHash,
      sendTimestamp: seen.at,
      sendBlockNumber: log.blockNumber,
      sendLogIndex: log.logIndex,
    },
    network,
    dest,
  );
  return { kind: 'Sent', message, execution, seen };
}

/** What messages up to 1.6 have in common: a fee in one token, and neither verifiers nor an executor. */
export function partsBefore20(
  { emitter }: LogContext<LaneOnRamp | CommonRamp>,
  router: Hex,
  { data, feeToken, feeTokenAmount }: { data: Hex; feeToken: Hex; feeTokenAmount: bigint },
) {
  return {
    routerAddress: router === zeroAddress ? null : router,
    data,
    version: emitter.version,
    finality: 0,
    verifiers: null,
    executor: null,
    fees: { fixedFeesDetails: { tokenAddress: feeToken, totalAmount: feeTokenAmount.toString() } },
  };
}

/** A commit on this network, by this off-ramp, to messages of an on-ramp as its network spells it. */
export function committedHere(
  root: { readonly min: bigint; readonly max: bigint; readonly merkleRoot: Hex },
  source: Network,
  onramp: string,
  offRamp: Hex,
  { network, seen }: LogContext,
): RangeFact {
  const lane = { sourceChainSelector: source.selector, destChainSelector: network.selector, onramp };
  return committedFact({ ...root, offramp: spelled(offRamp, network.family, 'off-ramp') }, lane, seen);
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
