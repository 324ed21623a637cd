/** A receiver of webhooks on a socket of its own, and subscriptions that point at it. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import type { ChangeEvent } from '../../src/api/routes/history-schema.ts';
import { readSetting } from '../../src/base/settings.ts';
import type { Message } from '../../src/domain/message.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { type Dispatcher, type DispatcherOptions, startDispatcher } from '../../src/webhooks/dispatcher.ts';
import { type Subscription, webhooksSetting } from '../../src/webhooks/subscription.ts';
import { openTestStore } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';

export const SECRET = `whsec_${Buffer.from('a key of thirty-two bytes, or so').toString('base64')}`;

export interface Receipt {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly event: WebhookBody;
  /** By the clock of the machine. */
  readonly at: number;
  readonly accepted: boolean;
}

export interface WebhookBody {
  readonly type: string;
  readonly timestamp: string;
  readonly data: ChangeEvent & { readonly version: number };
}

export interface Reply {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly afterMs?: number;
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

export async function startReceiver(port = 0) {
  const receipts: Receipt[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const draft = {
        id: String(request.headers['webhook-id']),
        headers: request.headers,
        text,
        event: JSON.parse(text) as WebhookBody,
        at: Date.now(),
        accepted: false,
      };
      const { status, headers = {}, body = '', afterMs = 0 } = receiver.reply(draft);
      receipts.push({ ...draft, accepted: status >= 200 && status < 300 });
      setTimeout(() => response.writeHead(status, headers).end(body), afterMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const actual = (server.address() as AddressInfo).port;
  const receiver = {
    url: `http://127.0.0.1:${actual}/hook`,
    port: actual,
    /** Every request, in the order of arrival. */
    receipts,
    get accepted() {
      return receipts.filter(({ accepted }) => accepted);
    },
    /** What it answers from now on. */
    reply: (_receipt: Receipt): Reply => ({ status: 200 }),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  onTestFinished(() => receiver.close());
  return receiver;
}

export function subscriptionTo(url: string, given: Record<string, unknown> = {}): Subscription {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: that is how the file has it
  const entry = { name: 'ops', url, secret: '${SECRET}', allowPrivate: true, ...given };
  const [subscription] = readSetting(webhooksSetting, [entry], ['webhooks'], { SECRET });
  if (!subscription) throw new Error('No subscription');
  return subscription;
}

/** Minutes as milliseconds, for tests that wait in earnest. */
export const quickTimings = {
  firstPauseMs: 40,
  longestPauseMs: 320,
  retryForMs: 1_500,
  connectMs: 1_000,
  totalMs: 1_000,
  leaseMs: 1_000,
  tickMs: 25,
  stopMs: 500,
  lostAfterMs: 500,
};

export async function openStoreForTest(): Promise<Store & { readonly url: string }> {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  return store;
}

/** Another server's view of the same database. */
export async function openAgain(url: string): Promise<Store> {
  const store = await openStore({ place: { url } });
  onTestFinished(() => store.close());
  return store;
}

/** Runs until the test ends, and waits until its subscriptions have their place in the history. */
export async function runDispatcher(
  store: Store,
  subscriptions: readonly Subscription[],
  given: Partial<DispatcherOptions> = {},
): Promise<Dispatcher & { readonly log: readonly string[] }> {
  const log: string[] = [];
  const write = (line: string) => void log.push(line);
  const dispatcher = startDispatcher({
    store,
    subscriptions,
    log: { info: write, warn: write } as unknown as DispatcherOptions['log'],
    userAgent: 'Lanescan/test',
    now: Date.now,
    random: () => 1,
    ...given,
    timings: { ...quickTimings, ...given.timings },
  });
  let isStopped = false;
  const stop = async () => {
    if (!isStopped) await dispatcher.stop();
    isStopped = true;
  };
  onTestFinished(stop);
  await expect
    .poll(async () => (await store.webhooks.backlog()).length, { interval: 10 })
    .toBeGreaterThanOrEqual(subscriptions.length);
  return { stop, log };
}

/** A store, a receiver, and a dispatcher that delivers every change from the one to the other. */
export async function startDelivering(given: Partial<DispatcherOptions> = {}) {
  const [store, receiver] = [await openStoreForTest(), await startReceiver()];
  const dispatcher = await runDispatcher(store, [subscriptionTo(receiver.url)], given);
  return { store, receiver, dispatcher, backlog: async () => (await store.webhooks.backlog())[0] };
}

export const newMessage = (number: number, overrides: Partial<Message> = {}) =>
  makeSnapshot(makeMessage({ number, ...overrides }));

/** The way of one message, a change each. */
export const statusesOnTheWay = ['SENT', 'COMMITTED', 'BLESSED', 'SUCCESS'] as const;

/** Polls with the patience that a busy machine needs. */
export function eventually<T>(read: () => T, options: { interval?: number } = {}) {
  return expect.poll(read, { interval: 20, ...options });
}

/** Waits until nothing is owed any more. */
export async function untilSettled(store: Store): Promise<void> {
  await eventually(async () =>
    (await store.webhooks.backlog()).map(({ lag, pending }) => ({ lag, pending })),
  ).toEqual((await store.webhooks.backlog()).map(() => ({ lag: 0, pending: 0 })));
}

/** Of each message, the versions in the order in which they were accepted for the first time. */
export function versionsByMessage(receipts: readonly Receipt[]): Map<string, number[]> {
  const versions = new Map<string, number[]>();
  const seen = new Set<string>();
  for (const { id, event } of receipts) {
    if (seen.has(id)) continue;
    seen.add(id);
    const { messageId } = event.data.message;
    versions.set(messageId, [...(versions.get(messageId) ?? []), event.data.version]);
  }
  return versions;
}

export function expectInOrder(receipts: readonly Receipt[]): void {
  for (const versions of versionsByMessage(receipts).values()) {
    expect(versions).toEqual([...versions].sort((a, b) => a - b));
  }
}

export const distinctIds = (receipts: readonly Receipt[]) => new Set(receipts.map(({ id }) => id));
