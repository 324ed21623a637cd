/** The history loop of the engine with a family that has nothing to read but numbers: it never stops before the end. */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { networkBySelector } from '../../../src/domain/networks/networks.ts';
import type { HistoryReading } from '../../../src/ingest/engine/block-readings.ts';
import { createContractRegistry } from '../../../src/ingest/engine/contract-registry.ts';
import type { NetworkReader } from '../../../src/ingest/engine/family.ts';
import { NodeError } from '../../../src/ingest/engine/faults.ts';
import { createHistoryLoop } from '../../../src/ingest/engine/history-loop.ts';
import { historyRange } from '../../../src/ingest/engine/pending-ranges.ts';
import { createProgress } from '../../../src/ingest/engine/progress.ts';
import { defaultTiming } from '../../../src/ingest/engine/timing.ts';
import type { BlockRange } from '../../../src/store/ledger/index-ledger.ts';
import type { Store } from '../../../src/store/store.ts';
import { openTestStore } from '../../database.ts';
import { sepolia } from '../../fixtures.ts';

const selector = sepolia.chainSelector;
const HOLDER = 'us';
const BLOCKS = 500;
const PIECE = 10;

let store: Store;
beforeAll(async () => {
  store = await openTestStore();
  await store.index.lease(selector, HOLDER, 600);
});
afterAll(() => store?.close());

const emptyReading = ({ from }: BlockRange): HistoryReading => ({
  from,
  facts: [],
  contracts: [],
  unreadable: [],
  untrusted: 0,
  routerBlock: undefined,
  rejected: [],
  isFinal: true,
  blocks: [],
  items: 0,
});

/** A loop over blocks that are pending; `read` decides what becomes of each piece. */
async function runLoop(isHeadBehind: () => boolean, read: (range: BlockRange) => Promise<HistoryReading>) {
  const network = networkBySelector(selector);
  if (!network) throw new Error('not in the table');
  const timing = { ...defaultTiming, retryMinMs: 1, retryMaxMs: 2 };
  const progress = createProgress(
    { network, ledger: store.index, holder: HOLDER, timing, writeLog: () => undefined },
    createContractRegistry(),
  );
  const reader: NetworkReader = {
    progress,
    load: () => undefined,
    readStart: () => Promise.reject(new Error('not asked for')),
    follow: async () => false,
    nextPiece: (pending) => ({ ...pending, from: Math.max(pending.from, pending.to - PIECE + 1) }),
    readHistory: read,
    tasks: { work: async () => undefined, isBehind: false },
    health: () => [],
    close: () => undefined,
  };
  await progress.recorder.record(() => ({ pending: [historyRange(1, BLOCKS)], startBlock: 1 }));
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  const loop = createHistoryLoop(reader, { start: { block: 1 }, requestsPerSecond: 1_000 }, isHeadBehind);
  const running = loop.run(ending.signal);
  await vi.waitFor(() => expect(loop.isEmpty).toBe(true), { timeout: 120_000, interval: 5 });
  ending.abort();
  await running;
  expect(await store.index.pendingRanges(selector)).toEqual([]);
}

const never = () => false;
const isEven = (number: number) => number % 2 === 0;

// The head may catch up, or fall behind, between any two moments at which the loop looks.
test.each<[where: string, isBehind: (look: number) => boolean, fails: (request: number) => boolean]>([
  ...[1, 2, 3, 4, 5].map((looks): [string, (look: number) => boolean, typeof never] => [
    `the head is behind at the first ${looks} looks`,
    (look) => look <= looks,
    never,
  ]),
  ['the head is behind at every other look', isEven, never],
  ['every second request fails, with pauses that are over at once', never, isEven],
])('history is read to its end where %s', async (_, isBehind, fails) => {
  let [looks, requests] = [0, 0];
  await runLoop(
    () => isBehind(++looks),
    async (range) => {
      if (fails(++requests)) throw new NodeError('busy');
      return emptyReading(range);
    },
  );
});
