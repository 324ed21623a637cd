/**
 * The webhook dispatcher: follows the history for each subscription, and delivers the changes that match, at least once.
 *
 * Any number of servers may run a dispatcher on one store. For each subscription one of them holds a lease and does the
 * work. When it dies, another takes over as soon as the lease has expired. All state is in the store: a dispatcher may be
 * killed at any moment.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { matches } from '../domain/filters/matches.ts';
import type { ClaimedDelivery, DueDelivery } from '../store/ledger/webhook-deliveries.ts';
import { messageAtChange } from '../store/query/history.ts';
import type { Store } from '../store/store.ts';
import { changeEvent, signedHeaders } from './event.ts';
import { decideRetry, type RetryDecision } from './retry.ts';
import { createSender } from './sender.ts';
import { type Subscription, shownTarget } from './subscription.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;

/** Those of attempts and retries are explained at their types, in sender.ts and retry.ts. */
export const dispatcherTimings = {
  firstPauseMs: 5 * SECOND_MS,
  longestPauseMs: HOUR_MS,
  retryForMs: 24 * HOUR_MS,
  connectMs: 5 * SECOND_MS,
  totalMs: 15 * SECOND_MS,
  /** How long a server that died keeps others from its work. */
  leaseMs: 6 * SECOND_MS,
  /** How often a lease is renewed, and due deliveries are looked up. */
  tickMs: 2 * SECOND_MS,
  /** How long attempts in flight may go on when the dispatcher stops. */
  stopMs: 3 * SECOND_MS,
  /** An attempt that is not recorded this long after its timeout was lost with its server. */
  lostAfterMs: 5 * SECOND_MS,
  keepParkedMs: 30 * 24 * HOUR_MS,
};

export type DispatcherTimings = Readonly<typeof dispatcherTimings>;

export interface DispatcherOptions {
  readonly store: Pick<Store, 'webhooks' | 'changesAfter' | 'onChanges'>;
  readonly subscriptions: readonly Subscription[];
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly userAgent: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly timings?: Partial<DispatcherTimings>;
}

export type Dispatcher = ReturnType<typeof startDispatcher>;

const CHANGES_PER_READ = 500;
/** Attempts in flight to one receiver; 1 during an outage of it. */
const CONCURRENCY = 4;
/** Retries in flight: the last slot is left to new deliveries, whatever the receiver does with retries. */
const MAX_RETRIES_IN_FLIGHT = CONCURRENCY - 1;
/**
 * Failures in a row that count as an outage of the receiver. Only first attempts count: what the receiver rejects again and
 * again says nothing about the others.
 */
const OUTAGE_FAILURES = 5;
/** With more pending deliveries the cursor waits (backpressure): the history keeps the rest. */
export const MAX_PENDING = 10_000;

