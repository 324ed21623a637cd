/** Random traffic in a world, from a seed: everything that happens on lanes, and everything that only looks like it. */
import { createDerivation, type Randomness } from '../../src/ingest/demo/randomness.ts';
import type { SolanaWorld } from './ccip-world.ts';
import type { EvmMessage } from './received-messages.ts';
import { addressOf } from './runtime/bytes.ts';
import { budgetExceeded, customFailure } from './runtime/runtime.ts';
import type { ForgeryKind } from './world-options.ts';

export interface TrafficOptions {
  readonly seed: string;
  /** Whether some logs are cut off; true where it is left out. */
  readonly hasTruncation?: boolean;
}

export const forgeryKinds: readonly ForgeryKind[] = [
  'ownEvent',
  'logText',
  'betweenCalls',
  'successInReturnData',
  'ownRelay',
  'failed send',
  'failed commit',
  'commit of another program',
];

const steps = [
  ['send', 6],
  ['receive', 5],
  ['commit', 3],
  ['execute', 5],
  ['retry', 2],
  ['forge', 2],
  ['noise', 3],
  ['prices', 1],
  ['wait', 1],
] as const;

const failures = [customFailure(6_001), budgetExceeded];
const LONGEST_ROOT = 5;
const LONG_WAIT_SLOTS = 40;

/** Runs so many steps. Each does one thing and lets some slots pass, or none. */
export function createTraffic(
  world: SolanaWorld,
  { seed, hasTruncation = true }: TrafficOptions,
): (steps: number) => void {
  const randomness = createDerivation(seed).randomness('solana traffic');
  const uncommitted: EvmMessage[] = [];
  const committed: EvmMessage[] = [];
  const failed: EvmMessage[] = [];
  const isCut = () => hasTruncation && randomness.chance(0.08);

  const takeFrom = (list: EvmMessage[]): EvmMessage | undefined =>
    list.length === 0 ? undefined : list.splice(randomness.integer(0, list.length - 1), 1)[0];

  const doOne = (kind: (typeof steps)[number][0]): void => {
    switch (kind) {
      case 'send':
        world.send({
          to: randomness.pick(world.remotes),
          data: randomData(randomness),
          tokens: randomTokens(randomness),
          isOrdered: randomness.chance(0.3),
          isWrapped: randomness.chance(0.3),
          hasLookup: randomness.chance(0.4),
          isTruncated: isCut(),
          gasLimit: BigInt(randomness.integer(0, 2_000_000)),
        });
        return;
      case 'receive': {
        const tokens = randomTokens(randomness);
        const hasNoReceiver = tokens.length > 0 && randomness.chance(0.5);
        const from = randomness.pick(world.remotes);
        uncommitted.push(
          world.receive({ from, tokens, hasNoReceiver, data: hasNoReceiver ? '0x' : randomData(randomness) }),
        );
        return;
      }
      case 'commit': {
        const [first] = uncommitted;
        if (!first) return;
        const ofLane = uncommitted.filter((one) => one.sourceChainSelector === first.sourceChainSelector);
        const batch = ofLane.slice(0, randomness.integer(1, LONGEST_ROOT));
        for (const message of batch) uncommitted.splice(uncommitted.indexOf(message), 1);
        world.commit(batch, { isTruncated: isCut() });
        committed.push(...batch);
        return;
      }
      case 'execute': {
        const message = takeFrom(committed);
        if (!message) return;
        const outcome = randomness.pickWeighted([
          ['success', 6],
          ['failure', 2],
          ['later failure', 1],
        ] as const);
        const isBuffered = randomness.chance(0.2);
        world.execute(message, {
          outcome,
          failure: randomness.pick(failures),
          isBuffered,
          // Without its log, only an instruction that has the report shows an execution.
          isTruncated: outcome === 'success' && !isBuffered && isCut(),
          hasLookup: randomness.chance(0.5),
        });
        if (outcome !== 'success') failed.push(message);
        else if (randomness.chance(0.1)) world.execute(message, { outcome: 'skipped' });
        return;
      }
      case 'retry': {
        const message = takeFrom(failed);
        if (message) world.execute(message, { isManual: true, isBuffered: randomness.chance(0.3) });
        return;
      }
      case 'forge':
        world.forge(randomness.pick(forgeryKinds));
        return;
      case 'noise':
        for (let left = randomness.integer(1, 4); left > 0; left--) world.makeNoise();
        return;
      case 'prices':
        world.commitPrices(randomness.pick(world.remotes));
        return;
      case 'wait':
        world.cluster.grow(LONG_WAIT_SLOTS);
    }
  };

  return (count) => {
    for (let step = 0; step < count; step++) {
      doOne(randomness.pickWeighted(steps));
      if (randomness.chance(0.6)) world.cluster.grow(randomness.integer(1, 4));
    }
  };
}

function randomData(randomness: Randomness): `0x${string}` {
  const bytes = Array.from({ length: randomness.integer(0, 60) }, () => randomness.integer(0, 255));
  return `0x${Buffer.from(bytes).toString('hex')}`;
}

function randomTokens(randomness: Randomness): readonly bigint[] {
  const count = randomness.pickWeighted([
    [0, 5],
    [1, 4],
    [2, 1],
  ]);
  return Array.from({ length: count }, () => BigInt(randomness.integer(1, 1_000_000_000)));
}

/**
 * Very many transactions that name the router and do nothing, computed when they are asked for. They are spread over the
 * slots from now on; the cluster grows by as many as it takes.
 *
 * @param perSlot in each slot that has a block
 */
export function addBulkNoise(
  world: SolanaWorld,
  {
    count,
    perSlot,
    isFailed = false,
  }: { readonly count: number; readonly perSlot: number; readonly isFailed?: boolean },
): void {
  const { cluster, programs } = world;
  const noisy = addressOf('noisy program');
  const feePayer = addressOf('noisy payer');
  const data = new Uint8Array([0x40]);
  const first = cluster.head;
  // A skipped slot's share falls into the slot below, so that places are found without a table.
  const slotOf = (index: number) =>
    Math.max(first, cluster.slotAtOrBelow(first + Math.floor(index / perSlot)));
  cluster.addSeries({
    count,
    addresses: [programs.router, noisy, feePayer],
    slotOf,
    planOf: () => ({
      feePayer,
      instructions: [{ program: noisy, accounts: [{ address: programs.router }], data }],
    }),
    errOf: () => (isFailed ? { InstructionError: [0, { Custom: 1 }] } : null),
  });
  cluster.grow(Math.ceil(count / perSlot));
}
