/** `lanescan import` of records beside raw COPY of the rows that they become, each into an empty store with all indexes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, createWriteStream, openSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { type CpuClock, startCpuClock } from '../cpu.ts';
import { createEmpty, dropDatabase, withClient } from '../data/database.ts';
import {
  createRowWriter,
  HISTORY_COLUMNS,
  MESSAGE_COLUMNS,
  type Rows,
  TOKEN_COLUMNS,
} from '../data/records.ts';
import { createWorld } from '../data/world.ts';
import { interleave, ratioOf, type Standing, type Subject } from '../interleave.ts';
import type { Rig } from '../rig.ts';
import { program } from '../server.ts';

export interface ImportResult {
  readonly records: number;
  readonly standings: readonly Standing[];
  /** Beside COPY of the messages alone, and of all rows that an import writes. */
  readonly ratios: { readonly messages: number; readonly allRows: number };
  /** Resident megabytes of the importer at each tenth of its way; the first is its start. */
  readonly memoryMb: readonly number[];
}

const DATABASE = 'bench_import';

export async function measureImport(rig: Rig, records: number, rounds: number): Promise<ImportResult> {
  const folder = rig.settings.dataFolder;
  const files = {
    records: `${folder}/import.ndjson`,
    message: `${folder}/message.copy`,
    token: `${folder}/token.copy`,
    history: `${folder}/history.copy`,
  };
  await writeFiles(files, records);
  const url = rig.cluster.url(DATABASE);
  let memoryMb: readonly number[] = [];
  const copy = async (...tables: readonly { into: string; file: string }[]) =>
    withClient(url, async (client) => {
      const clock = database();
      for (const { into, file } of tables) {
        await pipeline(
          createReadStream(file, { highWaterMark: 1 << 20 }),
          client.query(copyFrom(`copy ${into} from stdin`)),
        );
      }
      return clock.stop();
    });
  const messages = { into: `message (${MESSAGE_COLUMNS})`, file: files.message };
  const tokens = { into: `message_token (${TOKEN_COLUMNS})`, file: files.token };
  const history = { into: `history (${HISTORY_COLUMNS})`, file: files.history };
  const timed = async (work: () => Promise<Readonly<Record<string, number>>>) => {
    await createEmpty(rig.cluster, DATABASE);
    const began = performance.now();
    const used = await work();
    const rate = (records * 1000) / (performance.now() - began);
    const count = await withClient(url, (client) => client.query('select count(*)::int as n from message'));
    if (count.rows[0].n !== records)
      throw new Error(`${count.rows[0].n} messages came in instead of ${records}`);
    return {
      rate,
      cpu: Object.fromEntries(Object.entries(used).map(([name, time]) => [name, time / records])),
    };
  };
  const database = () => startCpuClock({ database: { family: rig.postmaster } });
  const subjects: Subject[] = [
    {
      name: 'lanescan import',
      turn: () =>
        timed(async () => {
          const seen = await runImport(url, files.records, rig.logFile('import'), database());
          memoryMb = seen.memoryMb;
          return seen.cpu;
        }),
    },
    { name: 'COPY of the messages', turn: () => timed(() => copy(messages)) },
    { name: 'COPY of all rows', turn: () => timed(() => copy(messages, tokens, history)) },
  ];
  try {
    const standings = await interleave(subjects, rounds);
    const ours = standings.get('lanescan import');
    return {
      records,
      standings: [...standings.values()],
      ratios: {
        messages: ratioOf(ours, standings.get('COPY of the messages')) ?? 0,
        allRows: ratioOf(ours, standings.get('COPY of all rows')) ?? 0,
      },
      memoryMb,
    };
  } finally {
    await dropDatabase(rig.cluster, DATABASE);
    for (const file of Object.values(files)) await rm(file, { force: true });
  }
}

async function writeFiles(
  files: Readonly<Record<'records' | 'message' | 'token' | 'history', string>>,
  records: number,
): Promise<void> {
  const write = async (file: string, textOf: (row: Rows) => string) => {
    const rowsOf = createRowWriter(createWorld(records));
    await pipeline(function* () {
      for (let n = 0; n < records; ) {
        let text = '';
        for (const end = Math.min(records, n + 1_000); n < end; n++) text += textOf(rowsOf(n));
        yield Buffer.from(text, 'latin1');
      }
    }, createWriteStream(file));
  };
  await write(files.records, ({ record }) => `${record}\n`);
  await write(files.message, ({ message }) => message);
  await write(files.token, ({ token }) => token);
  await write(files.history, ({ history }) => history);
}

/** What it took while it worked; of the processor, up to a quarter of a second before it ended. */
async function runImport(
  url: string,
  file: string,
  log: string,
  database: CpuClock,
): Promise<{ memoryMb: number[]; cpu: Readonly<Record<string, number>> }> {
  const output = openSync(log, 'w');
  const child = spawn(process.execPath, [program, 'import', file], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: url },
    stdio: ['ignore', output, output],
  });
  const importer = startCpuClock({ importer: child.pid ?? 0 });
  const memory: number[] = [];
  let cpu: Readonly<Record<string, number>> = {};
  const watch = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      memory.push(Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024));
      cpu = { ...importer.stop(), ...database.stop() };
    } catch {
      // It has just ended, or this is no Linux.
    }
  }, 250);
  const [code] = await once(child, 'exit');
  clearInterval(watch);
  if (code !== 0)
    throw new Error(`The import ended with ${code}:\n${readFileSync(log, 'utf8').slice(-2_000)}`);
  const memoryMb = Array.from(
    { length: 10 },
    (_, tenth) => memory[Math.floor((memory.length * tenth) / 10)] ?? 0,
  );
  return { memoryMb, cpu };
}
