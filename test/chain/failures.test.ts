// @module-tag slow: starts chain nodes, and waits for many repairs
/** What goes wrong with nodes, and that nothing is lost by it: one lab, and a proxy in front of its node that misbehaves. */
import pg from 'pg';
import { type Hex, numberToHex } from 'viem';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { IndexerTiming } from '../../src/ingest/engine/indexer.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import type { NetworkProgress } from '../../src/store/query/network-progress.ts';
import type { Store } from '../../src/store/store.ts';
import { serveStore } from '../api/running-server.ts';
import { openTestStore } from '../database.ts';
import { type JsonRpcCall, rpcError } from '../json-rpc-server.ts';
import { deployImpostor } from '../lab/impostor.ts';
import { type Lab, type Lane, type RawLog, type SentMessage, startLab } from '../lab/lab.ts';
import { ccipContract } from '../lab/solidity.ts';
import { briefly } from './faulty-node.ts';
import {
  FINALITY,
  type FollowingIndexer,
  follow,
  hurriedTiming,
  indexOnce,
  labSource,
  recordOf,
} from './indexing.ts';
import { honest, isHistoryCall, type NodeProxy, rangeOf, startNodeProxy } from './node-proxy.ts';

type TestStore = Store & { readonly url: string };

let lab: Lab;
let lane: Lane;
let proxy: NodeProxy;
const running: FollowingIndexer[] = [];
const stores: TestStore[] = [];

beforeAll(async () => {
  lab = await startLab({ versions: ['1.6'] });
  lane = lab.lane('1.6', 'a');
  proxy = await startNodeProxy(lab.a.url);
}, 180_000);
afterEach(async () => {
  for (const indexer of running.splice(0)) await indexer.stop();
  for (const store of stores.splice(0)) await store.close();
  proxy.interfere = honest;
  proxy.isDown = false;
  proxy.calls.length = 0;
});
afterAll(async () => {
  await proxy?.close();
  await lab?.stop();
});

async function emptyStore(): Promise<TestStore> {
  const store = await openTestStore();
  stores.push(store);
  return store;
}

/** The network whose node misbehaves; the other one is of no concern here. */
function source(overrides: Partial<EvmSource> = {}): readonly EvmSource[] {
  return [labSource(lab.a, { rpc: [proxy.url], start: { block: 0 }, verify: 'head', ...overrides })];
}

const timing: Partial<IndexerTiming> = { ...hurriedTiming, endpoints: briefly };

function following(
  store: Store,
  overrides: Partial<EvmSource> = {},
  ownTiming: Partial<IndexerTiming> = {},
): FollowingIndexer {
  const indexer = follow(store, lab, { sources: source(overrides), timing: { ...timing, ...ownTiming } });
  running.push(indexer);
  return indexer;
}

const once = (store: Store, overrides: Partial<EvmSource> = {}, signal?: AbortSignal) =>
  indexOnce(store, lab, { sources: source(overrides), timing, ...(signal && { signal }) });

async function progressOf(store: Store): Promise<NetworkProgress | undefined> {
  const [progress] = await store.networkProgress();
  return progress;
}

const eventually = (expectation: () => Promise<void> | void) =>
  vi.waitFor(expectation, { timeout: 120_000, interval: 20 });

const untilKnown = (store: Store, message: SentMessage) =>
  eventually(async () => expect(await recordOf(store, message)).toBeDefined());

const untilProgress = (store: Store, expected: Partial<NetworkProgress>) =>
  eventually(async () => expect(await progressOf(store)).toMatchObject(expected));

async function select<T extends pg.QueryResultRow>(
  store: TestStore,
  statement: string,
): Promise<readonly T[]> {
  const client = new pg.Client(store.url);
  await client.connect();
  try {
    return (await client.query<T>(statement)).rows;
  } finally {
    await client.end();
  }
}

/** A message in a block of its own, far enough below the head to be final. */
async function sendFinal(): Promise<SentMessage> {
  const message = await lane.sendOne();
  await lab.a.mine(FINALITY + 1);
  return message;
}

