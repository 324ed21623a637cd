/**
 * The upgrade of an embedded database to the bundled major version of PostgreSQL, whose files an older one has written.
 *
 * The old server, run by programs of its own version, is read; a new server beside it is filled; every table is compared;
 * both stop; then the new files take the place of the old ones, which stay under another name. Killed at any moment, it
 * leaves the old files in their place, or the new and complete ones:
 *
 *     <data folder>/postgres               the old files, until the last but one step
 *     <data folder>/postgres.upgrade       the copy that is being made; worth nothing to others
 *     <data folder>/postgres.upgraded      the complete copy, between the last three steps
 *     <data folder>/postgres.pg17-…        the old files afterwards, which Lanescan never touches again
 */
import type { Stats } from 'node:fs';
import * as fs from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { OperatorError } from '../../base/operator-error.ts';
import { type CopyReport, connectForCopy, copyDatabase, spaceFor } from './database-copy.ts';
import { becomeOnlyMember, DATABASE_NAME, joinOrStart, leaveServer, type Membership } from './embedded.ts';
import { MAJOR_VERSION, socketConnection } from './embedded-binaries.ts';
import {
  describeCluster,
  explainFolderError,
  isServer,
  openFolder,
  type Place,
  readRecord,
  renameDurably,
  upgradedCluster,
} from './embedded-folder.ts';
import { findOlderPostgres } from './older-postgres.ts';

/** Beyond the size of the database: what an empty one takes, its log, and room to go on afterwards. */
const SPARE_BYTES = 300e6;

export interface UpgradeOptions {
  readonly dataFolder: string;
  /** Where the programs of the older version are; undefined: where operating systems put them. */
  readonly fromBinaries?: string | undefined;
  readonly writeLog: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Upgrades the embedded database of a folder where its files are of an older major version. Undefined where there is
 * nothing to do.
 *
 * @example await upgradeEmbedded({ dataFolder: './data', writeLog: console.error });
 */
export async function upgradeEmbedded(options: UpgradeOptions) {
  const { writeLog, signal } = options;
  const place = await openFolder(options.dataFolder);
  // Taken before anything is read of the files, so that a replacement at any later moment is noticed.
  const original = await fs.stat(place.cluster).catch(() => undefined);
  const found = await describeCluster(place);
  // Opening the database rejects files of a newer version.
  if (found === undefined || Number(found.version) >= Number(MAJOR_VERSION)) return undefined;
  const { version: from, uid, gid } = found;
  const binaries = await findOlderPostgres(from, options.fromBinaries);
  const old: Place = { ...place, major: from, binaries };
  const fresh: Place = { ...place, cluster: `${place.cluster}.upgrade`, owner: { uid, gid } };
  let report: CopyReport;
  const { membership: source } = await joinOrStart(old, writeLog, signal).catch(async (error: unknown) => {
    await requireSame(place, original);
    throw error;
  });
  try {
    if (!(await becomeOnlyMember(source))) {
      throw new OperatorError(
        `The database in ${place.shown} is in use by another Lanescan. Nothing was changed.`,
        'Stop every process that uses it, then run this again.',
      );
    }
    report = await copyBeside(old, fresh, source, options);
  } finally {
    await leaveServer(old, source);
  }
  for (const each of [old, fresh]) await requireStopped(each);
  await requireSame(place, original);
  const kept = `${place.cluster}.pg${from}-${new Date().toISOString().slice(0, 19).replace(/\D/g, '')}`;
  await switchFiles(place, fresh.cluster, kept);
  /** `kept` is the folder of the old files. */
  return { ...report, from, to: MAJOR_VERSION, kept };
}

/** Fills the new files. Only the one member of the old server may call this: nobody else is at the copy then. */
async function copyBeside(
  old: Place,
  fresh: Place,
  source: Membership,
  { writeLog, signal }: UpgradeOptions,
): Promise<CopyReport> {
  // Whatever is there is a copy that was never finished: the original is in its place.
  await removeCopy(fresh);
  await removeCopy({ ...fresh, cluster: upgradedCluster(old) });
  const clients: pg.Client[] = [];
  const connect = async ({ server }: Membership) => {
    const connection = socketConnection(server.socketFolder, DATABASE_NAME);
    const client = await connectForCopy(connection, 'lanescan upgrade');
    clients.push(client);
    return client;
  };
  const disconnect = () => Promise.all(clients.splice(0).map((client) => client.end().catch(() => {})));
  try {
    const reader = await connect(source);
    await requireSpace(reader, old);
    const { membership: target } = await joinOrStart(fresh, writeLog, signal);
    try {
      return await copyDatabase(reader, await connect(target), { writeLog, signal });
    } finally {
      await disconnect();
      await leaveServer(fresh, target);
      const { socketFolder } = target.server;
      if (socketFolder !== fresh.cluster) await fs.rmdir(socketFolder).catch(() => {});
    }
  } catch (error) {
    await disconnect();
    await removeCopy(fresh);
    if (error instanceof OperatorError || signal?.aborted) throw error;
    throw new OperatorError(
      `The upgrade from PostgreSQL ${old.major} failed: ${(error as Error).message}. The database is as it was.`,
      `See the end of ${old.log}, then run this again.`,
      { cause: error },
    );
  }
}

async function requireSpace(source: pg.Client, { folder, shown }: Place): Promise<void> {
  const { isEnough, needed, free } = await spaceFor(source, folder, SPARE_BYTES);
  if (isEnough) return;
  throw new OperatorError(
    `The upgrade of ${shown} needs ${needed} on its disk, and ${free} are free. Nothing was changed.`,
    'Make room on the disk, then run this again.',
  );
}

/** Removes a copy that was not finished, and ends the server that a killed upgrade has left in it. */
async function removeCopy(copy: Place): Promise<void> {
  const record = await readRecord(copy);
  if (record !== undefined && (await isServer(record, copy))) {
    process.kill(record.pid, 'SIGQUIT');
    while (await isServer(record, copy)) await delay(20);
  }
  await fs.rm(copy.cluster, { recursive: true, force: true, maxRetries: 5 });
}

/** A server that has stopped in order has removed its record, and all that it wrote is on the disk. */
async function requireStopped(place: Place): Promise<void> {
  if ((await readRecord(place)) === undefined) return;
  throw new OperatorError(
    `PostgreSQL in ${place.cluster} did not stop in order. The database is as it was.`,
    `See the end of ${place.log}, then run this again.`,
  );
}

/** Another upgrade may have been faster; what it put there must stay. */
async function requireSame({ cluster, shown }: Place, original: Stats | undefined): Promise<void> {
  const now = await fs.stat(cluster).catch(() => undefined);
  if (now !== undefined && now.ino === original?.ino && now.dev === original.dev) return;
  throw new OperatorError(
    `The database files in ${shown} were replaced during the upgrade. Nothing was changed.`,
    'Another process has upgraded them; run this again to see.',
  );
}

async function switchFiles(place: Place, copy: string, kept: string): Promise<void> {
  const complete = upgradedCluster(place);
  try {
    await renameDurably(copy, complete);
    await renameDurably(place.cluster, kept);
  } catch (error) {
    throw explainFolderError(error, place);
  }
  await renameDurably(complete, place.cluster).catch(async (error: NodeJS.ErrnoException) => {
    // A process that opens the folder at this moment makes this step by itself.
    const isDone = error.code === 'ENOENT' && (await describeCluster(place)) !== undefined;
    if (!isDone) throw explainFolderError(error, { shown: path.dirname(kept) });
  });
}
