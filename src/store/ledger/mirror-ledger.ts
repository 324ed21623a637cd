/** The ledger of mirrors: how far each source was read, and which of its messages are to be requested again. */
import type { ClientBase } from 'pg';
import { type Read, readUsing } from '../reads/reads.ts';
import { inTransaction, type UseClient } from '../server/client.ts';
import { columnsOf } from '../sql.ts';

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

export type MirrorLedger = ReturnType<typeof createMirrorLedger>;

const progressColumns = {
  newestSentAt: 'ground_sent_at',
  backfillCursor: 'backfill_cursor',
  backfillOldest: 'backfill_oldest',
  completeSince: 'complete_since',
} as const;

/** SQL of a time in milliseconds since 1970. */
const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`;

export function createMirrorLedger(withReader: UseClient, withWriter: UseClient) {
  const read = readUsing(withReader);
  const readPending = (condition: string, order: string, values: readonly unknown[]) =>
    read<PendingMessage>(
      `select encode(message_id, 'hex') as "messageId", ${ms('sent_at')} as "sentAt",
              ${ms('checked_at')} as "checkedAt", ${ms('due_at')} as "dueAt", etag
       from mirror_owed where source = $1 and ${condition} order by ${order} limit $3`,
      values,
    );

  return {
    async progress(source: string): Promise<MirrorProgress> {
      const [found] = await read<MirrorProgress>(
        `select ${ms('ground_sent_at')} as "newestSentAt", backfill_cursor as "backfillCursor",
                ${ms('backfill_oldest')} as "backfillOldest", ${ms('complete_since')} as "completeSince"
         from mirror where source = $1`,
        [source],
      );
      return found ?? { newestSentAt: null, backfillCursor: null, backfillOldest: null, completeSince: null };
    },

    /** Messages that are due, the longest overdue first. */
    due: (source: string, now: number, limit: number) =>
      readPending('due_at <= $2', 'due_at', [source, new Date(now), limit]),

    /** Messages that were last requested before a time, the longest ago first. */
    notCheckedSince: (source: string, time: number, limit: number) =>
      readPending('checked_at < $2', 'checked_at', [source, new Date(time), limit]),

    async countPending(source: string): Promise<number> {
      const [row] = await read('select count(*) from mirror_owed where source = $1', [source]);
      return Number(row?.count);
    },

    /** Stores the inputs of manual executions as the source gave them; ids are 64 hexadecimal digits. */
    recordExecutionInputs: (inputs: readonly { readonly messageId: string; readonly body: string }[]) =>
      withWriter(async (client) => {
        const given = lastOfEach(inputs);
        await client.query(
          `insert into execution_input (message_id, body, fetched_at)
           select id, body, now() from unnest($1::bytea[], $2::text[]) as given (id, body)
           on conflict (message_id) do update set body = excluded.body, fetched_at = excluded.fetched_at`,
          [given.map(({ messageId }) => bytes(messageId)), given.map(({ body }) => body)],
        );
      }),

    /** Records by the database's clock that the process is alive. */
    heartbeat: (
      source: string,
      { roundSeconds = 0, isCurrent = false, isEnding = false }: MirrorHeartbeat = {},
    ) =>
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

    /** One transaction. Call it after `apply` of the same messages, so that a crash between the two loses nothing. */
    record: (source: string, { progress, pending = [], noted = [], settled = [] }: MirrorUpdate) =>
      withWriter((client) =>
        inTransaction(client, async () => {
          if (progress) await writeProgress(client, source, progress);
          const ids = [source, settled.map(bytes)];
          if (settled.length > 0)
            await client.query('delete from mirror_owed where source = $1 and message_id = any($2)', ids);
          // A response without an ETag, such as a page, does not invalidate the last one.
          await writePending(
            client,
            source,
            pending,
            `do update set sent_at = excluded.sent_at, checked_at = excluded.checked_at, due_at = excluded.due_at,
                           etag = coalesce(excluded.etag, mirror_owed.etag)`,
          );
          await writePending(client, source, noted, 'do nothing');
        }),
      ),
  };
}

/** Mirrors that follow a source; those that ran with `--once` have no heartbeat. */
export function readMirrors(read: Read): Promise<readonly MirrorState[]> {
  return read<MirrorState>(
    `select source, seen_at as "seenAt", current_at as "currentAt", round_seconds as "roundSeconds",
            clock_timestamp() as "readAt"
     from mirror where seen_at is not null order by source`,
    [],
  );
}

async function writeProgress(client: ClientBase, source: string, progress: Partial<MirrorProgress>) {
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
  if (pending.length === 0) return;
  const messages = lastOfEach(pending);
  const ids = messages.map(({ messageId }) => bytes(messageId));
  const times = (name: 'sentAt' | 'checkedAt' | 'dueAt') =>
    messages.map((message) => new Date(message[name]));
  await client.query(
    `insert into mirror_owed (source, message_id, sent_at, checked_at, due_at, etag)
     select $1, * from unnest($2::bytea[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::text[])
     on conflict (message_id, source) ${onConflict}`,
    [source, ids, times('sentAt'), times('checkedAt'), times('dueAt'), ...columnsOf(messages, 'etag')],
  );
}

/** A source may name a message twice, and one statement cannot write a row twice. */
function lastOfEach<T extends { readonly messageId: string }>(rows: readonly T[]): readonly T[] {
  return [...new Map(rows.map((row) => [row.messageId, row])).values()];
}

function bytes(hex: string): Buffer {
  return Buffer.from(hex, 'hex');
}
