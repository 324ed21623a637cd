// @module-tag slow: builds earlier releases and runs them beside an upgrade
/**
 * Upgrades beside running programs of earlier releases: their importer, indexer and server go on while the new
 * `migrate` runs. Nothing is lost, nothing is written by halves, and all of them end, or go on, in words.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import type { Message } from '../../src/domain/message.ts';
import { openStore } from '../../src/store/store.ts';
import { freePort } from '../chaos/deployment.ts';
import { buildProgram, freshFolder } from '../cli/program.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { fuji, makeMessage, makeToken, sepolia } from '../fixtures.ts';
import type { Provider } from '../virtual-chain/endpoint.ts';
import { router, source, startCcipNode } from './ccip-chain.ts';
import { buildRelease, missingHistory, type Release, type Running, releases, run } from './releases.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const MESSAGES = isFull ? 60_000 : 10_000;
/** Lines that the importer gets only when the migration is done. */
const HELD_BACK = 2_500;
const MOST_BLOCKS = 600;
const WAIT = { timeout: 120_000, interval: 50 };
const newProgram = path.resolve(import.meta.dirname, '../../bin/lanescan');

const reason = missingHistory();
test('the git history has the earlier releases', ({ skip }) => {
  if (reason === undefined) return;
  process.stderr.write(`\nNOT TESTED: upgrades beside earlier releases, because ${reason}.\n`);
  skip(reason);
});

const lines = Array.from({ length: MESSAGES }, (_, index) => JSON.stringify(recordOf(index + 1)));

function recordOf(number: number): Message {
  return makeMessage({
    number,
    status: number % 7 === 0 ? 'FAILED' : 'SUCCESS',
    deliveryTime: 1_000 + (number % 500) * 1_000,
    tokenAmounts: [makeToken(sepolia, fuji, `T${number % 5}`)],
  });
}

describe.skipIf(reason !== undefined)('a release that runs while the database is upgraded', () => {
  const folder = freshFolder();
  const archive = path.join(folder, 'records.ndjson');
  const running: Running[] = [];
  const databases: TestDatabase[] = [];
  let older: Release | undefined;

  beforeAll(async () => {
    await buildProgram();
    writeFileSync(archive, `${lines.join('\n')}\n`);
  }, 300_000);
  afterEach(async () => {
    for (const { child, ended } of running.splice(0)) {
      child.kill('SIGKILL');
      await ended;
    }
    for (const database of databases.splice(0)) await database.drop();
    older?.remove();
    older = undefined;
  });
  afterAll(() => older?.remove());

  async function emptyDatabase(): Promise<TestDatabase> {
    const database = await createTestDatabase({ empty: true, declaresSchema: false });
    databases.push(database);
    return database;
  }

  function start(program: string, database: TestDatabase, ...args: readonly string[]): Running {
    const started = run(program, args, { DATABASE_URL: database.url }, folder);
    running.push(started);
    return started;
  }

  async function finish(program: string, database: TestDatabase, ...args: readonly string[]) {
    const { child, ended } = start(program, database, ...args);
    child.stdin.end();
    const { code, output } = await ended;
    expect(`${args[0]} ended with ${code}: ${output}`).toContain('ended with 0');
    return output;
  }

  test.for(releases)(
    'of schema $schema: importer, indexer and server',
    { timeout: 600_000 },
    async ({ schema, commit }) => {
      older = buildRelease(commit);
      const { program } = older;
      const node = await startCcipNode(40);
      const config = configurationFor(node);
      const database = await emptyDatabase();
      await finish(program, database, 'migrate');
      expect(await latestMigration(database)).toBe(schema);

      // Everything runs, and has written something.
      const port = await freePort();
      const server = start(program, database, 'serve', '--port', port);
      const indexer = start(program, database, 'index', '--config', config);
      const importer = start(program, database, 'import', '-');
      const feed = createFeed(importer);
      // More than one batch of the importer.
      feed.give(2_500);
      const questions = askForever(port);
      await expect.poll(() => indexedMessages(database), WAIT).toBeGreaterThan(20);
      await expect.poll(() => countMessages(database), WAIT).toBeGreaterThan(1_000);
      await expect.poll(() => questions.answers.length, WAIT).toBeGreaterThan(0);

      const migrating = finish(newProgram, database, 'migrate');
      let isMigrated = false;
      void migrating.finally(() => {
        isMigrated = true;
      });
      while (!isMigrated) {
        feed.give(100);
        if (node.chain.head < MOST_BLOCKS - 1) node.chain.grow(1);
        await delay(5);
      }
      expect(await migrating).toContain('applied 0011-fact-kind');

      // The importer ends at its next write, in words.
      feed.giveRest();
      const ended = await importer.ended;
      expect(ended.output).toMatch(/upgraded by a newer Lanescan \(schema \d+; .*upgrade this program/i);
      expect(ended.output).not.toMatch(/^\s+at .*:\d+/m);
      expect(ended.code).toBe(1);

      // The indexer says so, and keeps what it has to write. Since schema 8 it ends by itself.
      node.chain.grow(5);
      await indexer.untilSaid(/upgraded by a newer Lanescan/);
      expect(indexer.output()).not.toMatch(/^\s+at .*:\d+/m);
      indexer.child.kill('SIGTERM');
      await indexer.ended;

      // The server has answered all the time, and still does. A search that is under way when migration 7 replaces the
      // table of tokens can fail; releases with an earlier schema have no better answer to that.
      const before = questions.answers.length;
      await expect.poll(() => questions.answers.length, WAIT).toBeGreaterThan(before + 3);
      await questions.stop();
      const failed = questions.answers.slice(0, before).filter((answer) => !answer.endsWith(' 200'));
      expect(schema < 7 ? failed.filter((answer) => answer !== 'token 500') : failed).toEqual([]);
      expect(failed.length).toBeLessThanOrEqual(1);
      expect(questions.answers.slice(before).filter((answer) => !answer.endsWith(' 200'))).toEqual([]);
      server.child.kill('SIGTERM');
      await server.ended;

      // No half of anything was written, and the new release goes on where the older one was stopped.
      await expectAgreement(database);
      await finish(newProgram, database, 'import', archive);
      await finish(newProgram, database, 'index', '--once', '--config', config);
      const reference = await emptyDatabase();
      await finish(newProgram, reference, 'import', archive);
      await finish(newProgram, reference, 'index', '--once', '--config', config);
      await expectAgreement(database);
      expect(await countMessages(database)).toBe(MESSAGES + node.chain.head);
      const [contents, expected] = [await contentsOf(database), await contentsOf(reference)];
      for (const table of Object.keys(expected)) expect(contents[table], table).toEqual(expected[table]);
    },
  );

  function createFeed({ child }: Running) {
    let given = 0;
    const give = (count: number) => {
      const some = lines.slice(given, Math.min(given + count, MESSAGES - HELD_BACK));
      given += some.length;
      if (some.length > 0) child.stdin.write(`${some.join('\n')}\n`);
    };
    return {
      give,
      giveRest() {
        child.stdin.end(`${lines.slice(given).join('\n')}\n`);
      },
    };
  }

  function configurationFor(node: Provider): string {
    const file = path.join(freshFolder(), 'lanescan.yaml');
    const networks = [
      {
        network: source.name,
        rpc: [node.url.href],
        routers: [router],
        start: 0,
        finality: 5,
        requestsPerSecond: 5_000,
        pollSeconds: 0.1,
      },
    ];
    writeFileSync(file, stringify({ networks }));
    return file;
  }
});

/** Searches again and again; what each was answered with. */
function askForever(port: string) {
  const answers: string[] = [];
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const token = recordOf(1).tokenAmounts[0]?.sourceTokenAddress;
  const ask = async (name: string, query: string) => {
    try {
      const { status } = await fetch(`http://127.0.0.1:${port}/v2/messages?${query}`);
      answers.push(`${name} ${status}`);
    } catch (error) {
      // It does not listen yet.
      if (answers.length > 0) answers.push(`${name} ${(error as Error).message}`);
    }
  };
  const asking = (async () => {
    while (!stopping.signal.aborted) {
      await ask('search', 'limit=5');
      await ask('token', `sourceTokenAddress=${token}&limit=5`);
      await delay(20);
    }
  })();
  return {
    answers,
    async stop() {
      stopping.abort();
      await asking;
    },
  };
}

async function query(database: TestDatabase, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: database.url, options: '-c timezone=UTC' });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

