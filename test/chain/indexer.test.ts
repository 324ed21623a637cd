/** What the indexer makes of real chains: every message of the lab, each with the status that it has there. */
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { getCcvsForMessage } from '../../src/ingest/evm/contracts/abi.ts';
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';
import type { Store } from '../../src/store/store.ts';
import { openTestStore } from '../database.ts';
import { rpcError } from '../json-rpc-server.ts';
import {
  type Lab,
  type LabNetwork,
  type Lane,
  PERMISSIONLESS_AFTER_SECONDS,
  type SentMessage,
  startLab,
  versions,
} from '../lab/lab.ts';
import { labContract } from '../lab/solidity.ts';
import {
  allRecords,
  FINALITY,
  type FollowingIndexer,
  follow,
  indexOnce,
  labSource,
  recordOf,
  statusesSeen,
} from './indexing.ts';
import { honest, startNodeProxy } from './node-proxy.ts';

let lab: Lab;
const running: FollowingIndexer[] = [];
const stores: Store[] = [];

beforeAll(async () => {
  lab = await startLab();
}, 180_000);
afterEach(async () => {
  for (const indexer of running.splice(0)) await indexer.stop();
  for (const store of stores.splice(0)) await store.close();
});
afterAll(() => lab?.stop());

async function emptyStore(): Promise<Store> {
  const store = await openTestStore();
  stores.push(store);
  return store;
}

function following(store: Store, ...rest: [options?: Parameters<typeof follow>[2]]): FollowingIndexer {
  const indexer = follow(store, lab, ...rest);
  running.push(indexer);
  return indexer;
}

const eventually = (expectation: () => Promise<void> | void) =>
  vi.waitFor(expectation, { timeout: 120_000, interval: 20 });

const untilStatus = (store: Store, message: SentMessage, status: string | undefined): Promise<void> =>
  eventually(async () => expect((await recordOf(store, message))?.status).toBe(status));

const sourceOf = (lane: Lane): LabNetwork => lab.network(lane.from);
const destOf = (lane: Lane): LabNetwork => lab.network(lane.to);
const isCommitLane = ({ version }: Lane) => version !== '2.0';
const isBlessedLane = ({ version }: Lane) => version === '1.2' || version === '1.5';

/** A lane whose sequence numbers begin anew, whatever other tests left uncommitted on it. */
async function freshLane(version: Lane['version'], from: Lane['from']): Promise<Lane> {
  const lane = lab.lane(version, from);
  await lane.replaceRamps();
  return lane;
}

const lanes = versions.flatMap((version) => (['a', 'b'] as const).map((from) => ({ version, from })));

