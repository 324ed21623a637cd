/** Lanes, latency, networks and totals over HTTP, and as the ecosystem's client reads them. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { LaneList, NetworkList, Stats } from '../../src/api/routes/networks-schema.ts';
import { statuses } from '../../src/domain/lifecycle.ts';
import type { Message, NetworkInfo } from '../../src/domain/message.ts';
import { networks } from '../../src/domain/networks/networks.ts';
import {
  expectError,
  serverForAll,
  startServerForTest,
  startSimulatedServer,
} from '../api/running-server.ts';
import { makeManyMessages } from '../fixtures/many-messages.ts';
import {
  canonical,
  evmAddress,
  fuji,
  hashOf,
  makeMessage,
  makeSnapshot,
  makeToken,
  networkInfo,
  sepolia,
  solanaDevnet,
} from '../fixtures.ts';
import { CCIPAPIClient } from '../lab/sdk.ts';
import { silent } from '../lab/sdk-chain.ts';
import { connectTo } from '../postgres.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const now = Date.now();
const link = makeToken(sepolia, fuji, 'LINK');

/** A network that no table knows. */
const homeChain: NetworkInfo = {
  name: 'home-chain',
  chainSelector: '18000000000000000007',
  chainId: '77777',
  chainFamily: 'EVM',
  displayName: null,
};

function sent(number: number, at: number, given: Partial<Message> = {}): Message {
  return makeMessage({ number, sendTimestamp: new Date(at).toISOString(), ...given });
}

function delivered(number: number, at: number, deliveryMs: number, given: Partial<Message> = {}): Message {
  return sent(number, at, {
    status: 'SUCCESS',
    receiptTimestamp: new Date(at + deliveryMs).toISOString(),
    receiptTransactionHash: hashOf('receipt', number),
    deliveryTime: deliveryMs,
    ...given,
  });
}

/** The lane from Sepolia to Fuji: 100 deliveries that took 1 to 100 minutes, and what did not go as smoothly. */
const messages: readonly Message[] = [
  ...Array.from({ length: 100 }, (_, i) => delivered(i + 1, now - 3 * HOUR_MS - i * 1000, (i + 1) * 60_000)),
  // Failed; never a sample of how long a delivery takes.
  sent(101, now - 3 * HOUR_MS, {
    status: 'FAILED',
    readyForManualExecution: true,
    receiptTimestamp: new Date(now).toISOString(),
    receiptTransactionHash: hashOf('receipt', 101),
    deliveryTime: 3 * HOUR_MS,
  }),
  // In flight: one of them for longer than 99 of 100 took.
  sent(102, now - 5 * HOUR_MS),
  sent(103, now - 60_000, { status: 'COMMITTED' }),
  // Numbers 104 to 106 and 109 are missing.
  ...[107, 108, 110].map((number) => delivered(number, now - 60 * DAY_MS, 1_000)),
  // Faster, for those who wait for fewer blocks; and with a token.
  ...[111, 112, 113, 114, 115, 116].map((number) =>
    delivered(number, now - 2 * HOUR_MS, number * 100, { finality: 5, tokenAmounts: [link] }),
  ),
  delivered(117, now - 2 * HOUR_MS, 7_000, { finality: 7 }),
  // Another on-ramp of the same lane, older.
  ...[1, 2].map((number) =>
    canonical({
      ...delivered(200 + number, now - 90 * DAY_MS, 1_000, { version: '1.5.0' }),
      sequenceNumber: String(number),
      onramp: evmAddress('old on-ramp'),
    }),
  ),
  ...[1, 2, 3].map((number) => sent(300 + number, now - HOUR_MS, { destNetworkInfo: solanaDevnet })),
  sent(400, now - 400 * DAY_MS, { sourceNetworkInfo: homeChain }),
];

const server = serverForAll(messages);

const lanes = async (query = '') => (await server.ask(`/v2/lanes${query}`)).json<LaneList>();
const ends = (source: NetworkInfo, dest: NetworkInfo) =>
  `?sourceChainSelector=${source.chainSelector}&destChainSelector=${dest.chainSelector}`;

