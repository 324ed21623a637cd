/**
 * The ledger of webhooks: the cursor of each subscription, and its queue of deliveries. A crash loses nothing.
 *
 * A subscription's cursor moves in the statement that queues the changes it passed. A delivery is claimed before it is
 * sent: its attempt is counted, and it is not due again until the attempt must have ended. It is removed when the receiver
 * has accepted it. The number of the attempt is a fencing token: an update with an older one has no effect.
 */
import type { ClientBase } from 'pg';
import type { HistoryEntry } from '../query/history.ts';
import { createLeases } from './lease.ts';

/** A lease on a subscription: the server that delivers for it. */
export interface SubscriptionLease {
  readonly subscription: string;
  /** A UUID of the server's own. */
  readonly holder: string;
}

/** A delivery that is due, with the number of attempts so far. */
export interface DueDelivery {
  readonly subscription: string;
  readonly position: string;
  readonly messageId: string;
  readonly attempts: number;
}

/** A delivery whose attempt this server has to make. */
export interface ClaimedDelivery extends DueDelivery {
  readonly firstAttemptAt: Date;
}

export interface FailedAttempt {
  readonly error: string;
  /** The HTTP status; null where there was no response. */
  readonly status: number | null;
}

/** The state of one subscription. */
export interface WebhookBacklog {
  readonly name: string;
  readonly position: string;
  /** Changes in the history that the cursor has not passed yet. */
  readonly lag: number;
  readonly pending: number;
  readonly parked: number;
  /** Deliveries that were accepted, in all. */
  readonly delivered: number;
  readonly lastDeliveredAt: Date | null;
  readonly lastError: string | null;
  readonly lastFailedAt: Date | null;
  /** Whether a server holds the lease. */
  readonly isServed: boolean;
}

export interface WebhookDeliveries {
  /**
   * Takes or renews the lease, and returns the position of the cursor; undefined while another server has the lease.
   * A new subscription starts at the end of the history.
   */
  lease(lease: SubscriptionLease, durationMs: number): Promise<string | undefined>;
  release(lease: SubscriptionLease): Promise<void>;
  /**
   * Moves the cursor and queues the changes that matched in between. False, without an effect, where the lease was lost or
   * the cursor is not at `from`.
   */
  advance(
    lease: SubscriptionLease,
    step: { readonly from: string; readonly to: string },
    matched: readonly Pick<HistoryEntry, 'messageId' | 'position'>[],
    now: Date,
  ): Promise<boolean>;
  /** How many deliveries are pending, counted up to `atMost`. */
  countPending(subscription: string, atMost: number): Promise<number>;
  /**
   * Deliveries that are due, of each message the earliest pending one: up to `limit` that were never attempted, then up to
   * `limit` retries, both the longest due first.
   */
  due(subscription: string, now: Date, limit: number): Promise<readonly DueDelivery[]>;
  /** Counts an attempt; undefined where the lease was lost or another server claimed the delivery. */
  claim(
    lease: SubscriptionLease,
    delivery: DueDelivery,
    now: Date,
    until: Date,
  ): Promise<ClaimedDelivery | undefined>;
  recordDelivered(delivery: ClaimedDelivery, now: Date): Promise<void>;
  recordFailed(
    delivery: ClaimedDelivery,
    attempt: FailedAttempt,
    now: Date,
    nextAttemptAt: Date,
  ): Promise<void>;
  /** Stops retrying until a replay is requested. Removes deliveries that were parked before `removeBefore`. */
  park(delivery: ClaimedDelivery, attempt: FailedAttempt, now: Date, removeBefore: Date): Promise<void>;
  /** Makes the pending retries at these positions due now, except where the receiver asked for a pause (429). */
  retryNow(subscription: string, positions: readonly string[], now: Date): Promise<void>;
  /** Removes a delivery whose change is not in the history any more. */
  remove(delivery: DueDelivery): Promise<void>;
  /** Makes all parked deliveries pending again, and returns their number. */
  replayParked(subscription: string, now: Date): Promise<number>;
  /** Sets the cursor, also of a new subscription, so that all changes after this position are read again. */
  rewind(subscription: string, position: string): Promise<void>;
  /** The state of every subscription that was ever served, by name. */
  backlog(): Promise<readonly WebhookBacklog[]>;
}