describe('a message', () => {
  const watchWholeLife = async ({ version, from }: (typeof lanes)[number]) => {
    const store = await emptyStore();
    following(store);
    const lane = lab.lane(version, from);
    const message = await lane.sendOne({ data: '0x1234' });
    await untilStatus(store, message, 'SENT');
    await sourceOf(lane).mine(FINALITY);
    await untilStatus(store, message, isCommitLane(lane) ? 'SOURCE_FINALIZED' : 'VERIFYING');
    if (isCommitLane(lane)) {
      await lane.commit([message]);
      await untilStatus(store, message, 'COMMITTED');
    }
    if (isBlessedLane(lane)) {
      await lane.bless([message]);
      await untilStatus(store, message, 'BLESSED');
    }
    await lane.execute(message, { fail: true });
    await untilStatus(store, message, 'FAILED');
    expect(await recordOf(store, message)).toMatchObject({ readyForManualExecution: true });
    await lane.executeByHand(message);
    await untilStatus(store, message, 'SUCCESS');
    expect(await recordOf(store, message)).toMatchObject({ readyForManualExecution: false });

    const between = isBlessedLane(lane)
      ? ['SOURCE_FINALIZED', 'COMMITTED', 'BLESSED']
      : isCommitLane(lane)
        ? ['SOURCE_FINALIZED', 'COMMITTED']
        : ['VERIFYING'];
    expect(await statusesSeen(store, message)).toEqual(['SENT', ...between, 'FAILED', 'SUCCESS']);
  };
  const [there, back] = (['a', 'b'] as const).map((from) => lanes.filter((lane) => lane.from === from));
  test.each(there ?? [])('of $version from $from is watched through its whole life', watchWholeLife);
  test.each(back ?? [])('of $version from $from is too', { tags: 'slow' }, watchWholeLife);

  test('whose root the RMN has signed is blessed on 1.6', { tags: 'slow' }, async () => {
    const store = await emptyStore();
    const lane = lab.lane('1.6', 'a');
    const message = await lane.sendOne();
    await lane.commit([message], { blessed: true });
    await indexOnce(store, lab);
    expect(await recordOf(store, message)).toMatchObject({ status: 'BLESSED' });
  });

  test.each(['1.2', '1.5', '1.6'] as const)(
    'of %s is open to everybody once the threshold has passed',
    { tags: 'slow' },
    async (version) => {
      const store = await emptyStore();
      const lane = await freshLane(version, 'b');
      const message = await lane.sendOne();
      await lane.commit([message]);
      await destOf(lane).travel(PERMISSIONLESS_AFTER_SECONDS - 60);
      await indexOnce(store, lab);
      expect(await recordOf(store, message)).toMatchObject({ readyForManualExecution: false });
      await destOf(lane).travel(120);
      if (isBlessedLane(lane)) {
        // Nobody can execute what the RMN has not blessed, however long ago it was committed.
        await indexOnce(store, lab);
        expect(await recordOf(store, message)).toMatchObject({ readyForManualExecution: false });
        await lane.bless([message]);
      }
      await indexOnce(store, lab);
      expect(await recordOf(store, message)).toMatchObject({
        status: isBlessedLane(lane) ? 'BLESSED' : 'COMMITTED',
        readyForManualExecution: true,
      });
      await lane.executeByHand(message);
      await indexOnce(store, lab);
      expect(await recordOf(store, message)).toMatchObject({
        status: 'SUCCESS',
        readyForManualExecution: false,
      });
    },
  );
});

describe('history', { tags: 'slow' }, () => {
  test('read in afterwards gives the same records as watching', async () => {
    const watched = await emptyStore();
    following(watched);
    for (const { version, from } of lab.lanes) {
      const lane = version === '2.0' ? lab.lane(version, from) : await freshLane(version, from);
      const messages = [
        ...(await lane.send({ count: 3, tokens: [{ amount: 5n }] })),
        await lane.sendOne({ outOfOrder: false, feeToken: 'link' }),
      ];
      if (isCommitLane(lane)) await lane.commit(messages);
      if (isBlessedLane(lane)) await lane.bless(messages);
      for (const message of messages.slice(0, -1)) await lane.execute(message);
    }
    const afterwards = await emptyStore();
    await indexOnce(afterwards, lab);
    const records = await allRecords(afterwards);
    expect(records.size).toBeGreaterThan(30);
    // The one that watches asks contracts about messages only after it has read the newest blocks.
    await eventually(async () => expect(await allRecords(watched)).toEqual(records));
  });

  test('of ramps that were replaced is read with that of their successors', async () => {
    const lane = await freshLane('1.6', 'b');
    const early = await lane.sendOne();
    await lane.commit([early]);
    const watched = await emptyStore();
    following(watched);
    await untilStatus(watched, early, 'COMMITTED');
    await lane.replaceRamps();
    const late = await lane.sendOne();
    await lane.commit([late]);
    await lane.execute(late);
    await untilStatus(watched, late, 'SUCCESS');

    const afterwards = await emptyStore();
    await indexOnce(afterwards, lab);
    expect(await recordOf(afterwards, early)).toMatchObject({ status: 'COMMITTED' });
    expect(await recordOf(afterwards, late)).toMatchObject({ status: 'SUCCESS' });
    const onramps = [await recordOf(afterwards, early), await recordOf(afterwards, late)];
    expect(new Set(onramps.map((record) => record?.onramp)).size).toBe(2);
  });

  test('begins where the configuration says', async () => {
    const lane = lab.lane('1.6', 'a');
    const before = await lane.sendOne();
    await lab.a.mine(FINALITY + 1);
    const after = await lane.sendOne();
    const [a, b] = lab.networks;
    const store = await emptyStore();
    const sources = (block: number) => [labSource(a, { start: { block } }), labSource(b)];
    await indexOnce(store, lab, { sources: sources(after.blockNumber) });
    expect(await recordOf(store, before)).toBeUndefined();
    expect(await recordOf(store, after)).toBeDefined();
    // An earlier start, later on, brings what is missing.
    await indexOnce(store, lab, { sources: sources(before.blockNumber) });
    expect(await recordOf(store, before)).toBeDefined();
  });

  test('begins at a time, where the configuration gives one', async () => {
    const lane = lab.lane('1.6', 'a');
    const before = await lane.sendOne();
    await lab.a.travel(1_000);
    const { timestamp } = await lab.a.block('latest');
    await lab.a.mine(FINALITY + 1);
    const after = await lane.sendOne();
    const store = await emptyStore();
    const start = { time: Number(timestamp) * 1000 };
    await indexOnce(store, lab, { sources: [labSource(lab.a, { start })] });
    expect(await recordOf(store, before)).toBeUndefined();
    expect(await recordOf(store, after)).toBeDefined();
  });
});

