/** Whether a store is what the chains say, and if not, in what it differs. */
import pg from 'pg';
import type { Message } from '../../src/domain/message.ts';
import { hashBytes } from '../../src/store/facts/hash-bytes.ts';
import type { Store } from '../../src/store/store.ts';
import { changeNumbers } from '../../src/store/write/changes.ts';
import { allRecords } from '../chain/indexing.ts';
import { keptStatistics, recount } from '../lanes/recount.ts';
import type { Recording } from './scenario.ts';
import { type ToldMessage, toldPart } from './truth.ts';

export interface Expectation {
  readonly recording: Recording;
  readonly truth: ReadonlyMap<string, ToldMessage>;
  /** What a store has that was made from the whole chains with nothing in the way; undefined while it is made. */
  readonly records: ReadonlyMap<string, string> | undefined;
}

const SHOWN = 5;

/** What is wrong, in words; nothing where all is as it should be. */
export async function problemsOf(
  store: Store,
  connection: pg.ClientConfig,
  expectation: Expectation,
): Promise<readonly string[]> {
  const client = new pg.Client(connection);
  client.on('error', () => undefined);
  await client.connect();
  try {
    // Not worth a closer look as long as something is owed.
    const owed = await ledgerProblems(client, expectation.recording);
    if (owed.length > 0) return owed;
    return [
      ...(await recordProblems(store, expectation)),
      ...(await historyProblems(client)),
      ...(await laneProblems(store, client)),
    ];
  } finally {
    await client.end();
  }
}

/** Everything has been read, nothing is owed, and nothing rests on a block that the chains do not have. */
async function ledgerProblems(client: pg.ClientBase, { networks }: Recording): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const table of ['index_backlog', 'index_failure', 'index_unreadable']) {
    const { rows } = await client.query(`select * from ${table} limit ${SHOWN}`);
    problems.push(...rows.map((row) => `${table} still has ${JSON.stringify(row)}`));
  }
  const { rows: chores } = await client.query(`select count(*) as n from index_chore where kind = 'policy'`);
  if (chores[0].n !== '0') problems.push(`${chores[0].n} messages were not asked for their verifiers`);

  const hashes = networks.flatMap(({ chain }) => chain.map(({ hash }) => hash));
  for (const table of ['fact', 'lane_fact', 'root_blessing', 'index_block']) {
    const { rows } = await client.query(
      `select * from ${table} where ${table === 'index_block' ? 'hash' : 'block_hash'} <> all($1) limit ${SHOWN}`,
      [table === 'index_block' ? hashes : hashes.map((hash) => Buffer.from(hashBytes(hash), 'hex'))],
    );
    problems.push(...rows.map((row) => `of an abandoned block, ${table} still has ${JSON.stringify(row)}`));
  }
  const heads = networks.map(({ chain }) => chain.at(-1)?.hash);
  const { rows: read } = await client.query('select count(*) as n from index_block where hash = any($1)', [
    heads,
  ]);
  if (read[0].n !== String(heads.length)) problems.push('the heads of the chains have not been read');
  return problems;
}

async function recordProblems(store: Store, { truth, records }: Expectation): Promise<readonly string[]> {
  const stored = await allRecords(store);
  const problems: string[] = [];
  for (const [id, told] of truth) {
    const record = stored.get(id);
    if (record === undefined) {
      problems.push(`${id} is missing: ${JSON.stringify(told)}`);
      continue;
    }
    const [is, shouldBe] = [JSON.stringify(toldPart(JSON.parse(record) as Message)), JSON.stringify(told)];
    if (is !== shouldBe) problems.push(`${id} is told as ${is} and is ${shouldBe}`);
    else if (records && records.get(id) !== record)
      problems.push(`${id} is other than it should be: ${differences(record, records.get(id) ?? '{}')}`);
  }
  for (const [id, record] of stored) if (!truth.has(id)) problems.push(`${id} was never sent: ${record}`);
  return problems;
}

function differences(record: string, expected: string): string {
  const [is, shouldBe] = [record, expected].map((json) => JSON.parse(json) as Record<string, unknown>);
  return Object.keys({ ...is, ...shouldBe })
    .map((key) => [key, JSON.stringify(is?.[key]), JSON.stringify(shouldBe?.[key])] as const)
    .filter(([, one, other]) => one !== other)
    .map(([key, one, other]) => `${key} is ${one} and should be ${other}`)
    .join('; ');
}

async function historyProblems(client: pg.ClientBase): Promise<readonly string[]> {
  const { rows: store } = await client.query('select position::text from store');
  const { position } = store[0];
  const { rows } = await client.query(
    `select count(*)::text as rows, count(distinct position)::text as positions, coalesce(min(position), 1)::text as first,
            coalesce(max(position), 0)::text as last from history`,
  );
  const { rows: count, positions, first, last } = rows[0];
  const isGapless = first === '1' && last === position && count === position && positions === position;
  const { rows: contradicting } = await client.query(
    `select encode(h.message_id, 'hex') as id, h.change, h.status, m.status as now
     from (select distinct on (message_id) * from history order by message_id, position desc) h
       left join message m using (message_id)
     where (h.change = ${changeNumbers.removed}) <> (m.message_id is null) or h.status <> m.status or h.ready <> m.ready
     limit ${SHOWN}`,
  );
  return [
    ...(isGapless ? [] : [`history has positions ${JSON.stringify({ ...rows[0], position })}`]),
    ...contradicting.map((row) => `history ends otherwise than the record: ${JSON.stringify(row)}`),
  ];
}

async function laneProblems(store: Store, client: pg.ClientBase): Promise<readonly string[]> {
  const now = new Date();
  const { lanes } = await store.lanes({
    now,
    deliveredSince: now.toISOString().slice(0, 10),
    namedRanges: SHOWN,
    limit: Number.MAX_SAFE_INTEGER,
  });
  const holes = lanes.flatMap(({ onramps }) =>
    onramps
      .filter(({ completeness }) => !completeness.isComplete || completeness.first !== '1')
      .map(({ onramp, completeness }) => `lane of ${onramp} has holes: ${JSON.stringify(completeness)}`),
  );
  const isCounted = JSON.stringify(await keptStatistics(client)) === JSON.stringify(await recount(client));
  return [...holes, ...(isCounted ? [] : ['the statistics are not those of the messages'])];
}
