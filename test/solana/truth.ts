/** What happened in a world: what a store must have after it has read everything. */

import type { CommittedRoot, SvmExtraArgs } from './ccip-events.ts';
import type { SentBody } from './ccip-hashes.ts';
import type { ReceivedMessage } from './received-messages.ts';
import type { LedgerTransaction } from './runtime/ledger.ts';

/** Where a fact was seen. */
export interface Observed {
  readonly signature: string;
  readonly slot: number;
  /** Seconds since 1970. */
  readonly blockTime: number;
  /** Place of the event in the log; undefined where the log was cut off before it. */
  readonly logIndex: number | undefined;
}

export interface TrueSend extends Observed {
  readonly messageId: string;
  readonly body: SentBody;
  /** Towards another Solana cluster. */
  readonly svm?: SvmExtraArgs;
  /** Who paid for the transaction. */
  readonly origin: string;
  readonly mints: readonly string[];
  /** What still shows it: the log, else the relayed copy, else nothing but the lane's counter. */
  readonly trace: 'log' | 'relayed copy' | 'counter';
}

export type TrueCommit = Observed & CommittedRoot;

export interface TrueExecution extends Observed {
  readonly message: ReceivedMessage;
  readonly messageId: string;
  readonly leaf: Uint8Array;
  /** An attempt that failed leaves nothing but its failed transaction. */
  readonly isSuccess: boolean;
}

/** The last line of a transaction's log that is this event. */
export function logIndexOf({ meta }: LedgerTransaction, encoded: Uint8Array): number | undefined {
  const line = `Program data: ${Buffer.from(encoded).toString('base64')}`;
  const index = meta.logMessages.lastIndexOf(line);
  return index < 0 ? undefined : index;
}
