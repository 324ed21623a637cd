/** What is wrong with a store on a cluster after a load, compared with a store on one node that got the same input. */
import type pg from 'pg';
import { expect } from 'vitest';
import { importRecords } from '../../src/ingest/import/import.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { changeNumbers } from '../../src/store/write/changes.ts';
import { numbersUpTo, until } from '../api/live/live-server.ts';
import { allRecords, indexSources } from '../chain/indexing.ts';
import { freshFolder } from '../fresh-folder.ts';
import { keptStatistics, recount } from '../lanes/recount.ts';
import { connectTo } from '../postgres.ts';
import { expectedMessages } from '../virtual-chain/ccip-chain.ts';
import { sourceOf } from '../virtual-chain/indexed-world.ts';
import { untilSettled, versionsByMessage } from '../webhooks/receiver.ts';
import { followedSender, linesOfBatch } from './batches.ts';
import type { Load } from './load.ts';

const SHOWN = 5;

/** Ends the import and the chains, and waits until readers have got everything. */
export async function finishLoad(load: Load): Promise<void> {
  const { store, databaseUrl } = load;
  await load.stopWriter();
  // Otherwise the rest would wait in vain.
  expect(load.failures).toEqual([]);
  load.growChains(Number.MAX_SAFE_INTEGER);
  const { a, b } = load.world;
  const expected = [...expectedMessages(a, b), ...expectedMessages(b, a)];
  await until(async () => {
    const records = await allRecords(store).catch(() => undefined);
    return expected.every(({ messageId, receiptTransactionHash }) =>
      records?.get(messageId)?.includes(receiptTransactionHash ?? ''),
    );
  });
  const client = await connectTo(databaseUrl);
  await until(async () => load.stream.hasReached(await readPosition(client)));
  await client.end();
  await untilSettled(store);
  // The backlog looks empty for a moment between the commits of the coordinator and of a worker that has deliveries.
  await until(() => webhookProblems(load).length === 0).catch(() => undefined);
  await load.stop();
}

/** In words; empty where nothing is wrong. */
export async function problemsOf(load: Load): Promise<readonly string[]> {
  const { store, databaseUrl } = load;
  const client = await connectTo(databaseUrl, { options: '-c timezone=UTC' });
  try {
    return [
      ...load.failures,
      ...(await historyProblems(client)),
      ...streamProblems(load, await readPosition(client)),
      ...webhookProblems(load),
      ...(await recordProblems(load)),
      ...(await derivedProblems(store, client)),
      ...(await leftoverProblems(client)),
    ];
  } finally {
    await client.end();
  }
}

async function readPosition(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query('select position::float8 from store');
  return rows[0].position;
}

async function historyProblems(client: pg.ClientBase): Promise<readonly string[]> {
  const position = await readPosition(client);
  const { rows } = await client.query(
    `select count(*)::float8 as rows, count(distinct position)::float8 as positions, max(position)::float8 as last,
       count(*) filter (where change = ${changeNumbers.created})::float8 as created, count(distinct message_id)::float8 as messages
     from history`,
  );
  const { rows: messages } = await client.query('select count(*)::float8 as n from message');
  const { n } = messages[0];
  const expected = { rows: position, positions: position, last: position, created: n, messages: n };
  if (JSON.stringify(rows[0]) === JSON.stringify(expected)) return [];
  return [`The history has ${JSON.stringify(rows[0])} instead of ${JSON.stringify(expected)}`];
}

function streamProblems({ stream }: Load, last: number): readonly string[] {
  const { positions } = stream;
  const wrong = numbersUpTo(last).findIndex((position, index) => positions[index] !== position);
  if (wrong === -1 && positions.length === last) return [];
  return [
    `The stream has ${positions.length} changes of ${last}; at ${wrong}: ${positions.slice(Math.max(0, wrong - 2), wrong + 3)}`,
  ];
}

/** At least once each, and of each message in order. */
function webhookProblems({ stream, receiver }: Load): readonly string[] {
  const delivered = new Set(receiver.accepted.map(({ event }) => event.data.position));
  const isFollowed = (sender: string) => sender.toLowerCase() === followedSender;
  const missing = stream.changes
    .filter(({ data }) => isFollowed(data.message.sender))
    .filter(({ id }) => !delivered.has(id));
  const unordered = [...versionsByMessage(receiver.accepted)].filter(([, versions]) =>
    versions.some((version, index) => version < (versions[index - 1] ?? 0)),
  );
  return [
    ...missing.slice(0, SHOWN).map(({ id }) => `No webhook was delivered for position ${id}`),
    ...unordered.slice(0, SHOWN).map(([id, versions]) => `Webhooks of ${id} came in the order ${versions}`),
  ];
}

async function recordProblems(load: Load): Promise<readonly string[]> {
  const [expected, found] = [await recordsOnOneNode(load), await allRecords(load.store)];
  const problems: string[] = [];
  for (const [id, record] of expected) {
    if (found.get(id) !== record)
      problems.push(`${id} is ${found.get(id) ?? 'missing'} instead of ${record}`);
  }
  for (const id of found.keys()) if (!expected.has(id)) problems.push(`${id} was never written`);
  return problems.length <= SHOWN
    ? problems
    : [`${problems.length} records of ${expected.size} differ`, ...problems.slice(0, SHOWN)];
}

/** The same input, in the same order, on an embedded PostgreSQL. */
async function recordsOnOneNode(load: Load): Promise<ReadonlyMap<string, string>> {
  const { world, providers, acknowledged } = load;
  const store = await openStore({ place: { dataFolder: freshFolder() } });
  try {
    await importRecords({
      input: (async function* () {
        for (let batch = 0; batch < acknowledged; batch++) yield Buffer.from(linesOfBatch(batch));
      })(),
      store,
      reject: async ({ text }) => {
        throw new Error(`Rejected: ${text}`);
      },
    });
    const sources = [world.a, world.b].map((chain, index) =>
      sourceOf(chain, providers.slice(index, index + 1)),
    );
    await indexSources(store, sources);
    return await allRecords(store);
  } finally {
    await store.close();
  }
}

async function derivedProblems(store: Store, client: pg.ClientBase): Promise<readonly string[]> {
  const { disagreements } = await store.derived.compare({ signal: new AbortController().signal });
  const isCounted = JSON.stringify(await keptStatistics(client)) === JSON.stringify(await recount(client));
  return [
    ...disagreements.slice(0, SHOWN).map((one) => `Derived rows disagree: ${JSON.stringify(one)}`),
    ...(isCounted ? [] : ['The statistics are not those of the messages']),
  ];
}

/** Nothing waits for a commit, on any node. */
async function leftoverProblems(client: pg.ClientBase): Promise<readonly string[]> {
  const { rows } = await client.query(
    `select nodeid, success, result from run_command_on_all_nodes(
       'select count(*) from pg_prepared_xacts where database = current_database()') where result <> '0'`,
  );
  return rows.map((row) => `Transactions are prepared and not committed: ${JSON.stringify(row)}`);
}