/** Whether the call asks for logs or receipts of this block, alone or among others. */
function concerns(
  call: JsonRpcCall,
  { blockNumber, blockHash }: { blockNumber: number; blockHash: string },
): boolean {
  const range = rangeOf(call);
  if (range) return range.from <= blockNumber && blockNumber <= range.to;
  if (call.method === 'eth_getBlockReceipts') return call.params[0] === blockHash;
  return call.method === 'eth_getLogs' && (call.params[0] as { blockHash?: string }).blockHash === blockHash;
}

/** Whoever asks for the logs of this block gets an error. */
function spoil(block: { blockNumber: number; blockHash: string }): void {
  proxy.interfere = (call, truth) => {
    if (concerns(call, block)) throw rpcError(-32000, 'leveldb: corruption on data-block');
    return truth;
  };
}

describe('a block of history that cannot be read', () => {
  test('is left out, and it alone; is tried less and less often; and is read when it can be', async () => {
    const store = await emptyStore();
    const before = await sendFinal();
    const bad = await sendFinal();
    const after = await sendFinal();
    spoil(bad);
    const indexer = following(store, { maxRange: 16 }, { repairMaxMs: 3_600_000 });
    await Promise.all([untilKnown(store, before), untilKnown(store, after)]);
    const atHead = await lane.sendOne();
    await untilKnown(store, atHead);
    await untilProgress(store, { failedRanges: 1, failedBlocks: 1, owedBlocks: 0, problem: null });
    expect(await recordOf(store, bad)).toBeUndefined();
    expect(indexer.logLines.join('\n')).toContain('leveldb: corruption on data-block');

    // Each pause is at least half of the one that doubles with every failure.
    await eventually(async () => {
      const [failure] = await select<{ from_block: string; failures: number; waited: number }>(
        store,
        `select from_block, to_block, failures,
                (extract(epoch from retry_at - first_failed_at) * 1000)::float8 as waited
         from index_failure where purpose = 'history'`,
      );
      const place = String(bad.blockNumber);
      expect(failure).toMatchObject({ from_block: place, to_block: place });
      expect(failure?.failures).toBeGreaterThanOrEqual(6);
      const least = 0.5 * (hurriedTiming.repairMinMs ?? 0) * (2 ** (failure?.failures ?? 0) - 1);
      expect(failure?.waited).toBeGreaterThan(least);
    });
    await expectShown(store, { failedRanges: 1, failedBlocks: 1 });

    proxy.interfere = honest;
    await untilKnown(store, bad);
    await untilProgress(store, { failedRanges: 0, failedBlocks: 0, oldestFailureAt: null });
    expect(await recordOf(store, bad)).toMatchObject({ status: 'SOURCE_FINALIZED' });
    await expectShown(store, { failedRanges: 0, failedBlocks: 0 });
  });

  test('does not keep `--once` from ending, and is read by the next one', async () => {
    const store = await emptyStore();
    const bad = await sendFinal();
    const after = await sendFinal();
    spoil(bad);
    await once(store, { maxRange: FINALITY });
    expect(await recordOf(store, after)).toBeDefined();
    expect(await recordOf(store, bad)).toBeUndefined();
    expect((await progressOf(store))?.failedRanges).toBeGreaterThan(0);
    proxy.interfere = honest;
    following(store);
    await untilKnown(store, bad);
    await untilProgress(store, { failedRanges: 0 });
  });

  test('does not move the beginning of history when the routers are in it', async () => {
    const store = await emptyStore();
    const message = await sendFinal();
    const length = 40;
    await lab.a.mine(length);
    proxy.interfere = (call, truth) => {
      if ((rangeOf(call)?.from ?? Infinity) <= message.blockNumber)
        throw rpcError(-32000, 'header not found');
      return truth;
    };
    following(store, { start: null, maxRange: length });
    await untilProgress(store, { owedBlocks: 0 });
    const { startBlock = null, failedRanges } = (await progressOf(store)) ?? {};
    expect(failedRanges).toBeGreaterThan(0);
    expect(startBlock).toBeLessThan(message.blockNumber);
    proxy.interfere = honest;
    await untilKnown(store, message);
    await untilProgress(store, { failedRanges: 0, owedBlocks: 0, startBlock });
  });

  /** /v2/networks and /metrics, as a server would tell them at this moment. */
  async function expectShown(
    store: TestStore,
    { failedRanges, failedBlocks }: { failedRanges: number; failedBlocks: number },
  ): Promise<void> {
    const server = await serveStore({ ...store, close: async () => undefined });
    try {
      const { data } = (await server.ask('/v2/networks?active=true')).json<{
        data: readonly { name: string; indexing: { oldestFailureAt: string | null } | null }[];
      }>();
      const indexing = data.find(({ name }) => name === lab.a.name)?.indexing;
      expect(indexing).toMatchObject({ failedRanges, failedBlocks, health: 'ok' });
      const age = Date.now() - Date.parse(indexing?.oldestFailureAt ?? '');
      if (failedRanges > 0) expect(age).toBeGreaterThan(0);
      else expect(indexing?.oldestFailureAt).toBeNull();
      const metrics = (await server.ask('/metrics')).text;
      const figure = (name: string) =>
        Number(
          new RegExp(`^lanescan_network_${name}\\{network="${lab.a.name}"\\} (\\S+)$`, 'm').exec(
            metrics,
          )?.[1],
        );
      expect(figure('failed_ranges')).toBe(failedRanges);
      if (failedRanges > 0) expect(figure('oldest_failure_seconds')).toBeGreaterThan(0);
      else expect(figure('oldest_failure_seconds')).toBe(0);
    } finally {
      await server.close();
    }
  }
});

