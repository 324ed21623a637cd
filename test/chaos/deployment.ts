/**
 * One data folder with everything that works in it as processes of the built program: a server with clients that read
 * and stream, an importer, and the embedded PostgreSQL. Whatever is killed is started again as an operator would, with
 * the same command. What clients and the importer were told is remembered, to be held against the store in the end.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { statusRank } from '../../src/domain/lifecycle.ts';
import type { Message } from '../../src/domain/message.ts';
import { type EmbeddedDatabase, openEmbedded } from '../../src/store/server/embedded.ts';
import { changeNumbers } from '../../src/store/write/changes.ts';
import { EventReader, numbersUpTo } from '../api/live/live-server.ts';
import type { SearchBody } from '../api/running-server.ts';
import { type Running, start } from '../cli/program.ts';
import { makeMessage } from '../fixtures.ts';
import { keptStatistics, recount } from '../lanes/recount.ts';

export type Victim = 'server' | 'importer' | 'database' | 'session' | 'everything';

export type Archive = Awaited<ReturnType<typeof writeArchive>>;

/** A request that takes longer hangs: the longest time-out of the server is half of it. */
const HANGS_MS = 60_000;
/** A start may fail once for each kill that meets it; not without end. */
const MOST_STARTS = 5;

/** Files of records as an archive has them: later ones tell of new messages, and how earlier ones went on. */
export async function writeArchive(folder: string, files: number, perFile: number) {
  /** What each file says, by its name. */
  const records = new Map<string, readonly Message[]>();
  for (let index = 0; index < files; index++) {
    const fresh = numbersUpTo((index + 1) * perFile, index * perFile + 1).map((number) =>
      makeMessage({ number }),
    );
    const earlier = index === 0 ? [] : numbersUpTo(index * perFile, (index - 1) * perFile + 1);
    const gone = earlier.map((number) =>
      makeMessage({ number, status: number % 7 === 0 ? 'FAILED' : 'SUCCESS' }),
    );
    const name = path.join(folder, `${String(index).padStart(4, '0')}.ndjson`);
    const lines = [...fresh, ...gone];
    await writeFile(name, `${lines.map((message) => JSON.stringify(message)).join('\n')}\n`);
    records.set(name, lines);
  }
  return { files: [...records.keys()], records };
}

