/** Checks of `lanescan doctor` for DATABASE_REPLICA_URL: connection, which primary it belongs to, lag. */
import { OperatorError } from '../../base/operator-error.ts';
import { readServerFacts, type ServerFacts } from '../../store/server/server-facts.ts';
import { counted, printable } from '../../text/format.ts';
import type { Config } from '../config/config.ts';
import type { CliContext } from '../context.ts';
import { databaseName } from '../output/terminal-text.ts';
import type { Finding } from './doctor-command.ts';

type Outcome = { readonly facts: ServerFacts } | { readonly problem: OperatorError };

/** No findings where no replica is configured. */
export async function* replicaFindings(
  { databaseUrl, replicaUrls }: Config,
  { signal }: CliContext,
): AsyncGenerator<Finding> {
  if (databaseUrl === null || replicaUrls.length === 0) return;
  const primary = await outcomeOf(readServerFacts(databaseUrl, { variable: 'DATABASE_URL', signal }));
  // An unreachable primary is reported by the check of the database; the replicas are checked all the same.
  const known = 'facts' in primary ? primary.facts : undefined;
  const outcomes = await Promise.all(
    replicaUrls.map((url) =>
      outcomeOf(
        readServerFacts(url, {
          variable: 'DATABASE_REPLICA_URL',
          ...(known && { expectedPosition: known.position }),
          signal,
        }),
      ),
    ),
  );
  for (const [index, outcome] of outcomes.entries()) {
    const name = `Replica ${index + 1} (${databaseName(replicaUrls[index] ?? '')})`;
    yield 'facts' in outcome
      ? findingOf(name, outcome.facts, known)
      : {
          severity: 'error',
          what: `${name}: ${printable(outcome.problem.message)}`,
          remedy: printable(outcome.problem.remedy),
        };
  }
}

async function outcomeOf(reading: Promise<ServerFacts>): Promise<Outcome> {
  try {
    return { facts: await reading };
  } catch (error) {
    if (error instanceof OperatorError) return { problem: error };
    throw error;
  }
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