/** A subscription that is new starts at the end of the history. */
const subscriptionLeases = createLeases({
  table: 'webhook_subscription',
  keyColumn: 'name',
  untilColumn: 'leased_until',
  initialValues: { position: '(select position from store)' },
});

/** Runs statements on a connection of its own. */
type Use = <T>(use: (client: ClientBase) => Promise<T>) => Promise<T>;

export function createWebhookDeliveries(use: Use): WebhookDeliveries {
  const run = (text: string, values: readonly unknown[]): Promise<Record<string, unknown>[]> =>
    use(async (client) => (await client.query(text, [...values])).rows);

  const settle = (delivery: ClaimedDelivery, attempt: FailedAttempt, state: string, now: Date, next: Date) =>
    run(
      `with settled as (
         update webhook_delivery set state = $5, next_attempt_at = $6, last_error = $7, last_status = $8
         where ${AT_THIS_ATTEMPT})
       update webhook_subscription set last_error = $7, last_failed_at = $9 where name = $2`,
      [...keyOf(delivery), delivery.attempts, state, next, attempt.error, attempt.status, now],
    );

  return {
    lease: ({ subscription, holder }, durationMs) =>
      use(async (client) => {
        const row = await subscriptionLeases.acquire(client, subscription, holder, durationMs);
        return row && String(row.position);
      }),

    release: ({ subscription, holder }) =>
      use((client) => subscriptionLeases.release(client, subscription, holder)),

    async advance({ subscription, holder }, { from, to }, matched, now) {
      const rows = await run(
        `with advanced as (
           update webhook_subscription set position = $4
           where name = $1 and ${subscriptionLeases.isHeldBySql('$2')} and position = $3
           returning name),
         queued as (
           insert into webhook_delivery (message_id, subscription, position, next_attempt_at)
           select message_id, name, change, $7 from advanced, unnest($5::bytea[], $6::bigint[]) as found (message_id, change)
           on conflict (message_id, subscription, position) do update
           set state = 'pending', attempts = 0, first_attempt_at = null, next_attempt_at = excluded.next_attempt_at)
         select 1 from advanced`,
        [
          subscription,
          holder,
          from,
          to,
          matched.map(({ messageId }) => bytesOf(messageId)),
          matched.map(({ position }) => position),
          now,
        ],
      );
      return rows.length > 0;
    },

    async countPending(subscription, atMost) {
      const rows = await run(
        `select count(*)::integer as pending from (
           select 1 from webhook_delivery where subscription = $1 and state = 'pending' limit $2) few`,
        [subscription, atMost],
      );
      return rows[0]?.pending as number;
    },

    async due(subscription, now, limit) {
      const dueSql = (attempts: string) =>
        `(select encode(message_id, 'hex') as id, position, attempts from webhook_delivery d
          where subscription = $1 and state = 'pending' and next_attempt_at <= $2 and attempts ${attempts}
            and not exists (
              select 1 from webhook_delivery earlier
              where earlier.message_id = d.message_id and earlier.subscription = d.subscription
                and earlier.position < d.position and earlier.state = 'pending')
          order by next_attempt_at, position limit $3)`;
      const rows = await run(`${dueSql('= 0')} union all ${dueSql('> 0')}`, [subscription, now, limit]);
      return rows.map((row) => ({
        subscription,
        messageId: `0x${row.id}`,
        position: String(row.position),
        attempts: row.attempts as number,
      }));
    },

    async claim({ subscription, holder }, delivery, now, until) {
      const rows = await run(
        `update webhook_delivery set attempts = attempts + 1, next_attempt_at = $6,
           first_attempt_at = coalesce(first_attempt_at, $5)
         where ${AT_THIS_ATTEMPT} and exists (
           select 1 from webhook_subscription
           where name = $2 and ${subscriptionLeases.isHeldBySql('$7')})
         returning first_attempt_at`,
        [...keyOf({ ...delivery, subscription }), delivery.attempts, now, until, holder],
      );
      return rows[0] === undefined
        ? undefined
        : {
            ...delivery,
            attempts: delivery.attempts + 1,
            firstAttemptAt: rows[0].first_attempt_at as Date,
          };
    },

    async recordDelivered(delivery, now) {
      await run(
        `with settled as (delete from webhook_delivery where ${AT_THIS_ATTEMPT})
         update webhook_subscription set delivered = delivered + 1, last_delivered_at = $5 where name = $2`,
        [...keyOf(delivery), delivery.attempts, now],
      );
    },

    async recordFailed(delivery, attempt, now, nextAttemptAt) {
      await settle(delivery, attempt, 'pending', now, nextAttemptAt);
    },

    async park(delivery, attempt, now, removeBefore) {
      await settle(delivery, attempt, 'parked', now, now);
      await run(
        `delete from webhook_delivery where subscription = $1 and state = 'parked' and next_attempt_at < $2`,
        [delivery.subscription, removeBefore],
      );
    },

    async retryNow(subscription, positions, now) {
      await run(
        `update webhook_delivery set next_attempt_at = $2
         where subscription = $1 and position = any($3::bigint[]) and state = 'pending' and next_attempt_at > $2
           and last_error is not null and last_status is distinct from 429`,
        [subscription, now, positions],
      );
    },

    async remove(delivery) {
      await run(`delete from webhook_delivery where ${AT_THIS_ATTEMPT}`, [
        ...keyOf(delivery),
        delivery.attempts,
      ]);
    },

    async replayParked(subscription, now) {
      const rows = await run(
        `with replayed as (
           update webhook_delivery set state = 'pending', attempts = 0, first_attempt_at = null, next_attempt_at = $2
           where subscription = $1 and state = 'parked' returning 1)
         select count(*)::integer as replayed from replayed`,
        [subscription, now],
      );
      return rows[0]?.replayed as number;
    },

    async rewind(subscription, position) {
      await run(
        `insert into webhook_subscription (name, position) values ($1, $2)
         on conflict (name) do update set position = excluded.position`,
        [subscription, position],
      );
    },

    async backlog() {
      const rows = await run(
        `select s.*, greatest(store.position - s.position, 0)::text as lag,
           ${subscriptionLeases.isHeldSql('s')} as is_served,
           coalesce(counts.pending, 0)::integer as pending, coalesce(counts.parked, 0)::integer as parked
         from webhook_subscription s cross join store
         left join (
           select subscription, count(*) filter (where state = 'pending') as pending,
             count(*) filter (where state = 'parked') as parked
           from webhook_delivery group by subscription) counts on counts.subscription = s.name
         order by s.name`,
        [],
      );
      return rows.map((row) => ({
        name: row.name as string,
        position: String(row.position),
        lag: Number(row.lag),
        pending: row.pending as number,
        parked: row.parked as number,
        delivered: Number(row.delivered),
        lastDeliveredAt: row.last_delivered_at as Date | null,
        lastError: row.last_error as string | null,
        lastFailedAt: row.last_failed_at as Date | null,
        isServed: row.is_served as boolean,
      }));
    },
  };
}

const AT_THIS_ATTEMPT =
  "message_id = $1 and subscription = $2 and position = $3 and attempts = $4 and state = 'pending'";

function keyOf({ messageId, subscription, position }: DueDelivery): readonly unknown[] {
  return [bytesOf(messageId), subscription, position];
}

function bytesOf(messageId: string): Buffer {
  return Buffer.from(messageId.slice(2), 'hex');
}
