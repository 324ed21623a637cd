/**
 * Follows the history for each subscription, and delivers what matches, at least once.
 *
 * Any number of servers may run couriers on one store. For each subscription one of them holds a lease and does the
 * work; when it dies, another takes over as soon as the lease has run out. All state that matters is in the store: a
 * courier may be killed at any moment.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { matches } from '../domain/matches.ts';
import { messageAtChange, type RecordedChange } from '../store/history.ts';
import type { Store } from '../store/store.ts';
import type { ClaimedDelivery, DueDelivery } from '../store/webhook-deliveries.ts';
import { changeEvent, signedHeaders } from './event.ts';
import { judge, type RetryTimings, type Verdict } from './retry.ts';
import { createSender, type SenderTimings } from './sender.ts';
import { type Subscription, shownTarget } from './subscription.ts';

export interface CourierTimings extends RetryTimings, SenderTimings {
  /** How long a server that died keeps others from its work. */
  readonly leaseMs: number;
  /** How often a lease is renewed, and the store asked for what is due. */
  readonly tickMs: number;
  /** How long what is under way may go on when the courier is told to stop. */
  readonly stopMs: number;
  /** An attempt that is not settled so long after its time-out was lost with its server. */
  readonly lostAfterMs: number;
  readonly keepParkedMs: number;
}

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

export const courierTimings: CourierTimings = {
  firstPauseMs: 5 * SECOND,
  longestPauseMs: HOUR,
  retryForMs: 24 * HOUR,
  connectMs: 5 * SECOND,
  totalMs: 15 * SECOND,
  leaseMs: 6 * SECOND,
  tickMs: 2 * SECOND,
  stopMs: 3 * SECOND,
  lostAfterMs: 5 * SECOND,
  keepParkedMs: 30 * 24 * HOUR,
};

export interface CourierOptions {
  readonly store: Pick<Store, 'webhooks' | 'changesAfter' | 'onChanges'>;
  readonly subscriptions: readonly Subscription[];
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly userAgent: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly timings?: Partial<CourierTimings>;
}

export interface Courier {
  /** Lets what is under way come to its end, for a while, and gives the leases back. */
  stop(): Promise<void>;
}

const CHANGES_PER_READ = 500;
/** Deliveries to one receiver at once; one while it does not answer. */
const CONCURRENCY = 4;
/** So many failures in a row, whatever the delivery, mean that the receiver is away. */
const OUTAGE_FAILURES = 5;
/** Beyond so many the cursor waits: the history keeps the rest. */
export const MAX_PENDING = 10_000;

/** @example const courier = startCourier({ store, subscriptions, log, userAgent, now: Date.now, random: Math.random }) */
export function startCourier(options: CourierOptions): Courier {
  const { store, subscriptions } = options;
  if (subscriptions.length === 0) return { stop: async () => undefined };
  const rounds = subscriptions.map((subscription) => startRound(subscription, options));
  const listener = store.onChanges((known) => {
    for (const round of rounds) round.wake(known);
  });
  return {
    async stop() {
      await listener.close();
      await Promise.all(rounds.map((round) => round.stop()));
    },
  };
}

interface Round {
  /** The history may have grown, or has grown to this position. */
  wake(known?: number): void;
  stop(): Promise<void>;
}

