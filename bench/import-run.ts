/** `lanescan import` of made records, as it is installed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, openSync, readFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { withClient } from './data/database.ts';
import { createRowWriter, type Rows } from './data/records.ts';
import { createWorld } from './data/world.ts';
import { program } from './server.ts';

/** Writes what `textOf` says of each message of a world of so many. */
export async function writeRows(file: string, count: number, textOf: (row: Rows) => string): Promise<void> {
  const rowsOf = createRowWriter(createWorld(count));
  await pipeline(function* () {
    for (let n = 0; n < count; ) {
      let text = '';
      for (const end = Math.min(count, n + 1_000); n < end; n++) text += textOf(rowsOf(n));
      yield Buffer.from(text, 'latin1');
    }
  }, createWriteStream(file));
}

export const recordLine = ({ record }: Rows): string => `${record}\n`;

export interface ImportRun {
  readonly url: string;
  readonly file: string;
  readonly log: string;
  /** Called now and then while it works. */
  readonly watch?: (pid: number) => void;
}

const WATCH_EVERY_MS = 250;

/** Throws where it fails. */
export async function runImport({ url, file, log, watch = () => undefined }: ImportRun): Promise<void> {
  const output = openSync(log, 'w');
  const child = spawn(program, ['import', file], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: url },
    stdio: ['ignore', output, output],
  });
  const watching = setInterval(() => watch(child.pid ?? 0), WATCH_EVERY_MS);
  const [code] = await once(child, 'exit').finally(() => clearInterval(watching));
  if (code !== 0)
    throw new Error(`The import ended with ${code}:\n${readFileSync(log, 'utf8').slice(-2_000)}`);
}

/** Throws unless so many messages are in the database. */
export async function checkCount(url: string, records: number): Promise<void> {
  const { rows } = await withClient(url, (client) => client.query('select count(*)::int as n from message'));
  if (rows[0].n !== records) throw new Error(`${rows[0].n} messages came in instead of ${records}`);
}
