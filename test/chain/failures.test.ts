// @module-tag slow: starts chain nodes, and waits for many repairs
/** What goes wrong with nodes, and that nothing is lost by it: one lab, and a proxy in front of its node that misbehaves. */
import type pg from 'pg';
import { type Hex, numberToHex } from 'viem';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { IndexerTiming } from '../../src/ingest/engine/indexer.ts';
import { type JsonRpcCall, rpcError } from '../json-rpc-server.ts';
import { deployImpostor } from '../lab/impostor.ts';
import type { RawLog, SentMessage } from '../lab/lab.ts';
import { queryOnce } from '../postgres.ts';
import { briefly } from './faulty-node.ts';
import { FINALITY, hurriedTiming, labSource, recordOf } from './indexing.ts';
import {
  honest,
  isHistoryCall,
  isInRange,
  leavingOut,
  rangeOf,
  rejecting,
  startNodeProxy,
} from './node-proxy.ts';
import { createProxiedLab, eventually } from './proxied-lab.ts';

const stage = createProxiedLab();
const { following, once, progressOf, sendFinal, untilKnown, untilProgress } = stage;

const select = <T extends pg.QueryResultRow>(statement: string) => queryOnce<T>(stage.store.url, statement);

/** Whether the call asks for logs or receipts of this block, alone or among others. */
function concerns(
  call: JsonRpcCall,
  { blockNumber, blockHash }: { blockNumber: number; blockHash: string },
): boolean {
  if (rangeOf(call)) return isInRange(call, blockNumber);
  if (call.method === 'eth_getBlockReceipts') return call.params[0] === blockHash;
  return call.method === 'eth_getLogs' && (call.params[0] as { blockHash?: string }).blockHash === blockHash;
}

/** Whoever asks for the logs of this block gets an error. */
function spoil(block: { blockNumber: number; blockHash: string }): void {
  const message = 'leveldb: corruption on data-block';
  stage.proxy.interfere = rejecting((call) => concerns(call, block), -32000, message);
}

/** The node has no logs up to this block. */
function prune(last: number): void {
  const isPruned = (call: JsonRpcCall) => (rangeOf(call)?.from ?? Infinity) <= last;
  stage.proxy.interfere = rejecting(isPruned, -32000, 'history has been pruned for this block');
}

/** The node tells the truth from now on: what it kept back is read, and nothing is left over. */
async function untilRead(message: SentMessage): Promise<void> {
  stage.proxy.interfere = honest;
  await untilKnown(message);
  await untilProgress({ failedRanges: 0, failedBlocks: 0, oldestFailureAt: null });
}

/** A second endpoint, of which nothing is wrong. */
async function startOther() {
  const other = await startNodeProxy(stage.lab.a.url);
  onTestFinished(other.close);
  return other;
}

describe('a block of history that cannot be read', () => {
  test('is left out, and it alone; is tried less and less often; and is read when it can be', async () => {
    const before = await sendFinal();
    const bad = await sendFinal();
    const after = await sendFinal();
    spoil(bad);
    const indexer = following({ maxRange: 16 }, { repairMaxMs: 3_600_000 });
    await Promise.all([untilKnown(before), untilKnown(after)]);
    const atHead = await stage.lane.sendOne();
    await untilKnown(atHead);
    await untilProgress({ failedRanges: 1, failedBlocks: 1, owedBlocks: 0, problem: null });
    expect(await recordOf(stage.store, bad)).toBeUndefined();
    expect(indexer.logLines.join('\n')).toContain('leveldb: corruption on data-block');

    // Each pause is at least half of the one that doubles with every failure.
    await eventually(async () => {
      const [failure] = await select<{
        from_block: string;
        failures: number;
        waited: number;
      }>(`select from_block, to_block, failures,
                (extract(epoch from retry_at - first_failed_at) * 1000)::float8 as waited
         from index_failure where purpose = 'history'`);
      const place = String(bad.blockNumber);
      expect(failure).toMatchObject({ from_block: place, to_block: place });
      expect(failure?.failures).toBeGreaterThanOrEqual(6);
      const least = 0.5 * (hurriedTiming.repairMinMs ?? 0) * (2 ** (failure?.failures ?? 0) - 1);
      expect(failure?.waited).toBeGreaterThan(least);
    });

    await untilRead(bad);
    expect(await recordOf(stage.store, bad)).toMatchObject({ status: 'SOURCE_FINALIZED' });
  });

  test('does not move the beginning of history when the routers are in it', async () => {
    const message = await sendFinal();
    const length = 40;
    await stage.lab.a.mine(length);
    prune(message.blockNumber);
    following({ start: null, maxRange: length });
    await untilProgress({ owedBlocks: 0 });
    const { startBlock = null, failedRanges } = (await progressOf()) ?? {};
    expect(failedRanges).toBeGreaterThan(0);
    expect(startBlock).toBeLessThan(message.blockNumber);
    await untilRead(message);
    await untilProgress({ owedBlocks: 0, startBlock });
  });
});