describe('GET /v2/lanes', () => {
  test('lists the busiest lane first, with everything that there is to say about it', async () => {
    const { data, total } = await lanes();
    expect(total).toBe(3);
    expect(data.map(({ messages }) => messages)).toEqual([115, 3, 1]);
    // In flight beyond the lane's own p99; null where nothing was delivered.
    expect(data.map(({ overdue }) => overdue)).toEqual([1, null, null]);
    const none = Object.fromEntries(statuses.map((status) => [status, 0]));
    expect(data[0]).toMatchObject({
      sourceNetworkInfo: sepolia,
      destNetworkInfo: fuji,
      version: '1.6.0',
      inFlight: 2,
      readyForManualExecution: 1,
      lastSentAt: new Date(now - 60_000).toISOString(),
      byStatus: { ...none, SENT: 1, COMMITTED: 1, FAILED: 1, SUCCESS: 112 },
    });
  });

  test('tells delivery times within 5 per cent, over the window that was asked for', async () => {
    const [within] = (await lanes('?windowDays=30')).data;
    expect(within?.delivery).toMatchObject({ windowDays: 30, messages: 107 });
    const exact = messages
      .filter(({ deliveryTime, status, sendTimestamp }) => {
        return deliveryTime !== null && status === 'SUCCESS' && Date.parse(sendTimestamp) > now - 20 * DAY_MS;
      })
      .map(({ deliveryTime }) => deliveryTime ?? 0)
      .sort((a, b) => a - b);
    for (const percent of [50, 90, 99] as const) {
      const wanted = exact[Math.ceil((exact.length * percent) / 100) - 1] ?? 0;
      const told = within?.delivery[`p${percent}Ms`] ?? 0;
      expect(Math.abs(told - wanted) / wanted).toBeLessThan(0.05);
    }
    expect((await lanes('?windowDays=61')).data[0]?.delivery.messages).toBe(110);
    expect((await lanes('?windowDays=365')).data[0]?.delivery.messages).toBe(112);
  });

  test('tells of each on-ramp by itself which sequence numbers are missing, the newest on-ramp first', async () => {
    const [lane] = (await lanes()).data;
    const complete = { first: '1', last: '2', present: '2', missing: '0', isComplete: true };
    const holed = { first: '1', last: '117', present: '113', missing: '4', isComplete: false };
    const missingRanges = [
      { from: '104', to: '106' },
      { from: '109', to: '109' },
    ];
    const old = canonical({ ...makeMessage(), onramp: evmAddress('old on-ramp') }).onramp;
    expect(lane?.onramps.map(({ onramp, version, completeness }) => [onramp, version, completeness])).toEqual(
      [
        [messages[0]?.onramp, '1.6.0', { ...holed, missingRangeCount: 2, missingRanges }],
        [old, '1.5.0', { ...complete, missingRangeCount: 0, missingRanges: [] }],
      ],
    );
  });

  test('keeps to the ends that were asked for; unknown ones have no lane', async () => {
    const bySource = await lanes(`?sourceChainSelector=${homeChain.chainSelector}`);
    expect(bySource.data.map(({ sourceNetworkInfo }) => sourceNetworkInfo)).toEqual([homeChain]);
    const byDest = await lanes(`?destChainSelector=${fuji.chainSelector}`);
    expect(byDest.total).toBe(2);
    expect((await lanes(ends(sepolia, solanaDevnet))).total).toBe(1);
    expect(await lanes('?sourceChainSelector=1')).toEqual({ data: [], total: 0 });
  });

  test('names no more than 100 missing ranges of an on-ramp, and says how many there are', async () => {
    const holed = await startServerForTest(
      Array.from({ length: 151 }, (_, i) => makeMessage({ number: 2 * i + 1 })),
    );
    const { data } = (await holed.ask('/v2/lanes')).json<LaneList>();
    const completeness = data[0]?.onramps[0]?.completeness;
    expect(completeness).toMatchObject({ present: '151', missing: '150', missingRangeCount: 150 });
    expect(completeness?.missingRanges).toHaveLength(100);
    expect(completeness?.missingRanges[99]).toEqual({ from: '200', to: '200' });
  });

  test.each([
    ['windowDays=0', 'windowDays', 'takes a whole number from 1 to 365'],
    ['windowDays=366', 'windowDays', 'takes a whole number from 1 to 365'],
    ['sourceChainSelector=sepolia', 'sourceChainSelector', 'takes a chain selector'],
    ['sourceSelector=1', 'sourceSelector', 'did you mean sourceChainSelector?'],
  ])('rejects %s in words', async (query, parameter, problem) => {
    const { details } = expectError(await server.ask(`/v2/lanes?${query}`), 400, 'INVALID_PARAMETERS');
    expect(details).toEqual([{ parameter, problem: expect.stringContaining(problem) }]);
  });
});