describe('a new block that cannot be read', () => {
  test('does not hold up those above it, and is read when it can be', async () => {
    const store = await emptyStore();
    const indexer = following(store);
    await untilKnown(store, await lane.sendOne());
    const blockNumber = (await lab.a.blockNumber()) + 1;
    let blockHash = '';
    proxy.interfere = (call, truth) => {
      if (concerns(call, { blockNumber, blockHash })) throw rpcError(-32000, 'header for hash not found');
      return truth;
    };
    const bad = await lane.sendOne();
    blockHash = bad.blockHash;
    expect(bad.blockNumber).toBe(blockNumber);
    const after = await lane.sendOne();
    await untilKnown(store, after);
    await untilProgress(store, { failedRanges: 1, failedBlocks: 1, problem: null });
    expect(await recordOf(store, bad)).toBeUndefined();
    expect(indexer.logLines.join('\n')).toContain(`Block ${blockNumber} cannot be read yet`);

    await lab.a.mine(FINALITY);
    proxy.interfere = honest;
    await eventually(async () =>
      expect(await recordOf(store, bad)).toMatchObject({ status: 'SOURCE_FINALIZED' }),
    );
    await untilProgress(store, { failedRanges: 0 });
  });
});

describe('a node that is away', () => {
  test('leaves no block behind as failed when it is back', async () => {
    const store = await emptyStore();
    const indexer = following(store);
    await untilKnown(store, await lane.sendOne());
    proxy.isDown = true;
    const meanwhile = await lane.sendOne();
    await untilProblem(store);
    await hangUps(12);
    proxy.isDown = false;
    await untilKnown(store, meanwhile);
    await untilProgress(store, { problem: null, failedRanges: 0 });
    expect(indexer.logLines.join('\n')).not.toContain('cannot be read');
  });

  test('does not count against ranges that had failed before', async () => {
    const store = await emptyStore();
    const bad = await sendFinal();
    spoil(bad);
    following(store, { maxRange: 16 }, { repairMaxMs: hurriedTiming.repairMinMs ?? 0 });
    await untilProgress(store, { failedRanges: 1, failedBlocks: 1, owedBlocks: 0 });
    proxy.isDown = true;
    await untilProblem(store);
    const failures = async () => {
      const [row] = await select<{ most: number }>(store, 'select max(failures) as most from index_failure');
      return row?.most ?? 0;
    };
    const before = await failures();
    await hangUps(12);
    // One was under way.
    expect(await failures()).toBeLessThanOrEqual(before + 1);
    proxy.isDown = false;
    proxy.interfere = honest;
    await untilKnown(store, bad);
  });
});