/** The courier's work for one subscription. */
function startRound(subscription: Subscription, options: CourierOptions): Round {
  const { store, log, now, random, userAgent } = options;
  const timings = { ...courierTimings, ...options.timings };
  const { webhooks } = store;
  const { name } = subscription;
  const lease = { subscription: name, holder: randomUUID() };
  const sender = createSender(subscription, timings, userAgent, CONCURRENCY);
  const underWay = new Map<string, Promise<void>>();
  const stopping = new AbortController();
  const givingUp = new AbortController();
  const bell = createBell();

  /** Where the cursor is; undefined while another server has the lease. */
  let position: string | undefined;
  let mayHaveGrown = true;
  let failuresInARow = 0;
  /** The receiver asked for silence until then. */
  let silentUntil = 0;
  let isStoreAway = false;

  /** The store may be away for a while; that stops nothing for good. */
  const whileStoreAnswers = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      const result = await work();
      if (isStoreAway) log.info(`Webhook ${name}: the database answers again`);
      isStoreAway = false;
      return result;
    } catch (error) {
      if (!isStoreAway) log.warn(`Webhook ${name} waits for the database: ${(error as Error).message}`);
      isStoreAway = true;
      return undefined;
    }
  };

  const keepLease = async () => {
    while (!stopping.signal.aborted) {
      const before = position;
      const held = await whileStoreAnswers(() => webhooks.lease(lease, timings.leaseMs));
      if (held !== undefined && before === undefined) {
        log.info(`Webhook ${name}: this server delivers to ${shownTarget(subscription)}`);
      }
      // What we are told is older than what the work has done meanwhile, if it has done anything.
      if (held === undefined || (position === before && held !== before)) {
        // Taken over, or rewound by somebody: either way there may be something to read.
        mayHaveGrown = true;
        position = held;
      }
      bell.ring();
      await delay(timings.tickMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };

  /** Looks at the next changes; false where there are none, or no room for what they bring. */
  const readOn = async (from: string): Promise<boolean> => {
    if (!mayHaveGrown || (await webhooks.countPending(name, MAX_PENDING)) >= MAX_PENDING) return false;
    // Before the look, so that whatever comes during it is looked for again.
    mayHaveGrown = false;
    const { changes } = await store.changesAfter(from, CHANGES_PER_READ).catch((error) => {
      mayHaveGrown = true;
      throw error;
    });
    const to = changes.at(-1)?.position;
    if (to === undefined) return false;
    mayHaveGrown = true;
    const wanted = changes.filter((change) => isWanted(change, subscription));
    const isDone = await webhooks.advance(lease, { from, to }, wanted, new Date(now()));
    // Otherwise the lease is lost or the cursor was set anew; its keeper will tell.
    if (isDone && position === from) position = to;
    return isDone;
  };

  const startDue = async (): Promise<void> => {
    const free = (failuresInARow >= OUTAGE_FAILURES ? 1 : CONCURRENCY) - underWay.size;
    if (free <= 0 || now() < silentUntil) return;
    // What is under way may look due again, when the clock has jumped.
    const due = await webhooks.due(name, new Date(now()), free + underWay.size);
    for (const delivery of due.filter(({ position: at }) => !underWay.has(at)).slice(0, free)) {
      const ended = whileStoreAnswers(() => deliver(delivery)).then(() => {
        underWay.delete(delivery.position);
        bell.ring();
      });
      underWay.set(delivery.position, ended);
    }
  };

  const deliver = async (due: DueDelivery): Promise<void> => {
    const lostAt = now() + timings.totalMs + timings.lostAfterMs;
    const delivery = await webhooks.claim(lease, due, new Date(now()), new Date(lostAt));
    if (!delivery) return;
    const { changes } = await store.changesAfter(String(BigInt(delivery.position) - 1n), 1);
    const [change] = changes;
    if (change?.position !== delivery.position) return webhooks.forget(delivery);
    const event = changeEvent(subscription, change);
    const headers = signedHeaders(event, subscription.keys, new Date(now()));
    const result = await sender.send(headers, event.body, givingUp.signal).catch((error: Error) => error);
    const endedAt = new Date(now());
    // Stopped in the middle: nobody's fault, and whoever serves next may try at once.
    if (result instanceof Error && givingUp.signal.aborted) {
      return webhooks.failed(delivery, { error: 'the server was stopped', status: null }, endedAt, endedAt);
    }
    const attempt = { number: delivery.attempts, firstAt: delivery.firstAttemptAt, endedAt };
    await settle(delivery, judge(result, attempt, timings, random()), endedAt);
  };

  const settle = async (delivery: ClaimedDelivery, verdict: Verdict, at: Date): Promise<void> => {
    if (verdict.kind === 'delivered') {
      const wasAway = failuresInARow >= OUTAGE_FAILURES;
      failuresInARow = 0;
      await webhooks.delivered(delivery, at);
      if (!wasAway) return;
      log.info(`Webhook ${name}: the receiver answers again`);
      return webhooks.hasten(name, at);
    }
    const { failure } = verdict;
    failuresInARow++;
    if (failuresInARow === OUTAGE_FAILURES)
      log.warn(`Webhook ${name}: the receiver is away: ${failure.error}`);
    if (verdict.kind === 'retry') {
      if (verdict.holdsAll) silentUntil = Math.max(silentUntil, verdict.at.getTime());
      return webhooks.failed(delivery, failure, at, verdict.at);
    }
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
        (await whileStoreAnswers(async () => {
          const isMore = await readOn(from);
          await startDue();
          return isMore;
        }));
      if (!hasRead) await bell.rung();
    }
  };

  const running = [keepLease(), work()];
  return {
    wake(known) {
      if (known !== undefined && position !== undefined && known <= Number(position)) return;
      mayHaveGrown = true;
      bell.ring();
    },
    async stop() {
      stopping.abort();
      bell.ring();
      const timer = setTimeout(() => givingUp.abort(), timings.stopMs);
      await Promise.all(running);
      await Promise.all(underWay.values());
      clearTimeout(timer);
      sender.close();
      await whileStoreAnswers(() => webhooks.release(lease));
    },
  };
}

function isWanted(change: RecordedChange, { filters }: Subscription): boolean {
  return Object.keys(filters).length === 0 || matches(filters, messageAtChange(change));
}

/** Wakes one sleeper; a ring while nobody sleeps is not lost. */
function createBell() {
  let hasRung = false;
  let wake: (() => void) | undefined;
  return {
    ring() {
      hasRung = true;
      wake?.();
    },
    async rung() {
      if (!hasRung) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      wake = undefined;
      hasRung = false;
    },
  };
}