describe('GET /v2/lanes/latency', () => {
  const latency = (query: string) => server.ask(`/v2/lanes/latency${query}`);
  const lane = ends(sepolia, fuji);

  test('is the median of the deliveries with the chain’s own finality', async () => {
    const answer = await latency(lane);
    expect(answer.status).toBe(200);
    // 1 to 100 minutes, and five deliveries of a second.
    const median = 48 * 60_000;
    expect(answer.json<object>()).toEqual({
      lane: { sourceNetworkInfo: sepolia, destNetworkInfo: fuji, routerAddress: messages[0]?.routerAddress },
      totalMs: median,
    });
    expect((await latency(`${lane}&numOfBlocks=0`)).text).toBe(answer.text);
  });

  test('of a custom finality, and of a token in any spelling', async () => {
    const token = `&sourceTokenAddress=${link.sourceTokenAddress.toLowerCase()}`;
    for (const more of ['', token])
      expect((await latency(`${lane}&numOfBlocks=5${more}`)).json()).toMatchObject({ totalMs: 11_350 });
  });

  test('says how many deliveries there are and how many it takes, where they are too few', async () => {
    for (const [query, words] of [
      [`${lane}&numOfBlocks=6`, 'none was delivered with a finality of 6 blocks; an estimate needs 5'],
      [`${lane}&numOfBlocks=7`, 'only 1 was delivered'],
      [`${lane}&sourceTokenAddress=${link.sourceTokenAddress}`, 'this token'],
      [ends(sepolia, solanaDevnet), ''],
    ] as const)
      expect(expectError(await latency(query), 400, 'INSUFFICIENT_DATA').message).toContain(words);
  });

  test('does not know a lane without a message', async () => {
    const { message } = expectError(await latency(ends(fuji, sepolia)), 404, 'LANE_NOT_FOUND');
    expect(message).toContain('/v2/lanes');
  });

  test('asks for both ends, and rejects what is none', async () => {
    const { details } = expectError(await latency(''), 400, 'INVALID_PARAMETERS');
    expect(details).toEqual([
      { parameter: 'sourceChainSelector', problem: 'is required' },
      { parameter: 'destChainSelector', problem: 'is required' },
    ]);
    const wrong = ['numOfBlocks=-1', 'numOfBlocks=1.5', 'numOfBlocks=99999999999'];
    for (const query of [...wrong, 'sourceTokenAddress=nonsense!'])
      expectError(await latency(`${lane}&${query}`), 400, 'INVALID_PARAMETERS');
  });

  test('is read by the official client: found, not found, and too few', async () => {
    const client = new CCIPAPIClient(server.url, { logger: silent });
    const ask = (source: NetworkInfo, dest: NetworkInfo, blocks?: number) =>
      client.getLaneLatency(BigInt(source.chainSelector), BigInt(dest.chainSelector), blocks);
    expect(await ask(sepolia, fuji)).toEqual({ totalMs: 48 * 60_000 });
    expect(await ask(sepolia, fuji, 5)).toEqual({ totalMs: 11_350 });
    await expect(ask(fuji, sepolia)).rejects.toMatchObject({
      code: 'LANE_NOT_FOUND',
      context: { apiErrorCode: 'LANE_NOT_FOUND' },
    });
    await expect(ask(sepolia, fuji, 7)).rejects.toMatchObject({
      context: { status: 400, apiErrorCode: 'INSUFFICIENT_DATA' },
    });
  });
});

describe('bounds of GET /v2/lanes', () => {
  test('1,000 lanes are shown, and all are counted', { tags: 'slow' }, async () => {
    const lanes = await startServerForTest(
      Array.from({ length: 1_001 }, (_, number) =>
        makeMessage({ number, destNetworkInfo: { ...homeChain, chainSelector: String(10_000 + number) } }),
      ),
    );
    const { data, total } = (await lanes.ask('/v2/lanes')).json<LaneList>();
    expect([data.length, total]).toEqual([1_000, 1_001]);
  });

  test('10,000 overdue messages of a lane are counted', { tags: 'slow' }, async () => {
    const lanes = await startServerForTest();
    await makeManyMessages(lanes.store, 10_001);
    await lanes.store.apply([makeSnapshot(delivered(1_000_000, now - HOUR_MS, 1_000))]);
    const { data } = (await lanes.ask('/v2/lanes')).json<LaneList>();
    expect(data.map(({ overdue }) => overdue)).toEqual([10_000]);
  });
});

