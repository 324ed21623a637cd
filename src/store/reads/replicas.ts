/**
 * Routing of reads to replicas, with fallback to the primary. Clients see one database.
 *
 * Invariant: no client sees an older state than it has seen before, on whichever server. Every result carries the revision
 * of the store at which it was read, in the same statement. A replica's result counts only if it has reached the revision
 * that the primary had when the read came, and every revision that this process has seen. Otherwise the next replica is
 * asked, and the primary last. While the primary is away, the revisions that this process has seen are the only bound.
 */
import type { WriteLog } from '../../base/log.ts';
import { identitySql } from '../server/server-facts.ts';
import { isDoneWithin } from '../server/time-limit.ts';
import { noRows, type RawRows } from './raw-rows.ts';
import { createSharedRun, createSingleFlight } from './single-flight.ts';
import type { Row, RunStatement, Statement } from './statement.ts';

/** A primary that does not answer with its revision within this time counts as away. Chosen, not measured. */
const PRIMARY_WAIT_MS = 250;
/** The same while it is away: a rejection comes at once, and silence is not worth a wait. Chosen, not measured. */
const AWAY_PRIMARY_WAIT_MS = 50;
/** Between two checks of a replica that is behind or away. Chosen, not measured. */
const REPLICA_CHECK_INTERVAL_MS = 100;
/** A replica that is unused for less time is not logged. Chosen, not measured. */
const REPLICA_LOG_AFTER_MS = 5_000;

export interface ReplicaStatus {
  /** Its place in DATABASE_REPLICA_URL, from 1. */
  readonly replica: string;
  /** Changes that this process knows of and the replica does not have; null where it does not answer. */
  readonly lag: number | null;
  readonly isUsed: boolean;
}

export interface ReplicaSetOptions {
  readonly primary: RunStatement;
  /** The primary too, over a connection that nothing else uses. */
  readonly revisionSource: RunStatement;
  readonly replicas: readonly RunStatement[];
  /** The result of `identitySql` on the primary. */
  readonly identity: string;
  /** How many migrations the schema has: a replica that has not replayed them all is not used. */
  readonly migrations: number;
  readonly writeLog: WriteLog;
}

/** SQLSTATE of a statement that PostgreSQL stopped after its time limit. It would take as long elsewhere. */
const QUERY_CANCELED = '57014';

interface Replica {
  readonly name: string;
  readonly run: RunStatement;
  isUsed: boolean;
  /** Its latest known revision; undefined while it does not answer. */
  revision: number | undefined;
  /** Since when it is not used; undefined while it is. */
  unusedSince: number | undefined;
  /** Whether the log says that it is not used. */
  isLogged: boolean;
  checkedAt: number;
  readonly check: () => Promise<void>;
}

