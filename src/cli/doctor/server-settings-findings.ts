/** Checks of `lanescan doctor` for the settings of an external PostgreSQL server. */
import type { ServerSettings } from '../../store/server/server-settings.ts';
import type { Finding } from './finding.ts';

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
  const found = [...durability(settings), ...limits(settings, connectionsNeeded), ...speed(settings)];
  return found.length > 0 ? found : [{ severity: 'ok', what: 'Server settings: no problems' }];
}

function* durability({ fsync, fullPageWrites, synchronousCommit }: ServerSettings): Generator<Finding> {
  if (!fsync || !fullPageWrites) {
    const names = [...(fsync ? [] : ['fsync']), ...(fullPageWrites ? [] : ['full_page_writes'])];
    yield {
      severity: 'warning',
      what: `Server settings: ${names.join(' and ')} off: a power failure or a crash of the machine can destroy the database`,
      remedy: 'Set them to on in postgresql.conf and reload the server.',
    };
  }
  if (synchronousCommit === 'off') {
    yield {
      severity: 'warning',
      what: 'Server settings: synchronous_commit is off: the latest writes can be lost after they were acknowledged',
      remedy: `Set it to on, or only for this role: alter role … set synchronous_commit = on`,
    };
  }
}

function* limits(settings: ServerSettings, connectionsNeeded: number): Generator<Finding> {
  const { maxConnections, isReadOnlyByDefault, statementTimeoutMs, idleInTransactionTimeoutMs } = settings;
  if (maxConnections < connectionsNeeded) {
    yield {
      severity: 'warning',
      what: `Server settings: at most ${maxConnections} connections for this role, but a server with this configuration uses up to ${connectionsNeeded}`,
      remedy:
        'Raise max_connections (or the limit of the role or the database), or serve with fewer processes.',
    };
  }
  if (isReadOnlyByDefault) {
    yield {
      severity: 'warning',
      what: 'Server settings: default_transaction_read_only is on: this role can answer, but not import, index or deliver webhooks',
      remedy: 'Set it to off for the role that writes: alter role … set default_transaction_read_only = off',
    };
  }
  const timeouts = {
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
  };
  for (const [name, ms] of Object.entries(timeouts)) {
    if (ms === 0 || ms >= MIN_TIMEOUT_MS) continue;
    yield {
      severity: 'warning',
      what: `Server settings: ${name} is ${ms} ms for this role: large imports and exports can be cut off`,
      remedy: `Lanescan limits its searches itself. Set it to 0 for this role: alter role … set ${name} = 0`,
    };
  }
}

function* speed(settings: ServerSettings): Generator<Finding> {
  const { databaseBytes, sharedBuffersBytes, workMemBytes, randomPageCost } = settings;
  if (databaseBytes > LARGE_DATABASE_BYTES && sharedBuffersBytes <= DEFAULT_BUFFERS_BYTES) {
    yield {
      severity: 'warning',
      what: `Server settings: shared_buffers is ${megabytes(sharedBuffersBytes)} for a database of ${megabytes(databaseBytes)}`,
      remedy: "Set it to about a quarter of the machine's memory and restart the server.",
    };
  }
  if (workMemBytes < MIN_WORK_MEM_BYTES) {
    yield {
      severity: 'warning',
      what: `Server settings: work_mem is ${Math.round(workMemBytes / 1024)} kB: sorts go to disk`,
      remedy: 'Set it to 4MB or more.',
    };
  }
  if (randomPageCost >= ROTATING_DISK_COST && databaseBytes > LARGE_DATABASE_BYTES) {
    yield {
      severity: 'warning',
      what: `Server settings: random_page_cost is ${randomPageCost}, which is meant for rotating disks`,
      remedy: 'On solid-state disks set it to 1.1 and reload the server.',
    };
  }
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / MEGABYTE)} MB`;
}