test('a new block that cannot be read does not hold up those above it, and is read when it can be', async () => {
  const indexer = following();
  await untilKnown(await stage.lane.sendOne());
  const blockNumber = (await stage.lab.a.blockNumber()) + 1;
  let blockHash = '';
  const isOfBlock = (call: JsonRpcCall) => concerns(call, { blockNumber, blockHash });
  stage.proxy.interfere = rejecting(isOfBlock, -32000, 'header for hash not found');
  const bad = await stage.lane.sendOne();
  blockHash = bad.blockHash;
  expect(bad.blockNumber).toBe(blockNumber);
  const after = await stage.lane.sendOne();
  await untilKnown(after);
  await untilProgress({ failedRanges: 1, failedBlocks: 1, problem: null });
  expect(await recordOf(stage.store, bad)).toBeUndefined();
  expect(indexer.logLines.join('\n')).toContain(`Block ${blockNumber} cannot be read yet`);

  await stage.lab.a.mine(FINALITY);
  stage.proxy.interfere = honest;
  await eventually(async () =>
    expect(await recordOf(stage.store, bad)).toMatchObject({ status: 'SOURCE_FINALIZED' }),
  );
  await untilProgress({ failedRanges: 0 });
});

test('a node that is away does not count against ranges that had failed before', async () => {
  const bad = await sendFinal();
  spoil(bad);
  following({ maxRange: 16 }, { repairMaxMs: hurriedTiming.repairMinMs ?? 0 });
  await untilProgress({ failedRanges: 1, failedBlocks: 1, owedBlocks: 0 });
  stage.proxy.isDown = true;
  await untilProblem();
  const failures = async () => {
    const [row] = await select<{ most: number }>('select max(failures) as most from index_failure');
    return row?.most ?? 0;
  };
  const before = await failures();
  await hangUps(12);
  // One was under way.
  expect(await failures()).toBeLessThanOrEqual(before + 1);
  stage.proxy.isDown = false;
  stage.proxy.interfere = honest;
  await untilKnown(bad);
});

/** Long enough for everything that is tried now and then to have been tried. */
async function hangUps(count: number): Promise<void> {
  stage.proxy.hungUp = 0;
  await eventually(() => expect(stage.proxy.hungUp).toBeGreaterThan(count));
}

const untilProblem = () =>
  eventually(async () => expect((await progressOf())?.problem).toContain(stage.proxy.url.host));

describe('a node that is behind what was read', () => {
  /** Knows nothing above a block. */
  function stopAt(last: number): void {
    stage.proxy.interfere = (call, truth) => {
      const [first] = call.params;
      const range = rangeOf(call);
      if (range && range.to > last) throw rpcError(-32000, 'block range extends beyond current head block');
      if (call.method !== 'eth_getBlockByNumber') return truth;
      if (first === 'latest') return stage.lab.a.rpc('eth_getBlockByNumber', [numberToHex(last), false]);
      return Number(first) > last ? null : truth;
    };
  }

  test('is not used while there is another', async () => {
    const other = await startOther();
    following({ rpc: [stage.proxy.url, other.url] });
    await untilKnown(await stage.lane.sendOne());
    stopAt((await stage.lab.a.blockNumber()) - 3);
    for (let count = 0; count < 3; count++) await untilKnown(await stage.lane.sendOne());
    expect(other.calls.some(isHistoryCall)).toBe(true);
    await untilProgress({ failedRanges: 0, headBlock: await stage.lab.a.blockNumber() });
  });

  test('takes nothing back, and says that it is behind', async () => {
    following();
    const message = await stage.lane.sendOne();
    await untilKnown(message);
    const head = await stage.lab.a.blockNumber();
    stopAt(head - 2);
    await eventually(async () => expect((await progressOf())?.problem).toContain('behind'));
    expect(await recordOf(stage.store, message)).toMatchObject({ status: 'SENT' });
    expect(await progressOf()).toMatchObject({ indexedBlock: head });
    stage.proxy.interfere = honest;
    await untilKnown(await stage.lane.sendOne());
    await untilProgress({ problem: null });
  });
});

