/** Checks of `lanescan doctor` for a database server: its settings, its replicas, and the cluster that it coordinates. */
import { OperatorError } from '../../base/operator-error.ts';
import type { ClusterStatus, WorkerStatus } from '../../store/cluster/workers.ts';
import { readServerFacts, type ServerFacts, type ServerSettings } from '../../store/server/server-facts.ts';
import { counted, printable } from '../../text/format.ts';
import type { Config } from '../config/config.ts';
import type { CliContext } from '../context.ts';
import { databaseName } from '../output/terminal-text.ts';
import { type Finding, failure, ok, problemFinding, warning } from './finding.ts';

// ---- Settings of an external server

const MEGABYTE = 1024 ** 2;
/** PostgreSQL's default, which is meant for the smallest machines. */
const DEFAULT_BUFFERS_BYTES = 128 * MEGABYTE;
/** Larger databases do not fit into the default buffers. */
const LARGE_DATABASE_BYTES = 1024 * MEGABYTE;
const MIN_WORK_MEM_BYTES = 1 * MEGABYTE;
/** PostgreSQL's default, for rotating disks: a random page costs four times a sequential one. */
const ROTATING_DISK_COST = 4;
/** A batch of an import on a slow disk may take this long. */
const MIN_TIMEOUT_MS = 60_000;

/** One finding for each harmful setting; a single `ok` finding if no setting is harmful. */
export function settingsFindings(settings: ServerSettings, connectionsNeeded: number): readonly Finding[] {
  const found = [...harmfulSettings(settings, connectionsNeeded)].map(([what, remedy]) =>
    warning(`Server settings: ${what}`, remedy),
  );
  return found.length > 0 ? found : [ok('Server settings: no problems')];
}