/** Who agree: one alone cannot take back what was final. */
const twoEndpointsOf = ({ url }: LabNetwork) => ({ rpc: [new URL(url), new URL(url)] });

describe('a reorganisation', () => {
  test('removes a message that was sent in an abandoned block, and its history says so', async () => {
    const store = await emptyStore();
    following(store);
    const lane = lab.lane('1.6', 'a');
    const kept = await lane.sendOne();
    await untilStatus(store, kept, 'SENT');
    const fork = await lab.a.fork();
    const gone = await lane.sendOne();
    await untilStatus(store, gone, 'SENT');
    await fork.abandon();
    await untilStatus(store, gone, undefined);
    expect(await statusesSeen(store, gone)).toEqual(['SENT', 'removed']);
    expect(await recordOf(store, kept)).toMatchObject({ status: 'SENT' });
  });

  test('moves a message that is sent again in another block', { tags: 'slow' }, async () => {
    const store = await emptyStore();
    following(store);
    const lane = lab.lane('1.5', 'a');
    await lab.a.mine();
    const fork = await lab.a.fork();
    await lab.a.mine();
    const message = await lane.sendOne();
    await untilStatus(store, message, 'SENT');
    const { kept } = await fork.abandon({ keep: 'all' });
    const [again] = kept;
    await vi.waitFor(
      async () =>
        expect(await recordOf(store, message)).toMatchObject({
          status: 'SENT',
          sendBlockNumber: Number(again?.blockNumber),
        }),
      { timeout: 120_000 },
    );
    expect(Number(again?.blockNumber)).not.toBe(message.blockNumber);
  });

  test.each(['1.5', '1.6'] as const)(
    'takes back commits, blessings and executions of %s',
    { tags: 'slow' },
    async (version) => {
      const store = await emptyStore();
      following(store);
      const lane = await freshLane(version, 'a');
      const message = await lane.sendOne();
      await lab.a.mine(FINALITY);
      await untilStatus(store, message, 'SOURCE_FINALIZED');
      const fork = await lab.b.fork();
      await lane.commit([message]);
      if (isBlessedLane(lane)) await lane.bless([message]);
      await lane.execute(message);
      await untilStatus(store, message, 'SUCCESS');
      await fork.abandon();
      await untilStatus(store, message, 'SOURCE_FINALIZED');
      expect((await statusesSeen(store, message)).slice(-2)).toEqual(['SUCCESS', 'SOURCE_FINALIZED']);
    },
  );

  test('while nobody was looking is noticed at the next start', { tags: 'slow' }, async () => {
    const store = await emptyStore();
    const lane = lab.lane('2.0', 'a');
    const kept = await lane.sendOne();
    const fork = await lab.a.fork();
    const gone = await lane.sendOne();
    await indexOnce(store, lab);
    expect(await recordOf(store, gone)).toBeDefined();
    await fork.abandon();
    await indexOnce(store, lab);
    expect(await recordOf(store, gone)).toBeUndefined();
    expect(await recordOf(store, kept)).toBeDefined();
  });

  test('below what was final is repaired all the same', { tags: 'slow' }, async () => {
    const store = await emptyStore();
    const lane = lab.lane('1.6', 'a');
    const kept = await lane.sendOne();
    const fork = await lab.a.fork();
    const gone = await lane.sendOne();
    await lab.a.mine(2 * FINALITY);
    await indexOnce(store, lab);
    expect(await recordOf(store, gone)).toMatchObject({ status: 'SOURCE_FINALIZED' });
    await fork.abandon({ blocks: 3 * FINALITY });
    const sources = lab.networks.map((network) => labSource(network, twoEndpointsOf(network)));
    const logLines = await indexOnce(store, lab, { sources });
    expect(await recordOf(store, gone)).toBeUndefined();
    expect(await recordOf(store, kept)).toMatchObject({ status: 'SOURCE_FINALIZED' });
    expect(logLines.join('\n')).toContain('had called final');
  });

  test('below what was final at the destination has the verifiers asked for again', {
    tags: 'slow',
  }, async () => {
    const store = await emptyStore();
    const message = await lab.lane('2.0', 'a').sendOne();
    await lab.a.mine(FINALITY);
    const fork = await lab.b.fork();
    await lab.b.mine(2 * FINALITY);
    await indexOnce(store, lab);
    const before = await recordOf(store, message);
    const isNamed = ({ destAddress }: { destAddress: string }) => BigInt(destAddress) !== 0n;
    expect(before?.verifiers?.items.some(isNamed)).toBe(true);
    await fork.abandon({ blocks: 3 * FINALITY });
    const sources = lab.networks.map((network) => labSource(network, twoEndpointsOf(network)));
    await indexOnce(store, lab, { sources });
    expect(await recordOf(store, message)).toEqual(before);
  });
});

