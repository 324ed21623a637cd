/** What tests can ask of a world on a virtual Solana cluster, and what happened in it: a store must have that in the end. */
import { findNetwork, type Network } from '../../src/domain/networks/networks.ts';
import type { FailingPart, forgeries } from './ccip-calls.ts';
import type { CommittedRoot, SentBody, SvmExtraArgs } from './ccip-events.ts';
import type { ReceivedMessage } from './received-messages.ts';
import type { Failure, LedgerTransaction } from './runtime/runtime.ts';

/** A chain that lanes lead to and come from: EVM, or another Solana cluster. */
export interface Remote {
  readonly network: Network;
  /** The on-ramp that the off-ramp on Solana knows: 20 bytes of a contract, or 32 of another cluster's router. */
  readonly onRamp: `0x${string}`;
}

export interface SolanaWorldOptions {
  readonly network?: Network;
  readonly remotes?: readonly Remote[];
  /** Whether the router relays its events, as from 1.6.1 on. */
  readonly isRelaying?: boolean;
  readonly manualExecutionAfterSeconds?: number;
  /** The slot of the deployment. */
  readonly head?: number;
  readonly startedAtMs?: number;
  /** One transaction in so many has version 1, unless it has a lookup table; none where it is left out. */
  readonly versionOneEvery?: number;
}

export interface SendOptions {
  readonly to?: Remote;
  readonly data?: `0x${string}`;
  /** 20 bytes towards EVM, 32 towards Solana. */
  readonly receiver?: `0x${string}`;
  /** Amounts, each of a token of its own. */
  readonly tokens?: readonly bigint[];
  readonly sender?: string;
  /** Towards EVM. */
  readonly gasLimit?: bigint;
  /** Towards Solana. */
  readonly svm?: Partial<SvmExtraArgs>;
  /** Messages of a sender in order: they have a nonce. */
  readonly isOrdered?: boolean;
  /** Another program calls the router. */
  readonly isWrapped?: boolean;
  /** Accounts come from a lookup table (a transaction of version 0). */
  readonly hasLookup?: boolean;
  /** The log is cut off before the event. */
  readonly isTruncated?: boolean;
}

export interface ReceiveOptions {
  readonly from?: Remote;
  readonly data?: `0x${string}`;
  readonly tokens?: readonly bigint[];
  /** No program is called. Tokens only. */
  readonly hasNoReceiver?: boolean;
}

export interface ExecuteOptions {
  /**
   * `later failure`: the off-ramp says success, and a later instruction of the transaction fails. `skipped`: the off-ramp
   * finds that the message was executed before.
   */
  readonly outcome?: 'success' | 'failure' | 'later failure' | 'skipped';
  readonly failure?: Failure;
  readonly failing?: FailingPart;
  /** What the failing program logs before. */
  readonly words?: readonly string[];
  readonly isManual?: boolean;
  readonly isBuffered?: boolean;
  readonly isTruncated?: boolean;
  readonly hasLookup?: boolean;
}

export type ForgeryKind =
  | keyof ReturnType<typeof forgeries>
  | 'failed send'
  | 'failed commit'
  | 'commit of another program';

export const solanaDevnet = findNetwork('solana-devnet') as Network;
export const sepolia: Remote = {
  network: findNetwork('ethereum-testnet-sepolia') as Network,
  onRamp: '0x32f88479dc6e9eebe603ee032161387b96337fff',
};

// ---- What happened

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
