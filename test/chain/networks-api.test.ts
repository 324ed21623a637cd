// @module-tag slow: starts chain nodes; indexer.test.ts is the quick pass
/** What the service tells of indexing while it goes on: /v2/networks, the words of a 404, and /metrics. */
import type { Hex } from 'viem';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { IndexerTiming } from '../../src/ingest/engine/indexer.ts';
import { type RunningServer, serveStore } from '../api/running-server.ts';
import { openTestStore } from '../database.ts';
import { hashOf } from '../fixtures.ts';
import { rpcError } from '../json-rpc-server.ts';
import { deployImpostor } from '../lab/impostor.ts';
import { type Lab, type Lane, startLab } from '../lab/lab.ts';
import { ccipContract } from '../lab/solidity.ts';
import { briefly } from './faulty-node.ts';
import { FINALITY, type FollowingIndexer, follow, hurriedTiming, labSource } from './indexing.ts';
import { honest, isHistoryCall, type NodeProxy, rangeOf, startNodeProxy } from './node-proxy.ts';

let lab: Lab;
let lane: Lane;
let proxy: NodeProxy;
let store: Awaited<ReturnType<typeof openTestStore>>;
let indexer: FollowingIndexer | undefined;

beforeAll(async () => {
  lab = await startLab({ versions: ['1.6'] });
  lane = lab.lane('1.6', 'a');
  proxy = await startNodeProxy(lab.a.url);
  await lane.sendOne();
  await lab.a.mine(3 * FINALITY);
}, 180_000);
beforeEach(async () => {
  store = await openTestStore();
});
afterEach(async () => {
  await indexer?.stop();
  indexer = undefined;
  await store.close();
  proxy.interfere = honest;
  proxy.isDown = false;
});
afterAll(async () => {
  await proxy?.close();
  await lab?.stop();
});

const timing: Partial<IndexerTiming> = { ...hurriedTiming, endpoints: briefly };

function startIndexing(): void {
  const source = labSource(lab.a, { rpc: [proxy.url], start: { block: 2 }, verify: 'head' });
  indexer = follow(store, lab, { sources: [source], timing });
}

interface Told {
  readonly indexing: Readonly<Record<string, unknown>> | null;
  /** Of the metrics of this network, by name without what all have in common. */
  readonly figures: Readonly<Record<string, number>>;
  readonly notFound: string;
}

/** By a server that has just come up, which cannot remember anything. */
async function told(): Promise<Told> {
  const server = await serveStore({ ...store, close: async () => undefined });
  try {
    return {
      indexing: await indexingOf(server),
      figures: await figuresOf(server),
      notFound: (await server.ask(`/v2/messages/${hashOf('nobody')}`)).json().message,
    };
  } finally {
    await server.close();
  }
}

async function indexingOf(server: RunningServer): Promise<Told['indexing']> {
  const { data } = (await server.ask('/v2/networks')).json<{
    data: readonly { name: string; indexing: Told['indexing'] }[];
  }>();
  return data.find(({ name }) => name === lab.a.name)?.indexing ?? null;
}

async function figuresOf(server: RunningServer): Promise<Told['figures']> {
  const samples = (await server.ask('/metrics')).text.matchAll(
    /^lanescan_network_(\w+)\{network="([^"]*)"\} (\S+)$/gm,
  );
  return Object.fromEntries(
    [...samples].flatMap(([, name, network, value]) =>
      network === lab.a.name ? [[name, Number(value)]] : [],
    ),
  );
}

const untilTold = (expectation: (told: Told) => void) =>
  vi.waitFor(async () => expectation(await told()), { timeout: 120_000, interval: 100 });

test('where nothing is indexed, there is nothing to tell', async () => {
  const { indexing, figures, notFound } = await told();
  expect(indexing).toBeNull();
  expect(figures).toEqual({});
  expect(notFound).toContain('No network is indexed here');
});

