/**
 * Reads from replicas, which may lag behind the primary or be away, as if there were one database.
 *
 * Every answer carries the position of the store at which it was read, in the same statement. A replica's answer
 * counts only if it has reached the position that the primary had when the question came, and everything that this
 * process has seen before; otherwise the next one is asked, and the primary at last. So no client sees less than it
 * has seen, on whichever server. While the primary is away, what this process has seen has to do.
 */
import type { Notice } from '../base/notice.ts';
import { noRows, type RawRows } from './raw-rows.ts';
import type { Row, RunStatement, Statement } from './read.ts';
import { identitySql } from './server-facts.ts';
import { createSharedQuestion } from './shared-question.ts';
import { isDoneWithin } from './time-limit.ts';

export interface ReplicaFigures {
  /** Its place in DATABASE_REPLICA_URL, from 1. */
  readonly replica: string;
  /** Changes that this process knows of and the replica has not; null where it does not answer. */
  readonly lag: number | null;
  readonly isUsed: boolean;
}

export interface ReplicaSet {
  /** On a replica that has caught up, otherwise on the primary. */
  readonly anywhere: RunStatement;
  readonly onPrimary: RunStatement;
  figures(): Promise<readonly ReplicaFigures[]>;
}

export interface ReplicaSetOptions {
  readonly primary: RunStatement;
  /** The primary too, by a connection that nothing else keeps busy. */
  readonly watch: RunStatement;
  readonly replicas: readonly RunStatement[];
  /** What `identitySql` says on the primary. */
  readonly identity: string;
  /** How many migrations the schema has: a replica that has not replayed them all is not asked. */
  readonly migrations: number;
  readonly notice: Notice;
}

/** A primary that does not tell its position within this time counts as away until it does. */
const PATIENCE_MS = 250;
/** For one that is away: a refusal comes at once, and so does its word when it is back; silence is not waited for. */
const AWAY_PATIENCE_MS = 50;
/** Between looks at whoever is behind or away. */
const LOOK_EVERY_MS = 100;
/** A replica that is short of a few changes now and then is not worth a line in the log. */
const TOLD_AFTER_MS = 5_000;
/** PostgreSQL stopped it after the time-out; it would take as long elsewhere. */
const STATEMENT_STOPPED = '57014';

interface Replica {
  readonly name: string;
  readonly run: RunStatement;
  isUsed: boolean;
  /** The latest position that it told; undefined while it does not answer. */
  reached: number | undefined;
  /** Since when it is not used; undefined while it is. */
  unusedSince: number | undefined;
  isTold: boolean;
  looking: Promise<void> | undefined;
  lookedAt: number;
}

