/** CCIP's programs on a virtual cluster: their accounts, the state of their lanes, and how their transactions land. */

import {
  allowedOffRampAccount,
  type CcipPrograms,
  commitReportAccount,
  deployedPrograms,
  destChainAccount,
  offRampAddresses,
  offRampConfig,
  poolConfigAddress,
  poolState,
  referenceAddressesAccount,
  routerAddresses,
  routerConfig,
  sourceChainAccount,
  versionText,
} from './ccip-accounts.ts';
import { chatter, setComputeUnits, TOKEN_PROGRAM } from './ccip-calls.ts';
import { discriminator, offRampListed, plainInstruction } from './ccip-events.ts';
import { fromHex } from './runtime/bytes.ts';
import type { LedgerTransaction } from './runtime/ledger.ts';
import { addressOf } from './runtime/program-address.ts';
import { type Call, LOG_BYTES, type TransactionPlan } from './runtime/runtime.ts';
import { createVirtualCluster, type VirtualCluster } from './runtime/virtual-cluster.ts';
import { logIndexOf, type Observed, type TrueCommit } from './truth.ts';
import { type Remote, type SolanaWorldOptions, sepolia, solanaDevnet } from './world-options.ts';

export interface Lane {
  sequenceNumber: bigint;
  /** What the version that was left had counted, and with which change of version its numbers go on there. */
  restore: { readonly number: bigint; readonly on: 'upgrade' | 'rollback' } | undefined;
  nextToCommit: bigint;
  received: bigint;
}

export interface Landing {
  readonly feePayer?: string;
  /** The event before which the log is cut off. */
  readonly cutEvent?: Uint8Array | undefined;
  readonly hasLookup?: boolean | undefined;
  readonly later?: readonly Call[];
}

export interface CcipDeployment {
  readonly selector: bigint;
  readonly cluster: VirtualCluster;
  readonly programs: CcipPrograms;
  /** The remote chain where none is named. */
  readonly usual: Remote;
  laneOf(remote: Remote): Lane;
  /** Writes what the lane says into the router's account. */
  keepDestChain(remote: Remote): void;
  /** Writes what the lane says into the off-ramp's account. */
  keepSourceChain(remote: Remote): void;
  keepReport(commit: TrueCommit, executionStates: bigint): void;
  /** A transaction of one call, with what belongs around it. */
  land(call: Call, landing?: Landing): LedgerTransaction;
  /** A transaction of the owner. */
  administer(program: string, name: string, ...events: readonly Uint8Array[]): void;
  observed(transaction: LedgerTransaction, encoded: Uint8Array): Observed;
}

export const transmitter = addressOf('transmitter');
export const poolProgram = addressOf('pool program');
/** Calls the router for somebody else, or does nothing of interest. */
export const dapp = addressOf('dapp');
export const mintOf = (index: number): string => addressOf('mint', index);
export const selectorOf = (remote: Remote): bigint => BigInt(remote.network.selector);
const owner = addressOf('owner');
const lookupTable = addressOf('lookup table');
const chatterer = addressOf('chatterer');

