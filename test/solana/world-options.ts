/** What tests can ask of a world on a virtual Solana cluster. */
import { findNetwork, type Network } from '../../src/domain/networks/networks.ts';
import type { FailingPart, forgeries } from './ccip-calls.ts';
import type { SvmExtraArgs } from './ccip-events.ts';
import type { Failure } from './runtime/runtime.ts';

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
