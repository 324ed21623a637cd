/**
 * The ledger of webhooks: the cursor of each subscription, and its queue of deliveries. A crash loses nothing.
 *
 * A subscription's cursor moves in the statement that queues the changes it passed. A delivery is claimed before it is
 * sent: its attempt is counted, and it is not due again until the attempt must have ended. It is removed when the receiver
 * has accepted it. The number of the attempt is a fencing token: an update with an older one has no effect.
 */
import type { HistoryEntry } from '../query/history.ts';
import { readUsing } from '../reads/reads.ts';
import type { UseClient } from '../server/client.ts';
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

const subscriptionLeases = createLeases({
  table: 'webhook_subscription',
  keyColumn: 'name',
  untilColumn: 'leased_until',
  initialValues: { position: '(select position from store)' },
});

export type WebhookDeliveries = ReturnType<typeof createWebhookDeliveries>;

export function createWebhookDeliveries(use: UseClient) {
  const run = readUsing(use);

  const settle = (delivery: ClaimedDelivery, attempt: FailedAttempt, state: string, now: Date, next: Date) =>
    run(
      `with settled as (
         update webhook_delivery set state = $5, next_attempt_at = $6, last_error = $7, last_status = $8
         where ${AT_THIS_ATTEMPT})
       update webhook_subscription set last_error = $7, last_failed_at = $9 where name = $2`,
      [...keyOf(delivery), delivery.attempts, state, next, attempt.error, attempt.status, now],
    );

  return {
    /**
     * Takes or renews the lease, and returns the position of the cursor; undefined while another server has the lease.
     * A new subscription starts at the end of the history.
     */
    lease: ({ subscription, holder }: SubscriptionLease, durationMs: number) =>
      use(async (client) => {
        const row = await subscriptionLeases.acquire(client, subscription, holder, durationMs);
        return row && String(row.position);
      }),

    release: ({ subscription, holder }: SubscriptionLease) =>
      use((client) => subscriptionLeases.release(client, subscription, holder)),

    /**
     * Moves the cursor and queues the changes that matched in between. False, without an effect, where the lease was lost or
     * the cursor is not at `from`.
     */
    async advance(
      { subscription, holder }: SubscriptionLease,
      { from, to }: { readonly from: string; readonly to: string },
      matched: readonly Pick<HistoryEntry, 'messageId' | 'position'>[],
      now: Date,
    ) {
      const ids = matched.map(({ messageId }) => bytesOf(messageId));
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
        [subscription, holder, from, to, ids, matched.map(({ position }) => position), now],
      );
      return rows.length > 0;
    },

    /** How many deliveries are pending, counted up to `atMost`. */
    async countPending(subscription: string, atMost: number) {
      const rows = await run(
        `select count(*)::integer as pending from (
           select 1 from webhook_delivery where subscription = $1 and state = 'pending' limit $2) few`,
        [subscription, atMost],
      );
      return rows[0]?.pending as number;
    },

    /**
     * Deliveries that are due, of each message the earliest pending one: up to `limit` that were never attempted, then up to
     * `limit` retries, both the longest due first.
     */
    async due(subscription: string, now: Date, limit: number): Promise<readonly DueDelivery[]> {
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

    /** Counts an attempt; undefined where the lease was lost or another server claimed the delivery. */
    async claim(
      { subscription, holder }: SubscriptionLease,
      delivery: DueDelivery,
      now: Date,
      until: Date,
    ): Promise<ClaimedDelivery | undefined> {
      const [claimed] = await run(
        `update webhook_delivery set attempts = attempts + 1, next_attempt_at = $6,
           first_attempt_at = coalesce(first_attempt_at, $5)
         where ${AT_THIS_ATTEMPT} and exists (
           select 1 from webhook_subscription
           where name = $2 and ${subscriptionLeases.isHeldBySql('$7')})
         returning first_attempt_at`,
        [...keyOf({ ...delivery, subscription }), delivery.attempts, now, until, holder],
      );
      if (!claimed) return undefined;
      return {
        ...delivery,
        attempts: delivery.attempts + 1,
        firstAttemptAt: claimed.first_attempt_at as Date,
      };
    },

    async recordDelivered(delivery: ClaimedDelivery, now: Date) {
      await run(
        `with settled as (delete from webhook_delivery where ${AT_THIS_ATTEMPT})
         update webhook_subscription set delivered = delivered + 1, last_delivered_at = $5 where name = $2`,
        [...keyOf(delivery), delivery.attempts, now],
      );
    },

    async recordFailed(delivery: ClaimedDelivery, attempt: FailedAttempt, now: Date, nextAttemptAt: Date) {
      await settle(delivery, attempt, 'pending', now, nextAttemptAt);
    },

    /** Stops retrying until a replay is requested. Removes deliveries that were parked before `removeBefore`. */
    async park(delivery: ClaimedDelivery, attempt: FailedAttempt, now: Date, removeBefore: Date) {
      await settle(delivery, attempt, 'parked', now, now);
      await run(
        `delete from webhook_delivery where subscription = $1 and state = 'parked' and next_attempt_at < $2`,
        [delivery.subscription, removeBefore],
      );
    },

    /** Makes the pending retries at these positions due now, except where the receiver asked for a pause (429). */
    async retryNow(subscription: string, positions: readonly string[], now: Date) {
      await run(
        `update webhook_delivery set next_attempt_at = $2
         where subscription = $1 and position = any($3::bigint[]) and state = 'pending' and next_attempt_at > $2
           and last_error is not null and last_status is distinct from 429`,
        [subscription, now, positions],
      );
    },

    /** Removes a delivery whose change is not in the history any more. */
    async remove(delivery: DueDelivery) {
      const at = [...keyOf(delivery), delivery.attempts];
      await run(`delete from webhook_delivery where ${AT_THIS_ATTEMPT}`, at);
    },

    /** Makes all parked deliveries pending again, and returns their number. */
    async replayParked(subscription: string, now: Date) {
      const rows = await run(
        `with replayed as (
           update webhook_delivery set state = 'pending', attempts = 0, first_attempt_at = null, next_attempt_at = $2
           where subscription = $1 and state = 'parked' returning 1)
         select count(*)::integer as replayed from replayed`,
        [subscription, now],
      );
      return rows[0]?.replayed as number;
    },

    /** Sets the cursor, also of a new subscription, so that all changes after this position are read again. */
    async rewind(subscription: string, position: string) {
      await run(
        `insert into webhook_subscription (name, position) values ($1, $2)
         on conflict (name) do update set position = excluded.position`,
        [subscription, position],
      );
    },

    /** The state of every subscription that was ever served, by name. */
    backlog() {
      return run<WebhookBacklog>(
        `select s.name, s.position::text as position, greatest(store.position - s.position, 0)::float8 as lag,
           coalesce(counts.pending, 0)::integer as pending, coalesce(counts.parked, 0)::integer as parked,
           delivered::float8 as delivered, last_delivered_at as "lastDeliveredAt", last_error as "lastError",
           last_failed_at as "lastFailedAt", ${subscriptionLeases.isHeldSql('s')} as "isServed"
         from webhook_subscription s cross join store
         left join (
           select subscription, count(*) filter (where state = 'pending') as pending,
             count(*) filter (where state = 'parked') as parked
           from webhook_delivery group by subscription) counts on counts.subscription = s.name
         order by s.name`,
        [],
      );
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
