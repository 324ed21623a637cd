/** The ledger of mirrors: how far each source was read, and which of its messages are to be requested again. */
import type { ClientBase } from 'pg';
import type { Read } from '../reads/reads.ts';

/** Times are milliseconds since 1970. */
export interface MirrorProgress {
  /** Send time of the newest message that was read; null where there was none yet. */
  readonly newestSentAt: number | null;
  readonly backfillCursor: string | null;
  /** The oldest send time that the backfill has reached. */
  readonly backfillOldest: number | null;
  /** How far back the backfill is complete (0: to the end); null while it runs. */
  readonly completeSince: number | null;
}

export interface PendingMessage {
  /** 64 hexadecimal digits. */
  readonly messageId: string;
  readonly sentAt: number;
  readonly checkedAt: number;
  readonly dueAt: number;
  readonly etag: string | null;
}

export interface MirrorUpdate {
  readonly progress?: Partial<MirrorProgress>;
  readonly pending?: readonly PendingMessage[];
  /** As `pending`, but only those that are not pending already. */
  readonly noted?: readonly PendingMessage[];
  /** Ids of messages in a final state. */
  readonly settled?: readonly string[];
}

/** A mirror that follows its source, by its heartbeats. */
export interface MirrorState {
  /** The server's URL without credentials, and its filters; for operators only. */
  readonly source: string;
  /** When the process was last alive. */
  readonly seenAt: Date;
  /** When the mirror was last up to date with the source; null where it never was. */
  readonly currentAt: Date | null;
  /** The interval at which that is expected. */
  readonly roundSeconds: number;
  /** The database's time of this reading. */
  readonly readAt: Date;
}

export interface MirrorHeartbeat {
  /** The interval at which the mirror is up to date with the source. */
  readonly roundSeconds?: number;
  /** The mirror is up to date with the source now. */
  readonly isCurrent?: boolean;
  /** The process ends on purpose (`--once`): no heartbeat is expected any more. */
  readonly isEnding?: boolean;
}

export interface MirrorLedger {
  progress(source: string): Promise<MirrorProgress>;
  /** Messages that are due, the longest overdue first. */
  due(source: string, now: number, limit: number): Promise<readonly PendingMessage[]>;
  /** Messages that were last requested before a time, the longest ago first. */
  notCheckedSince(source: string, time: number, limit: number): Promise<readonly PendingMessage[]>;
  countPending(source: string): Promise<number>;
  /** One transaction. Call it after `apply` of the same messages, so that a crash between the two loses nothing. */
  record(source: string, update: MirrorUpdate): Promise<void>;
  /** Stores the inputs of manual executions as the source gave them; ids are 64 hexadecimal digits. */
  recordExecutionInputs(
    inputs: readonly { readonly messageId: string; readonly body: string }[],
  ): Promise<void>;
  /** Records by the database's clock that the process is alive. */
  heartbeat(source: string, heartbeat?: MirrorHeartbeat): Promise<void>;
}

type UseClient = <T>(use: (client: ClientBase) => Promise<T>) => Promise<T>;

const noProgress: MirrorProgress = {
  newestSentAt: null,
  backfillCursor: null,
  backfillOldest: null,
  completeSince: null,
};

const progressColumns = {
  newestSentAt: 'ground_sent_at',
  backfillCursor: 'backfill_cursor',
  backfillOldest: 'backfill_oldest',
  completeSince: 'complete_since',
} as const;