export function createReplicaSet(options: ReplicaSetOptions): ReplicaSet {
  const { primary, watch, identity, migrations, notice } = options;
  /** The highest position that this process has seen: what clients may know. */
  let seen = 0;
  let isPrimaryAway = false;
  let turn = 0;
  const replicas = options.replicas.map(
    (run, index): Replica => ({
      name: String(index + 1),
      run,
      isUsed: false,
      reached: undefined,
      unusedSince: performance.now(),
      isTold: false,
      looking: undefined,
      lookedAt: Number.NEGATIVE_INFINITY,
    }),
  );

  const saw = (position: number) => {
    seen = Math.max(seen, position);
  };

  const askPosition = createSharedQuestion(async () => {
    try {
      const [row] = await watch('position', { text: 'select position from store' });
      saw(Number((row as { position: string }).position));
      isPrimaryAway = false;
    } catch {
      isPrimaryAway = true;
    }
  });

  /** What the primary knows at this moment is seen, if it tells in good time. */
  const learnPosition = async (): Promise<void> => {
    const patienceMs = isPrimaryAway ? AWAY_PATIENCE_MS : PATIENCE_MS;
    if (!(await isDoneWithin(patienceMs, askPosition()))) isPrimaryAway = true;
  };

  /** After a promotion there may be two that take writes: the one of DATABASE_URL counts, while it answers. */
  const isOfUse = (isReplica: boolean) => isReplica || isPrimaryAway;

  const use = (replica: Replica) => {
    replica.isUsed = true;
    replica.unusedSince = undefined;
    if (replica.isTold) notice(`Replica ${replica.name} is read from again`);
    replica.isTold = false;
  };

  const leave = (replica: Replica, because: string) => {
    replica.isUsed = false;
    replica.unusedSince ??= performance.now();
    if (replica.isTold || performance.now() - replica.unusedSince < TOLD_AFTER_MS) return;
    replica.isTold = true;
    notice(`Replica ${replica.name} is not read from: ${because}`, { level: 'warn' });
  };

  const look = (replica: Replica): Promise<void> => {
    replica.looking ??= lookAt(replica).finally(() => {
      replica.looking = undefined;
      replica.lookedAt = performance.now();
    });
    return replica.looking;
  };

  const lookAt = async (replica: Replica): Promise<void> => {
    try {
      const [row] = await replica.run('replica', {
        text: `select position, pg_is_in_recovery() as is_replica, (select count(*) from migration) as migrations,
               ${identitySql} as identity from store`,
      });
      const told = row as
        | { position: string; is_replica: boolean; migrations: string; identity: string }
        | undefined;
      replica.reached = Number(told?.position ?? 0);
      if (told?.identity !== identity) leave(replica, 'it belongs to another database');
      else if (Number(told?.migrations) !== migrations) leave(replica, 'its schema is another one');
      else if (!isOfUse(told?.is_replica === true)) leave(replica, 'it is a replica no more');
      else if (replica.reached < seen) leave(replica, `it is ${seen - replica.reached} changes behind`);
      else use(replica);
    } catch (error) {
      replica.reached = undefined;
      leave(replica, (error as Error).message);
    }
  };

  /** Those to try, each of them the first in its turn. The others are looked at meanwhile; nobody waits for them. */
  const candidates = (): readonly Replica[] => {
    const now = performance.now();
    for (const replica of replicas) {
      if (!replica.isUsed && now - replica.lookedAt >= LOOK_EVERY_MS) void look(replica);
    }
    const used = replicas.filter(({ isUsed }) => isUsed);
    const first = turn++ % Math.max(1, used.length);
    return [...used.slice(first), ...used.slice(0, first)];
  };

  const onPrimary: RunStatement = async <T>(label: string, statement: Statement<T>) => {
    const { position, answer } = await runStamped(primary, label, statement);
    saw(position);
    return answer;
  };

  const anywhere: RunStatement = async <T>(label: string, statement: Statement<T>) => {
    await learnPosition();
    for (const replica of candidates()) {
      // Others may have seen more by the time of the answer; this client has not.
      const needed = seen;
      try {
        const { position, isReplica, answer } = await runStamped(replica.run, label, statement);
        replica.reached = position;
        if (position >= needed && isOfUse(isReplica)) {
          saw(position);
          return answer;
        }
        leave(replica, `it is ${needed - position} changes behind`);
      } catch (error) {
        leave(replica, (error as Error).message);
        if ((error as { code?: unknown }).code === STATEMENT_STOPPED) throw error;
      }
    }
    return onPrimary(label, statement);
  };

  for (const replica of replicas) void look(replica);
  return {
    anywhere,
    onPrimary,
    async figures() {
      await learnPosition();
      await Promise.all(replicas.map((replica) => isDoneWithin(PATIENCE_MS, look(replica))));
      return replicas.map(({ name, reached, isUsed }) => ({
        replica: name,
        lag: reached === undefined ? null : Math.max(0, seen - reached),
        isUsed,
      }));
    },
  };
}

/** What was answered, and at which position of which kind of server. */
interface Stamped<T> {
  readonly position: number;
  readonly isReplica: boolean;
  readonly answer: T;
}

/** Runs the statement and a look at the position in one; a row with the stamp comes also where it has none. */
async function runStamped<T>(run: RunStatement, label: string, statement: Statement<T>): Promise<Stamped<T>> {
  const { collect } = statement;
  const text = `select s.position as stamp_position, pg_is_in_recovery() as stamp_is_replica, a.*
    from store s left join (select true as stamp_is_row, answer.* from (${statement.text}) answer) a on true`;
  if (collect) return run(label, { ...statement, text, collect: (rows) => collectStamped(rows, collect) });
  const rows = await run(label, { ...(statement as Statement), text });
  return unstamped(rows, statement.rowMode) as Stamped<T>;
}

const STAMP_COLUMNS = 3;

function collectStamped<T>(rows: RawRows, collect: (rows: RawRows) => T): Stamped<T> {
  if (rows.count === 0) throw missingStamp();
  const isRow = rows.text(0, 2) === 't';
  return {
    position: Number(rows.text(0, 0)),
    isReplica: rows.text(0, 1) === 't',
    answer: collect(isRow ? rows.behind(STAMP_COLUMNS) : noRows),
  };
}

function unstamped(rows: readonly Row[], rowMode: Statement['rowMode']): Stamped<Row[]> {
  const [first] = rows;
  if (first === undefined) throw missingStamp();
  if (rowMode === 'array') {
    const [position, isReplica, isRow] = first as unknown[];
    const answer = isRow === true ? rows.map((row) => (row as unknown[]).slice(STAMP_COLUMNS)) : [];
    return { position: Number(position), isReplica: isReplica === true, answer };
  }
  const { stamp_position: position, stamp_is_replica: isReplica, stamp_is_row: isRow } = first as StampedRow;
  const answer = isRow === true ? rows.map((row) => withoutStamp(row as StampedRow)) : [];
  return { position: Number(position), isReplica, answer };
}

function missingStamp(): Error {
  return new Error('The store has no row that says its position');
}

interface StampedRow extends Record<string, unknown> {
  readonly stamp_position: string;
  readonly stamp_is_replica: boolean;
  readonly stamp_is_row: boolean | null;
}

function withoutStamp({
  stamp_position: _position,
  stamp_is_replica: _isReplica,
  stamp_is_row: _isRow,
  ...row
}: StampedRow): Record<string, unknown> {
  return row;
}