describe('an off-ramp that refuses to say which verifiers a message needs', { tags: 'slow' }, () => {
  test('is asked again and again, and believed when it answers', async () => {
    const store = await emptyStore();
    const message = await lab.lane('2.0', 'a').sendOne();
    await lab.a.mine(FINALITY);
    const proxy = await startNodeProxy(lab.b.url);
    onTestFinished(() => proxy.close());
    let refusals = 0;
    proxy.interfere = (call, truth) => {
      const [asked] = call.params as readonly [{ readonly data?: string }?];
      if (call.method !== 'eth_call' || !asked?.data?.startsWith(getCcvsForMessage.selector)) return truth;
      refusals++;
      throw rpcError(3, 'execution reverted');
    };
    following(store, {
      sources: [labSource(lab.a), labSource(lab.b, { rpc: [proxy.url] })],
      timing: { taskMinMs: 5, taskMaxMs: 5 },
    });
    await eventually(() => expect(refusals).toBeGreaterThan(20));
    const isNamed = ({ destAddress }: { destAddress: string }) => BigInt(destAddress) !== 0n;
    expect((await recordOf(store, message))?.verifiers?.items.some(isNamed)).toBe(false);
    proxy.interfere = honest;
    await eventually(async () =>
      expect((await recordOf(store, message))?.verifiers?.items.some(isNamed)).toBe(true),
    );
  });
});

