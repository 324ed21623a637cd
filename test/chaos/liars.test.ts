// @module-tag slow: dozens of seeds; chain/forked-endpoints.test.ts is the quick pass
/**
 * One of three endpoints lies, or two of them do at different times, while others are away and indexers are restarted:
 * nothing false becomes final, nothing that was final is erased, and in the end the store is what the chains say.
 *
 * A few seeds by default; with LANESCAN_TEST_SCALE=full a hundred of each kind. LANESCAN_TEST_SEED=17 runs that one alone.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, test, vi } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { createDerivation, type Randomness } from '../../src/ingest/demo/randomness.ts';
import type { Store } from '../../src/store/store.ts';
import { allRecords, runIndexer } from '../chain/indexing.ts';
import { openTestStore } from '../database.ts';
import { type CcipWorld, makeCcipWorld } from '../virtual-chain/ccip-chain.ts';
import { type Provider, startProvider } from '../virtual-chain/endpoint.ts';
import { archiveNode, type EndpointProfile } from '../virtual-chain/endpoint-profile.ts';
import { differencesFrom, falseBlocks, growBeyondNow, sourceOf } from '../virtual-chain/indexed-world.ts';
import { lies } from './lies.ts';
import { chaosTiming } from './timing.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const seeds =
  process.env.LANESCAN_TEST_SEED?.split(',') ??
  Array.from({ length: isFull ? 100 : 8 }, (_, index) => String(index + 1));

const lieNames = Object.keys(lies);
const ENDPOINTS = 3;
const MOMENTS = 12;
/** In milliseconds: how long nobody may ask before the world goes on. */
const LONGEST_MOMENT = 500;
/** How long nothing may change in the end before what is wrong counts. */
const STANDSTILL_MS = 60_000;

const unavailable: EndpointProfile = {
  ...archiveNode,
  fails: { every: 1, error: { message: 'upstream is away', status: 503, isPlainText: true } },
};

interface Moment {
  /** The endpoint that lies, and its lie; both undefined: none does. */
  readonly liar: number | undefined;
  readonly lie: string | undefined;
  readonly away: readonly number[];
  readonly growth: number;
  /** Endpoints of the indexer that is started now; undefined: the last one goes on. */
  readonly restart: readonly number[] | undefined;
  readonly requests: number;
}

/** @param liars those who lie, never two of them at once */
function planMoments(liars: readonly number[], randomness: Randomness): readonly Moment[] {
  const all = Array.from({ length: ENDPOINTS }, (_, index) => index);
  let liar: number | undefined;
  let lie: string | undefined;
  return Array.from({ length: MOMENTS }, (): Moment => {
    if (lie === undefined || randomness.chance(0.5)) {
      liar = randomness.chance(0.25) ? undefined : randomness.pick(liars);
      lie = liar === undefined ? undefined : lieNames[randomness.integer(0, lieNames.length - 1)];
    }
    const isAway = randomness.chance(0.4);
    const left = randomness.pick(liars);
    return {
      liar,
      lie,
      away: isAway ? all.filter((index) => index !== liar && randomness.chance(0.7)) : [],
      growth: randomness.pick([0, 1, 2, 5, 20, 60]),
      // At least two are left to agree.
      restart: randomness.chance(0.25)
        ? randomness.chance(0.5)
          ? all.filter((index) => index !== left)
          : all
        : undefined,
      requests: randomness.integer(5, 60),
    };
  });
}

