/** `lanescan import` of the same file into an empty store on one node and on the cluster, in turns. */
import { rm } from 'node:fs/promises';
import { createEmpty, dropDatabase } from '../data/database.ts';
import { checkCount, recordLine, runImport, writeRows } from '../import-run.ts';
import { interleave, ratioOf } from '../interleave.ts';
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
  await writeRows(file, records, recordLine);
  const single = await serverAt(singleUrl);
  const timed = async (url: string) => {
    const began = performance.now();
    await runImport({ url, file, log: `${folder}/cluster-import.log` });
    const rate = (records * 1_000) / (performance.now() - began);
    await checkCount(url, records);
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
