/** What the indexer makes of real chains: every message of the lab, each with the status that it has there. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { getCcvsForMessage } from '../../src/ingest/evm/contracts/abi.ts';
import type { Store } from '../../src/store/store.ts';
import { openTestStore } from '../database.ts';
import type { JsonRpcCall } from '../json-rpc-server.ts';
import {
  type Lab,
  type LabNetwork,
  type Lane,
  PERMISSIONLESS_AFTER_SECONDS,
  type SentMessage,
  startLab,
  versions,
} from '../lab/lab.ts';
import {
  FINALITY,
  type FollowingIndexer,
  follow,
  indexOnce,
  labSource,
  recordOf,
  statusesSeen,
} from './indexing.ts';
import { honest, rejecting, startNodeProxy } from './node-proxy.ts';
import { eventually } from './proxied-lab.ts';

let lab: Lab;

beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab?.stop());

async function emptyStore(): Promise<Store> {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  return store;
}

function following(store: Store, ...rest: [options?: Parameters<typeof follow>[2]]): FollowingIndexer {
  const indexer = follow(store, lab, ...rest);
  onTestFinished(indexer.stop);
  return indexer;
}

const untilStatus = (store: Store, message: SentMessage, status: string | undefined): Promise<void> =>
  eventually(async () => expect((await recordOf(store, message))?.status).toBe(status));

const sourceOf = (lane: Lane): LabNetwork => lab.network(lane.from);
const destOf = (lane: Lane): LabNetwork => lab.network(lane.to);

/** A lane whose sequence numbers begin anew, whatever other tests left uncommitted on it. */
async function freshLane(version: Lane['version'], from: Lane['from']): Promise<Lane> {
  const lane = lab.lane(version, from);
  await lane.replaceRamps();
  return lane;
}

const isNamed = ({ destAddress }: { destAddress: string }) => BigInt(destAddress) !== 0n;

const lanes = versions.flatMap((version) => (['a', 'b'] as const).map((from) => ({ version, from })));

describe('a message', () => {
  const watchWholeLife = async ({ version, from }: (typeof lanes)[number]) => {
    const store = await emptyStore();
    following(store);
    const lane = lab.lane(version, from);
    const message = await lane.sendOne({ data: '0x1234' });
    await untilStatus(store, message, 'SENT');
    await sourceOf(lane).mine(FINALITY);
    await untilStatus(store, message, lane.isCommitted ? 'SOURCE_FINALIZED' : 'VERIFYING');
    if (lane.isCommitted) {
      await lane.commit([message]);
      await untilStatus(store, message, 'COMMITTED');
    }
    if (lane.isBlessed) {
      await lane.bless([message]);
      await untilStatus(store, message, 'BLESSED');
    }
    await lane.execute(message, { fail: true });
    await untilStatus(store, message, 'FAILED');
    expect(await recordOf(store, message)).toMatchObject({ readyForManualExecution: true });
    await lane.executeByHand(message);
    await untilStatus(store, message, 'SUCCESS');
    expect(await recordOf(store, message)).toMatchObject({ readyForManualExecution: false });

    const between = lane.isBlessed
      ? ['SOURCE_FINALIZED', 'COMMITTED', 'BLESSED']
      : lane.isCommitted
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
      if (lane.isBlessed) {
        // Nobody can execute what the RMN has not blessed, however long ago it was committed.
        await indexOnce(store, lab);
        expect(await recordOf(store, message)).toMatchObject({ readyForManualExecution: false });
        await lane.bless([message]);
      }
      await indexOnce(store, lab);
      expect(await recordOf(store, message)).toMatchObject({
        status: lane.isBlessed ? 'BLESSED' : 'COMMITTED',
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
const twoEndpointsEach = () =>
  lab.networks.map((network) => labSource(network, { rpc: [new URL(network.url), new URL(network.url)] }));

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
      await lane.prepare([message]);
      await lane.execute(message);
      await untilStatus(store, message, 'SUCCESS');
      await fork.abandon();
      await untilStatus(store, message, 'SOURCE_FINALIZED');
      expect((await statusesSeen(store, message)).slice(-2)).toEqual(['SUCCESS', 'SOURCE_FINALIZED']);
    },
  );

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
    const sources = twoEndpointsEach();
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
    expect(before?.verifiers?.items.some(isNamed)).toBe(true);
    await fork.abandon({ blocks: 3 * FINALITY });
    const sources = twoEndpointsEach();
    await indexOnce(store, lab, { sources });
    expect(await recordOf(store, message)).toEqual(before);
  });
});

describe('an off-ramp that does not say which verifiers a message needs', { tags: 'slow' }, () => {
  test('is asked again and again, and believed when it answers', async () => {
    const store = await emptyStore();
    const message = await lab.lane('2.0', 'a').sendOne();
    await lab.a.mine(FINALITY);
    const proxy = await startNodeProxy(lab.b.url);
    onTestFinished(proxy.close);
    let asked = 0;
    const asksForVerifiers = ({ method, params }: JsonRpcCall) => {
      const [call] = params as readonly [{ readonly data?: string }?];
      return method === 'eth_call' && call?.data?.startsWith(getCcvsForMessage.selector) === true;
    };
    proxy.interfere = rejecting((call) => asksForVerifiers(call) && ++asked > 0, 3, 'execution reverted');
    following(store, {
      sources: [labSource(lab.a), labSource(lab.b, { rpc: [proxy.url] })],
      timing: { taskMinMs: 5, taskMaxMs: 5 },
    });
    await eventually(() => expect(asked).toBeGreaterThan(20));
    expect((await recordOf(store, message))?.verifiers?.items.some(isNamed)).toBe(false);
    proxy.interfere = honest;
    await eventually(async () =>
      expect((await recordOf(store, message))?.verifiers?.items.some(isNamed)).toBe(true),
    );
  });
});

test('a network whose only endpoint is dead does not hold up the other, and says what is wrong', {
  tags: 'slow',
}, async () => {
  const store = await emptyStore();
  const dead = labSource(lab.b, { rpc: [new URL('http://127.0.0.1:9')] });
  following(store, { sources: [labSource(lab.a), dead] });
  const message = await lab.lane('1.6', 'a').sendOne();
  await untilStatus(store, message, 'SENT');
  await eventually(async () => {
    const progress = await store.networkProgress();
    const problemOf = ({ network }: typeof dead) =>
      progress.find(({ selector }) => selector === network.selector)?.problem;
    expect(problemOf(dead)).toContain('127.0.0.1');
    expect(problemOf(labSource(lab.a))).toBeNull();
  });
});