export async function deploy(dataFolder: string, archive: Archive) {
  /** Turned away: with 503, or without a connection while the server was dead. */
  const figures = { kills: 0, answered: 0, turnedAway: 0, streamed: 0, imports: 0, failedStarts: 0 };
  /** What clients met that they should not have. */
  const complaints: string[] = [];
  const acknowledged = new Set<string>();
  /** The furthest status in which any client was shown a message. */
  const shown = new Map<string, number>();
  const stream = new EventReader();
  let isOver = false;
  let server: Running;
  let serverUrl: string | undefined;
  let importer: Running | undefined;
  let starting: Promise<void> = Promise.resolve();

  const complain = (what: string) => {
    if (complaints.length < 20) complaints.push(what);
  };
  const remember = ({ messageId, status }: Pick<Message, 'messageId' | 'status'>) =>
    shown.set(messageId, Math.max(shown.get(messageId) ?? 0, statusRank(status)));

  /** One whose database is killed while it starts ends with an error, and its supervisor starts it again. */
  const startServer = async () => {
    for (let attempt = 1; attempt <= MOST_STARTS; attempt++) {
      const running = start(['serve', '--port', '0', '--data', dataFolder]);
      server = running;
      const heard = await running
        .untilSaid(/listens on (http:\/\/[\d.:]+)/)
        .catch((error: Error) => error.message);
      if (server !== running || running.child.signalCode === 'SIGKILL') return;
      if (typeof heard !== 'string') {
        serverUrl = heard[1];
        return;
      }
      figures.failedStarts++;
      if (attempt === MOST_STARTS) complain(`A server did not start: ${heard}`);
    }
  };

  /**
   * Until all is in: an importer that fails because the database was killed is started again. Never with what it has
   * reported, which would bring back what was lost.
   */
  const importing = async () => {
    while (acknowledged.size < archive.files.length && !isOver) {
      const left = archive.files.filter((file) => !acknowledged.has(file));
      const running = start(['import', '--data', dataFolder, ...left]);
      importer = running;
      figures.imports++;
      const look = setInterval(() => note(running), 20);
      const { code, stderr } = await running.outcome;
      clearInterval(look);
      note(running);
      if (code === 3) complain(`The importer rejected lines: ${stderr}`);
    }
  };
  /** One line a file on standard output: its records are in. */
  const note = (running: Running) => {
    for (const line of running.said().stdout.split('\n').slice(0, -1)) {
      const [, file] = /^(\S+): [\d,]+ new, .* 0 rejected$/.exec(line) ?? [];
      if (file !== undefined) acknowledged.add(file);
    }
  };

  const ask = async (query: string): Promise<SearchBody | undefined> => {
    const url = serverUrl;
    try {
      const answer = await fetch(`${url}${query}`, { signal: AbortSignal.timeout(HANGS_MS) });
      if (answer.status === 200) {
        const body = (await answer.json()) as SearchBody;
        figures.answered++;
        return body;
      }
      if (answer.status !== 503) complain(`${query}: ${answer.status} ${await answer.text()}`);
      else if (!answer.headers.has('Retry-After')) complain(`${query}: 503 without Retry-After`);
    } catch (error) {
      if ((error as Error).name === 'TimeoutError') complain(`${query} hung for ${HANGS_MS} ms`);
    }
    figures.turnedAway++;
    await delay(20);
    return undefined;
  };

  /** Walks through the pages again and again; nothing that was shown may be gone later. */
  const walking = async () => {
    let cursor: string | null = null;
    while (!isOver) {
      const page: SearchBody | undefined = await ask(
        cursor === null ? '/v2/messages?limit=200&view=summary' : `/v2/messages?cursor=${cursor}`,
      );
      if (!page) continue;
      for (const message of page.data) remember(message);
      cursor = page.pagination.cursor;
      await delay(2);
    }
  };

  const databasePid = () =>
    Number(readFileSync(path.join(dataFolder, 'postgres/postmaster.pid'), 'utf8').split('\n')[0]);
  const killDatabase = () => process.kill(databasePid(), 'SIGKILL');

  /** One of the sessions: PostgreSQL then ends all others and recovers, as after any crash inside. */
  const killSession = async () => {
    const embedded = await openEmbedded({ dataFolder });
    const client = new pg.Client(embedded.connection);
    client.on('error', () => undefined);
    try {
      await client.connect();
      const { rows } = await client.query(
        `select pid from pg_stat_activity where application_name = 'lanescan' order by state = 'active' desc, pid limit 1`,
      );
      if (rows[0]) process.kill(rows[0].pid, 'SIGKILL');
    } finally {
      await client.end().catch(() => undefined);
      await embedded.leave();
    }
  };

  const end = async (running: Running) => {
    running.child.kill('SIGKILL');
    await running.outcome;
  };
  const restartServer = () => {
    serverUrl = undefined;
    starting = end(server).then(startServer);
    return starting;
  };

  await startServer();
  const following = stream.follow(
    () => serverUrl,
    () => isOver,
  );
  const work = [importing(), walking(), walking(), following];

  return {
    complaints,
    figures,

    /** Kills with -9, and starts again what is not started by others. */
    async kill(victim: Victim) {
      figures.kills++;
      if (victim === 'server') await restartServer();
      else if (victim === 'importer') importer?.child.kill('SIGKILL');
      else if (victim === 'session') await killSession().catch(() => killDatabase());
      else {
        // Several at once, in the order in which one moment has them.
        if (victim === 'everything') importer?.child.kill('SIGKILL');
        try {
          killDatabase();
        } catch {
          // It is dead already, and somebody is about to start it again.
        }
        if (victim === 'everything') await restartServer();
      }
    },

    /** Resolves when the importer has said that all files are in. */
    async importAll() {
      await work[0];
    },

    /** The clients have heard of everything, and every process has ended in good order. */
    async finish() {
      await starting;
      const embedded = await openEmbedded({ dataFolder });
      const last = await positionOf(embedded);
      for (const until = Date.now() + HANGS_MS; !stream.hasReached(last) && Date.now() < until; )
        await delay(20);
      await embedded.leave();
      isOver = true;
      await stream.disconnect();
      await Promise.all(work);
      figures.streamed = stream.changes.length;
      if (JSON.stringify(stream.positions) !== JSON.stringify(numbersUpTo(last))) {
        complain(`The stream told ${stream.changes.length} changes of ${last}, or not in order`);
      }
      server.child.kill('SIGTERM');
      const { code, stderr } = await server.outcome;
      if (code !== 0) complain(`The server ended with ${code}: ${stderr.slice(-500)}`);
    },

    /** What is wrong in the store, held against what everybody was told. */
    async problems() {
      const told = [...acknowledged].flatMap((file) => archive.records.get(file) ?? []);
      for (const { data } of stream.changes) remember(data.message);
      for (const message of told) remember(message);
      return problemsOf(dataFolder, shown);
    },
  };
}

