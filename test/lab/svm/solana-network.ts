/** The lab's Solana network: a virtual cluster behind JSON-RPC, and lanes with an EVM network both ways. */
import { setTimeout as delay } from 'node:timers/promises';
import { findNetwork, type Network } from '../../../src/domain/networks/networks.ts';
import { createDerivation } from '../../../src/ingest/demo/randomness.ts';
import { deployedPrograms } from '../../solana/ccip-accounts.ts';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import { FINALITY_SLOTS, startSolanaProvider } from '../../solana/endpoint/node.ts';
import type { EvmMessage } from '../../solana/received-messages.ts';
import { customFailure } from '../../solana/runtime/runtime.ts';
import type { Remote, TrueSend } from '../../solana/world-options.ts';
import type { LabNetwork } from '../lab.ts';
import { openEvmEnd } from './evm-end.ts';

export type SolanaLabNetwork = Awaited<ReturnType<typeof startSolanaNetwork>>;
type Ends = Pick<SolanaLabNetwork, 'world' | 'evm'>;

const solana = findNetwork('solana-devnet') as Network;
const SLOT_MS = 400;
/** Between two rounds; slots pass all the time. */
const ROUND_EVERY_MS = 2_000;

export async function startSolanaNetwork(network: LabNetwork) {
  const known = findNetwork(network.name);
  if (!known) throw new Error(`${network.name} is not in the table of networks.`);
  const evm = await openEvmEnd(network, {
    selector: BigInt(solana.selector),
    router: deployedPrograms.router,
  });
  const remote: Remote = { network: known, onRamp: evm.onRamp };
  const world = createSolanaWorld({ network: solana, remotes: [remote] });
  // Until its accounts are final, an indexer would find no router.
  world.settle();
  const provider = await startSolanaProvider(world.cluster);
  return {
    world,
    evm,
    url: provider.url.href,
    /** As lanescan.yaml names it. */
    configuration: {
      network: solana.name,
      rpc: [provider.url.href],
      routers: [world.programs.router],
      offramps: [world.programs.offRamp],
      requestsPerSecond: 5_000,
      pollSeconds: 0.5,
    },
    stop: () => provider.close(),
  };
}

/** Traffic on both lanes until the signal: sent, committed, executed, some of it in vain and later by hand. */
export async function driveSolana(
  ends: Ends,
  receiver: `0x${string}`,
  seed: string,
  signal: AbortSignal,
): Promise<void> {
  const slots = setInterval(() => ends.world.cluster.grow(1), SLOT_MS);
  const runRound = createSolanaTraffic(ends, receiver, seed);
  try {
    while (!signal.aborted) {
      await runRound();
      await delay(ROUND_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    clearInterval(slots);
  }
}

/** One round of traffic on both lanes. */
export function createSolanaTraffic(
  { world, evm }: Ends,
  receiver: `0x${string}`,
  seed: string,
): () => Promise<void> {
  const randomness = createDerivation(seed).randomness('solana lab');
  const data = (): `0x${string}` => `0x${randomness.word().toString(16).padStart(8, '0')}`;
  let arriving: EvmMessage[] = [];
  const waiting: EvmMessage[] = [];
  const failed: EvmMessage[] = [];
  let leaving: TrueSend[] = [];
  const leavingBatches: { readonly batch: readonly TrueSend[]; readonly left: TrueSend[] }[] = [];

  const towardsSolana = async () => {
    const message = await evm.send(data());
    world.accept(message);
    arriving.push(message);
    if (randomness.chance(0.5)) {
      world.commit(arriving);
      waiting.push(...arriving);
      arriving = [];
    }
    const next = randomness.chance(0.7) ? waiting.shift() : undefined;
    if (next) {
      const isFailure = randomness.chance(0.2);
      world.execute(next, { outcome: isFailure ? 'failure' : 'success', failure: customFailure(6_001) });
      if (isFailure) failed.push(next);
    }
    const again = randomness.chance(0.3) ? failed.shift() : undefined;
    if (again) world.execute(again, { isManual: true });
  };

  const fromSolana = async () => {
    leaving.push(world.send({ data: data(), receiver, isWrapped: randomness.chance(0.3) }));
    // As oracles do, only what is final is committed elsewhere.
    const final = world.cluster.head - FINALITY_SLOTS;
    const batch = leaving.filter(({ slot }) => slot <= final);
    if (batch.length > 0 && randomness.chance(0.5)) {
      await evm.commit(batch);
      leavingBatches.push({ batch, left: [...batch] });
      leaving = leaving.filter(({ slot }) => slot > final);
    }
    const [oldest] = leavingBatches;
    const next = oldest?.left.shift();
    if (oldest && next) await evm.execute(next, oldest.batch, { fail: randomness.chance(0.15) });
    if (oldest?.left.length === 0) leavingBatches.shift();
  };

  return async () => {
    if (randomness.chance(0.8)) await towardsSolana();
    if (randomness.chance(0.8)) await fromSolana();
    if (randomness.chance(0.3)) world.makeNoise();
  };
}
