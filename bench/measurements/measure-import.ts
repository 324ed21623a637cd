/** `lanescan import` of records beside raw COPY of the rows that they become, each into an empty store with all indexes. */
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { type CpuClock, startCpuClock } from '../cpu.ts';
import { createEmpty, dropDatabase, withClient } from '../data/database.ts';
import { HISTORY_COLUMNS, MESSAGE_COLUMNS, TOKEN_COLUMNS } from '../data/records.ts';
import { checkCount, recordLine, runImport, writeRows } from '../import-run.ts';
import { interleave, ratioOf, type Standing, type Subject } from '../interleave.ts';
import type { Rig } from '../rig.ts';
import { residentBytes } from '../server.ts';
import { type DiskUse, readDiskUse, readWalPosition } from './disk.ts';

export interface ImportResult {
  readonly records: number;
  readonly standings: readonly Standing[];
  /** Beside COPY of the messages alone, and of all rows that an import writes. */
  readonly ratios: { readonly messages: number; readonly allRows: number };
  /** Resident megabytes of the importer at each tenth of its way; the first is its start. */
  readonly memoryMb: readonly number[];
  /** Of the last import. */
  readonly disk: DiskUse;
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
  await writeRows(files.records, records, recordLine);
  for (const table of ['message', 'token', 'history'] as const)
    await writeRows(files[table], records, (row) => row[table]);
  const url = rig.cluster.url(DATABASE);
  let memoryMb: readonly number[] = [];
  let disk: DiskUse | undefined;
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
    await checkCount(url, records);
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
          const clock = database();
          const memory: number[] = [];
          let cpu: Readonly<Record<string, number>> = {};
          let importer: CpuClock | undefined;
          // Of the processor, up to a quarter of a second before it ended.
          const watch = (pid: number) => {
            importer ??= startCpuClock({ importer: pid });
            const bytes = residentBytes(pid);
            if (bytes === 0) return;
            memory.push(Math.round(bytes / 2 ** 20));
            cpu = { ...importer.stop(), ...clock.stop() };
          };
          const walFrom = await withClient(url, readWalPosition);
          await runImport({ url, file: files.records, log: rig.logFile('import'), watch });
          disk = await withClient(url, (client) => readDiskUse(client, records, walFrom));
          memoryMb = Array.from(
            { length: 10 },
            (_, tenth) => memory[Math.floor((memory.length * tenth) / 10)] ?? 0,
          );
          return cpu;
        }),
    },
    { name: 'COPY of the messages', turn: () => timed(() => copy(messages)) },
    { name: 'COPY of all rows', turn: () => timed(() => copy(messages, tokens, history)) },
  ];
  try {
    const standings = await interleave(subjects, rounds);
    const ours = standings.get('lanescan import');
    if (!disk) throw new Error('No import was measured.');
    return {
      records,
      standings: [...standings.values()],
      ratios: {
        messages: ratioOf(ours, standings.get('COPY of the messages')) ?? 0,
        allRows: ratioOf(ours, standings.get('COPY of all rows')) ?? 0,
      },
      memoryMb,
      disk,
    };
  } finally {
    await dropDatabase(rig.cluster, DATABASE);
    for (const file of Object.values(files)) await rm(file, { force: true });
  }
}