describe('an impostor', { tags: 'slow' }, () => {
  test('that copies every event changes nothing, and is counted', async () => {
    const store = await emptyStore();
    for (const { version, from } of lab.lanes) {
      const lane = version === '2.0' ? lab.lane(version, from) : await freshLane(version, from);
      const [message] = await lane.send({ tokens: [{ amount: 1n }] });
      if (!message) throw new Error('nothing was sent');
      if (isCommitLane(lane)) await lane.commit([message]);
      if (isBlessedLane(lane)) await lane.bless([message]);
      await lane.execute(message);
    }
    await indexOnce(store, lab);
    const before = await allRecords(store);
    const position = await store.latestPosition();
    const foreignBefore = await foreignLogs(store);

    let copied = 0;
    for (const network of lab.networks) {
      const impostor = await network.deploy(labContract('Impostor'));
      const logs = await network.rpc<{ topics: Hex[]; data: Hex }[]>('eth_getLogs', [
        { fromBlock: '0x0', toBlock: 'latest' },
      ]);
      for (let first = 0; first < logs.length; first += 20) {
        const some = logs
          .slice(first, first + 20)
          .map(({ topics, data }) => ({ topics, data: altered(data) }));
        await impostor.send('emitLogs', [some]);
        copied += some.length;
      }
    }
    expect(copied).toBeGreaterThan(100);
    await indexOnce(store, lab);
    expect(await allRecords(store)).toEqual(before);
    expect(await store.latestPosition()).toBe(position);
    expect(await foreignLogs(store)).toBeGreaterThan(foreignBefore + 30);

    const afterwards = await emptyStore();
    await indexOnce(afterwards, lab);
    expect(await allRecords(afterwards)).toEqual(before);
  });

  /** The same event with another amount, text or receiver somewhere in it. */
  function altered(data: Hex): Hex {
    return data.length > 10 ? (`${data.slice(0, -1)}${data.endsWith('7') ? '8' : '7'}` as Hex) : data;
  }

  async function foreignLogs(store: Store): Promise<number> {
    return (await store.networkProgress()).reduce((sum, network) => sum + network.foreignLogs, 0);
  }
});

describe('one that is dead', { tags: 'slow' }, () => {
  const nobody = new URL('http://127.0.0.1:9');

  test('endpoint of two does not matter', async () => {
    const store = await emptyStore();
    const message = await lab.lane('1.6', 'a').sendOne();
    const sources = lab.networks.map((network) =>
      labSource(network, { rpc: [nobody, new URL(network.url)] }),
    );
    await indexOnce(store, lab, { sources });
    expect(await recordOf(store, message)).toMatchObject({ status: 'SENT' });
  });

  test('network does not hold up the other, and says what is wrong', async () => {
    const store = await emptyStore();
    following(store, { sources: [labSource(lab.a), labSource(lab.b, { rpc: [nobody] })] });
    const message = await lab.lane('1.6', 'a').sendOne();
    await untilStatus(store, message, 'SENT');
    await vi.waitFor(
      async () => {
        const progress = await store.networkProgress();
        const [dead] = progress.filter(({ selector }) => selector === labSource(lab.b).network.selector);
        const [alive] = progress.filter(({ selector }) => selector === labSource(lab.a).network.selector);
        expect(dead?.problem).toContain('127.0.0.1');
        expect(alive?.problem).toBeNull();
      },
      { timeout: 120_000 },
    );
  });
});

describe('of two indexers', { tags: 'slow' }, () => {
  test('one works on a network, and the other takes over when it is gone', async () => {
    const store = await emptyStore();
    const timing = { leaseSeconds: 2, leasePollMs: 50 };
    const first = following(store, { timing });
    const lane = lab.lane('1.6', 'a');
    const one = await lane.sendOne();
    await untilStatus(store, one, 'SENT');
    const second = following(store, { timing });
    await vi.waitFor(() => expect(second.logLines).toHaveLength(2), { timeout: 120_000 });
    expect(second.logLines.join('\n')).toContain('another indexer works on it');
    expect(second.indexer.statuses().map(({ isOurs }) => isOurs)).toEqual([false, false]);

    await first.stop();
    const two = await lane.sendOne();
    await untilStatus(store, two, 'SENT');
    expect(second.indexer.statuses().map(({ isOurs }) => isOurs)).toEqual([true, true]);
    expect(await statusesSeen(store, one)).toEqual(['SENT']);
  });
});
