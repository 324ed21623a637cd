/**
 * The records that are imported while nodes are killed: batches of new messages, each followed by one with how they went on. A batch
 * that only creates messages has no statement but COPY that writes to the workers, unless the store adds one.
 */
import type { Message } from '../../src/domain/message.ts';
import { evmAddress, fuji, makeMessage, makeToken, sepolia } from '../fixtures.ts';

/** Messages of a batch. */
const BATCH_MESSAGES = 10;

/** The sender of every third message: webhooks are about these. */
export const followedSender = evmAddress('followed', 1);

export function linesOfBatch(batch: number): string {
  const isNew = batch % 2 === 0;
  const lines = Array.from({ length: BATCH_MESSAGES }, (_, index) => {
    const number = Math.floor(batch / 2) * BATCH_MESSAGES + index + 1;
    const record = makeRecord(number, isNew ? 'SENT' : number % 7 === 0 ? 'FAILED' : 'SUCCESS');
    return `${JSON.stringify(record)}\n`;
  });
  return lines.join('');
}

function makeRecord(number: number, status: Message['status']): Message {
  return makeMessage({
    number,
    status,
    ...(number % 3 === 0 && { sender: followedSender }),
    ...(number % 2 === 0 && { tokenAmounts: [makeToken(sepolia, fuji, 'LINK')] }),
  });
}