export function createMirrorLedger(withReader: UseClient, withWriter: UseClient): MirrorLedger {
  const pending = (condition: string, order: string, values: readonly unknown[]) =>
    withReader(async (client) => {
      const { rows } = await client.query(
        `select encode(message_id, 'hex') as "messageId", sent_at as "sentAt", checked_at as "checkedAt",
                due_at as "dueAt", etag
         from mirror_owed where source = $1 and ${condition} order by ${order} limit $3`,
        [...values],
      );
      return rows.map(
        (row): PendingMessage => ({
          ...row,
          sentAt: row.sentAt.getTime(),
          checkedAt: row.checkedAt.getTime(),
          dueAt: row.dueAt.getTime(),
        }),
      );
    });

  return {
    progress: (source) =>
      withReader(async (client) => {
        const columns = Object.entries(progressColumns).map(([key, column]) => `${column} as "${key}"`);
        const { rows } = await client.query(`select ${columns.join(', ')} from mirror where source = $1`, [
          source,
        ]);
        if (rows.length === 0) return noProgress;
        const { newestSentAt, backfillCursor, backfillOldest, completeSince } = rows[0];
        return {
          newestSentAt: newestSentAt?.getTime() ?? null,
          backfillCursor,
          backfillOldest: backfillOldest?.getTime() ?? null,
          completeSince: completeSince?.getTime() ?? null,
        };
      }),

    due: (source, now, limit) => pending('due_at <= $2', 'due_at', [source, new Date(now), limit]),

    notCheckedSince: (source, time, limit) =>
      pending('checked_at < $2', 'checked_at', [source, new Date(time), limit]),

    countPending: (source) =>
      withReader(async (client) => {
        const { rows } = await client.query('select count(*) from mirror_owed where source = $1', [source]);
        return Number(rows[0].count);
      }),

    recordExecutionInputs: (inputs) =>
      withWriter(async (client) => {
        const given = lastOfEach(inputs);
        await client.query(
          `insert into execution_input (message_id, body, fetched_at)
           select id, body, now() from unnest($1::bytea[], $2::text[]) as given (id, body)
           on conflict (message_id) do update set body = excluded.body, fetched_at = excluded.fetched_at`,
          [given.map(({ messageId }) => bytes(messageId)), given.map(({ body }) => body)],
        );
      }),

    heartbeat: (source, { roundSeconds = 0, isCurrent = false, isEnding = false } = {}) =>
      withWriter(async (client) => {
        await client.query(
          `insert into mirror (source, seen_at, current_at, round_seconds)
           values ($1, case when $3 then null else now() end, case when $2 then now() end, $4)
           on conflict (source) do update
             set seen_at = excluded.seen_at, current_at = coalesce(excluded.current_at, mirror.current_at),
                 round_seconds = excluded.round_seconds`,
          [source, isCurrent, isEnding, roundSeconds],
        );
      }),

    record: (source, { progress, pending: messages = [], noted = [], settled = [] }) =>
      withWriter(async (client) => {
        await client.query('begin');
        try {
          if (progress) await writeProgress(client, source, progress);
          if (settled.length > 0) {
            await client.query('delete from mirror_owed where source = $1 and message_id = any($2)', [
              source,
              settled.map(bytes),
            ]);
          }
          await writePending(
            client,
            source,
            messages,
            // A response without an ETag, such as a page, does not invalidate the last one.
            `do update set sent_at = excluded.sent_at, checked_at = excluded.checked_at, due_at = excluded.due_at,
                           etag = coalesce(excluded.etag, mirror_owed.etag)`,
          );
          await writePending(client, source, noted, 'do nothing');
          await client.query('commit');
        } catch (error) {
          await client.query('rollback').catch(() => undefined);
          throw error;
        }
      }),
  };
}

/** Mirrors that follow a source; those that ran with `--once` have no heartbeat. */
export async function readMirrors(read: Read): Promise<readonly MirrorState[]> {
  const rows = await read(
    `select source, seen_at as "seenAt", current_at as "currentAt", round_seconds as "roundSeconds",
            clock_timestamp() as "readAt"
     from mirror where seen_at is not null order by source`,
    [],
  );
  return rows as unknown as readonly MirrorState[];
}

async function writeProgress(
  client: ClientBase,
  source: string,
  progress: Partial<MirrorProgress>,
): Promise<void> {
  const given = Object.entries(progressColumns).filter(([key]) => key in progress);
  const values = given.map(([key]) => {
    const value = progress[key as keyof MirrorProgress];
    return typeof value === 'number' ? new Date(value) : value;
  });
  const columns = given.map(([, column]) => column);
  await client.query(
    `insert into mirror (${['source', ...columns].join(', ')})
     values (${['source', ...columns].map((_, index) => `$${index + 1}`).join(', ')})
     on conflict (source) do update
       set ${[...columns.map((column) => `${column} = excluded.${column}`), 'updated_at = now()'].join(', ')}`,
    [source, ...values],
  );
}

async function writePending(
  client: ClientBase,
  source: string,
  pending: readonly PendingMessage[],
  onConflict: string,
): Promise<void> {
  const messages = lastOfEach(pending);
  if (messages.length === 0) return;
  await client.query(
    `insert into mirror_owed (source, message_id, sent_at, checked_at, due_at, etag)
     select $1, * from unnest($2::bytea[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::text[])
     on conflict (message_id, source) ${onConflict}`,
    [
      source,
      messages.map(({ messageId }) => bytes(messageId)),
      messages.map(({ sentAt }) => new Date(sentAt)),
      messages.map(({ checkedAt }) => new Date(checkedAt)),
      messages.map(({ dueAt }) => new Date(dueAt)),
      messages.map(({ etag }) => etag),
    ],
  );
}

/** A source may name a message twice, and one statement cannot write a row twice. */
function lastOfEach<T extends { readonly messageId: string }>(rows: readonly T[]): readonly T[] {
  return [...new Map(rows.map((row) => [row.messageId, row])).values()];
}

function bytes(hex: string): Buffer {
  return Buffer.from(hex, 'hex');
}