export function createCcipDeployment(options: SolanaWorldOptions): CcipDeployment {
  const { network = solanaDevnet, remotes = [sepolia], manualExecutionAfterSeconds = 3_600 } = options;
  const { head, startedAtMs, run, versionOneEvery = 0 } = options;
  const programs = deployedPrograms;
  const { router, offRamp } = programs;
  const selector = BigInt(network.selector);
  const [usual] = remotes;
  if (!usual) throw new RangeError('A world needs a remote chain.');
  const cluster = createVirtualCluster({
    genesisHash: network.chainId,
    ...(head !== undefined && { head }),
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(run && { run }),
  });
  const lanes = new Map<Remote, Lane>();
  let landings = 0;

  const deployment: CcipDeployment = {
    selector,
    cluster,
    programs,
    usual,

    laneOf(remote) {
      const lane = lanes.get(remote);
      if (!lane) throw new RangeError(`The world has no lane with ${remote.network.name}.`);
      return lane;
    },

    keepDestChain(remote) {
      const { sequenceNumber, restore } = deployment.laneOf(remote);
      cluster.setAccount(routerAddresses.destChainState(router, selectorOf(remote)), {
        owner: router,
        data: destChainAccount({ selector: selectorOf(remote), sequenceNumber, restore }),
      });
    },

    keepSourceChain(remote) {
      cluster.setAccount(offRampAddresses.sourceChainState(offRamp, selectorOf(remote)), {
        owner: offRamp,
        data: sourceChainAccount({
          selector: selectorOf(remote),
          minSeqNr: deployment.laneOf(remote).nextToCommit,
          onRamp: fromHex(remote.onRamp),
        }),
      });
    },

    keepReport(commit, executionStates) {
      const { sourceChainSelector, merkleRoot } = commit;
      cluster.setAccount(offRampAddresses.commitReport(offRamp, sourceChainSelector, merkleRoot), {
        owner: offRamp,
        data: commitReportAccount({
          selector: sourceChainSelector,
          merkleRoot,
          timestamp: BigInt(commit.blockTime),
          minMsgNr: commit.minSeqNr,
          maxMsgNr: commit.maxSeqNr,
          executionStates,
        }),
      });
    },

    land(call, { feePayer = transmitter, cutEvent, hasLookup = false, later = [] } = {}) {
      const isVersion1 = versionOneEvery > 0 && ++landings % versionOneEvery === 0 && !hasLookup;
      const planWith = (before: readonly Call[]): TransactionPlan => ({
        feePayer,
        instructions: [...(isVersion1 ? [] : [setComputeUnits]), ...before, call, ...later],
        ...(isVersion1 && { version: 1 }),
        ...(hasLookup && {
          lookup: { table: lookupTable, addresses: (call.accounts ?? []).map(({ address }) => address) },
        }),
      });
      if (!cutEvent) return cluster.land(planWith([]));
      // The event does not fit any more; later lines of half its length do.
      const trial = cluster.rehearse(planWith([chatter(chatterer, 0)]));
      const index = logIndexOf(trial, cutEvent) ?? 0;
      const lines = trial.meta.logMessages;
      const usedBytes = lines.slice(0, index).reduce((sum, line) => sum + line.length, 0);
      const textBytes = LOG_BYTES - usedBytes - Math.floor((lines[index]?.length ?? 0) / 2);
      return cluster.land(planWith([chatter(chatterer, textBytes)]));
    },

    administer(program, name, ...events) {
      cluster.land({
        feePayer: owner,
        instructions: [{ program, data: plainInstruction(name), steps: events.map((data) => ({ data })) }],
      });
    },

    observed: (transaction, encoded) => ({
      signature: transaction.signature,
      slot: transaction.slot,
      blockTime: cluster.timeOf(transaction.slot),
      logIndex: logIndexOf(transaction, encoded),
    }),
  };

  deploy();
  return deployment;

  function deploy(): void {
    cluster.setAccount(routerAddresses.config(router), {
      owner: router,
      data: routerConfig({ programs, selector, linkTokenMint: addressOf('LINK'), owner }),
    });
    cluster.setAccount(offRampAddresses.config(offRamp), {
      owner: offRamp,
      data: offRampConfig(selector, BigInt(manualExecutionAfterSeconds), owner),
    });
    cluster.setAccount(offRampAddresses.referenceAddresses(offRamp), {
      owner: offRamp,
      data: referenceAddressesAccount(programs, lookupTable),
    });
    for (const index of [0, 1, 2]) {
      const mint = mintOf(index);
      cluster.setAccount(poolConfigAddress(poolProgram, mint), {
        owner: poolProgram,
        data: poolState({ mint, router, poolProgram, tokenProgram: TOKEN_PROGRAM }),
      });
    }
    for (const [program, text] of [
      [router, 'ccip-router 1.6.3'],
      [offRamp, 'ccip-offramp 1.6.3'],
    ] as const)
      cluster.answerSimulation(program, discriminator('global', 'type_version'), versionText(text));
    deployment.administer(router, 'initialize');
    for (const remote of remotes) {
      lanes.set(remote, { sequenceNumber: 0n, restore: undefined, nextToCommit: 1n, received: 0n });
      deployment.administer(router, 'add_chain_selector');
      deployment.keepDestChain(remote);
      deployment.administer(router, 'add_offramp', offRampListed(true, selectorOf(remote), offRamp));
      cluster.setAccount(routerAddresses.allowedOffRamp(router, selectorOf(remote), offRamp), {
        owner: router,
        data: allowedOffRampAccount(),
      });
      deployment.administer(offRamp, 'add_source_chain');
      deployment.keepSourceChain(remote);
    }
    cluster.grow(1);
  }
}
