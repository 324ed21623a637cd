/**
 * A backup of the store while others use it: a copy in a data folder of its own, made from one snapshot and compared table
 * by table.
 *
 * The copy is made in `<folder>.part`, which becomes `<folder>` in the last step, so that an interrupted backup is never
 * mistaken for a complete one.
 */
import * as fs from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import type { DatabasePlace } from '../store.ts';
import { connectionOf, explainConnectionFailure } from './client.ts';
import { connectForCopy, copyDatabase, spaceFor } from './database-copy.ts';
import { openEmbedded } from './embedded.ts';
import { renameDurably, requireCluster } from './embedded-folder.ts';

/** Beyond the size of the database: what an empty one takes, and its log. */
const SPARE_BYTES = 200e6;

/** @example await backUp({ place: { dataFolder: './data' }, folder: './backup', writeLog: console.error }); */
export async function backUp({
  place,
  folder,
  writeLog,
  signal,
}: {
  readonly place: DatabasePlace;
  /** The data folder to make; it must not exist. */
  readonly folder: string;
  readonly writeLog: (line: string) => void;
  readonly signal?: AbortSignal;
}) {
  await requireFree(folder);
  if ('dataFolder' in place) await requireCluster(place.dataFolder);
  const part = `${folder}.part`;
  await requireFree(part);
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  const connect = async (connection: pg.ClientConfig) => {
    const client = await connectForCopy(connection, 'lanescan backup');
    closers.push(() => client.end());
    return client;
  };
  const connectToFolder = async (dataFolder: string) => {
    const embedded = await openEmbedded({ dataFolder, writeLog, ...(signal && { signal }) });
    closers.push(() => embedded.leave());
    return connect(embedded.connection);
  };
  const connectToServer = (url: string) =>
    connect(connectionOf(url, 'DATABASE_URL')).catch((error) => {
      throw explainConnectionFailure(error, url, 'DATABASE_URL');
    });
  try {
    const source = await ('url' in place ? connectToServer(place.url) : connectToFolder(place.dataFolder));
    await requireSpace(source, path.dirname(path.resolve(folder)));
    const target = await connectToFolder(part);
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
  await fs.access(parent).catch((error: Error) => {
    throw new OperatorError(`Cannot write a backup to ${parent}: ${error.message}.`, 'Create that folder.');
  });
  const { isEnough, needed, free } = await spaceFor(source, parent, SPARE_BYTES);
  if (isEnough) return;
  throw new OperatorError(
    `The backup needs ${needed} in ${parent}, and ${free} are free.`,
    'Make room on the disk, or name a folder on another one.',
  );
}