/** Long enough for everything that is tried now and then to have been tried. */
async function hangUps(count: number): Promise<void> {
  proxy.hungUp = 0;
  await eventually(() => expect(proxy.hungUp).toBeGreaterThan(count));
}

const untilProblem = (store: Store) =>
  eventually(async () => expect((await progressOf(store))?.problem).toContain(proxy.url.host));

describe('a node that is behind what was read', () => {
  /** Knows nothing above a block. */
  function stopAt(stale: NodeProxy, last: number): void {
    stale.interfere = (call, truth) => {
      const [first] = call.params;
      const range = rangeOf(call);
      if (range && range.to > last) throw rpcError(-32000, 'block range extends beyond current head block');
      if (call.method !== 'eth_getBlockByNumber') return truth;
      if (first === 'latest') return lab.a.rpc('eth_getBlockByNumber', [numberToHex(last), false]);
      return Number(first) > last ? null : truth;
    };
  }

  test('is not used while there is another', async () => {
    const other = await startNodeProxy(lab.a.url);
    try {
      const store = await emptyStore();
      following(store, { rpc: [proxy.url, other.url] });
      await untilKnown(store, await lane.sendOne());
      stopAt(proxy, (await lab.a.blockNumber()) - 3);
      for (let count = 0; count < 3; count++) await untilKnown(store, await lane.sendOne());
      expect(other.calls.some(isHistoryCall)).toBe(true);
      await untilProgress(store, { failedRanges: 0, headBlock: await lab.a.blockNumber() });
    } finally {
      for (const indexer of running.splice(0)) await indexer.stop();
      await other.close();
    }
  });

  test('takes nothing back, and says that it is behind', async () => {
    const store = await emptyStore();
    following(store);
    const message = await lane.sendOne();
    await untilKnown(store, message);
    const head = await lab.a.blockNumber();
    stopAt(proxy, head - 2);
    await eventually(async () => expect((await progressOf(store))?.problem).toContain('behind'));
    expect(await recordOf(store, message)).toMatchObject({ status: 'SENT' });
    expect(await progressOf(store)).toMatchObject({ indexedBlock: head });
    proxy.interfere = honest;
    await untilKnown(store, await lane.sendOne());
    await untilProgress(store, { problem: null });
  });
});

describe('contracts that one node does not know', () => {
  const nobody = '0x00000000000000000000000000000000000000aa';

  /** The router names, for a lane to nowhere and in one block, whom nobody knows, and then one whom only the proxy does not. */
  async function nameBoth(unknown: Hex): Promise<void> {
    const router = lab.a.contract(lab.a.routers['1.6'] as Hex, ccipContract('v1_2_0/router').abi);
    const onRamps = [
      { destChainSelector: 97n, onRamp: nobody },
      { destChainSelector: 98n, onRamp: unknown },
    ];
    const { owner } = lab.a.foundation.accounts['1.6'];
    await router.send('applyRampUpdates', [onRamps, [], []], { from: owner });
    await lab.a.mine(FINALITY + 1);
  }

  test('are not refused on its word, each of them, and not while the others are away', async () => {
    const impostor = await deployImpostor(lab.a);
    await impostor.imitate(lane.ramps.onRamp);
    await nameBoth(impostor.address);
    proxy.interfere = (call, truth) => {
      const to = call.method === 'eth_call' ? (call.params[0] as { to?: string }).to : undefined;
      return to?.toLowerCase() === impostor.address.toLowerCase() ? '0x' : truth;
    };
    const other = await startNodeProxy(lab.a.url);
    other.isDown = true;
    try {
      const store = await emptyStore();
      const book = () =>
        select(store, `select from index_contract where address = '${impostor.address.toLowerCase()}'`);
      following(store, { rpc: [proxy.url, other.url] });
      await eventually(async () => expect((await progressOf(store))?.failedRanges).toBeGreaterThan(0));
      expect(await book()).toEqual([]);
      other.isDown = false;
      await untilProgress(store, { failedRanges: 0, owedBlocks: 0, problem: null });
      expect(await book()).toHaveLength(1);
    } finally {
      await other.close();
    }
  });

  test('are refused where no other could be asked, and nothing is held up', async () => {
    const store = await emptyStore();
    const { logLines } = following(store);
    await untilProgress(store, { failedRanges: 0, owedBlocks: 0, problem: null });
    const told = logLines.filter((line) => line.includes(nobody));
    expect(told).not.toEqual([]);
    for (const line of told) expect(line).toMatch(/onRamp .* it has no code.*; it is not trusted/);
  });
});

