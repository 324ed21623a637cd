/** How history is read: which requests it takes, counted on virtual chains. Never how long. */
import { afterEach, describe, expect, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import type { Store } from '../../src/store/store.ts';
import { openTestStore } from '../database.ts';
import type { JsonRpcCall } from '../json-rpc-server.ts';
import { type CcipWorld, type CcipWorldOptions, makeCcipWorld } from '../virtual-chain/ccip-chain.ts';
import { type Provider, startProvider } from '../virtual-chain/endpoint.ts';
import { archiveNode, type EndpointProfile, type LogTraits } from '../virtual-chain/endpoint-profile.ts';
import { differencesFrom, type IndexedWorld, indexWorld, sourceOf } from '../virtual-chain/indexed-world.ts';
import type { EventSeries } from '../virtual-chain/virtual-chain.ts';
import { allRecords } from './indexing.ts';
import { startNodeProxy } from './node-proxy.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function provide(
  chain: CcipWorld['a'],
  profile: EndpointProfile = archiveNode,
): Promise<Provider & { readonly calls: JsonRpcCall[] }> {
  const provider = await startProvider(chain, { profile });
  closers.push(() => provider.close());
  const calls: JsonRpcCall[] = [];
  provider.onCall = (call) => calls.push(call);
  return Object.assign(provider, { calls });
}

async function emptyStore() {
  const store = await openTestStore();
  closers.push(() => store.close());
  return store;
}

interface Asked {
  readonly from: number;
  readonly to: number;
  readonly addresses: readonly string[] | undefined;
}

/** The ranges whose logs were asked for. */
function rangesOf(calls: readonly JsonRpcCall[]): readonly Asked[] {
  return calls.flatMap(({ method, params }) => {
    const [filter] = params as [{ fromBlock?: string; toBlock?: string; address?: string[] }?];
    if (method !== 'eth_getLogs' || filter?.fromBlock === undefined) return [];
    return [{ from: Number(filter.fromBlock), to: Number(filter.toBlock), addresses: filter.address }];
  });
}

const callsOf = (calls: readonly JsonRpcCall[], method: string) =>
  calls.filter((call) => call.method === method);

const withLogs = (logs: LogTraits, more: Partial<EndpointProfile> = {}): EndpointProfile => ({
  ...archiveNode,
  ...more,
  name: 'of this test',
  logs,
});
const timestamped = withLogs({ hasBlockTimestamp: true });

interface Backfill extends IndexedWorld {
  readonly calls: readonly JsonRpcCall[];
  readonly providers: readonly (Provider & { readonly calls: JsonRpcCall[] })[];
  readonly differences: readonly string[];
}

/** Indexes both chains; the calls are those to the endpoints of chain `a`. */
async function backfill(
  world: CcipWorld,
  overrides: Partial<EvmSource> = {},
  profiles: readonly EndpointProfile[] = [timestamped],
): Promise<Backfill> {
  const providers: (Provider & { readonly calls: JsonRpcCall[] })[] = [];
  for (const profile of profiles) providers.push(await provide(world.a, profile));
  const counterpart = await provide(world.b, timestamped);
  const store = await emptyStore();
  const indexed = await indexWorld(store, {
    sources: [sourceOf(world.a, providers, overrides), sourceOf(world.b, [counterpart])],
  });
  return {
    ...indexed,
    providers,
    calls: providers.flatMap(({ calls }) => calls),
    differences: await differencesFrom(world, store),
  };
}

const worldOf = (options: Partial<CcipWorldOptions> = {}): CcipWorld =>
  makeCcipWorld({ blocks: 100_000, messages: 30, deployedAt: 40_000, ...options });

/** Logs of history: not those of the newest blocks, which are read by topics alone. */
const historyOf = (calls: readonly JsonRpcCall[]) =>
  rangesOf(calls).filter(({ addresses }) => addresses !== undefined);

