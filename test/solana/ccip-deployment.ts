/** CCIP's programs on a virtual cluster: their accounts, the state of their lanes, and how their transactions land. */
import {
  addresses,
  allowedOffRampAccount,
  commitReportAccount,
  deployedPrograms,
  destChainAccount,
  offRampConfig,
  poolState,
  type Restore,
  referenceAddressesAccount,
  routerConfig,
  sourceChainAccount,
} from './ccip-accounts.ts';
import { chatter, poolProgram, setComputeUnits, TOKEN_PROGRAM } from './ccip-calls.ts';
import { discriminator, offRampListed, plainInstruction } from './ccip-events.ts';
import { addressOf, fromHex, string } from './runtime/bytes.ts';
import { type Call, type LedgerTransaction, LOG_BYTES, type TransactionPlan } from './runtime/runtime.ts';
import { createVirtualCluster } from './runtime/virtual-cluster.ts';
import {
  logIndexOf,
  type Observed,
  type Remote,
  type SolanaWorldOptions,
  sepolia,
  solanaDevnet,
  type TrueCommit,
} from './world-options.ts';

export type CcipDeployment = ReturnType<typeof createCcipDeployment>;

export const DEST_GAS = 90_000;
export const transmitter = addressOf('transmitter');
/** Calls the router for somebody else, or does nothing of interest. */
export const dapp = addressOf('dapp');
export const mintOf = (index: number): string => addressOf('mint', index);
export const selectorOf = (remote: Remote): bigint => BigInt(remote.network.selector);
const owner = addressOf('owner');
const lookupTable = addressOf('lookup table');
const chatterer = addressOf('chatterer');

interface Lane {
  sequenceNumber: bigint;
  restore: Restore;
  nextToCommit: bigint;
  received: bigint;
}

interface Landing {
  readonly feePayer?: string;
  /** The event before which the log is cut off. */
  readonly cutEvent?: Uint8Array | undefined;
  readonly hasLookup?: boolean | undefined;
  readonly later?: readonly Call[];
}

export function createCcipDeployment(options: SolanaWorldOptions) {
  const { network = solanaDevnet, remotes = [sepolia], manualExecutionAfterSeconds = 3_600 } = options;
  const { head, startedAtMs, versionOneEvery = 0 } = options;
  const programs = deployedPrograms;
  const { router, offRamp } = programs;
  const selector = BigInt(network.selector);
  /** The remote chain where none is named. */
  const [usual] = remotes;
  if (!usual) throw new RangeError('A world needs a remote chain.');
  const cluster = createVirtualCluster({
    genesisHash: network.chainId,
    ...(head !== undefined && { head }),
    ...(startedAtMs !== undefined && { startedAtMs }),
  });
  const lanes = new Map<Remote, Lane>();
  let landings = 0;

  const laneOf = (remote: Remote): Lane => {
    const lane = lanes.get(remote);
    if (!lane) throw new RangeError(`The world has no lane with ${remote.network.name}.`);
    return lane;
  };
  /** Writes what the lane says into the router's account. */
  const keepDestChain = (remote: Remote): void => {
    const { sequenceNumber, restore } = laneOf(remote);
    const data = destChainAccount(selectorOf(remote), sequenceNumber, restore);
    cluster.setAccount(addresses.destChainState(router, selectorOf(remote)), { owner: router, data });
  };
  /** Writes what the lane says into the off-ramp's account. */
  const keepSourceChain = (remote: Remote): void => {
    const data = sourceChainAccount(selectorOf(remote), laneOf(remote).nextToCommit, fromHex(remote.onRamp));
    cluster.setAccount(addresses.sourceChainState(offRamp, selectorOf(remote)), { owner: offRamp, data });
  };
  const keepReport = (commit: TrueCommit, executionStates: bigint): void => {
    const address = addresses.commitReport(offRamp, commit.sourceChainSelector, commit.merkleRoot);
    cluster.setAccount(address, { owner: offRamp, data: commitReportAccount(commit, executionStates) });
  };

  /** A transaction of one call, with what belongs around it. */
  const land = (call: Call, landing: Landing = {}): LedgerTransaction => {
    const { feePayer = transmitter, cutEvent, hasLookup = false, later = [] } = landing;
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
  };

  /** A transaction of the owner. */
  const administer = (program: string, name: string, ...events: readonly Uint8Array[]): void => {
    const steps = events.map((data) => ({ data }));
    cluster.land({ feePayer: owner, instructions: [{ program, data: plainInstruction(name), steps }] });
  };

  const observed = (transaction: LedgerTransaction, encoded: Uint8Array): Observed => ({
    signature: transaction.signature,
    slot: transaction.slot,
    blockTime: cluster.timeOf(transaction.slot),
    logIndex: logIndexOf(transaction, encoded),
  });

  // The deployment itself.
  cluster.setAccount(addresses.config(router), {
    owner: router,
    data: routerConfig(programs, selector, addressOf('LINK'), owner),
  });
  cluster.setAccount(addresses.config(offRamp), {
    owner: offRamp,
    data: offRampConfig(selector, BigInt(manualExecutionAfterSeconds), owner),
  });
  cluster.setAccount(addresses.referenceAddresses(offRamp), {
    owner: offRamp,
    data: referenceAddressesAccount(programs, lookupTable),
  });
  for (const mint of [0, 1, 2].map(mintOf)) {
    const data = poolState(mint, router, poolProgram, TOKEN_PROGRAM);
    cluster.setAccount(addresses.poolConfig(poolProgram, mint), { owner: poolProgram, data });
  }
  const typeVersion = discriminator('global', 'type_version');
  cluster.answerSimulation(router, typeVersion, string('ccip-router 1.6.3'));
  cluster.answerSimulation(offRamp, typeVersion, string('ccip-offramp 1.6.3'));
  administer(router, 'initialize');
  for (const remote of remotes) {
    lanes.set(remote, { sequenceNumber: 0n, restore: undefined, nextToCommit: 1n, received: 0n });
    administer(router, 'add_chain_selector');
    keepDestChain(remote);
    administer(router, 'add_offramp', offRampListed(true, selectorOf(remote), offRamp));
    cluster.setAccount(addresses.allowedOffRamp(router, selectorOf(remote), offRamp), {
      owner: router,
      data: allowedOffRampAccount(),
    });
    administer(offRamp, 'add_source_chain');
    keepSourceChain(remote);
  }
  cluster.grow(1);
  const keep = { keepDestChain, keepSourceChain, keepReport };
  return { selector, cluster, programs, usual, laneOf, ...keep, land, administer, observed };
}