describe('a log that cannot be understood', () => {
  test('is kept whole and counted, and stops nothing', async () => {
    const store = await emptyStore();
    const message = await lane.sendOne();
    const impostor = await deployImpostor(lab.a);
    await impostor.imitate(lane.ramps.onRamp);
    const router = lab.a.contract(lab.a.routers['1.6'] as Hex, ccipContract('v1_2_0/router').abi);
    const { owner } = lab.a.foundation.accounts['1.6'];
    // The router's owner names it, for a lane to nowhere: now it is as genuine as any.
    await router.send('applyRampUpdates', [[{ destChainSelector: 99n, onRamp: impostor.address }], [], []], {
      from: owner,
    });
    const { topics, data } = message.log;
    const receipt = await impostor.repeat([
      { topics, data: data.slice(0, 200) as Hex },
      { topics, data: '0x' },
    ]);
    const after = await lane.sendOne();
    following(store);
    await untilKnown(store, after);
    await untilProgress(store, { unreadableLogs: 2, owedBlocks: 0, problem: null });
    expect(await recordOf(store, message)).toBeDefined();
    const kept = await select(
      store,
      'select address, topics, data, block_number, block_hash, transaction_hash, log_index, reason from index_unreadable order by log_index',
    );
    expect(kept).toEqual(
      receipt.logs.map((log) => ({ ...keptLog(log), reason: expect.stringMatching(/\w{3}/) })),
    );

    // While following, the same.
    await impostor.repeat([{ topics, data: '0x00' }]);
    await untilKnown(store, await lane.sendOne());
    await untilProgress(store, { unreadableLogs: 3 });

    // A later start tries them again, in vain: they are still there, once.
    for (const indexer of running.splice(0)) await indexer.stop();
    await once(store);
    expect(await progressOf(store)).toMatchObject({ unreadableLogs: 3, failedRanges: 0 });
    expect(await select(store, 'select * from index_backlog')).toEqual([]);
  });

  test('is read again at the next start, by a version that understands it', async () => {
    const store = await emptyStore();
    const message = await sendFinal();
    const isOurs = (log: RawLog) =>
      log.transactionHash === message.transactionHash && log.logIndex === message.log.logIndex;
    proxy.interfere = (call, truth) =>
      call.method === 'eth_getLogs'
        ? (truth as readonly RawLog[]).map((log) =>
            isOurs(log) ? { ...log, data: log.data.slice(0, 66) } : log,
          )
        : truth;
    await once(store);
    expect(await recordOf(store, message)).toBeUndefined();
    expect((await progressOf(store))?.unreadableLogs).toBeGreaterThan(0);
    const unread = () =>
      select(store, `select block_number from index_unreadable where block_number = ${message.blockNumber}`);
    expect(await unread()).toHaveLength(1);

    proxy.interfere = honest;
    proxy.calls.length = 0;
    await once(store);
    expect(await recordOf(store, message)).toMatchObject({ status: 'SOURCE_FINALIZED' });
    expect(await unread()).toEqual([]);
    // For that, history is not read again.
    expect(
      proxy.calls.filter((call) => isHistoryCall(call) && rangeOf(call)?.from !== rangeOf(call)?.to),
    ).toEqual([]);
  });

  function keptLog(log: RawLog) {
    return {
      address: log.address,
      topics: log.topics,
      data: log.data,
      block_number: String(Number(log.blockNumber)),
      block_hash: log.blockHash,
      transaction_hash: log.transactionHash,
      log_index: Number(log.logIndex),
    };
  }
});

