/** Rows of schema 22 as rows of the new tables: every fact stays what it was, and so does the history. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Fact, factMessageId, isRangeFact, isRootFact } from '../../../src/domain/facts.ts';
import { convertedTables } from '../../../src/store/facts/conversion.ts';
import { hashText } from '../../../src/store/facts/hash-bytes.ts';
import {
  factId,
  readMessageFact,
  readRangeFact,
  readRootFact,
} from '../../../src/store/facts/stored-fact.ts';
import { rangePieces } from '../../../src/store/write/lane-facts.ts';
import { anyFact } from '../../fixtures/any-fact.ts';
import {
  digits,
  hashOf,
  makeExecuted,
  makeMessage,
  makeRange,
  makeSnapshot,
  svmSignature,
} from '../../fixtures.ts';
import { operatorErrorOf } from '../../operator-error.ts';
import { rowAsRead } from './row-as-read.ts';

const bytes = (hex: string) => Buffer.from(hex, 'hex');
const removedAt = new Date('2026-02-03T04:05:06.789Z');

/** The new row of an old one, as the driver reads it. */
function converted(table: string, old: Record<string, unknown>): Record<string, unknown> {
  const { columns, rowOf } = convertedTables[table] ?? {};
  if (!columns || !rowOf) throw new Error(`${table} is not converted`);
  const values = rowOf(old);
  return rowAsRead(Object.fromEntries(Object.keys(columns).map((name, index) => [name, values[index]])));
}

/** The fact after the conversion of its rows. */
function convertedFacts(fact: Fact): readonly Fact[] {
  const body = JSON.stringify(fact);
  const fact_id = bytes(factId(body));
  if (isRootFact(fact)) return [readRootFact(converted('root_blessing', { fact_id, body }))];
  if (isRangeFact(fact))
    return rangePieces(fact).map(({ sourceSelector, destSelector, onramp, from, to }) =>
      readRangeFact(
        converted('lane_fact', {
          source_selector: sourceSelector,
          dest_selector: destSelector,
          onramp: bytes(onramp),
          from_sequence: from,
          to_sequence: to,
          fact_id,
          body,
        }),
      ),
    );
  const messageId = factMessageId(fact).slice(2);
  const tables = fact.kind === 'Executed' ? ['fact', 'earlier_attempt', 'removed_attempt'] : ['fact'];
  return tables.map((table) => {
    const row = converted(table, { message_id: bytes(messageId), fact_id, body, removed_at: removedAt });
    expect(row).toMatchObject({ message_id: bytes(messageId), fact_id });
    if (table === 'removed_attempt') expect(row.removed_at).toBe(removedAt.toISOString());
    return readMessageFact(row, messageId);
  });
}

describe('a converted row', () => {
  it('has the same fact, of every kind', () => {
    fc.assert(
      fc.property(anyFact, (fact) => {
        for (const read of convertedFacts(fact)) expect(JSON.stringify(read)).toBe(JSON.stringify(fact));
      }),
      { numRuns: 300 },
    );
  });

  it('of a fact that an older version wrote in its own way keeps the id', () => {
    const message = makeMessage();
    const snapshot = makeSnapshot(message);
    const row = converted('fact', {
      message_id: bytes(message.messageId.slice(2)),
      fact_id: bytes('00'.repeat(16)),
      body: JSON.stringify(snapshot, null, 2),
    });
    expect(row).toMatchObject({ fact_id: bytes('00'.repeat(16)), kind: 9, network: null, seen_at: null });
    expect(readMessageFact(row, message.messageId.slice(2))).toEqual(snapshot);
  });

  it.each([
    ['updated', hashOf('tx')],
    ['updated', svmSignature('tx')],
    ['created', '0:composite'],
    ['removed', null],
  ])('of the history has the same change: %s, with the transaction %s', (change, transaction_hash) => {
    const old = {
      position: '7',
      message_id: bytes(digits('id')),
      recorded_at: removedAt,
      change,
      status: 6,
      previous_status: null,
      ready: true,
      removed_record: change === 'removed' ? '{"messageId":"\u00fc"}' : null,
      occurred_at: null,
      network: '-5',
      block_number: '12',
      transaction_hash,
      derived: '["$.nonce"]',
      attempt_fact: bytes('11'.repeat(16)),
      attempt_details: null,
    };
    const { change: number, transaction, recorded_at, ...row } = converted('history', old);
    const { change: _, transaction_hash: hash, recorded_at: __, ...same } = old;
    expect(row).toEqual(same);
    expect(number).toBe({ created: 1, updated: 2, removed: 3 }[change as 'created']);
    expect(transaction === null ? null : hashText(transaction as Buffer)).toBe(hash);
    expect(recorded_at).toBe(removedAt.toISOString());
  });

  it('is an error that names the message, where the old row cannot be read', async () => {
    const { messageId } = makeExecuted(makeMessage(), true);
    const old = { message_id: bytes(messageId.slice(2)), fact_id: bytes('00'), body: '{"kind":"Sent","mess' };
    const error = await operatorErrorOf(async () => converted('fact', old));
    expect(error.message).toMatch(`A stored fact of message ${messageId} cannot be read: `);

    const range = makeRange('Committed', makeMessage(), 1, 2);
    const root = { merkle_root: bytes(digits('root')), fact_id: bytes('00'), network: '1' };
    for (const body of ['', JSON.stringify({ ...range, merkleRoot: '0x12' })]) {
      const failure = await operatorErrorOf(async () => converted('root_blessing', { ...root, body }));
      expect(failure.message).toMatch(`A stored fact of the root 0x${digits('root')} cannot be read: `);
    }
  });
});