describe('contracts that one node does not know', () => {
  const nobody = '0x00000000000000000000000000000000000000aa';

  test('are not rejected on its word, each of them, and not while the others are away', async () => {
    const impostor = await deployImpostor(stage.lab.a);
    await impostor.imitate(stage.lane.ramps.onRamp);
    // In one block: one that nobody knows, and then one that only the proxy does not.
    await stage.nameOnRamps(
      { destChainSelector: 97n, onRamp: nobody },
      { destChainSelector: 98n, onRamp: impostor.address },
    );
    await stage.lab.a.mine(FINALITY + 1);
    stage.proxy.interfere = (call, truth) => {
      const to = call.method === 'eth_call' ? (call.params[0] as { to?: string }).to : undefined;
      return to?.toLowerCase() === impostor.address.toLowerCase() ? '0x' : truth;
    };
    const other = await startOther();
    other.isDown = true;
    const book = () =>
      select(`select from index_contract where address = '${impostor.address.toLowerCase()}'`);
    following({ rpc: [stage.proxy.url, other.url] });
    await eventually(async () => expect((await progressOf())?.failedRanges).toBeGreaterThan(0));
    expect(await book()).toEqual([]);
    other.isDown = false;
    await untilProgress({ failedRanges: 0, owedBlocks: 0, problem: null });
    expect(await book()).toHaveLength(1);
  });

  test('are rejected where no other could be asked, and nothing is held up', async () => {
    const { logLines } = following();
    await untilProgress({ failedRanges: 0, owedBlocks: 0, problem: null });
    const told = logLines.filter((line) => line.includes(nobody));
    expect(told).not.toEqual([]);
    for (const line of told) expect(line).toMatch(/onRamp .* it has no code.*; it is not trusted/);
  });
});