test('while history is being read, and when it has been', async () => {
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const head = await lab.a.blockNumber();
  const final = head - FINALITY;
  // The newest blocks come through, those below have to wait.
  proxy.interfere = async (call, truth) => {
    if (isHistoryCall(call) && (rangeOf(call)?.from ?? head) <= final) await gate;
    return truth;
  };
  startIndexing();
  await untilTold(({ indexing, figures, notFound }) => {
    expect(indexing).toMatchObject({
      headBlock: head,
      finalizedBlock: final,
      indexedBlock: head,
      startBlock: 2,
      owedBlocks: final - 1,
      health: 'ok',
    });
    expect(figures).toMatchObject({ owed_blocks: final - 1, lag_blocks: 0, indexed: 1 });
    expect(notFound).toContain(
      `Geth Testnet to block ${head} (0 behind its head, ${final - 1} blocks of its history still to be read)`,
    );
  });

  open();
  await untilTold(({ indexing, figures, notFound }) => {
    expect(indexing).toEqual({
      headBlock: head,
      finalizedBlock: final,
      indexedBlock: head,
      startBlock: 2,
      owedBlocks: 0,
      failedRanges: 0,
      failedBlocks: 0,
      oldestFailureAt: null,
      unreadableLogs: 0,
      foreignLogs: 0,
      lagBlocks: 0,
      lagSeconds: expect.any(Number),
      isIndexed: true,
      lastSeenAt: expect.stringMatching(/^\d{4}-/),
      health: 'ok',
      updatedAt: expect.stringMatching(/^\d{4}-/),
      problem: null,
      problemKind: null,
      findings: [],
    });
    expect(figures).toEqual({
      lag_blocks: 0,
      lag_seconds: expect.any(Number),
      indexed: 1,
      seen_age_seconds: expect.any(Number),
      progress_age_seconds: expect.any(Number),
      stopped: 0,
      owed_blocks: 0,
      failed_ranges: 0,
      oldest_failure_seconds: 0,
      unreadable_logs: 0,
      foreign_logs: 0,
    });
    expect(notFound).toContain(`Geth Testnet to block ${head} (0 behind its head)`);
  });

  await lane.sendOne();
  await untilTold(({ indexing }) =>
    expect(indexing).toMatchObject({
      headBlock: head + 1,
      indexedBlock: head + 1,
      finalizedBlock: final + 1,
    }),
  );
});

test('what could not be read, was not understood, and came from strangers', async () => {
  const bad = await lane.sendOne();
  await lab.a.mine(FINALITY + 1);
  const { topics, data } = bad.log;
  const stranger = await deployImpostor(lab.a);
  const ramp = await deployImpostor(lab.a);
  await ramp.imitate(lane.ramps.onRamp);
  const router = lab.a.contract(lab.a.routers['1.6'] as Hex, ccipContract('v1_2_0/router').abi);
  await router.send('applyRampUpdates', [[{ destChainSelector: 99n, onRamp: ramp.address }], [], []], {
    from: lab.a.foundation.accounts['1.6'].owner,
  });
  await ramp.repeat([{ topics, data: '0x1234' }]);

  const startedAt = Date.now();
  proxy.interfere = (call, truth) => {
    const range = rangeOf(call);
    const isInRange = range && range.from <= bad.blockNumber && bad.blockNumber <= range.to;
    if (isInRange || call.method === 'eth_getBlockReceipts')
      throw rpcError(-32000, 'leveldb: corruption on data-block');
    return truth;
  };
  startIndexing();
  await untilTold(({ indexing }) => expect(indexing).toMatchObject({ unreadableLogs: 1 }));
  // History is asked for by address; of strangers only new blocks are seen.
  await stranger.repeat([
    { topics, data },
    { topics, data },
  ]);
  await untilTold(({ indexing, figures }) => {
    expect(indexing).toMatchObject({
      owedBlocks: 0,
      failedRanges: 1,
      failedBlocks: 1,
      unreadableLogs: 1,
      foreignLogs: 2,
      health: 'ok',
      problem: null,
    });
    const failedAt = Date.parse(String(indexing?.oldestFailureAt));
    expect(failedAt).toBeGreaterThanOrEqual(startedAt - 1_000);
    expect(failedAt).toBeLessThanOrEqual(Date.now());
    expect(figures).toMatchObject({ failed_ranges: 1, unreadable_logs: 1, foreign_logs: 2 });
    expect(figures.oldest_failure_seconds).toBeGreaterThan(0);
  });
});

test('that a node is away, without its host, until it is back', async () => {
  startIndexing();
  await untilTold(({ indexing }) => expect(indexing).toMatchObject({ health: 'ok' }));
  proxy.isDown = true;
  await untilTold(({ indexing, figures, notFound }) => {
    expect(indexing).toMatchObject({
      health: 'failing',
      problemKind: 'unreachable',
      problem: 'An endpoint of this network cannot be reached.',
    });
    expect(figures).toMatchObject({ stopped: 1 });
    expect(notFound).toContain('failing');
  });
  proxy.isDown = false;
  await untilTold(({ indexing, figures }) => {
    expect(indexing).toMatchObject({ health: 'ok', problem: null, failedRanges: 0 });
    expect(figures).toMatchObject({ stopped: 0 });
  });
});