describe('a node that leaves out a log', () => {
  /** Of a range; it tells the truth of a single block. */
  function leaveOut({ transactionHash }: SentMessage): void {
    proxy.interfere = (call, truth) =>
      rangeOf(call)
        ? (truth as readonly RawLog[]).filter((log) => log.transactionHash !== transactionHash)
        : truth;
  }

  test('of a new block is caught, and nothing is lost', async () => {
    const store = await emptyStore();
    const indexer = following(store);
    await untilKnown(store, await lane.sendOne());
    const next = (await lab.a.blockNumber()) + 1;
    proxy.interfere = (call, truth) =>
      rangeOf(call) ? (truth as readonly RawLog[]).filter((log) => Number(log.blockNumber) !== next) : truth;
    const message = await lane.sendOne();
    expect(message.blockNumber).toBe(next);
    const after = await lane.sendOne();
    await untilKnown(store, after);
    await untilProgress(store, { failedRanges: 1, failedBlocks: 1 });
    expect(indexer.logLines.join('\n')).toContain(`left out logs of block ${next}`);
    proxy.interfere = honest;
    await untilKnown(store, message);
    await untilProgress(store, { failedRanges: 0 });
  });

  test('of a new block is caught at once where another endpoint tells the truth', async () => {
    const other = await startNodeProxy(lab.a.url);
    try {
      const store = await emptyStore();
      const indexer = following(store, { rpc: [proxy.url, other.url] });
      await untilKnown(store, await lane.sendOne());
      const next = (await lab.a.blockNumber()) + 1;
      // By block it leaves it out too: only the other one can know.
      proxy.interfere = (call, truth) =>
        call.method === 'eth_getLogs'
          ? (truth as readonly RawLog[]).filter((log) => Number(log.blockNumber) !== next)
          : truth;
      const message = await lane.sendOne();
      expect(message.blockNumber).toBe(next);
      await untilKnown(store, message);
      expect(await progressOf(store)).toMatchObject({ failedRanges: 0 });
      expect(indexer.logLines.join('\n')).not.toContain('cannot be read');
    } finally {
      for (const indexer of running.splice(0)) await indexer.stop();
      await other.close();
    }
  });

  test('of a contract that is named in the same blocks is caught too', async () => {
    const store = await emptyStore();
    const indexer = following(store);
    await untilKnown(store, await lane.sendOne());
    // What happens while it is away is read in one step when it is back.
    proxy.isDown = true;
    await lane.replaceRamps();
    const message = await lane.sendOne();
    const after = await lane.sendOne();
    leaveOut(message);
    proxy.isDown = false;
    await untilKnown(store, after);
    await untilProgress(store, { failedRanges: 1, failedBlocks: 1 });
    expect(indexer.logLines.join('\n')).toContain(`left out logs of block ${message.blockNumber}`);
    proxy.interfere = honest;
    await untilKnown(store, message);
    await untilProgress(store, { failedRanges: 0 });
  });

  test('of history is caught with `verify: all`, and not with `verify: head`', async () => {
    const message = await sendFinal();
    leaveOut(message);
    const careless = await emptyStore();
    await once(careless, { verify: 'head' });
    expect(await recordOf(careless, message)).toBeUndefined();
    expect(await progressOf(careless)).toMatchObject({ failedRanges: 0 });

    const careful = await emptyStore();
    await once(careful, { verify: 'all' });
    expect(await recordOf(careful, message)).toBeUndefined();
    expect((await progressOf(careful))?.failedRanges).toBeGreaterThan(0);
    proxy.interfere = honest;
    following(careful, { verify: 'all' });
    await untilKnown(careful, message);
    await untilProgress(careful, { failedRanges: 0 });
  });
});

