/** Statuses, and the evidence that leads to them. */
import { describe, expect, test } from 'vitest';
import {
  type Evidence,
  nextStatus,
  type Status,
  statuses,
  statusRank,
  usesVerifiers,
} from '../../src/domain/lifecycle.ts';

/** Each kind of evidence with the status that it speaks for, in the order of their ranks. */
const statusOf: Record<Evidence, Status> = {
  sent: 'SENT',
  sourceFinalized: 'SOURCE_FINALIZED',
  committed: 'COMMITTED',
  blessed: 'BLESSED',
  verifying: 'VERIFYING',
  verified: 'VERIFIED',
  failed: 'FAILED',
  succeeded: 'SUCCESS',
};
const evidences = Object.keys(statusOf) as readonly Evidence[];
const inOrder = Object.values(statusOf);

test('ranks are the numbers that the store keeps, and so never change', () => {
  expect(statuses.map((status) => [status, statusRank(status)])).toEqual(
    inOrder.map((status, rank) => [status, rank]),
  );
});

test('a message has the later of its status and the one that the evidence speaks for', () => {
  for (const [rank, status] of inOrder.entries())
    for (const [spokenFor, evidence] of evidences.entries())
      expect(nextStatus(status, evidence), `${status} + ${evidence}`).toBe(
        inOrder[Math.max(rank, spokenFor)],
      );
});

test('any pieces of evidence give the same status in whatever order and however often they come', () => {
  const after = (status: Status, ...come: readonly Evidence[]) => come.reduce(nextStatus, status);
  for (const status of statuses)
    for (const a of evidences)
      for (const b of evidences) {
        expect(after(status, a, b), `${status}: ${a}, ${b}`).toBe(after(status, b, a));
        expect(after(status, a, b, a), `${status}: ${a}, ${b}`).toBe(after(status, a, b));
      }
});

describe('usesVerifiers', () => {
  test.each([null, '1.0.0', '1.2.0', '1.5.0', '1.5.1', '1.6', '1.6.0', '1.6.9', '1.6.1-dev', '0.9.0'])(
    'lanes of version %s are committed and blessed',
    (version) => expect(usesVerifiers(version)).toBe(false),
  );
  test.each(['1.7', '1.7.0', '1.7.0-dev', '1.10.0', '2.0.0', '2.0', '10.0.0'])(
    'lanes of version %s are verified by verifiers',
    (version) => expect(usesVerifiers(version)).toBe(true),
  );
});
