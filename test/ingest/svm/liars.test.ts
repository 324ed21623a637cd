// @module-tag slow: indexes worlds behind endpoints that lie and endpoints that are away
/** One of several Solana endpoints lies: nothing false is stored, and nothing true is lost. */
import { describe, expect, test } from 'vitest';
import type { IndexerTiming } from '../../../src/ingest/engine/indexer.ts';
import { programAddresses } from '../../../src/ingest/svm/program-addresses.ts';
import { hurriedTiming } from '../../chain/indexing.ts';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { archiveNode, type SolanaProfile } from '../../solana/endpoint/solana-profile.ts';
import { profileOf } from '../../solana/endpoint/solana-profiles.ts';
import { alteringExecution, denying } from '../../solana/lies.ts';
import type { EvmMessage } from '../../solana/received-messages.ts';
import type { Ledger } from '../../solana/runtime/virtual-cluster.ts';
import { stage } from './indexed-world.ts';

interface Scene {
  readonly world: SolanaWorld;
  readonly committed: EvmMessage;
  readonly received: EvmMessage;
}

const STARTED_AT = Date.now() - 3_600_000;

/** Some messages; two times the same. The cluster of the one may then go on with what never happened in the other. */
function createScene(): Scene {
  const world = createSolanaWorld({ startedAtMs: STARTED_AT });
  world.send({ tokens: [5n] });
  const [first, committed, received] = [world.receive(), world.receive(), world.receive()];
  world.commit([first, committed]);
  world.execute(first);
  world.send({ data: '0x1234' });
  return { world, committed, received };
}

/** A cluster in which something happened that did not. All else is the same, and its accounts count it. */
function inventing(scene: Scene, invent: (other: Scene) => unknown): Ledger {
  const other = createScene();
  invent(other);
  const { cluster } = scene.world;
  cluster.grow(other.world.cluster.head - cluster.head);
  other.world.settle();
  return other.world.cluster;
}

const signatureOf = (found: { readonly signature: string } | undefined): string => found?.signature ?? '';

const lies: Readonly<Record<string, (scene: Scene) => Ledger>> = {
  'invents a send': (scene) => inventing(scene, ({ world }) => world.send({ data: '0xbad0' })),
  'invents an execution': (scene) =>
    inventing(scene, ({ world, committed }) => world.execute(committed, { outcome: 'success' })),
  'invents a failed execution': (scene) =>
    inventing(scene, ({ world, committed }) => world.execute(committed, { outcome: 'failure' })),
  'invents a commit': (scene) => inventing(scene, ({ world, received }) => world.commit([received])),
  'alters the log of an execution': ({ world }) =>
    alteringExecution(world.cluster, signatureOf(world.truth.executions[0])),
  'hides a send': ({ world }) => denying(world.cluster, signatureOf(world.truth.sends[0])),
  'hides a commit': ({ world }) => denying(world.cluster, signatureOf(world.truth.commits[0])),
  'hides an execution': ({ world }) => denying(world.cluster, signatureOf(world.truth.executions[0])),
};

const awayEvery = (every: number): SolanaProfile => ({
  ...archiveNode,
  fails: { every, error: { message: 'Service Unavailable', status: 503, isPlainText: true } },
});
const away = awayEvery(1);
const awayAtTimes = awayEvery(3);

/** Endpoints of these ledgers, the honest of which behave like this. */
async function serveAll(world: SolanaWorld, ledgers: readonly Ledger[], profile = archiveNode) {
  const { providers, index, differences } = await stage(world, ledgers);
  for (const [number, ledger] of ledgers.entries())
    Object.assign(providers[number] ?? {}, { profile: ledger === world.cluster ? profile : archiveNode });
  return {
    providers,
    /** What differs from the truth after everything was read, how many ranges are to be read again, and what was noticed. */
    async index(timing: Partial<IndexerTiming> = {}) {
      const { statuses, logLines } = await index({ timing: { ...hurriedTiming, ...timing } });
      const { failedRanges } = statuses[0]?.worker ?? {};
      return { differences: await differences(), failedRanges, logLines: logLines.join('\n') };
    },
  };
}

/** Longer than any test: no endpoint is believed alone. */
const patient = { secondOpinionMs: 600_000 };

describe.each(Object.keys(lies))('one of three endpoints %s', (lie) => {
  test.each([1, 2, 3])(
    'as number %i, and the others are away at times',
    { timeout: 120_000 },
    async (number) => {
      const scene = createScene();
      const liar = lies[lie]?.(scene) ?? scene.world.cluster;
      const { cluster } = scene.world;
      const ledgers: readonly Ledger[] = [cluster, cluster];
      const { index } = await serveAll(scene.world, ledgers.toSpliced(number - 1, 0, liar), awayAtTimes);
      const { differences, logLines } = await index(patient);
      expect(differences, logLines).toEqual([]);
    },
  );
});

describe('what one endpoint alone shows for a long time', () => {
  test('is recorded, and taken back when two others know nothing of it', async () => {
    const scene = createScene();
    const { world } = scene;
    const liar = inventing(scene, (other) => other.world.send({ data: '0xbad0' }));
    const { providers, index } = await serveAll(world, [liar, world.cluster, world.cluster], away);
    const alone = await index();
    expect(alone.differences).toEqual(['1 messages that did not happen']);
    expect(alone.failedRanges).toBeGreaterThan(0);
    for (const provider of providers) provider.profile = archiveNode;
    expect(await index(patient)).toMatchObject({ differences: [], failedRanges: 0 });
  });

  test('stays when a second one has it, whatever a third one hides', async () => {
    const { world } = createScene();
    const liar = denying(world.cluster, signatureOf(world.truth.sends[1]));
    const { providers, index } = await serveAll(world, [liar, world.cluster, world.cluster]);
    const [first, second] = providers;
    if (first) first.profile = away;
    if (second) second.profile = away;
    const alone = await index();
    expect(alone.differences).toEqual([]);
    expect(alone.failedRanges).toBeGreaterThan(0);
    for (const provider of providers) provider.profile = archiveNode;
    expect(await index(patient)).toMatchObject({ differences: [], failedRanges: 0 });
  });

  test('is believed where the others no longer keep slots that old, and that is said', async () => {
    const { world } = createScene();
    world.cluster.grow(400);
    const { providers, index } = await serveAll(world, [world.cluster, world.cluster]);
    const [, second] = providers;
    if (second) second.profile = profileOf('pruned-in-silence');
    const { differences, failedRanges, logLines } = await index(patient);
    expect({ differences, failedRanges }).toEqual({ differences: [], failedRanges: 0 });
    expect(logLines).toContain('is trusted alone');
  });
});

test.each([1, 2, 3])(
  'an endpoint that lacks the accounts of an off-ramp, as number %i of three, does not have it dropped',
  async (number) => {
    const { world } = createScene();
    const { cluster, programs } = world;
    const hidden = programAddresses.referenceAddresses(programs.offRamp);
    const liar = Object.create(cluster, {
      account: {
        value: (address: string, slot: number) =>
          address === hidden ? undefined : cluster.account(address, slot),
      },
    }) as Ledger;
    const ledgers: readonly Ledger[] = [cluster, cluster];
    const { index } = await serveAll(world, ledgers.toSpliced(number - 1, 0, liar));
    const { differences, logLines } = await index(patient);
    expect(differences, logLines).toEqual([]);
  },
);