async function latestMigration(database: TestDatabase): Promise<unknown> {
  return (await query(database, 'select max(number) as number from migration'))[0]?.number;
}

async function countMessages(database: TestDatabase): Promise<number> {
  return Number((await query(database, 'select count(*) from message'))[0]?.count);
}

async function indexedMessages(database: TestDatabase): Promise<number> {
  return Number((await query(database, 'select count(distinct message_id) from fact'))[0]?.count);
}

/** Every derived row is that of the records, and the history has no gap. */
async function expectAgreement(database: TestDatabase): Promise<void> {
  const store = await openStore({ place: { url: database.url }, schema: 'expect' });
  try {
    const report = await store.derived.compare({ signal: new AbortController().signal });
    expect(report.disagreements).toEqual([]);
    expect(report.messages).toBeGreaterThan(0);
  } finally {
    await store.close();
  }
}

/** All that two stores with the same facts have in common; positions and times of recording are their own. */
async function contentsOf(database: TestDatabase): Promise<Readonly<Record<string, readonly string[]>>> {
  const tables: Record<string, string> = {
    message: `select (to_jsonb(t) - 'position')::text as row from message t`,
    history: `select encode(message_id, 'hex') || ' ' || count(*) as row from history where change = 'created' group by message_id`,
    // When finality was noticed depends on when the chain was looked at; the id of a fact is a hash of its body.
    fact: `select (to_jsonb(t) - 'fact_id' - 'body')::text ||
        regexp_replace(body, '("kind":"SourceFinalized".*),"at":"[^"]*"', '\\1') as row from fact t`,
    index_contract: `select network || ' ' || address || ' ' || body as row from index_contract`,
    lane_total: 'select to_jsonb(t)::text as row from lane_total t where messages <> 0',
    day_total: 'select to_jsonb(t)::text as row from day_total t where messages <> 0',
    lane_delivery: `select source_selector || ' ' || dest_selector || ' ' || day || ' ' || bucket || ' ' ||
        (histogram ->> ordinal::int) as row
      from lane_delivery, json_array_elements_text(histogram) with ordinality as pair (bucket, ordinal)
      where ordinal % 2 = 1`,
  };
  for (const table of ['message_token', 'lane_fact', 'lane_run', 'lane_onramp'])
    tables[table] = `select to_jsonb(t)::text as row from ${table} t`;
  const contents: Record<string, readonly string[]> = {};
  for (const [table, text] of Object.entries(tables)) {
    contents[table] = (await query(database, text)).map(({ row }) => row as string).sort();
  }
  return contents;
}