// The last of the file: from here on the lab's chain has blocks that are not each other's children.
describe('after a long time away', () => {
  const GAP = 1_100;

  test('the newest blocks come first, and the gap behind them from its newest end', async () => {
    const store = await emptyStore();
    await once(store);
    const sent: SentMessage[] = [];
    for (let part = 0; part < 4; part++) {
      sent.push(await lane.sendOne());
      // All at once, as nobody looks at the headers of a gap.
      await lab.a.rpc('hardhat_mine', [numberToHex(GAP / 4), '0x0']);
    }
    await lab.a.mine(2 * FINALITY);
    sent.push(await lane.sendOne());
    following(store, { maxRange: 100 });
    await Promise.all(sent.map((message) => untilKnown(store, message)));
    await untilProgress(store, { owedBlocks: 0, failedRanges: 0 });
    const appeared = await select<{ id: string }>(
      store,
      `select encode(message_id, 'hex') as id, min(position) from history group by 1 order by 2`,
    );
    const places = sent.map(({ messageId }) => appeared.findIndex(({ id }) => messageId === `0x${id}`));
    expect(places).toEqual([...places].sort((a, b) => b - a));
  });

  test('and one that is stopped in the middle of history goes on there', async () => {
    const store = await emptyStore();
    const length = 50;
    const stop = new AbortController();
    proxy.interfere = (_, truth) => {
      if (proxy.calls.filter(isHistoryCall).length >= 10) stop.abort();
      return truth;
    };
    await once(store, { maxRange: length, deployed: 0 }, stop.signal);
    const first = blocksRead();
    const owed = (await progressOf(store))?.owedBlocks ?? 0;
    expect(owed).toBeGreaterThan(5 * length);

    proxy.interfere = honest;
    proxy.calls.length = 0;
    await once(store, { maxRange: length, deployed: 0 });
    const second = blocksRead();
    expect(await progressOf(store)).toMatchObject({ owedBlocks: 0, failedRanges: 0 });
    // It begins with the highest block that was owed. A contract that is found on the way may take a second pass later.
    const [highest] = proxy.calls.filter(isHistoryCall).map(rangeOf);
    expect(highest?.to).toBeLessThan(owed + length);
    expect(new Set([...first, ...second]).size).toBe((await lab.a.blockNumber()) + 1);
  });

  /** Whose logs of everybody were asked for. */
  function blocksRead(): readonly number[] {
    const blocks = proxy.calls.filter(isHistoryCall).flatMap((call) => {
      const { from, to } = rangeOf(call) ?? { from: 0, to: -1 };
      return Array.from({ length: to - from + 1 }, (_, index) => from + index);
    });
    return [...new Set(blocks)];
  }
});

