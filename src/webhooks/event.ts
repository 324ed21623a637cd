/** Events and their signatures, by Standard Webhooks (https://www.standardwebhooks.com). */
import { createHmac } from 'node:crypto';
import { attemptJson } from '../domain/attempts.ts';
import { attemptAtChange, messageAtChange, type RecordedChange } from '../store/query/history.ts';
import type { Subscription } from './subscription.ts';

export interface WebhookEvent {
  /** The same for every attempt: receivers use it to ignore duplicates. */
  readonly id: string;
  readonly body: string;
}

/** The event of a change. `version` is the change's position: it grows with every change of a message. */
export function changeEvent({ name }: Subscription, change: RecordedChange): WebhookEvent {
  const { position, change: kind, status, previousStatus, recordedAt: timestamp } = change;
  const message = messageAtChange(change);
  const attempt = attemptAtChange(change, message);
  const brought = attempt && { attempt: attemptJson(attempt) };
  const version = Number(position);
  const data = { position, version, change: kind, status, previousStatus, message, ...brought };
  return { id: `${name}_${position}`, body: JSON.stringify({ type: `message.${kind}`, timestamp, data }) };
}

/** An event without a change, to test a receiver. */
export function testEvent({ name }: Subscription, now: Date): WebhookEvent {
  const timestamp = now.toISOString();
  return {
    id: `${name}_test_${now.getTime()}`,
    body: JSON.stringify({ type: 'lanescan.test', timestamp, data: { subscription: name } }),
  };
}

/** The three headers that identify and sign an attempt made `at` that time. */
export function signedHeaders({ id, body }: WebhookEvent, keys: readonly Buffer[], at: Date) {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  const signatures = keys.map((key) => {
    const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
    return `v1,${signature}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}