/** @example const dispatcher = startDispatcher({ store, subscriptions, log, userAgent, now: Date.now, random: Math.random }) */
export function startDispatcher(options: DispatcherOptions) {
  const { store, subscriptions } = options;
  const loops = subscriptions.map((subscription) => startSubscriptionLoop(subscription, options));
  const wakeAll = (latest?: number) => {
    for (const loop of loops) loop.wake(latest);
  };
  const listener = loops.length > 0 ? store.onChanges(wakeAll) : undefined;
  return {
    /** Waits for attempts in flight, for at most `stopMs`, and releases the leases. */
    async stop(): Promise<void> {
      await listener?.close();
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

/** The loops of one subscription: one keeps the lease, one reads changes and starts attempts. */
function startSubscriptionLoop(subscription: Subscription, options: DispatcherOptions) {
  const { store, log, now, random, userAgent } = options;
  const timings = { ...dispatcherTimings, ...options.timings };
  const { webhooks } = store;
  const { name, filters } = subscription;
  const isUnfiltered = Object.keys(filters).length === 0;
  const lease = { subscription: name, holder: randomUUID() };
  const sender = createSender(subscription, timings, userAgent, CONCURRENCY);
  const inFlight = new Map<string, { readonly isRetry: boolean; readonly ended: Promise<void> }>();
  const stopping = new AbortController();
  const attemptsController = new AbortController();
  const wakeUp = createWakeUp();

  /** Position of the cursor; undefined while another server has the lease. */
  let position: string | undefined;
  let mayHaveGrown = true;
  let failuresInARow = 0;
  /** Positions of the deliveries that failed since the receiver last accepted one. */
  const failedInARow = new Set<string>();
  /** The receiver asked for a pause (Retry-After) until then. */
  let pausedUntil = 0;
  let isStoreUnavailable = false;

  /** Logs the first failure of an outage of the database, and returns undefined: the loops retry. */
  const tolerateOutage = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      const result = await work();
      if (isStoreUnavailable) log.info(`Webhook ${name}: the database answers again`);
      isStoreUnavailable = false;
      return result;
    } catch (error) {
      if (!isStoreUnavailable)
        log.warn(`Webhook ${name} waits for the database: ${(error as Error).message}`);
      isStoreUnavailable = true;
      return undefined;
    }
  };

  const keepLease = async () => {
    while (!stopping.signal.aborted) {
      const before = position;
      const held = await tolerateOutage(() => webhooks.lease(lease, timings.leaseMs));
      if (held !== undefined && before === undefined) {
        log.info(`Webhook ${name}: this server delivers to ${shownTarget(subscription)}`);
      }
      // If the other loop has moved the cursor during the query, its position is the newer one.
      if (held === undefined || (position === before && held !== before)) {
        // Taken over, or rewound by an operator: either way there may be changes to read.
        mayHaveGrown = true;
        position = held;
      }
      wakeUp.signal();
      await delay(timings.tickMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };

  /** Reads the next changes and queues those that match; false where there are none, or too many are pending. */
  const readChanges = async (from: string): Promise<boolean> => {
    if (!mayHaveGrown || (await webhooks.countPending(name, MAX_PENDING)) >= MAX_PENDING) return false;
    // Reset before the read, so that a change that is committed during it leads to another read.
    mayHaveGrown = false;
    const { changes } = await store.changesAfter(from, CHANGES_PER_READ).catch((error) => {
      mayHaveGrown = true;
      throw error;
    });
    const to = changes.at(-1)?.position;
    if (to === undefined) return false;
    mayHaveGrown = true;
    const matching = changes.filter((change) => isUnfiltered || matches(filters, messageAtChange(change)));
    const isDone = await webhooks.advance(lease, { from, to }, matching, new Date(now()));
    // Otherwise the lease was lost or the cursor was rewound; `keepLease` notices.
    if (isDone && position === from) position = to;
    return isDone;
  };

  const startDue = async (): Promise<void> => {
    const slots = failuresInARow >= OUTAGE_FAILURES ? 1 : CONCURRENCY;
    const free = slots - inFlight.size;
    if (free <= 0 || now() < pausedUntil) return;
    const retriesInFlight = [...inFlight.values()].filter(({ isRetry }) => isRetry).length;
    // An attempt in flight may look due again after the clock has jumped.
    const due = (await webhooks.due(name, new Date(now()), free + inFlight.size)).filter(
      ({ position: at }) => !inFlight.has(at),
    );
    const created = due.filter(({ attempts }) => attempts === 0);
    const retries = due
      .filter(({ attempts }) => attempts > 0)
      .slice(0, Math.max(0, Math.min(slots, MAX_RETRIES_IN_FLIGHT) - retriesInFlight));
    // New deliveries go first, but one retry is always under way, so that a steady flow of new ones starves none.
    const guaranteed = slots > 1 && retriesInFlight === 0 ? 1 : 0;
    const next = [...retries.slice(0, guaranteed), ...created, ...retries.slice(guaranteed)].slice(0, free);
    for (const delivery of next) {
      const ended = tolerateOutage(() => deliver(delivery)).then(() => {
        inFlight.delete(delivery.position);
        wakeUp.signal();
      });
      inFlight.set(delivery.position, { isRetry: delivery.attempts > 0, ended });
    }
  };

  const deliver = async (due: DueDelivery): Promise<void> => {
    const lostAt = now() + timings.totalMs + timings.lostAfterMs;
    const delivery = await webhooks.claim(lease, due, new Date(now()), new Date(lostAt));
    if (!delivery) return;
    const { changes } = await store.changesAfter(String(BigInt(delivery.position) - 1n), 1);
    const [change] = changes;
    if (change?.position !== delivery.position) return webhooks.remove(delivery);
    const event = changeEvent(subscription, change);
    const headers = signedHeaders(event, subscription.keys, new Date(now()));
    const result = await sender
      .send(headers, event.body, attemptsController.signal)
      .catch((error: Error) => error);
    const endedAt = new Date(now());
    // Aborted by the stop: not a failure of the receiver, and the next server may retry at once.
    if (result instanceof Error && attemptsController.signal.aborted) {
      const failure = { error: 'the server was stopped', status: null };
      return webhooks.recordFailed(delivery, failure, endedAt, endedAt);
    }
    const attempt = { number: delivery.attempts, firstAt: delivery.firstAttemptAt, endedAt };
    await settle(delivery, decideRetry(result, attempt, timings, random()), endedAt);
  };

  const settle = async (delivery: ClaimedDelivery, decision: RetryDecision, at: Date): Promise<void> => {
    if (decision.kind === 'delivered') {
      const wasOutage = failuresInARow >= OUTAGE_FAILURES;
      const failed = [...failedInARow];
      failuresInARow = 0;
      failedInARow.clear();
      await webhooks.recordDelivered(delivery, at);
      if (!wasOutage) return;
      log.info(`Webhook ${name}: the receiver answers again`);
      // Others failed while the receiver accepted deliveries: they keep their backoff.
      return webhooks.retryNow(name, failed, at);
    }
    const { failure } = decision;
    if (delivery.attempts === 1 && ++failuresInARow === OUTAGE_FAILURES)
      log.warn(`Webhook ${name}: the receiver is away: ${failure.error}`);
    // Where events are rare, an outage shows in one of them.
    else if (delivery.attempts === OUTAGE_FAILURES)
      log.warn(
        `Webhook ${name}: delivery ${delivery.position} has failed ${delivery.attempts} times: ${failure.error}`,
      );
    if (decision.kind === 'retry') {
      if (decision.pausesAll) pausedUntil = Math.max(pausedUntil, decision.at.getTime());
      failedInARow.add(delivery.position);
      return webhooks.recordFailed(delivery, failure, at, decision.at);
    }
    failedInARow.delete(delivery.position);
    log.warn(
      `Webhook ${name}: delivery ${delivery.position} is parked after ${delivery.attempts} attempts: ${failure.error}`,
    );
    await webhooks.park(delivery, failure, at, new Date(at.getTime() - timings.keepParkedMs));
  };

  const work = async () => {
    while (!stopping.signal.aborted) {
      const from = position;
      const hasRead =
        from !== undefined &&
        (await tolerateOutage(async () => {
          const isMore = await readChanges(from);
          await startDue();
          return isMore;
        }));
      if (!hasRead) await wakeUp.wait();
    }
  };

  const running = [keepLease(), work()];
  return {
    /** The history may have grown, or is at this position. */
    wake(latest?: number): void {
      if (latest !== undefined && position !== undefined && latest <= Number(position)) return;
      mayHaveGrown = true;
      wakeUp.signal();
    },
    async stop(): Promise<void> {
      stopping.abort();
      wakeUp.signal();
      const timer = setTimeout(() => attemptsController.abort(), timings.stopMs);
      await Promise.all(running);
      await Promise.all([...inFlight.values()].map(({ ended }) => ended));
      clearTimeout(timer);
      sender.close();
      await tolerateOutage(() => webhooks.release(lease));
    },
  };
}

/** Wakes one waiting loop; a signal while it does not wait is kept for the next wait. */
function createWakeUp() {
  let signalled = new AbortController();
  return {
    signal: () => signalled.abort(),
    async wait() {
      if (!signalled.signal.aborted) await once(signalled.signal, 'abort');
      signalled = new AbortController();
    },
  };
}
