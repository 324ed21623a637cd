/** Endpoints of one network that contradict each other, or their own past: what is believed, and what is never erased. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import type { IndexerTiming } from '../../src/ingest/engine/indexer.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import { until } from '../api/live/live-server.ts';
import { makeCcipWorld } from '../virtual-chain/ccip-chain.ts';
import type { Provider } from '../virtual-chain/endpoint.ts';
import { archiveNode, type EndpointProfile } from '../virtual-chain/endpoint-profile.ts';
import { falseBlocks, growBeyondNow } from '../virtual-chain/indexed-world.ts';
import { serveWorld } from '../virtual-chain/served-world.ts';
import { allRecords, runIndexer } from './indexing.ts';

const MESSAGES = 40;
/** Below it are four messages of each direction. */
const FORK = 110;
const FALSE_HEAD = 2_000_000;

const unavailable: EndpointProfile = {
  ...archiveNode,
  fails: { every: 1, error: { message: 'upstream is away', status: 503, isPlainText: true } },
};

/** Nobody is believed alone for as long as a test runs. */
const patient: Partial<IndexerTiming> = {
  secondOpinionMs: 600_000,
  endpoints: { firstPauseMs: 10, longestPauseMs: 100, maxWaitMs: 50, longestRetryAfterMs: 100 },
};

/** A world, and three endpoints of chain `a`. */
async function open() {
  const three = [archiveNode, archiveNode, archiveNode];
  const served = await serveWorld(makeCcipWorld({ blocks: 1_200, messages: MESSAGES }), three);
  const sources = (used?: readonly Provider[], overrides?: Partial<EvmSource>) =>
    served.sources(overrides, used);
  const indexWith = (...given: Parameters<typeof sources>) =>
    served.index({}, { sources: sources(...given) });
  const [first, second, third] = served.a as unknown as readonly [Provider, Provider, Provider];
  return [{ ...served, sources, indexWith }, first, second, third] as const;
}

type Stage = Awaited<ReturnType<typeof open>>[0];

/** How many messages of chain `a` are stored. */
async function sentFromA({ world, store }: Stage): Promise<number> {
  const records = [...(await allRecords(store)).values()].map((record) => JSON.parse(record) as Message);
  return records.filter(
    ({ sourceNetworkInfo }) => sourceNetworkInfo.chainSelector === world.a.network.selector,
  ).length;
}

/** Runs an indexer until the test stops it. */
function follow({ store }: Stage, sources: readonly EvmSource[], timing: Partial<IndexerTiming> = {}) {
  const { indexer, logLines, stop } = runIndexer(store, sources, { timing: { ...patient, ...timing } });
  onTestFinished(stop);
  return { logLines, stop, statusOfA: () => indexer.statuses()[0]?.worker };
}

/** Resolves when an endpoint has got so many more requests. */
async function untilAsked(provider: Provider, requests = 20): Promise<void> {
  const enough = provider.requests + requests;
  await until(() => provider.requests >= enough);
}

const untilTrue = ({ differences }: Stage) => until(async () => (await differences()).length === 0);

/** Resolves when the head of chain `a` has been read, and all else. */
async function untilAtHead(stage: Stage, indexer: ReturnType<typeof follow>): Promise<void> {
  await until(() => indexer.statusOfA()?.head?.indexedBlock === stage.world.a.head);
  await untilTrue(stage);
}

describe('one of three endpoints has another chain, below what was final', () => {
  test('it erases nothing while the others are away, and they go on afterwards', async () => {
    const [stage, first, second, liar] = await open();
    const { world } = stage;
    const indexer = follow(stage, stage.sources());
    await untilTrue(stage);
    expect(await sentFromA(stage)).toBe(MESSAGES);

    first.profile = unavailable;
    second.profile = unavailable;
    liar.chain = world.a.retell({ fork: FORK, series: [], head: FALSE_HEAD });
    await untilAsked(liar);
    expect(await sentFromA(stage)).toBe(MESSAGES);

    first.profile = archiveNode;
    second.profile = archiveNode;
    world.a.grow(5);
    await untilAtHead(stage, indexer);
    await indexer.stop();
    await stage.indexWith([first, second]);
    expect(await stage.differences()).toEqual([]);
  });

  test('two that agree get back a network that was erased before', async () => {
    const [stage, first, second, liar] = await open();
    const { world } = stage;
    await stage.indexWith([first]);
    liar.chain = world.a.retell({ fork: FORK, series: [], head: FALSE_HEAD });
    // As an earlier version did by itself.
    await stage.indexWith([liar], { acceptDeepReorgs: true });
    expect(await sentFromA(stage)).toBe(4);

    growBeyondNow(world.a);
    const { logLines } = await stage.indexWith([first, second]);
    expect(await stage.differences()).toEqual([]);
    expect(await falseBlocks(world.a, stage.store)).toEqual([]);
    expect(logLines.join('\n')).toContain('had called final');
  });
});

