// @module-tag slow: reads chains of 100,000 blocks
/** How history is read: which requests it takes, counted on virtual chains. Never how long. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import type { JsonRpcCall } from '../json-rpc-server.ts';
import { type CcipWorld, type CcipWorldOptions, makeCcipWorld } from '../virtual-chain/ccip-chain.ts';
import { archiveNode, type EndpointProfile, type LogTraits } from '../virtual-chain/endpoint-profile.ts';
import { sourceOf } from '../virtual-chain/indexed-world.ts';
import { serveWorld } from '../virtual-chain/served-world.ts';
import type { EventSeries } from '../virtual-chain/virtual-chain.ts';
import { allRecords } from './indexing.ts';
import { startNodeProxy } from './node-proxy.ts';

/** The ranges whose logs were asked for. */
function rangesOf(calls: readonly JsonRpcCall[]) {
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

/** Indexes both chains; the calls are those to the endpoints of chain `a`. */
async function backfill(
  world: CcipWorld,
  overrides: Partial<EvmSource> = {},
  profiles: readonly EndpointProfile[] = [timestamped],
) {
  const served = await serveWorld(world, profiles, [timestamped]);
  const indexed = await served.index(overrides);
  const differences = await served.differences();
  return { ...indexed, a: served.a, calls: served.a.flatMap(({ calls }) => calls), differences };
}

const worldOf = (options: Partial<CcipWorldOptions> = {}): CcipWorld =>
  makeCcipWorld({ blocks: 100_000, messages: 30, deployedAt: 40_000, ...options });

/** Logs of history: not those of the newest blocks, which are read by topics alone. */
const historyOf = (calls: readonly JsonRpcCall[]) =>
  rangesOf(calls).filter(({ addresses }) => addresses !== undefined);

describe('the history of a network', () => {
  test('takes about as many requests for logs as it has ranges', async () => {
    const { calls, differences } = await backfill(worldOf({ deployedAt: 1 }), { maxRange: 1_000 });
    expect(differences).toEqual([]);
    expect(historyOf(calls).length).toBeGreaterThanOrEqual(100);
    expect(historyOf(calls).length).toBeLessThan(110);
  });

  const stateOf = (answer: NonNullable<EndpointProfile['state']>['answer']) =>
    withLogs({ hasBlockTimestamp: true }, { state: { keptBlocks: 1_000, answer } });
  const from0 = 'from the first block on where the only endpoint';

  test.each<[string, lowest: number, codes: number, Partial<EvmSource>?, EndpointProfile?]>([
    ['from the deployment of the router on', 40_000, 39],
    ['from the deployment that is configured on', 39_990, 0, { deployed: 39_990 }],
    [`${from0} rejects old blocks`, 0, 39, {}, stateOf({ code: -32000, message: 'missing trie node' })],
    [`${from0} answers with the current code for old blocks`, 0, 39, {}, stateOf('current')],
    [`${from0} answers that there is no code in old blocks`, 0, 39, {}, stateOf('empty')],
  ])('is read %s', async (_, lowest, mostCodes, overrides, profile = timestamped) => {
    const { calls, differences } = await backfill(worldOf(), { maxRange: 1_000, ...overrides }, [profile]);
    expect(differences).toEqual([]);
    expect(Math.min(...rangesOf(calls).map(({ from }) => from))).toBe(lowest);
    expect(callsOf(calls, 'eth_getCode').length).toBeLessThanOrEqual(mostCodes);
  });

  test('is asked for by the addresses of the trusted contracts', async () => {
    const world = worldOf({ foreign: [{ everyBlocks: 50 }] });
    const { calls, differences } = await backfill(world);
    expect(differences).toEqual([]);
    const long = rangesOf(calls).filter(({ from, to }) => to - from >= 256);
    expect(long.length).toBeGreaterThan(5);
    for (const { addresses } of long) {
      expect(addresses).toEqual(expect.arrayContaining([world.a.router, ...world.a.onRamps]));
    }
  });

  test('takes the times of its blocks from the logs, where the endpoint puts them there', async () => {
    const options = { deployedAt: 1, messages: 200 };
    const with_ = await backfill(worldOf(options));
    const without = await backfill(worldOf(options), {}, [withLogs({})]);
    expect([...with_.differences, ...without.differences]).toEqual([]);
    const headers = ({ calls }: { calls: readonly JsonRpcCall[] }) =>
      callsOf(calls, 'eth_getBlockByNumber').filter(
        ({ params: [number] }) => String(number).startsWith('0x') && Number(number) < 99_000,
      ).length;
    expect(headers(without)).toBeGreaterThanOrEqual(400);
    expect(headers(with_)).toBe(0);
  });

  test('with a start and many ramps that were replaced is read twice at most', async () => {
    const world = worldOf({ deployedAt: 1, ramps: 40, messages: 120 });
    const { calls, isUpToDate } = await backfill(world, { start: { block: 20_000 }, maxRange: 1_000 });
    expect(isUpToDate).toBe(true);
    // Once for the contracts that are known; once more, in up to 40 parts, for those that are found in it.
    expect(rangesOf(calls).length).toBeLessThan(100 + 80 + 80 + 80);
  });
});

describe('pieces of history', () => {
  /** An endpoint that answers requests for history only when so many of them wait at the same time. */
  async function backfillBehindBarriers(
    count: number,
    endpoints: number,
    overrides: Partial<EvmSource> = {},
  ) {
    const { a, index, differences } = await serveWorld(
      worldOf({ deployedAt: 1 }),
      [timestamped],
      [timestamped],
    );
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
      const proxy = await startNodeProxy(a[0]?.url.href ?? '');
      onTestFinished(proxy.close);
      urls.push(proxy.url);
      let inFlight = 0;
      proxy.interfere = async (call, truth) => {
        if (historyOf([call]).length === 0) return truth;
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
    await index({ maxRange: 500, rpc: urls, ...overrides });
    expect(await differences()).toEqual([]);
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
    const { a, differences } = await backfill(worldOf({ deployedAt: 1 }), {}, [limit(5_000), limit(300)]);
    expect(differences).toEqual([]);
    for (const [index, max] of [5_000, 300].entries()) {
      const ranges = historyOf(a[index]?.calls ?? []);
      const refused = ranges.filter(({ from, to }) => to - from + 1 > max);
      expect(ranges.length - refused.length).toBeGreaterThan(5);
      expect(refused.length).toBeLessThan(8 + ranges.length / 16);
    }
  });
});

describe('a chain whose finality is far behind', () => {
  const LAG = 30_000;
  const lagging = (lagBlocks: number) => withLogs({ hasBlockTimestamp: true }, { finalized: { lagBlocks } });

  test('is not read header by header at the first start', async () => {
    const { calls, differences } = await backfill(worldOf(), {}, [lagging(LAG)]);
    expect(differences).toEqual([]);
    expect(callsOf(calls, 'eth_getBlockByNumber').length).toBeLessThan(1_500);
  });

  test('has its messages final when their blocks are', async () => {
    const world = worldOf({ messages: 40 });
    const { a, store, index } = await serveWorld(world);
    const sources = [sourceOf(world.a, a)];
    const blocks = Array.from({ length: 40 }, (_, message) => world.a.blockOfMessage(message));
    for (const lag of [LAG, LAG / 2, 0]) {
      for (const provider of a) provider.profile = lagging(lag);
      await index({}, { sources });
      const records = [...(await allRecords(store)).values()].map((record) => JSON.parse(record) as Message);
      expect(records.filter(({ status }) => status === 'SENT')).toHaveLength(
        blocks.filter((block) => block > world.a.head - lag).length,
      );
    }
  });

  test('takes back what was read in blocks that a fork abandons, far below the head', async () => {
    const world = worldOf({ messages: 40 });
    const { index, differences } = await serveWorld(world, [lagging(LAG)], [timestamped]);
    await index();
    expect(await differences()).toEqual([]);
    const fork = world.a.head - LAG / 2;
    world.a.reorganize({ fork, series: movedDown(world.a, fork) });
    const { logLines } = await index();
    expect(logLines.join('\n')).toContain('were abandoned');
    expect(logLines.join('\n')).not.toContain('had called final');
    expect(await differences()).toEqual([]);
  });
});

/** The same events as before, those above the fork each in a lower block: halfway down to the fork. */
function movedDown(chain: CcipWorld['a'], fork: number): readonly EventSeries[] {
  const lower = (block: number) => (block <= fork ? block : fork + Math.ceil((block - fork) / 2));
  return chain.series.map((series) => ({ ...series, blockOf: (index) => lower(series.blockOf(index)) }));
}

describe('a reorganization deeper than finality', () => {
  test('that moves messages to lower blocks has them there', async () => {
    const world = worldOf({ messages: 40 });
    const { a, index, differences } = await serveWorld(world, [timestamped], [timestamped]);
    await index({ acceptDeepReorgs: true });
    expect(await differences()).toEqual([]);
    const fork = world.a.head - 10_000;
    world.a.reorganize({ fork, series: movedDown(world.a, fork) });
    const calls = a[0]?.calls ?? [];
    calls.length = 0;
    const { logLines } = await index({ acceptDeepReorgs: true });
    expect(logLines.join('\n')).toContain('had called final');
    expect(await differences()).toEqual([]);
    // From the last block with a fact that is still there, not from the beginning.
    const lowest = Math.min(...rangesOf(calls).map(({ from }) => from));
    expect(lowest).toBeLessThanOrEqual(fork + 1);
    expect(lowest).toBeGreaterThan(fork - 5_000);
  });
});