describe('GET /v2/networks', () => {
  const ask = async (query = '', from = server) =>
    (await from.ask(`/v2/networks${query}`)).json<NetworkList>();
  const notFoundIn = async (from: typeof server) =>
    expectError(await from.ask(`/v2/messages/${hashOf('nobody')}`), 404, 'MESSAGE_NOT_FOUND').message;

  test('knows every network of the table, and one that only messages name', async () => {
    const { simulated, data } = await ask();
    expect(simulated).toBe(false);
    expect(data).toHaveLength(networks.length + 1);
    expect(data.map(({ name }) => name)).toEqual(data.map(({ name }) => name).sort());
    expect(data.find(({ name }) => name === 'home-chain')).toEqual({
      ...homeChain,
      blockExplorer: null,
      explorerUrls: null,
      sent: 1,
      received: 0,
      indexing: null,
    });
  });

  test('with active=true only those that have messages', async () => {
    const { data } = await ask('?active=true');
    expect(data.map(({ name, sent, received }) => [name, sent, received])).toEqual([
      [fuji.name, 0, 116],
      [sepolia.name, 118, 0],
      ['home-chain', 1, 0],
      [solanaDevnet.name, 0, 3],
    ]);
    expect((await ask('?active=false')).data).toHaveLength(networks.length + 1);
    expectError(await server.ask('/v2/networks?active=yes'), 400, 'INVALID_PARAMETERS');
  });

  test.each([
    ['ok', {}],
    ['ok', { updated_at: '290 s', head_at: '890 s', indexed_at: '890 s', oldest_failure_at: '3590 s' }],
    ['stale', { updated_at: '301 s' }],
    ['lagging', { head_at: '901 s', indexed_at: '901 s' }],
    ['lagging', { head_at: '1 s', indexed_at: '302 s' }],
    ['failing', { oldest_failure_at: '3601 s' }],
    ['ok', { head_at: null, indexed_at: null }, 170],
    ['lagging', { head_at: null, indexed_at: null }, 171],
  ])('says %s of a live indexer whose times are so old: %o', async (health, ages, headBlock = 70) => {
    const indexed = await startServerForTest();
    const client = await connectTo(indexed.store.url);
    const selector = BigInt.asIntN(64, BigInt(sepolia.chainSelector)).toString();
    const times = { updated_at: '1 s', head_at: '1 s', indexed_at: '1 s', oldest_failure_at: null, ...ages };
    await client.query(
      `insert into index_network (selector, holder, lease_until, seen_at)
       values ($1, 'test', now() + interval '1 h', now())`,
      [selector],
    );
    await client.query(
      `insert into network_progress (selector, head_block, indexed_block, ${Object.keys(times).join(', ')})
       values ($1, $2, 70, now() - $3::interval, now() - $4::interval, now() - $5::interval, now() - $6::interval)`,
      [selector, headBlock, ...Object.values(times)],
    );
    await client.end();
    const { data } = await ask('?indexed=true', indexed);
    expect(data.map(({ indexing }) => indexing?.health)).toEqual([health]);
  });

  test('tells how far each network is indexed, and how well', async () => {
    const indexed = await startServerForTest();
    const client = await connectTo(indexed.store.url);
    const tell = (network: NetworkInfo, ...values: readonly unknown[]) =>
      client.query(
        `insert into network_progress (selector, head_block, head_at, finalized_block, indexed_block, indexed_at,
                                       updated_at, problem)
         values ($1, $2, now() - interval '10 s', $3, $4, now() - $5::interval, now() - $6::interval, $7)`,
        [BigInt.asIntN(64, BigInt(network.chainSelector)).toString(), ...values],
      );
    const rejected = 'Every endpoint rejects the connection.';
    await tell(sepolia, 1000, 930, 990, '130 s', '2 s', null);
    await tell(fuji, 5000, 5000, 4000, '2 h', '2 s', null);
    await tell(networkInfo('ethereum-mainnet'), 70, 60, 70, '10 s', '20 min', null);
    await tell(networkInfo('ethereum-mainnet-base-1'), 70, 60, 65, '10 s', '2 s', rejected);
    await tell(networkInfo('polygon-mainnet'), 70, null, null, null, '0 s', null);
    await client.end();

    const { data } = await ask('', indexed);
    const indexing = Object.fromEntries(
      data.flatMap(({ name, indexing }) => (indexing ? [[name, indexing] as const] : [])),
    );
    expect(indexing[sepolia.name]).toEqual({
      headBlock: 1000,
      finalizedBlock: 930,
      indexedBlock: 990,
      startBlock: null,
      owedBlocks: 0,
      failedRanges: 0,
      failedBlocks: 0,
      oldestFailureAt: null,
      unreadableLogs: 0,
      foreignLogs: 0,
      lagBlocks: 10,
      lagSeconds: expect.any(Number),
      isIndexed: false,
      lastSeenAt: expect.stringMatching(/^\d{4}-.*Z$/),
      health: 'ok',
      updatedAt: expect.stringMatching(/^\d{4}-.*Z$/),
      problem: null,
      problemKind: null,
      findings: [],
    });
    expect(Object.entries(indexing).map(([name, { health }]) => [name, health])).toEqual([
      [fuji.name, 'lagging'],
      ['ethereum-mainnet', 'stopped'],
      ['ethereum-mainnet-base-1', 'failing'],
      [sepolia.name, 'ok'],
      ['polygon-mainnet', 'ok'],
    ]);
    expect(indexing['ethereum-mainnet-base-1']).toMatchObject({
      // Of a version that stored no kind: its words are the operator's.
      problem: expect.stringContaining('problem with an endpoint'),
      problemKind: 'unknown',
    });
    expect(indexing['polygon-mainnet']).toMatchObject({
      indexedBlock: null,
      lagBlocks: null,
      lagSeconds: null,
    });

    expect(await notFoundIn(indexed)).toMatch(/Ethereum Sepolia to block 990 \(10 behind its head\)/);
    expect(await notFoundIn(indexed)).toMatch(/lagging.*\(nothing yet\)|\(nothing yet\).*lagging/);
  });

  test('a message that is not here says that records come from imports, where nothing is indexed', async () => {
    expect(await notFoundIn(server)).toContain('records come from imports only');
  });
});

