/** Checks of `lanescan doctor` for DATABASE_REPLICA_URL: connection, which primary it belongs to, lag. */
import { OperatorError } from '../../base/operator-error.ts';
import { readServerFacts, type ServerFacts } from '../../store/server/server-facts.ts';
import { counted } from '../../text/format.ts';
import type { Config } from '../config/config.ts';
import type { CliContext } from '../context.ts';
import { databaseName } from '../output/terminal-text.ts';
import { type Finding, problemFinding } from './finding.ts';

/** No findings where no replica is configured. */
export async function* replicaFindings(
  { databaseUrl, replicaUrls }: Config,
  { signal }: CliContext,
): AsyncGenerator<Finding> {
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
      (replica) => findingOf(name, replica, primary || undefined),
      (error) => problemFinding(name, error),
    );
  });
  yield* await Promise.all(findings);
}

function findingOf(name: string, replica: ServerFacts, primary: ServerFacts | undefined): Finding {
  if (primary !== undefined && replica.identity !== primary.identity) {
    return {
      severity: 'error',
      what: `${name}: it is ${replica.isReplica ? 'a replica of ' : ''}another database than that of DATABASE_URL`,
      remedy:
        'Point DATABASE_REPLICA_URL at streaming replicas of that server, and at the same database there.',
    };
  }
  if (!replica.isReplica) {
    return {
      severity: 'error',
      what: `${name}: it takes writes, so it is the primary itself or was promoted; it is not read from while DATABASE_URL answers`,
      remedy: 'Point DATABASE_REPLICA_URL at a replica, or DATABASE_URL at the new primary.',
    };
  }
  if (primary === undefined)
    return { severity: 'warning', what: `${name}: it answers; its primary cannot be verified now` };
  const state = lagOf(replica, primary);
  if (replica.isPaused) {
    return {
      severity: 'warning',
      what: `${name}: ${state ?? 'up to date'}, and its replay is paused`,
      remedy: 'Resume it there: select pg_wal_replay_resume(). Until then the primary is read from.',
    };
  }
  if (state !== undefined) {
    return {
      severity: 'warning',
      what: `${name}: ${state}`,
      remedy:
        'The primary is read from until it has caught up. See its log, and pg_stat_replication on the primary.',
    };
  }
  if (replica.isReceiving) return { severity: 'ok', what: `${name}: up to date` };
  return {
    severity: 'warning',
    what: `${name}: up to date, but not connected to its primary`,
    remedy:
      'Unless it is fed from an archive, it falls behind with the next change: see primary_conninfo and its log.',
  };
}

/** How far behind it is; undefined where it is up to date. */
function lagOf(replica: ServerFacts, primary: ServerFacts): string | undefined {
  const migrations = primary.migrations - replica.migrations;
  const changes = primary.position - replica.position;
  if (migrations > 0) return `${counted(migrations, 'migration')} and ${counted(changes, 'change')} behind`;
  return changes > 0 ? `${counted(changes, 'change')} behind` : undefined;
}