describe('a long stretch of history that cannot be read', () => {
  const LENGTH = 1_200;
  /** No pauses worth mentioning, so that hundreds of failures take seconds. */
  const restless: Partial<IndexerTiming> = {
    retryMaxMs: 10,
    endpoints: { ...briefly, firstPauseMs: 1, longestPauseMs: 1 },
  };

  /** A message with many blocks on either side of it. */
  async function sendInTheMiddle(): Promise<SentMessage> {
    await lab.a.rpc('hardhat_mine', [numberToHex(LENGTH / 2), '0x0']);
    const message = await lane.sendOne();
    await lab.a.rpc('hardhat_mine', [numberToHex(LENGTH / 2), '0x0']);
    await lab.a.mine(2 * FINALITY);
    return message;
  }

  /** Has no logs up to this block. */
  function prune(last: number): void {
    proxy.interfere = (call, truth) => {
      if ((rangeOf(call)?.from ?? Infinity) <= last) {
        throw rpcError(-32000, 'history has been pruned for this block');
      }
      return truth;
    };
  }

  interface FailureRow extends pg.QueryResultRow {
    readonly from_block: string;
    readonly to_block: string;
    readonly failures: number;
    readonly first_failed_at: Date;
  }

  const failuresOf = (store: TestStore) =>
    select<FailureRow>(store, `select * from index_failure where purpose = 'history'`);

  test('because of one block of it is narrowed down to that block soon, and keeps its age', async () => {
    const store = await emptyStore();
    const bad = await sendInTheMiddle();
    spoil(bad);
    // With pauses that double from step to step it would take minutes.
    following(store, {}, { repairMinMs: 200, repairMaxMs: 3_600_000 });
    await eventually(async () => expect(await failuresOf(store)).toHaveLength(1));
    const [whole] = await failuresOf(store);
    const place = String(bad.blockNumber);
    const since = whole?.first_failed_at;
    await eventually(async () =>
      expect(await failuresOf(store)).toMatchObject([
        { from_block: place, to_block: place, first_failed_at: since },
      ]),
    );
    proxy.interfere = honest;
    await untilKnown(store, bad);
    await untilProgress(store, { failedRanges: 0 });
  });

  test('is not listed block by block, does not hold up the rest, and is read when it can be', {
    timeout: 120_000,
  }, async () => {
    const store = await emptyStore();
    const old = await sendInTheMiddle();
    prune((await lab.a.blockNumber()) - FINALITY);
    following(store, {}, restless);
    await untilKnown(store, await lane.sendOne());
    // Ranges that have failed again are not split any more.
    await eventually(async () => {
      const again = (await failuresOf(store)).filter(({ failures }) => failures > 1);
      expect(again.filter(({ from_block: from, to_block: to }) => from !== to).length).toBeGreaterThan(2);
    });
    await eventually(async () => expect((await progressOf(store))?.failedBlocks).toBeGreaterThan(2 * LENGTH));
    expect((await progressOf(store))?.failedRanges).toBeLessThan(150);
    await untilKnown(store, await lane.sendOne());
    proxy.interfere = honest;
    await untilKnown(store, old);
    await untilProgress(store, { failedRanges: 0, owedBlocks: 0 });
  });

  test('is split in spite of that where a node wants shorter ranges', async () => {
    const store = await emptyStore();
    const message = await sendFinal();
    const { selector } = labSource(lab.a).network;
    const failure = { purpose: 'history', contracts: null, reason: 'it had its reasons' } as const;
    await store.index.lease(selector, 'somebody', 60);
    await store.index.record(selector, 'somebody', {
      failed: [
        { ...failure, from: message.blockNumber - 23, to: message.blockNumber, retryInMs: 0 },
        ...Array.from({ length: 150 }, (_, block) => ({
          ...failure,
          from: block,
          to: block,
          retryInMs: 3_600_000,
        })),
      ],
    });
    await store.index.release(selector, 'somebody');
    proxy.interfere = (call, truth) => {
      const { from, to } = rangeOf(call) ?? { from: 0, to: 0 };
      if (to - from >= 10) throw rpcError(-32602, 'eth_getLogs is limited to a 10 block range');
      return truth;
    };
    following(store, { start: { block: (await lab.a.blockNumber()) + 1_000 }, maxRange: 10 });
    await untilKnown(store, message);
  });

  test('does not wear out an only endpoint that has the new blocks', async () => {
    const store = await emptyStore();
    await sendInTheMiddle();
    prune((await lab.a.blockNumber()) - FINALITY);
    let refused = 0;
    const { interfere } = proxy;
    proxy.interfere = (call, truth) => {
      try {
        return interfere(call, truth);
      } catch (error) {
        refused++;
        throw error;
      }
    };
    following(store, { maxRange: 10 }, { ...restless, retryMaxMs: 3_600_000 });
    for (let count = 0; count < 20; count++) await untilKnown(store, await lane.sendOne());
    // Pauses that double from 10 ms on leave room for no more, for minutes.
    expect(refused).toBeLessThan(30);
    expect(refused).toBeGreaterThan(0);
  });
});
