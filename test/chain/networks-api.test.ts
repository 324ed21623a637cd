// @module-tag slow: starts chain nodes; indexer.test.ts is the quick pass
/** What the service tells of indexing while it goes on: /v2/networks, the words of a 404, and /metrics. */
import { beforeAll, expect, test } from 'vitest';
import { serveStore } from '../api/running-server.ts';
import { hashOf } from '../fixtures.ts';
import { deployImpostor } from '../lab/impostor.ts';
import { FINALITY } from './indexing.ts';
import { isHistoryCall, isInRange, rangeOf, rejecting } from './node-proxy.ts';
import { createProxiedLab, eventually } from './proxied-lab.ts';
import { toldOf } from './told-network.ts';

const stage = createProxiedLab();
beforeAll(async () => {
  await stage.lane.sendOne();
  await stage.lab.a.mine(3 * FINALITY);
});

const startIndexing = () => stage.following({ start: { block: 2 } });

/** By a server that has just come up, which cannot remember anything. */
async function told() {
  const server = await serveStore({ ...stage.store, close: async () => undefined });
  try {
    const notFound = (await server.ask(`/v2/messages/${hashOf('nobody')}`)).json().message as string;
    return { ...(await toldOf(server, stage.lab.a.name)), notFound };
  } finally {
    await server.close();
  }
}

const untilTold = (expectation: (now: Awaited<ReturnType<typeof told>>) => void) =>
  eventually(async () => expectation(await told()));

test('where nothing is indexed, there is nothing to tell', async () => {
  const { indexing, metrics, notFound } = await told();
  expect(indexing).toBeNull();
  expect(metrics).toEqual({});
  expect(notFound).toContain('No network is indexed here');
});

test('while history is being read, and when it has been', async () => {
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const head = await stage.lab.a.blockNumber();
  const final = head - FINALITY;
  // The newest blocks come through, those below have to wait.
  stage.proxy.interfere = async (call, truth) => {
    if (isHistoryCall(call) && (rangeOf(call)?.from ?? head) <= final) await gate;
    return truth;
  };
  startIndexing();
  await untilTold(({ indexing, metrics, notFound }) => {
    expect(indexing).toMatchObject({
      headBlock: head,
      finalizedBlock: final,
      indexedBlock: head,
      startBlock: 2,
      owedBlocks: final - 1,
      health: 'ok',
    });
    expect(metrics).toMatchObject({ owed_blocks: final - 1, lag_blocks: 0, indexed: 1 });
    expect(notFound).toContain(
      `Geth Testnet to block ${head} (0 behind its head, ${final - 1} blocks of its history still to be read)`,
    );
  });

  open();
  await untilTold(({ indexing, metrics, notFound }) => {
    expect(indexing).toMatchObject({
      ...{ headBlock: head, finalizedBlock: final, indexedBlock: head, startBlock: 2, lagBlocks: 0 },
      ...{ owedBlocks: 0, failedRanges: 0, failedBlocks: 0, unreadableLogs: 0, foreignLogs: 0 },
      ...{ oldestFailureAt: null, isIndexed: true, health: 'ok', problem: null, findings: [] },
    });
    expect(metrics).toEqual({
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

  await stage.lane.sendOne();
  await untilTold(({ indexing }) =>
    expect(indexing).toMatchObject({
      headBlock: head + 1,
      indexedBlock: head + 1,
      finalizedBlock: final + 1,
    }),
  );
});

test('what could not be read, was not understood, and came from strangers', async () => {
  const bad = await stage.lane.sendOne();
  await stage.lab.a.mine(FINALITY + 1);
  const { topics, data } = bad.log;
  const stranger = await deployImpostor(stage.lab.a);
  const ramp = await deployImpostor(stage.lab.a);
  await ramp.imitate(stage.lane.ramps.onRamp);
  await stage.nameOnRamps({ destChainSelector: 99n, onRamp: ramp.address });
  await ramp.repeat([{ topics, data: '0x1234' }]);

  const startedAt = Date.now();
  stage.proxy.interfere = rejecting(
    (call) => isInRange(call, bad.blockNumber) || call.method === 'eth_getBlockReceipts',
    -32000,
    'leveldb: corruption on data-block',
  );
  startIndexing();
  await untilTold(({ indexing }) => expect(indexing).toMatchObject({ unreadableLogs: 1 }));
  // History is asked for by address; of strangers only new blocks are seen.
  await stranger.repeat([
    { topics, data },
    { topics, data },
  ]);
  await untilTold(({ indexing, metrics }) => {
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
    expect(metrics).toMatchObject({ failed_ranges: 1, unreadable_logs: 1, foreign_logs: 2 });
    expect(metrics.oldest_failure_seconds).toBeGreaterThan(0);
  });
});

test('that a node is away, without its host, until it is back', async () => {
  const { logLines } = startIndexing();
  await untilTold(({ indexing }) => expect(indexing).toMatchObject({ health: 'ok' }));
  stage.proxy.isDown = true;
  await stage.lane.sendOne();
  await untilTold(({ indexing, metrics, notFound }) => {
    expect(indexing).toMatchObject({
      health: 'failing',
      problemKind: 'unreachable',
      problem: 'An endpoint of this network cannot be reached.',
    });
    expect(metrics).toMatchObject({ stopped: 1 });
    expect(notFound).toContain('failing');
  });
  stage.proxy.isDown = false;
  await untilTold(({ indexing, metrics }) => {
    expect(indexing).toMatchObject({ health: 'ok', problem: null, failedRanges: 0 });
    expect(metrics).toMatchObject({ stopped: 0 });
  });
  // What was sent meanwhile was not lost, and no block counts as failed.
  await stage.untilProgress({
    headBlock: await stage.lab.a.blockNumber(),
    indexedBlock: await stage.lab.a.blockNumber(),
  });
  expect(logLines.join('\n')).not.toContain('cannot be read');
});