describe('a log that cannot be understood', () => {
  test('is kept whole and counted, and stops nothing', async () => {
    const message = await stage.lane.sendOne();
    const impostor = await deployImpostor(stage.lab.a);
    await impostor.imitate(stage.lane.ramps.onRamp);
    // Named by the router's owner, it is as genuine as any.
    await stage.nameOnRamps({ destChainSelector: 99n, onRamp: impostor.address });
    const { topics, data } = message.log;
    const receipt = await impostor.repeat([
      { topics, data: data.slice(0, 200) as Hex },
      { topics, data: '0x' },
    ]);
    const after = await stage.lane.sendOne();
    following();
    await untilKnown(after);
    await untilProgress({ unreadableLogs: 2, owedBlocks: 0, problem: null });
    expect(await recordOf(stage.store, message)).toBeDefined();
    const kept = await select(
      'select address, topics, data, block_number, block_hash, transaction_hash, log_index, reason from index_unreadable order by log_index',
    );
    expect(kept).toEqual(
      receipt.logs.map((log) => ({ ...keptLog(log), reason: expect.stringMatching(/\w{3}/) })),
    );

    // While following, the same.
    await impostor.repeat([{ topics, data: '0x00' }]);
    await untilKnown(await stage.lane.sendOne());
    await untilProgress({ unreadableLogs: 3 });

    // A later start tries them again, in vain: they are still there, once.
    await stage.stopIndexers();
    await once();
    expect(await progressOf()).toMatchObject({ unreadableLogs: 3, failedRanges: 0 });
    expect(await select('select * from index_backlog')).toEqual([]);
  });

  test('is read again at the next start, by a version that understands it', async () => {
    const message = await sendFinal();
    const isOurs = (log: RawLog) =>
      log.transactionHash === message.transactionHash && log.logIndex === message.log.logIndex;
    stage.proxy.interfere = (call, truth) =>
      call.method === 'eth_getLogs'
        ? (truth as readonly RawLog[]).map((log) =>
            isOurs(log) ? { ...log, data: log.data.slice(0, 66) } : log,
          )
        : truth;
    await once();
    expect(await recordOf(stage.store, message)).toBeUndefined();
    expect((await progressOf())?.unreadableLogs).toBeGreaterThan(0);
    const unread = () =>
      select(`select block_number from index_unreadable where block_number = ${message.blockNumber}`);
    expect(await unread()).toHaveLength(1);

    stage.proxy.interfere = honest;
    stage.proxy.calls.length = 0;
    await once();
    expect(await recordOf(stage.store, message)).toMatchObject({ status: 'SOURCE_FINALIZED' });
    expect(await unread()).toEqual([]);
    // For that, history is not read again.
    expect(
      stage.proxy.calls.filter((call) => isHistoryCall(call) && rangeOf(call)?.from !== rangeOf(call)?.to),
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
  const leaveOut = ({ transactionHash }: SentMessage) => {
    stage.proxy.interfere = leavingOut((log) => log.transactionHash === transactionHash);
  };

  test('of a new block is caught, and nothing is lost', async () => {
    const indexer = following();
    await untilKnown(await stage.lane.sendOne());
    const next = (await stage.lab.a.blockNumber()) + 1;
    stage.proxy.interfere = leavingOut((log) => Number(log.blockNumber) === next);
    const message = await stage.lane.sendOne();
    expect(message.blockNumber).toBe(next);
    const after = await stage.lane.sendOne();
    await untilKnown(after);
    await untilProgress({ failedRanges: 1, failedBlocks: 1 });
    expect(indexer.logLines.join('\n')).toContain(`left out logs of block ${next}`);
    await untilRead(message);
  });

  test('of a new block is caught at once where another endpoint tells the truth', async () => {
    const other = await startOther();
    const indexer = following({ rpc: [stage.proxy.url, other.url] });
    await untilKnown(await stage.lane.sendOne());
    const next = (await stage.lab.a.blockNumber()) + 1;
    // By block it leaves it out too: only the other one can know.
    stage.proxy.interfere = (call, truth) =>
      call.method === 'eth_getLogs'
        ? (truth as readonly RawLog[]).filter((log) => Number(log.blockNumber) !== next)
        : truth;
    const message = await stage.lane.sendOne();
    expect(message.blockNumber).toBe(next);
    await untilKnown(message);
    expect(await progressOf()).toMatchObject({ failedRanges: 0 });
    expect(indexer.logLines.join('\n')).not.toContain('cannot be read');
  });

  test('of a contract that is named in the same blocks is caught too', async () => {
    const indexer = following();
    await untilKnown(await stage.lane.sendOne());
    // What happens while it is away is read in one step when it is back.
    stage.proxy.isDown = true;
    await stage.lane.replaceRamps();
    const message = await stage.lane.sendOne();
    const after = await stage.lane.sendOne();
    leaveOut(message);
    stage.proxy.isDown = false;
    await untilKnown(after);
    await untilProgress({ failedRanges: 1, failedBlocks: 1 });
    expect(indexer.logLines.join('\n')).toContain(`left out logs of block ${message.blockNumber}`);
    await untilRead(message);
  });

  test('of history is not noticed with `verify: head`', async () => {
    const message = await sendFinal();
    leaveOut(message);
    await once({ verify: 'head' });
    expect(await recordOf(stage.store, message)).toBeUndefined();
    expect(await progressOf()).toMatchObject({ failedRanges: 0 });
  });

  test('of history is caught with `verify: all`', async () => {
    const message = await sendFinal();
    leaveOut(message);
    await once({ verify: 'all' });
    expect(await recordOf(stage.store, message)).toBeUndefined();
    expect((await progressOf())?.failedRanges).toBeGreaterThan(0);
    following({ verify: 'all' });
    await untilRead(message);
  });
});

// The last of the file: from here on the lab's chain has blocks that are not each other's children.
describe('after a long time away', () => {
  const GAP = 1_100;

  test('the newest blocks come first, and the gap behind them from its newest end', async () => {
    await once();
    const sent: SentMessage[] = [];
    for (let part = 0; part < 4; part++) {
      sent.push(await stage.lane.sendOne());
      // All at once, as nobody looks at the headers of a gap.
      await stage.lab.a.rpc('hardhat_mine', [numberToHex(GAP / 4), '0x0']);
    }
    await stage.lab.a.mine(2 * FINALITY);
    sent.push(await stage.lane.sendOne());
    following({ maxRange: 100 });
    await Promise.all(sent.map((message) => untilKnown(message)));
    await untilProgress({ owedBlocks: 0, failedRanges: 0 });
    const appeared = await select<{ id: string }>(
      `select encode(message_id, 'hex') as id, min(position) from history group by 1 order by 2`,
    );
    const places = sent.map(({ messageId }) => appeared.findIndex(({ id }) => messageId === `0x${id}`));
    expect(places).toEqual([...places].sort((a, b) => b - a));
  });

  test('and one that is stopped in the middle of history goes on there', async () => {
    const length = 50;
    const stop = new AbortController();
    stage.proxy.interfere = (_, truth) => {
      if (stage.proxy.calls.filter(isHistoryCall).length >= 10) stop.abort();
      return truth;
    };
    await once({ maxRange: length, deployed: 0 }, stop.signal);
    const first = blocksRead();
    const owed = (await progressOf())?.owedBlocks ?? 0;
    expect(owed).toBeGreaterThan(5 * length);

    stage.proxy.interfere = honest;
    stage.proxy.calls.length = 0;
    await once({ maxRange: length, deployed: 0 });
    const second = blocksRead();
    expect(await progressOf()).toMatchObject({ owedBlocks: 0, failedRanges: 0 });
    // It begins with the highest block that was owed. A contract that is found on the way may take a second pass later.
    const [highest] = stage.proxy.calls.filter(isHistoryCall).map(rangeOf);
    expect(highest?.to).toBeLessThan(owed + length);
    expect(new Set([...first, ...second]).size).toBe((await stage.lab.a.blockNumber()) + 1);
  });

  /** Whose logs of everybody were asked for. */
  function blocksRead(): readonly number[] {
    const blocks = stage.proxy.calls.filter(isHistoryCall).flatMap((call) => {
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
    await stage.lab.a.rpc('hardhat_mine', [numberToHex(LENGTH / 2), '0x0']);
    const message = await stage.lane.sendOne();
    await stage.lab.a.rpc('hardhat_mine', [numberToHex(LENGTH / 2), '0x0']);
    await stage.lab.a.mine(2 * FINALITY);
    return message;
  }

  const failuresOf = () =>
    select<{ from_block: string; to_block: string; failures: number; first_failed_at: Date }>(
      `select * from index_failure where purpose = 'history'`,
    );

  test('because of one block of it is narrowed down to that block soon, and keeps its age', async () => {
    const bad = await sendInTheMiddle();
    spoil(bad);
    // With pauses that double from step to step it would take minutes.
    following({}, { repairMinMs: 200, repairMaxMs: 3_600_000 });
    await eventually(async () => expect(await failuresOf()).toHaveLength(1));
    const [whole] = await failuresOf();
    const place = String(bad.blockNumber);
    const since = whole?.first_failed_at;
    await eventually(async () =>
      expect(await failuresOf()).toMatchObject([
        { from_block: place, to_block: place, first_failed_at: since },
      ]),
    );
    await untilRead(bad);
  });

  test('is not listed block by block, does not hold up the rest, and is read when it can be', async () => {
    const old = await sendInTheMiddle();
    prune((await stage.lab.a.blockNumber()) - FINALITY);
    following({}, restless);
    await untilKnown(await stage.lane.sendOne());
    // Ranges that have failed again are not split any more.
    await eventually(async () => {
      const again = (await failuresOf()).filter(({ failures }) => failures > 1);
      expect(again.filter(({ from_block: from, to_block: to }) => from !== to).length).toBeGreaterThan(2);
    });
    await eventually(async () => expect((await progressOf())?.failedBlocks).toBeGreaterThan(2 * LENGTH));
    expect((await progressOf())?.failedRanges).toBeLessThan(150);
    await untilKnown(await stage.lane.sendOne());
    await untilRead(old);
    await untilProgress({ owedBlocks: 0 });
  });

  test('is split in spite of that where a node wants shorter ranges', async () => {
    const message = await sendFinal();
    const { selector } = labSource(stage.lab.a).network;
    const failure = { purpose: 'history', contracts: null, reason: 'it had its reasons' } as const;
    await stage.store.index.lease(selector, 'somebody', 60);
    await stage.store.index.record(selector, 'somebody', {
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
    await stage.store.index.release(selector, 'somebody');
    const isLong = (call: JsonRpcCall) => {
      const { from, to } = rangeOf(call) ?? { from: 0, to: 0 };
      return to - from >= 10;
    };
    stage.proxy.interfere = rejecting(isLong, -32602, 'eth_getLogs is limited to a 10 block range');
    following({ start: { block: (await stage.lab.a.blockNumber()) + 1_000 }, maxRange: 10 });
    await untilKnown(message);
  });

  test('does not wear out an only endpoint that has the new blocks', async () => {
    await sendInTheMiddle();
    const last = (await stage.lab.a.blockNumber()) - FINALITY;
    prune(last);
    following({ maxRange: 10 }, { ...restless, retryMaxMs: 3_600_000 });
    for (let count = 0; count < 20; count++) await untilKnown(await stage.lane.sendOne());
    const rejected = stage.proxy.calls.filter((call) => (rangeOf(call)?.from ?? Infinity) <= last).length;
    // Pauses that double from 10 ms on leave room for no more, for minutes.
    expect(rejected).toBeLessThan(30);
    expect(rejected).toBeGreaterThan(0);
  });
});
