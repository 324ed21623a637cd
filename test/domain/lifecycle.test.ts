import { describe, expect, it, test } from 'vitest';
import {
  type Evidence,
  nextStatus,
  type Status,
  statuses,
  statusRank,
  usesVerifiers,
} from '../../src/domain/lifecycle.ts';

/** The status that must follow from each status and each kind of evidence. */
const lifecycle: Record<Status, Record<Evidence, Status>> = {
  SENT: {
    sent: 'SENT',
    sourceFinalized: 'SOURCE_FINALIZED',
    committed: 'COMMITTED',
    blessed: 'BLESSED',
    verifying: 'VERIFYING',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  SOURCE_FINALIZED: {
    sent: 'SOURCE_FINALIZED',
    sourceFinalized: 'SOURCE_FINALIZED',
    committed: 'COMMITTED',
    blessed: 'BLESSED',
    verifying: 'VERIFYING',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  COMMITTED: {
    sent: 'COMMITTED',
    sourceFinalized: 'COMMITTED',
    committed: 'COMMITTED',
    blessed: 'BLESSED',
    verifying: 'VERIFYING',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  BLESSED: {
    sent: 'BLESSED',
    sourceFinalized: 'BLESSED',
    committed: 'BLESSED',
    blessed: 'BLESSED',
    verifying: 'VERIFYING',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  VERIFYING: {
    sent: 'VERIFYING',
    sourceFinalized: 'VERIFYING',
    committed: 'VERIFYING',
    blessed: 'VERIFYING',
    verifying: 'VERIFYING',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  VERIFIED: {
    sent: 'VERIFIED',
    sourceFinalized: 'VERIFIED',
    committed: 'VERIFIED',
    blessed: 'VERIFIED',
    verifying: 'VERIFIED',
    verified: 'VERIFIED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  FAILED: {
    sent: 'FAILED',
    sourceFinalized: 'FAILED',
    committed: 'FAILED',
    blessed: 'FAILED',
    verifying: 'FAILED',
    verified: 'FAILED',
    failed: 'FAILED',
    succeeded: 'SUCCESS',
  },
  SUCCESS: {
    sent: 'SUCCESS',
    sourceFinalized: 'SUCCESS',
    committed: 'SUCCESS',
    blessed: 'SUCCESS',
    verifying: 'SUCCESS',
    verified: 'SUCCESS',
    failed: 'SUCCESS',
    succeeded: 'SUCCESS',
  },
};

const evidences = Object.keys(lifecycle.SENT) as readonly Evidence[];
const executed: readonly Status[] = ['FAILED', 'SUCCESS'];

/** Evidence for a status is whatever brings a fresh message there. */
function evidenceFor(status: Status): Evidence {
  const found = evidences.find((evidence) => lifecycle.SENT[evidence] === status);
  if (!found) throw new Error(`No evidence leads to ${status}`);
  return found;
}

const join = (one: Status, other: Status): Status => lifecycle[one][evidenceFor(other)];

test('the next status is the one of the table, for every status and every kind of evidence', () => {
  for (const status of statuses)
    for (const evidence of evidences)
      expect(nextStatus(status, evidence), `${status} + ${evidence}`).toBe(lifecycle[status][evidence]);
});

describe('the table of statuses and evidence', () => {
  it('has a row for every status of the specification, and one kind of evidence for each', () => {
    expect([...statuses].sort()).toEqual([
      'BLESSED',
      'COMMITTED',
      'FAILED',
      'SENT',
      'SOURCE_FINALIZED',
      'SUCCESS',
      'VERIFIED',
      'VERIFYING',
    ]);
    expect(Object.keys(lifecycle).sort()).toEqual([...statuses].sort());
    expect(evidences.map((evidence) => lifecycle.SENT[evidence]).sort()).toEqual([...statuses].sort());
    for (const status of statuses) expect(Object.keys(lifecycle[status])).toEqual(evidences);
  });

  it('is idempotent: the same evidence twice is the same as once', () => {
    for (const status of statuses) {
      expect(join(status, status)).toBe(status);
      for (const evidence of evidences) {
        const once = lifecycle[status][evidence];
        expect(lifecycle[once][evidence], `${status} + ${evidence} twice`).toBe(once);
      }
    }
  });

  it('is commutative over all pairs', () => {
    for (const one of statuses)
      for (const other of statuses) expect(join(one, other), `${one}, ${other}`).toBe(join(other, one));
  });

  it('is associative over all triples', () => {
    for (const a of statuses)
      for (const b of statuses)
        for (const c of statuses) expect(join(join(a, b), c), `${a}, ${b}, ${c}`).toBe(join(a, join(b, c)));
  });

  it('gives the same status for two pieces of evidence in either order, from every status', () => {
    for (const status of statuses)
      for (const e of evidences)
        for (const f of evidences)
          expect(lifecycle[lifecycle[status][e]][f], `${status}: ${e}, ${f}`).toBe(
            lifecycle[lifecycle[status][f]][e],
          );
  });

  it('never moves back, and leaves an executed status only from FAILED to SUCCESS', () => {
    for (const status of statuses) {
      for (const evidence of evidences) {
        const next = lifecycle[status][evidence];
        expect(statusRank(next)).toBeGreaterThanOrEqual(statusRank(status));
        if (executed.includes(status) && next !== status)
          expect([status, evidence, next]).toEqual(['FAILED', 'succeeded', 'SUCCESS']);
      }
    }
    expect(lifecycle.FAILED.succeeded).toBe('SUCCESS');
  });
});

test('ranks are the numbers that the store keeps, and so never change', () => {
  expect(statuses.map((status) => [status, statusRank(status)])).toEqual([
    ['SENT', 0],
    ['SOURCE_FINALIZED', 1],
    ['COMMITTED', 2],
    ['BLESSED', 3],
    ['VERIFYING', 4],
    ['VERIFIED', 5],
    ['FAILED', 6],
    ['SUCCESS', 7],
  ]);
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