describe('the history of a network', () => {
  test('takes about as many requests for logs as it has ranges', { tags: 'slow' }, async () => {
    const { calls, differences } = await backfill(worldOf({ deployedAt: 1 }), { maxRange: 1_000 });
    expect(differences).toEqual([]);
    expect(historyOf(calls).length).toBeGreaterThanOrEqual(100);
    expect(historyOf(calls).length).toBeLessThan(110);
  });

  test('is not read below the deployment of the router', { tags: 'slow' }, async () => {
    const { calls, differences } = await backfill(worldOf(), { maxRange: 1_000 });
    expect(differences).toEqual([]);
    expect(Math.min(...rangesOf(calls).map(({ from }) => from))).toBe(40_000);
    expect(callsOf(calls, 'eth_getCode').length).toBeLessThan(40);
  });

  test('is not read below the deployment that is configured', { tags: 'slow' }, async () => {
    const { calls, differences } = await backfill(worldOf(), { maxRange: 1_000, deployed: 39_990 });
    expect(differences).toEqual([]);
    expect(Math.min(...rangesOf(calls).map(({ from }) => from))).toBe(39_990);
    expect(callsOf(calls, 'eth_getCode')).toEqual([]);
  });

  test.each<readonly [string, EndpointProfile['state']]>([
    ['refuses', { keptBlocks: 1_000, answer: { code: -32000, message: 'missing trie node' } }],
    ['answers with the current code', { keptBlocks: 1_000, answer: 'current' }],
    ['answers that there is no code', { keptBlocks: 1_000, answer: 'empty' }],
  ])(
    'is read from the first block on where the only endpoint %s for old blocks',
    { tags: 'slow' },
    async (_, state) => {
      const profile = withLogs({ hasBlockTimestamp: true }, state ? { state } : {});
      const { calls, differences } = await backfill(worldOf(), {}, [profile]);
      expect(differences).toEqual([]);
      expect(Math.min(...rangesOf(calls).map(({ from }) => from))).toBe(0);
      expect(callsOf(calls, 'eth_getCode').length).toBeLessThan(40);
    },
  );

  test('is asked for by the addresses of the trusted contracts', { tags: 'slow' }, async () => {
    const world = worldOf({ foreign: [{ everyBlocks: 50 }] });
    const { calls, differences } = await backfill(world);
    expect(differences).toEqual([]);
    const long = rangesOf(calls).filter(({ from, to }) => to - from >= 256);
    expect(long.length).toBeGreaterThan(5);
    for (const { addresses } of long) {
      expect(addresses).toEqual(expect.arrayContaining([world.a.router, ...world.a.onRamps]));
    }
  });

  test('takes the times of its blocks from the logs, where the endpoint puts them there', {
    tags: 'slow',
  }, async () => {
    const options = { deployedAt: 1, messages: 200 };
    const with_ = await backfill(worldOf(options));
    const without = await backfill(worldOf(options), {}, [withLogs({})]);
    expect([...with_.differences, ...without.differences]).toEqual([]);
    const headers = ({ calls }: Backfill) =>
      callsOf(calls, 'eth_getBlockByNumber').filter(
        ({ params: [number] }) => String(number).startsWith('0x') && Number(number) < 99_000,
      ).length;
    expect(headers(without)).toBeGreaterThanOrEqual(400);
    expect(headers(with_)).toBe(0);
  });

  test('with a start and many ramps that were replaced is read twice at most', { tags: 'slow' }, async () => {
    const world = worldOf({ deployedAt: 1, ramps: 40, messages: 120 });
    const { calls, isUpToDate } = await backfill(world, { start: { block: 20_000 }, maxRange: 1_000 });
    expect(isUpToDate).toBe(true);
    // Once for the contracts that are known; once more, in up to 40 parts, for those that are found in it.
    expect(rangesOf(calls).length).toBeLessThan(100 + 80 + 80 + 80);
  });

  test('with ramps that were replaced has the messages of all of them', { tags: 'slow' }, async () => {
    const { differences } = await backfill(worldOf({ ramps: 12, messages: 120 }), { maxRange: 1_000 });
    expect(differences).toEqual([]);
  });
});

describe('pieces of history', { tags: 'slow' }, () => {
  /** An endpoint that answers requests for history only when so many of them wait at the same time. */
  async function backfillBehindBarriers(
    count: number,
    endpoints: number,
    overrides: Partial<EvmSource> = {},
  ) {
    const world = worldOf({ deployedAt: 1 });
    const provider = await provide(world.a, timestamped);
    const counterpart = await provide(world.b, timestamped);
    let most = 0;
    let isOpen = false;
    const waiting: (() => void)[][] = [];
    const open = () => {
      isOpen = true;
      for (const resolve of waiting.flat()) resolve();
    };
    const urls: URL[] = [];
    for (let index = 0; index < endpoints; index++) {
      const own: (() => void)[] = [];
      waiting.push(own);
      const proxy = await startNodeProxy(provider.url.href);
      closers.push(() => proxy.close());
      urls.push(proxy.url);
      let inFlight = 0;
      proxy.interfere = async (call, truth) => {
        if (!rangesOf([call as JsonRpcCall]).some(({ addresses }) => addresses)) return truth;
        most = Math.max(most, ++inFlight);
        // The first ones are answered at once: concurrency grows with every piece that is read.
        if (proxy.calls.length > 60 && !isOpen) {
          await new Promise<void>((resolve) => {
            own.push(resolve);
            if (waiting.every(({ length }) => length >= count)) open();
          });
        }
        inFlight--;
        return truth;
      };
    }
    const store = await emptyStore();
    await indexWorld(store, {
      sources: [
        { ...sourceOf(world.a, [], { maxRange: 500, ...overrides }), rpc: urls },
        sourceOf(world.b, [counterpart]),
      ],
    });
    expect(await differencesFrom(world, store)).toEqual([]);
    expect(isOpen).toBe(true);
    return { most };
  }

  test('are read at the same time, up to a bound', async () => {
    const { most } = await backfillBehindBarriers(16, 1);
    expect(most).toBeLessThanOrEqual(64);
  });

  test('are read from all endpoints at the same time', async () => {
    await backfillBehindBarriers(8, 2);
  });

  test('are few where the rate is low', async () => {
    const { most } = await backfillBehindBarriers(4, 1, { requestsPerSecond: 40 });
    expect(most).toBeLessThanOrEqual(40);
  });

  test('are as long as each endpoint accepts', async () => {
    const limit = (max: number) =>
      withLogs({
        hasBlockTimestamp: true,
        blocks: { max, error: { code: -32602, message: 'block range too large' } },
      });
    const { providers, differences } = await backfill(worldOf({ deployedAt: 1 }), {}, [
      limit(5_000),
      limit(300),
    ]);
    expect(differences).toEqual([]);
    for (const [index, max] of [5_000, 300].entries()) {
      const ranges = historyOf(providers[index]?.calls ?? []);
      const refused = ranges.filter(({ from, to }) => to - from + 1 > max);
      expect(ranges.length - refused.length).toBeGreaterThan(5);
      expect(refused.length).toBeLessThan(8 + ranges.length / 16);
    }
  });
});

