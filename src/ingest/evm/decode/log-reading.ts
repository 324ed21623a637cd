/** What reading a log starts from and comes to; shared by the readers of all versions. */

import type { Executed, Fact, Observation, Sent, SentMessage } from '../../../domain/facts.ts';
import type { Network } from '../../../domain/networks.ts';
import { parseSentMessage, UnreadableLogError } from '../../chain/event-facts.ts';
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

/** The fact that a message was sent. */
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

/** The last two states of `ExecutionStateChanged`; the others, untouched and in progress, tell nothing. */
export function executedFacts(messageId: Hex, state: number, { seen }: LogContext): readonly Executed[] {
  if (state > 3) throw new UnreadableLogError(`${state} is no execution state`);
  return state < 2 ? [] : [{ kind: 'Executed', messageId, success: state === 2, seen }];
}
