/** `lanescan import` of the same file into an empty store on one node and on the cluster, in turns. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, openSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createEmpty, dropDatabase, withClient } from '../data/database.ts';
import { createRowWriter } from '../data/records.ts';
import { createWorld } from '../data/world.ts';
import { interleave, ratioOf } from '../interleave.ts';
import { program } from '../server.ts';
import { createEmptyDistributed, dropDistributed, serverAt } from './databases.ts';

const DATABASE = 'bench_import';

export interface ImportOptions {
  readonly singleUrl: string;
  readonly coordinatorUrl: string;
  readonly records: number;
  readonly shards: number;
  readonly rounds: number;
  /** For the file of records and the logs. */
  readonly folder: string;
}

export interface ImportRates {
  readonly records: number;
  /** Messages a second. */
  readonly single: number;
  readonly cluster: number;
  /** Of the cluster to one node: the median over the rounds. */
  readonly ratio: number;
}

export async function compareImports(options: ImportOptions): Promise<ImportRates> {
  const { singleUrl, coordinatorUrl, records, shards, rounds, folder } = options;
  const file = `${folder}/cluster-import.ndjson`;
  await writeRecords(file, records);
  const single = await serverAt(singleUrl);
  const timed = async (url: string) => {
    const began = performance.now();
    await runImport(url, file, `${folder}/cluster-import.log`);
    const rate = (records * 1_000) / (performance.now() - began);
    const { rows } = await withClient(url, (client) =>
      client.query('select count(*)::int as n from message'),
    );
    if (rows[0].n !== records) throw new Error(`${rows[0].n} messages came in instead of ${records}`);
    return { rate };
  };
  try {
    const standings = await interleave(
      [
        {
          name: 'single',
          async turn() {
            await createEmpty(single, DATABASE);
            return timed(single.url(DATABASE));
          },
        },
        {
          name: 'cluster',
          turn: async () => timed(await createEmptyDistributed(coordinatorUrl, DATABASE, shards)),
        },
      ],
      rounds,
    );
    const [one, other] = [standings.get('single'), standings.get('cluster')];
    return {
      records,
      single: one?.rate ?? 0,
      cluster: other?.rate ?? 0,
      ratio: ratioOf(other, one) ?? 0,
    };
  } finally {
    await dropDatabase(single, DATABASE);
    await dropDistributed(coordinatorUrl, DATABASE);
    await rm(file, { force: true });
  }
}

async function writeRecords(file: string, records: number): Promise<void> {
  const rowsOf = createRowWriter(createWorld(records));
  await pipeline(function* () {
    for (let n = 0; n < records; ) {
      let text = '';
      for (const end = Math.min(records, n + 1_000); n < end; n++) text += `${rowsOf(n).record}\n`;
      yield Buffer.from(text, 'latin1');
    }
  }, createWriteStream(file));
}

async function runImport(url: string, file: string, log: string): Promise<void> {
  const output = openSync(log, 'w');
  const child = spawn(process.execPath, [program, 'import', file], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: url },
    stdio: ['ignore', output, output],
  });
  const [code] = await once(child, 'exit');
  if (code !== 0)
    throw new Error(`The import ended with ${code}:\n${readFileSync(log, 'utf8').slice(-2_000)}`);
}
