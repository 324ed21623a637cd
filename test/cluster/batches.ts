/** The records that are imported while nodes are killed: each batch has new messages, and how those of the last batch went on. */
import type { Message } from '../../src/domain/message.ts';
import { evmAddress, fuji, makeMessage, makeToken, sepolia } from '../fixtures.ts';

/** New messages of a batch. */
const BATCH_MESSAGES = 6;

/** The sender of every third message: webhooks are about these. */
export const followedSender = evmAddress('followed', 1);

export function recordsOfBatch(batch: number): readonly Message[] {
  return [
    ...numbersOf(batch).map((number) => makeRecord(number, 'SENT')),
    ...(batch === 0 ? [] : numbersOf(batch - 1)).map((number) =>
      makeRecord(number, number % 7 === 0 ? 'FAILED' : 'SUCCESS'),
    ),
  ];
}

export function linesOfBatch(batch: number): string {
  return recordsOfBatch(batch)
    .map((record) => `${JSON.stringify(record)}\n`)
    .join('');
}

function numbersOf(batch: number): readonly number[] {
  return Array.from({ length: BATCH_MESSAGES }, (_, index) => batch * BATCH_MESSAGES + index + 1);
}

function makeRecord(number: number, status: Message['status']): Message {
  return makeMessage({
    number,
    status,
    ...(number % 3 === 0 && { sender: followedSender }),
    ...(number % 2 === 0 && { tokenAmounts: [makeToken(sepolia, fuji, 'LINK')] }),
  });
}