describe('a chain whose finality is far behind', () => {
  const LAG = 30_000;
  const lagging = (lagBlocks: number) => withLogs({ hasBlockTimestamp: true }, { finalized: { lagBlocks } });
  const statuses = async (store: Store) =>
    [...(await allRecords(store)).values()].map((record) => (JSON.parse(record) as Message).status);

  test('is not read header by header at the first start', { tags: 'slow' }, async () => {
    const { calls, differences } = await backfill(worldOf(), {}, [lagging(LAG)]);
    expect(differences).toEqual([]);
    expect(callsOf(calls, 'eth_getBlockByNumber').length).toBeLessThan(1_500);
  });

  test('has its messages final when their blocks are', { tags: 'slow' }, async () => {
    const world = worldOf({ messages: 40 });
    const provider = await provide(world.a, lagging(LAG));
    const store = await emptyStore();
    const sources = [sourceOf(world.a, [provider])];
    await indexWorld(store, { sources });
    const blocks = Array.from({ length: 40 }, (_, index) => world.a.blockOfMessage(index));
    const expectFinalBelow = async (lag: number) => {
      const sent = (await statuses(store)).filter((status) => status === 'SENT');
      expect(sent).toHaveLength(blocks.filter((block) => block > world.a.head - lag).length);
    };
    await expectFinalBelow(LAG);
    provider.profile = lagging(LAG / 2);
    await indexWorld(store, { sources });
    await expectFinalBelow(LAG / 2);
    provider.profile = lagging(0);
    await indexWorld(store, { sources });
    await expectFinalBelow(0);
  });

  test('takes back what was read in blocks that a fork abandons, far below the head', {
    tags: 'slow',
  }, async () => {
    const world = worldOf({ messages: 40 });
    const providers = [await provide(world.a, lagging(LAG)), await provide(world.b, timestamped)] as const;
    const store = await emptyStore();
    const sources = [sourceOf(world.a, [providers[0]]), sourceOf(world.b, [providers[1]])];
    await indexWorld(store, { sources });
    expect(await differencesFrom(world, store)).toEqual([]);
    const fork = world.a.head - LAG / 2;
    world.a.reorganize({ fork, series: movedDown(world.a, fork) });
    const { logLines } = await indexWorld(store, { sources });
    expect(logLines.join('\n')).toContain('were abandoned');
    expect(logLines.join('\n')).not.toContain('had called final');
    expect(await differencesFrom(world, store)).toEqual([]);
  });
});

/** The same events as before, those above the fork each in a lower block: halfway down to the fork. */
function movedDown(chain: CcipWorld['a'], fork: number): readonly EventSeries[] {
  const lower = (block: number) => (block <= fork ? block : fork + Math.ceil((block - fork) / 2));
  return chain.series.map((series) => ({ ...series, blockOf: (index) => lower(series.blockOf(index)) }));
}

describe('a reorganization deeper than finality', () => {
  test('that moves messages to lower blocks has them there', { tags: 'slow' }, async () => {
    const world = worldOf({ messages: 40 });
    const providers = [await provide(world.a, timestamped), await provide(world.b, timestamped)] as const;
    const store = await emptyStore();
    const sources = [
      sourceOf(world.a, [providers[0]], { acceptDeepReorgs: true }),
      sourceOf(world.b, [providers[1]]),
    ];
    await indexWorld(store, { sources });
    expect(await differencesFrom(world, store)).toEqual([]);
    const fork = world.a.head - 10_000;
    world.a.reorganize({ fork, series: movedDown(world.a, fork) });
    providers[0].calls.length = 0;
    const { logLines } = await indexWorld(store, { sources });
    expect(logLines.join('\n')).toContain('had called final');
    expect(await differencesFrom(world, store)).toEqual([]);
    // From the last block with a fact that is still there, not from the beginning.
    const lowest = Math.min(...rangesOf(providers[0].calls).map(({ from }) => from));
    expect(lowest).toBeLessThanOrEqual(fork + 1);
    expect(lowest).toBeGreaterThan(fork - 5_000);
  });
});
