/** A lab of version 1.6, and in front of its network `a` a proxy that misbehaves, with an empty store for each test. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, vi } from 'vitest';
import type { IndexerTiming } from '../../src/ingest/engine/indexer.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import type { NetworkProgress } from '../../src/store/query/network-progress.ts';
import { openTestStore } from '../database.ts';
import { type Lab, type Lane, type SentMessage, startLab } from '../lab/lab.ts';
import { ccipContract } from '../lab/solidity.ts';
import { briefly } from './faulty-node.ts';
import {
  FINALITY,
  type FollowingIndexer,
  hurriedTiming,
  labSource,
  recordOf,
  runIndexer,
} from './indexing.ts';
import { type NodeProxy, startNodeProxy } from './node-proxy.ts';

export const eventually = (expectation: () => Promise<void> | void) =>
  vi.waitFor(expectation, { timeout: 120_000, interval: 20 });

export function createProxiedLab() {
  let lab: Lab;
  let lane: Lane;
  let proxy: NodeProxy;
  let store: Awaited<ReturnType<typeof openTestStore>>;
  const running: FollowingIndexer[] = [];
  beforeAll(async () => {
    lab = await startLab({ versions: ['1.6'] });
    lane = lab.lane('1.6', 'a');
  });
  beforeEach(async () => {
    store = await openTestStore();
    proxy = await startNodeProxy(lab.a.url);
  });
  const stopIndexers = async () => {
    for (const indexer of running.splice(0)) await indexer.stop();
  };
  afterEach(async () => {
    await stopIndexers();
    await store.close();
    await proxy.close();
  });
  afterAll(() => lab?.stop());

  const run = (overrides: Partial<EvmSource>, timing: Partial<IndexerTiming>, once: boolean) => {
    const given: Partial<EvmSource> = {
      rpc: [proxy.url],
      start: { block: 0 },
      verify: 'head',
      ...overrides,
    };
    const options = { once, timing: { ...hurriedTiming, endpoints: briefly, ...timing } };
    return runIndexer(store, [labSource(lab.a, given)], options);
  };
  const progressOf = async (): Promise<NetworkProgress | undefined> => (await store.networkProgress())[0];

  return {
    get lab() {
      return lab;
    },
    /** From network `a`. */
    get lane() {
      return lane;
    },
    get proxy() {
      return proxy;
    },
    get store() {
      return store;
    },
    stopIndexers,
    /** Indexes network `a` until the test ends; the other one is of no concern here. */
    following(overrides: Partial<EvmSource> = {}, timing: Partial<IndexerTiming> = {}): FollowingIndexer {
      const indexer = run(overrides, timing, false);
      running.push(indexer);
      return indexer;
    },
    async once(overrides: Partial<EvmSource> = {}, signal?: AbortSignal): Promise<void> {
      const { indexer, stop } = run(overrides, {}, true);
      signal?.addEventListener('abort', () => void stop());
      await indexer.ended;
    },
    progressOf,
    untilProgress: (expected: Partial<NetworkProgress>) =>
      eventually(async () => expect(await progressOf()).toMatchObject(expected)),
    untilKnown: (message: SentMessage) =>
      eventually(async () => expect(await recordOf(store, message)).toBeDefined()),
    /** A message far enough below the head to be final. */
    async sendFinal(): Promise<SentMessage> {
      const message = await lane.sendOne();
      await lab.a.mine(FINALITY + 1);
      return message;
    },
    /** The router of network `a` names on-ramps, for lanes to nowhere. */
    async nameOnRamps(...onRamps: readonly { destChainSelector: bigint; onRamp: string }[]): Promise<void> {
      const router = lab.a.contract(lab.a.routers['1.6'] as `0x${string}`, ccipContract('v1_2_0/router').abi);
      const { owner } = lab.a.foundation.accounts['1.6'];
      await router.send('applyRampUpdates', [onRamps, [], []], { from: owner });
    },
  };
}