function* harmfulSettings(settings: ServerSettings, connectionsNeeded: number) {
  const { fsync, fullPageWrites, maxConnections, databaseBytes, sharedBuffersBytes, workMemBytes } = settings;
  const unsafe = [...(fsync ? [] : ['fsync']), ...(fullPageWrites ? [] : ['full_page_writes'])];
  if (unsafe.length > 0)
    yield [
      `${unsafe.join(' and ')} off: a power failure or a crash of the machine can destroy the database`,
      'Set them to on in postgresql.conf and reload the server.',
    ];
  if (settings.synchronousCommit === 'off')
    yield [
      'synchronous_commit is off: the latest writes can be lost after they were acknowledged',
      'Set it to on, or only for this role: alter role … set synchronous_commit = on',
    ];
  if (maxConnections < connectionsNeeded)
    yield [
      `at most ${maxConnections} connections for this role, but a server with this configuration uses up to ${connectionsNeeded}`,
      'Raise max_connections (or the limit of the role or the database), or serve with fewer processes.',
    ];
  if (settings.isReadOnlyByDefault)
    yield [
      'default_transaction_read_only is on: this role can answer, but not import, index or deliver webhooks',
      'Set it to off for the role that writes: alter role … set default_transaction_read_only = off',
    ];
  const timeouts = {
    statement_timeout: settings.statementTimeoutMs,
    idle_in_transaction_session_timeout: settings.idleInTransactionTimeoutMs,
  };
  for (const [name, ms] of Object.entries(timeouts))
    if (ms > 0 && ms < MIN_TIMEOUT_MS)
      yield [
        `${name} is ${ms} ms for this role: large imports and exports can be cut off`,
        `Lanescan limits its searches itself. Set it to 0 for this role: alter role … set ${name} = 0`,
      ];
  const isLarge = databaseBytes > LARGE_DATABASE_BYTES;
  if (isLarge && sharedBuffersBytes <= DEFAULT_BUFFERS_BYTES)
    yield [
      `shared_buffers is ${megabytes(sharedBuffersBytes)} for a database of ${megabytes(databaseBytes)}`,
      "Set it to about a quarter of the machine's memory and restart the server.",
    ];
  if (workMemBytes < MIN_WORK_MEM_BYTES)
    yield [`work_mem is ${Math.round(workMemBytes / 1024)} kB: sorts go to disk`, 'Set it to 4MB or more.'];
  if (isLarge && settings.randomPageCost >= ROTATING_DISK_COST)
    yield [
      `random_page_cost is ${settings.randomPageCost}, which is meant for rotating disks`,
      'On solid-state disks set it to 1.1 and reload the server.',
    ];
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / MEGABYTE)} MB`;
}

// ---- Replicas (DATABASE_REPLICA_URL)

/** No findings where no replica is configured. */
export async function* replicaFindings({ databaseUrl, replicaUrls }: Config, { signal }: CliContext) {
  if (databaseUrl === null || replicaUrls.length === 0) return;
  // An unreachable primary is reported by the check of the database; the replicas are checked all the same.
  const primary = await readServerFacts(databaseUrl, { variable: 'DATABASE_URL', signal }).catch((error) => {
    if (!(error instanceof OperatorError)) throw error;
  });
  const findings = replicaUrls.map(async (url, index): Promise<Finding> => {
    const name = `Replica ${index + 1} (${databaseName(url)})`;
    const options = {
      variable: 'DATABASE_REPLICA_URL',
      ...(primary && { expectedPosition: primary.position }),
      signal,
    };
    return readServerFacts(url, options).then(
      (replica) => replicaFinding(name, replica, primary || undefined),
      (error) => problemFinding(name, error),
    );
  });
  yield* await Promise.all(findings);
}

function replicaFinding(name: string, replica: ServerFacts, primary: ServerFacts | undefined): Finding {
  if (primary !== undefined && replica.identity !== primary.identity)
    return failure(
      `${name}: it is ${replica.isReplica ? 'a replica of ' : ''}another database than that of DATABASE_URL`,
      'Point DATABASE_REPLICA_URL at streaming replicas of that server, and at the same database there.',
    );
  if (!replica.isReplica)
    return failure(
      `${name}: it takes writes, so it is the primary itself or was promoted; it is not read from while DATABASE_URL answers`,
      'Point DATABASE_REPLICA_URL at a replica, or DATABASE_URL at the new primary.',
    );
  if (primary === undefined) return warning(`${name}: it answers; its primary cannot be verified now`);
  const state = lagOf(replica, primary);
  if (replica.isPaused)
    return warning(
      `${name}: ${state ?? 'up to date'}, and its replay is paused`,
      'Resume it there: select pg_wal_replay_resume(). Until then the primary is read from.',
    );
  if (state !== undefined)
    return warning(
      `${name}: ${state}`,
      'The primary is read from until it has caught up. See its log, and pg_stat_replication on the primary.',
    );
  if (replica.isReceiving) return ok(`${name}: up to date`);
  return warning(
    `${name}: up to date, but not connected to its primary`,
    'Unless it is fed from an archive, it falls behind with the next change: see primary_conninfo and its log.',
  );
}

/** How far behind it is; undefined where it is up to date. */
function lagOf(replica: ServerFacts, primary: ServerFacts): string | undefined {
  const migrations = primary.migrations - replica.migrations;
  const changes = primary.position - replica.position;
  if (migrations > 0) return `${counted(migrations, 'migration')} and ${counted(changes, 'change')} behind`;
  return changes > 0 ? `${counted(changes, 'change')} behind` : undefined;
}

// ---- A cluster: workers, balance of their shards, settings

/** A worker with so many times the shards of another one gets that much more of the work. */
const MAX_IMBALANCE = 2;

/** No findings for a store on one node. */
export function* clusterFindings(status: ClusterStatus | undefined): Generator<Finding> {
  if (!status) return;
  const { citusVersion, workers, isPublished, messageLocale } = status;
  const numbers = workers.map((worker) => worker.shards);
  const shards = numbers.reduce((sum, number) => sum + number, 0);
  yield ok(
    `Cluster: Citus ${printable(citusVersion)}, ${counted(workers.length, 'worker')}, ${counted(shards, 'shard')} of each table`,
  );
  yield* localeFindings('The coordinator', messageLocale);
  for (const worker of workers) {
    yield workerFinding(worker);
    yield* localeFindings(`Worker ${printable(worker.address)}`, worker.messageLocale);
  }
  const [fewest, most] = [Math.min(...numbers), Math.max(...numbers)];
  if (most > MAX_IMBALANCE * fewest)
    yield warning(
      `Cluster: the shards are not balanced, from ${fewest} to ${most} on a worker`,
      `Move them while Lanescan runs: select citus_rebalance_start(shard_transfer_mode => 'force_logical')`,
    );
  if (!isPublished && workers.every(({ isAway }) => !isAway))
    yield warning(
      'Cluster: the latest changes are stored and not published yet',
      'If this stays, start a writer (an indexer or an import) and look at its log: it publishes first.',
    );
}

/** Some errors of a worker reach a client without their code, so that only the words tell that it is away. */
function* localeFindings(node: string, locale: string | null): Generator<Finding> {
  if (locale === null || /^($|C\b|POSIX$|en)/.test(locale)) return;
  yield warning(
    `${node}: its messages are not in English (lc_messages = ${printable(locale)}), so writers may end instead of waiting for a worker that is away`,
    `Set lc_messages = 'C' in postgresql.conf of that node, and reload it.`,
  );
}

function workerFinding({ address, isAway, shards, bytes, prepared, wrongSettings }: WorkerStatus): Finding {
  const name = `Worker ${printable(address)}`;
  if (isAway)
    return failure(
      `${name}: does not answer; searches fail, and nothing is written until it is back`,
      'Start it. Nothing else has to be restarted.',
    );
  if (wrongSettings.length > 0)
    return warning(
      `${name}: the database there lacks settings: ${wrongSettings.join(', ')}`,
      'Run `lanescan migrate --distribute` again; it sets them, also while Lanescan runs.',
    );
  const gigabytes = ((bytes ?? 0) / 1e9).toFixed(1);
  const pending = prepared ? `, ${counted(prepared, 'prepared transaction')}` : '';
  return ok(`${name}: ${counted(shards, 'shard')}, ${gigabytes} GB${pending}`);
}
