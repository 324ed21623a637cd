/**
 * A backup of the store while others use it: a copy in a data folder of its own, made from one snapshot and compared table
 * by table.
 *
 * The copy is made in `<folder>.part`, which becomes `<folder>` in the last step, so that an interrupted backup is never
 * mistaken for a complete one.
 */
import * as fs from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { knownSchema } from '../schema/migrate.ts';
import { declaredSchema } from '../schema/writer-guard.ts';
import type { DatabasePlace } from '../store.ts';
import { connectionOf, explainConnectionFailure } from './connection.ts';
import { type CopyReport, copyDatabase } from './database-copy.ts';
import { openEmbedded } from './embedded.ts';
import { renameDurably, requireCluster } from './embedded-folder.ts';

/** Beyond the size of the database: what an empty one takes, and its log. */
const SPARE_BYTES = 200e6;

export interface BackupOptions {
  readonly place: DatabasePlace;
  /** The data folder to make; it must not exist. */
  readonly folder: string;
  readonly writeLog: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** @example await backUp({ place: { dataFolder: './data' }, folder: './backup', writeLog: console.error }); */
export async function backUp(options: BackupOptions): Promise<CopyReport> {
  const { place, folder, writeLog, signal } = options;
  await requireFree(folder);
  if ('dataFolder' in place) await requireCluster(place.dataFolder);
  const part = `${folder}.part`;
  await requireFree(part);
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const source = await openSource(place, options, closers);
    await requireSpace(source, path.dirname(path.resolve(folder)));
    const embedded = await openEmbedded({ dataFolder: part, writeLog, ...(signal && { signal }) });
    closers.push(() => embedded.leave());
    const target = await connect({ ...embedded.connection, ssl: false }, closers);
    const report = await copyDatabase(source, target, { writeLog, signal, hasWriters: true });
    await close();
    await renameDurably(part, folder);
    return report;
  } catch (error) {
    await close().catch(() => undefined);
    await fs.rm(part, { recursive: true, force: true, maxRetries: 5 });
    if (error instanceof OperatorError || signal?.aborted) throw error;
    throw new OperatorError(
      `The backup failed: ${(error as Error).message}. Nothing was changed.`,
      'Fix that and run it again.',
      { cause: error },
    );
  }
}

async function openSource(
  place: DatabasePlace,
  { writeLog, signal }: BackupOptions,
  closers: (() => Promise<unknown>)[],
): Promise<pg.Client> {
  if ('url' in place) {
    return connect(connectionOf(place.url, 'DATABASE_URL'), closers).catch((error) => {
      throw explainConnectionFailure(error, place.url, 'DATABASE_URL');
    });
  }
  const embedded = await openEmbedded({ dataFolder: place.dataFolder, writeLog, ...(signal && { signal }) });
  closers.push(() => embedded.leave());
  return connect({ ...embedded.connection, ssl: false }, closers);
}

async function connect(config: pg.ClientConfig, closers: (() => Promise<unknown>)[]): Promise<pg.Client> {
  const client = new pg.Client({
    ...config,
    application_name: 'lanescan backup',
    options: `-c timezone=UTC -c statement_timeout=0 ${declaredSchema(await knownSchema())}`,
  });
  // The pending query rejects with the error too.
  client.on('error', () => undefined);
  await client.connect();
  closers.push(() => client.end());
  return client;
}

async function requireFree(folder: string): Promise<void> {
  const entries = await fs.readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new OperatorError(`Cannot write a backup to ${folder}: ${error.message}.`, 'Name another folder.');
  });
  if (entries === undefined) return;
  throw new OperatorError(
    `${folder} exists already.`,
    folder.endsWith('.part')
      ? 'A backup to it is running, or was killed; in that case remove the folder.'
      : 'Name a folder that does not exist.',
  );
}

async function requireSpace(source: pg.Client, parent: string): Promise<void> {
  const { rows } = await source.query('select pg_database_size(current_database()) as bytes');
  const needed = Number(rows[0].bytes) * 1.1 + SPARE_BYTES;
  const { bavail, bsize } = await fs.statfs(parent).catch((error: Error) => {
    throw new OperatorError(`Cannot write a backup to ${parent}: ${error.message}.`, 'Create that folder.');
  });
  if (bavail * bsize >= needed) return;
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  throw new OperatorError(
    `The backup needs ${gigabytes(needed)} in ${parent}, and ${gigabytes(bavail * bsize)} are free.`,
    'Make room on the disk, or name a folder on another one.',
  );
}