async function live(seed: string, kind: 'one liar' | 'two liars', store: Store) {
  const randomness = createDerivation(`${kind} ${seed}`).randomness('liars');
  const all = Array.from({ length: ENDPOINTS }, (_, index) => index);
  const first = randomness.pick(all);
  const liars =
    kind === 'one liar' ? [first] : [first, randomness.pick(all.filter((index) => index !== first))];
  // Where one is believed alone after a moment, false blocks may become final for a while.
  const isPatient = randomness.chance(0.7);
  const timing = { ...chaosTiming, secondOpinionMs: isPatient ? 600_000 : 50 };
  const world = makeCcipWorld({ blocks: 1_200, head: 600, messages: 40 });
  const b = await startProvider(world.b);
  const endpoints = await Promise.all(Array.from({ length: ENDPOINTS }, () => startProvider(world.a)));
  const logLines: string[] = [];
  const problems: string[] = [];
  const start = (used: readonly number[]) => {
    const chosen = used.map((index) => endpoints[index] as Provider);
    return runIndexer(store, [sourceOf(world.a, chosen), sourceOf(world.b, [b])], { timing, logLines });
  };
  const check = createFinalityCheck(world, store);
  let indexer = start(all);
  try {
    for (const [index, moment] of planMoments(liars, randomness).entries()) {
      const told = lies[moment.lie ?? '']?.(world.a, randomness);
      logLines.push(`-- ${index}: ${JSON.stringify({ ...moment, head: world.a.head })}`);
      for (const [place, endpoint] of endpoints.entries()) {
        endpoint.chain = told && place === moment.liar ? told : world.a;
        endpoint.profile = moment.away.includes(place) ? unavailable : archiveNode;
      }
      if (moment.restart) {
        await indexer.stop();
        indexer = start(moment.restart);
      }
      for (const chain of [world.a, world.b]) chain.grow(moment.growth);
      await untilAsked(endpoints, moment.requests);
      if (isPatient) problems.push(...(await check()).map((problem) => `moment ${index}: ${problem}`));
    }
    // All lies are over, or the last liar is not asked any more.
    const isOut = randomness.chance(0.4);
    const last = liars.at(-1);
    for (const [place, endpoint] of endpoints.entries()) {
      if (!isOut || place !== last) endpoint.chain = world.a;
      endpoint.profile = archiveNode;
    }
    await indexer.stop();
    indexer = start(all.filter((index) => !isOut || index !== last));
    for (const chain of [world.a, world.b]) growBeyondNow(chain);
    problems.push(...(await lastProblems(world, store)));
  } finally {
    await indexer.stop();
    for (const provider of [b, ...endpoints]) await provider.close();
  }
  return { problems, logLines };
}

async function untilAsked(endpoints: readonly Provider[], requests: number): Promise<void> {
  const count = () => endpoints.reduce((sum, endpoint) => sum + endpoint.requests, 0);
  const enough = count() + requests;
  const latest = Date.now() + LONGEST_MOMENT;
  while (count() < enough && Date.now() < latest) await delay(2);
}

/** What is wrong at or below the final block of chain `a`: a block that is false, or a message that is gone. */
function createFinalityCheck(world: CcipWorld, store: Store): () => Promise<readonly string[]> {
  const { selector } = world.a.network;
  let known = new Set<string>();
  return async () => {
    const [final] = (await store.index.state(selector)).blocks;
    if (!final) return [];
    const wrong = (await falseBlocks(world.a, store)).filter(({ number }) => number <= final.number);
    const records = [...(await allRecords(store)).values()].map((record) => JSON.parse(record) as Message);
    const sent = new Set(
      records
        .filter(({ sourceNetworkInfo }) => sourceNetworkInfo.chainSelector === selector)
        .filter(({ sendBlockNumber }) => sendBlockNumber <= final.number)
        .map(({ messageId }) => messageId),
    );
    const gone = [...known].filter((messageId) => !sent.has(messageId));
    known = sent;
    return [
      ...wrong.map(({ number, hash }) => `block ${number} is final and false: ${hash}`),
      ...gone.map((messageId) => `${messageId} was final and is gone`),
    ];
  };
}

/** What is wrong when nothing changes for the better any more. */
async function lastProblems(world: CcipWorld, store: Store): Promise<readonly string[]> {
  const { selector } = world.a.network;
  let problems: readonly string[] = [];
  for (let changedAt = Date.now(); Date.now() - changedAt < STANDSTILL_MS; await delay(50)) {
    const { blocks } = await store.index.state(selector);
    const found = [
      ...(await differencesFrom(world, store)),
      ...(await falseBlocks(world.a, store)).map(({ number, hash }) => `block ${number} is false: ${hash}`),
      ...(blocks.at(-1)?.number === world.a.head ? [] : [`the head is at ${blocks.at(-1)?.number}`]),
      ...(blocks[0]?.number === world.a.head - 8 ? [] : [`final is ${blocks[0]?.number}`]),
      ...(await store.index.pendingRanges(selector)).map((range) => `owed: ${JSON.stringify(range)}`),
    ];
    if (found.length === 0) return [];
    if (found.join() !== problems.join()) changedAt = Date.now();
    problems = found;
  }
  return problems;
}

describe.each(['one liar', 'two liars'] as const)('%s of three endpoints', (kind) => {
  vi.setConfig({ maxConcurrency: 2 });

  test.concurrent.for(seeds)(
    'seed %s',
    { timeout: 600_000 },
    async (seed, { expect: expectHere, onTestFinished }) => {
      const store = await openTestStore();
      onTestFinished(() => store.close());
      const { problems, logLines } = await live(seed, kind, store);
      expectHere(problems.length === 0 ? [] : [...problems.slice(0, 10), ...logLines.slice(-60)]).toEqual([]);
    },
  );
});