async function positionOf(embedded: EmbeddedDatabase): Promise<number> {
  const client = new pg.Client(embedded.connection);
  await client.connect();
  const { rows } = await client.query('select position from store');
  await client.end();
  return Number(rows[0].position);
}

/**
 * What is wrong in a data folder: messages that somebody was told of are missing or fell back, history has a gap or
 * tells a creation twice, or the statistics are not those of the messages.
 */
export async function problemsOf(
  dataFolder: string,
  shown: ReadonlyMap<string, number>,
): Promise<readonly string[]> {
  const embedded = await openEmbedded({ dataFolder });
  const client = new pg.Client(embedded.connection);
  await client.connect();
  try {
    const problems: string[] = [];
    const { rows: stored } = await client.query(
      `select encode(message_id, 'hex') as id, status from message`,
    );
    const statuses = new Map(stored.map(({ id, status }) => [`0x${id}`, status as number]));
    const lost = [...shown].filter(([id, status]) => (statuses.get(id) ?? -1) < status);
    if (lost.length > 0)
      problems.push(`${lost.length} of ${shown.size} lost or fallen back, such as ${lost[0]}`);
    const { rows: history } = await client.query(
      `select count(*)::int as rows, coalesce(min(position), 1)::int as first, coalesce(max(position), 0)::int as last,
              (select position::int from store) as position,
              count(*) filter (where change = ${changeNumbers.created})::int as created,
              count(distinct message_id)::int as messages
       from history`,
    );
    const { rows, first, last, position, created, messages } = history[0];
    if (first !== 1 || rows !== last || last !== position) {
      problems.push(`history has ${rows} rows from ${first} to ${last}, the store is at ${position}`);
    }
    if (created !== messages || messages !== stored.length) {
      problems.push(`${created} creations of ${messages} messages, of which ${stored.length} are there`);
    }
    const [kept, counted] = [await keptStatistics(client), await recount(client)];
    for (const table of Object.keys(counted)) {
      if (JSON.stringify(kept[table]) !== JSON.stringify(counted[table]))
        problems.push(`${table} differs from a recount`);
    }
    return problems;
  } finally {
    await client.end();
    await embedded.leave();
  }
}

/** A folder that goes with the test. */
export async function temporaryFolder(remove: (cleanUp: () => Promise<void>) => void): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'lanescan-kill-'));
  remove(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** For a server whose port has to be known before it says so, or that has to come back on the same one. */
export async function freePort(): Promise<string> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return String(port);
}