describe('GET /v2/stats', () => {
  const ask = async (query = '', from = server) => (await from.ask(`/v2/stats${query}`)).json<Stats>();

  test('adds up: totals, days and lanes tell of the same messages', async () => {
    const { simulated, totals, days, topLanes, position } = await ask('?windowDays=365');
    expect(simulated).toBe(false);
    expect(totals).toMatchObject({ messages: messages.length, inFlight: 6, readyForManualExecution: 1 });
    expect(Object.keys(totals.byStatus)).toEqual([...statuses]);
    expect(topLanes.map(({ messages }) => messages)).toEqual([115, 3, 1]);
    expect(topLanes[0]).toMatchObject({ sourceNetworkInfo: sepolia, destNetworkInfo: fuji });
    expect(position).toBe(String(messages.length));
    // All but the one from 400 days ago.
    expect(days.reduce((sum, day) => sum + day.messages, 0)).toBe(messages.length - 1);
    for (const day of days) {
      expect(Object.values(day.byStatus).reduce((sum, count) => sum + count, 0)).toBe(day.messages);
    }
  });

  test('has every day of its window, those without messages too, today the last', async () => {
    const { days } = await ask();
    expect(days).toHaveLength(30);
    expect(days.at(-1)?.day).toBe(new Date().toISOString().slice(0, 10));
    expect(days.map(({ day }) => day)).toEqual([...new Set(days.map(({ day }) => day))].sort());
    expect((await ask('?windowDays=1')).days).toHaveLength(1);
    expectError(await server.ask('/v2/stats?windowDays=400'), 400, 'INVALID_PARAMETERS');
  });

  test('is all zeros over an empty store, and names at most ten lanes over a busy one', async () => {
    const empty = await startServerForTest();
    const body = await ask('', empty);
    expect(body).toMatchObject({ totals: { messages: 0 }, topLanes: [], position: '0' });
    const many = await startServerForTest(
      networks
        .filter(({ family }) => family === 'EVM')
        .slice(0, 15)
        .map(({ selector, family, ...network }, i) =>
          makeMessage({
            number: i,
            sourceNetworkInfo: { ...network, chainSelector: selector, chainFamily: family },
          }),
        ),
    );
    expect((await ask('', many)).topLanes).toHaveLength(10);
  });

  test('has a position and numbers of one moment, whatever is written meanwhile', {
    tags: 'slow',
  }, async () => {
    const own = await startServerForTest();
    let isOver = false;
    const asked = Array.from({ length: 4 }, async () => {
      let answers = 0;
      while (!isOver) {
        const { position, totals, days } = await ask('', own);
        // Every change here is a new message of today.
        expect(totals.messages).toBe(Number(position));
        expect(days.at(-1)?.messages).toBe(Number(position));
        answers++;
      }
      return answers;
    });
    const sendTimestamp = `${new Date().toISOString().slice(0, 10)}T00:00:00.000Z`;
    for (let number = 1; number <= 60; number++) {
      await own.store.apply([makeSnapshot(makeMessage({ number, sendTimestamp }))]);
    }
    isOver = true;
    expect(Math.min(...(await Promise.all(asked)))).toBeGreaterThan(0);
  });
});

test('networks and totals of a demo say that they are simulated', async () => {
  const demo = await startSimulatedServer([makeMessage()]);
  onTestFinished(() => demo.close());
  for (const path of ['/v2/networks', '/v2/stats'])
    expect((await demo.ask(path)).json()).toMatchObject({ simulated: true });
});