describe('one of three endpoints, listed first, shows blocks that nobody else has', () => {
  test.each([
    ['a few', 20],
    ['as many as are read without a gap', 1_000],
    ['two million', FALSE_HEAD],
  ])('%s, and calls them final: nothing false is final, and the others go on', async (_, blocks) => {
    const [stage, liar] = await open();
    const { world } = stage;
    const indexer = follow(stage, stage.sources());
    await untilTrue(stage);

    liar.chain = world.a.retell({ fork: world.a.head, head: world.a.head + blocks, finalLag: 0 });
    await untilAsked(liar);
    world.a.grow(5);
    await untilAtHead(stage, indexer);
    await until(async () => (await falseBlocks(world.a, stage.store)).length === 0);
    await until(() => indexer.statusOfA()?.head?.finalizedBlock === world.a.head - 8);
    expect(await sentFromA(stage)).toBe(MESSAGES);
  });

  test('at the first start: nothing of it is recorded', async () => {
    const [stage, liar] = await open();
    const { world } = stage;
    liar.chain = world.a.retell({ fork: FORK, series: [], head: FALSE_HEAD });
    const indexer = follow(stage, stage.sources());
    await untilAtHead(stage, indexer);
    expect(await falseBlocks(world.a, stage.store)).toEqual([]);
  });
});

test('while two endpoints contradict each other, nothing becomes final, and the reason is said', async () => {
  const [stage, first, liar] = await open();
  const { world } = stage;
  const indexer = follow(stage, stage.sources([first, liar]));
  await untilTrue(stage);
  const { blocks } = await stage.store.index.state(world.a.network.selector);

  liar.chain = world.a.retell({ fork: world.a.head - 4 });
  world.a.grow(20);
  await until(() => indexer.statusOfA()?.problem?.includes('have different blocks') === true);
  const later = await stage.store.index.state(world.a.network.selector);
  expect(later.blocks[0]).toEqual(blocks[0]);

  liar.chain = world.a;
  await until(() => indexer.statusOfA()?.head?.finalizedBlock === world.a.head - 8);
  expect(await falseBlocks(world.a, stage.store)).toEqual([]);
});

test('an endpoint of several that is the only one to answer is believed after a while, cannot erase, and is overruled by two that agree', async () => {
  const [stage, liar, second, third] = await open();
  const { world } = stage;
  await stage.indexWith();
  for (const away of [second, third]) away.profile = unavailable;
  const indexer = follow(stage, stage.sources(), { secondOpinionMs: 100 });
  const invented = world.a.retell({ fork: world.a.head, head: world.a.head + 1_000 });
  liar.chain = invented;
  await until(() => indexer.statusOfA()?.head?.finalizedBlock === invented.head - 8);
  expect(indexer.logLines.join('\n')).toContain('is trusted alone until one answers');

  for (const away of [second, third]) away.profile = archiveNode;
  growBeyondNow(world.a);
  await untilAtHead(stage, indexer);
  expect(await falseBlocks(world.a, stage.store)).toEqual([]);
  expect(await sentFromA(stage)).toBe(MESSAGES);
});

describe('the only endpoint of a network', () => {
  test('that contradicts its own past erases nothing, and the network stops with the reason', async () => {
    const [stage, only] = await open();
    const { world } = stage;
    await stage.indexWith([only]);
    only.chain = world.a.retell({ fork: FORK, series: [], head: FALSE_HEAD });
    const { statuses } = await stage.indexWith([only]);
    expect(statuses[0]?.worker?.stuckBecause).toMatch(
      /lacks block 1192 of the chain that was read.*nothing was erased.*acceptDeepReorgs: true/,
    );
    expect(await sentFromA(stage)).toBe(MESSAGES);
    const [progress] = (await stage.store.networkProgress()).filter(
      ({ selector }) => selector === world.a.network.selector,
    );
    expect(progress).toMatchObject({ problemKind: 'reorganization' });
  });

  test('goes on with a second one that agrees, or by the word of the operator', async () => {
    const [stage, first, second] = await open();
    const { world } = stage;
    await stage.indexWith([first]);
    world.a.reorganize({ fork: FORK });
    await stage.indexWith([first, second]);
    expect(await stage.differences()).toEqual([]);
    expect(await falseBlocks(world.a, stage.store)).toEqual([]);

    world.a.reorganize({ fork: FORK });
    await stage.indexWith([first], { acceptDeepReorgs: true });
    expect(await stage.differences()).toEqual([]);
    expect(await falseBlocks(world.a, stage.store)).toEqual([]);
  });
});
