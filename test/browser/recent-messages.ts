/** Messages of the last hours, for pages that show how long ago things were. */
import type { Message } from '../../src/domain/message.ts';
import { makeMessage } from '../fixtures.ts';

const MINUTE = 60_000;

/** Sent so many minutes ago; what was executed took a minute. */
export function recentMessage(number: number, minutesAgo: number, overrides: Partial<Message> = {}): Message {
  const sentAt = Math.floor(Date.now() / 1000) * 1000 - minutesAgo * MINUTE;
  const isExecuted = overrides.status === 'SUCCESS' || overrides.status === 'FAILED';
  return makeMessage({
    number,
    sendTimestamp: new Date(sentAt).toISOString(),
    ...(isExecuted && { receiptTimestamp: new Date(sentAt + MINUTE).toISOString(), deliveryTime: MINUTE }),
    ...overrides,
  });
}

/** So many delivered messages, one a minute, the newest first. */
export function deliveredMessages(count: number): readonly Message[] {
  return Array.from({ length: count }, (_, index) =>
    recentMessage(1000 + count - index, 10 + index, { status: 'SUCCESS' }),
  );
}
