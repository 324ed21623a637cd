/**
 * A virtual Solana cluster with CCIP's programs and lanes to other chains. A test has it send, commit, execute, forge and
 * make noise. It updates the programs' accounts accordingly and records what truly happened.
 *
 * @example
 * const world = createSolanaWorld();
 * world.send({ data: '0x1234', tokens: [5n] });
 * const message = world.receive();
 * const commit = world.commit([message]);
 * world.execute(message, { outcome: 'failure' });
 * world.settle();
 */
import type { Network } from '../../src/domain/networks/networks.ts';
import type { CcipPrograms } from './ccip-accounts.ts';
import { createCcipDeployment, dapp } from './ccip-deployment.ts';
import { FINALITY_SLOTS } from './endpoint/node.ts';
import type { LedgerTransaction } from './runtime/ledger.ts';
import type { VirtualCluster } from './runtime/virtual-cluster.ts';
import type { Truth } from './truth.ts';
import { forge } from './world-forgeries.ts';
import {
  type ForgeryKind,
  type Remote,
  type SolanaWorldOptions,
  sepolia,
  solanaDevnet,
} from './world-options.ts';
import { createReceiving, type Receiving } from './world-receiving.ts';
import { createSending, type Sending } from './world-sending.ts';

export interface SolanaWorld
  extends Omit<Sending, 'sends' | 'bodyOf' | 'callOf'>,
    Omit<Receiving, 'commits' | 'executions'> {
  readonly network: Network;
  readonly cluster: VirtualCluster;
  readonly programs: CcipPrograms;
  readonly remotes: readonly Remote[];
  readonly truth: Truth;
  /** Something that looks like a message or a commit and is not. */
  forge(kind: ForgeryKind): LedgerTransaction;
  /** A transaction that names the router and does nothing. */
  makeNoise(): LedgerTransaction;
  /** Lets slots pass until everything is final. */
  settle(): void;
}

/** Beyond finality, so that nodes that are a little behind have everything too. */
const SETTLING_SLOTS = 40;

export function createSolanaWorld(options: SolanaWorldOptions = {}): SolanaWorld {
  const { network = solanaDevnet, remotes = [sepolia], isRelaying = true } = options;
  const deployment = createCcipDeployment(options);
  const { cluster, programs, land } = deployment;
  const sending = createSending(deployment, { isRelaying });
  const receiving = createReceiving(deployment, remotes);
  const { sends, send, bumpVersion, rollBackVersion } = sending;
  const { commits, executions, ...arrivals } = receiving;
  return {
    network,
    cluster,
    programs,
    remotes,
    truth: { sends, commits, executions },
    send,
    bumpVersion,
    rollBackVersion,
    ...arrivals,
    forge: (kind) => forge(deployment, sending, kind),
    makeNoise: () =>
      land({ program: dapp, accounts: [{ address: programs.router }], data: new Uint8Array([1]) }),
    settle: () => cluster.grow(FINALITY_SLOTS + SETTLING_SLOTS),
  };
}