export function createReplicaSet(options: ReplicaSetOptions) {
  const { primary, revisionSource, identity, migrations, writeLog } = options;
  /** The highest revision that this process has seen, and so the highest that a client may know. */
  let seenRevision = 0;
  let isPrimaryAway = false;
  let turn = 0;
  const replicas = options.replicas.map((run, index) => {
    const replica: Replica = {
      name: String(index + 1),
      run,
      isUsed: false,
      revision: undefined,
      unusedSince: performance.now(),
      isLogged: false,
      checkedAt: Number.NEGATIVE_INFINITY,
      check: createSharedRun(async () => {
        await checkNow(replica);
        replica.checkedAt = performance.now();
      }),
    };
    return replica;
  });

  const recordSeen = (revision: number) => {
    seenRevision = Math.max(seenRevision, revision);
  };

  const queryPrimaryRevision = createSingleFlight(async () => {
    try {
      const [row] = await revisionSource('revision', { text: 'select revision from store_revision' });
      recordSeen(Number((row as { revision: string }).revision));
      isPrimaryAway = false;
    } catch {
      isPrimaryAway = true;
    }
  });

  const learnPrimaryRevision = async (): Promise<void> => {
    const waitMs = isPrimaryAway ? AWAY_PRIMARY_WAIT_MS : PRIMARY_WAIT_MS;
    if (!(await isDoneWithin(waitMs, queryPrimaryRevision()))) isPrimaryAway = true;
  };

  /** After a promotion two servers may take writes. The one of DATABASE_URL counts while it answers. */
  const isUsable = (isReplica: boolean) => isReplica || isPrimaryAway;

  const use = (replica: Replica) => {
    replica.isUsed = true;
    replica.unusedSince = undefined;
    if (replica.isLogged) writeLog(`Replica ${replica.name} is read from again`);
    replica.isLogged = false;
  };

  const stopUsing = (replica: Replica, because: string) => {
    replica.isUsed = false;
    replica.unusedSince ??= performance.now();
    if (replica.isLogged || performance.now() - replica.unusedSince < REPLICA_LOG_AFTER_MS) return;
    replica.isLogged = true;
    writeLog(`Replica ${replica.name} is not read from: ${because}`, { level: 'warn' });
  };

  const checkNow = async (replica: Replica): Promise<void> => {
    try {
      const [row] = await replica.run('replica', {
        text: `select revision, pg_is_in_recovery() as is_replica, (select max(number) from migration) as migrations,
               ${identitySql} as identity from store_revision`,
      });
      const found = row as
        | { revision: string; is_replica: boolean; migrations: string; identity: string }
        | undefined;
      replica.revision = Number(found?.revision ?? 0);
      if (found?.identity !== identity) stopUsing(replica, 'it belongs to another database');
      else if (Number(found?.migrations) !== migrations) stopUsing(replica, 'its schema is another one');
      else if (!isUsable(found?.is_replica === true)) stopUsing(replica, 'it is a replica no more');
      else if (replica.revision < seenRevision) {
        stopUsing(replica, `it is ${seenRevision - replica.revision} changes behind`);
      } else use(replica);
    } catch (error) {
      replica.revision = undefined;
      stopUsing(replica, (error as Error).message);
    }
  };

  /** The replicas in use, round-robin. Those that are not used are checked meanwhile; no read waits for that. */
  const candidates = (): readonly Replica[] => {
    const now = performance.now();
    for (const replica of replicas) {
      if (!replica.isUsed && now - replica.checkedAt >= REPLICA_CHECK_INTERVAL_MS) void replica.check();
    }
    const used = replicas.filter(({ isUsed }) => isUsed);
    const first = turn++ % Math.max(1, used.length);
    return [...used.slice(first), ...used.slice(0, first)];
  };

  const runOnPrimary: RunStatement = async <T>(label: string, statement: Statement<T>) => {
    const { revision, result } = await runStamped(primary, label, statement);
    recordSeen(revision);
    return result;
  };

  const run: RunStatement = async <T>(label: string, statement: Statement<T>) => {
    await learnPrimaryRevision();
    for (const replica of candidates()) {
      // Other reads may see more until this one is answered; the client of this one does not.
      const neededRevision = seenRevision;
      try {
        const { revision, isReplica, result } = await runStamped(replica.run, label, statement);
        replica.revision = revision;
        if (revision >= neededRevision && isUsable(isReplica)) {
          recordSeen(revision);
          return result;
        }
        stopUsing(replica, `it is ${neededRevision - revision} changes behind`);
      } catch (error) {
        stopUsing(replica, (error as Error).message);
        if ((error as { code?: unknown }).code === QUERY_CANCELED) throw error;
      }
    }
    return runOnPrimary(label, statement);
  };

  for (const replica of replicas) void replica.check();
  return {
    /** Runs a statement on a replica that has caught up, otherwise on the primary. */
    run,
    runOnPrimary,
    async status(): Promise<readonly ReplicaStatus[]> {
      await learnPrimaryRevision();
      await Promise.all(replicas.map((replica) => isDoneWithin(PRIMARY_WAIT_MS, replica.check())));
      return replicas.map(({ name, revision, isUsed }) => ({
        replica: name,
        lag: revision === undefined ? null : Math.max(0, seenRevision - revision),
        isUsed,
      }));
    },
  };
}

/** A result, and the server's revision and kind at which it was read. */
interface Stamped<T> {
  readonly revision: number;
  readonly isReplica: boolean;
  readonly result: T;
}

/** Runs the statement and reads the revision in one. A statement without rows still gives one row with the stamp. */
async function runStamped<T>(run: RunStatement, label: string, statement: Statement<T>): Promise<Stamped<T>> {
  const { collect } = statement;
  const text = `select s.revision as stamp_revision, pg_is_in_recovery() as stamp_is_replica, a.*
    from store_revision s left join (select true as stamp_is_row, answer.* from (${statement.text}) answer) a on true`;
  if (collect) return run(label, { ...statement, text, collect: (rows) => collectStamped(rows, collect) });
  return unstamped(await run(label, { ...(statement as Statement), text })) as Stamped<T>;
}

const STAMP_COLUMNS = 3;

function collectStamped<T>(rows: RawRows, collect: (rows: RawRows) => T): Stamped<T> {
  if (rows.count === 0) throw missingStamp();
  const isRow = rows.text(0, 2) === 't';
  return {
    revision: Number(rows.text(0, 0)),
    isReplica: rows.text(0, 1) === 't',
    result: collect(isRow ? rows.withoutColumns(STAMP_COLUMNS) : noRows),
  };
}

function unstamped(rows: readonly Row[]): Stamped<Row[]> {
  const [first] = rows;
  if (first === undefined) throw missingStamp();
  const { stamp_revision: revision, stamp_is_replica: isReplica, stamp_is_row: isRow } = first;
  const result = isRow === true ? rows.map(withoutStamp) : [];
  return { revision: Number(revision), isReplica: isReplica === true, result };
}

function missingStamp(): Error {
  return new Error('The table store_revision has no row');
}

function withoutStamp({
  stamp_revision: _revision,
  stamp_is_replica: _isReplica,
  stamp_is_row: _isRow,
  ...row
}: Row): Row {
  return row;
}
