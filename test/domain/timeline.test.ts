/** The timeline: every stage a message reached, from any source and in any order. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Fact } from '../../src/domain/facts.ts';
import { foldFacts } from '../../src/domain/fold.ts';
import { statusRank } from '../../src/domain/lifecycle.ts';
import { timeline } from '../../src/domain/timeline.ts';
import {
  factsAbout,
  makeExecuted,
  makeFinalized,
  makeMessage,
  makeRange,
  makeSent,
  makeSnapshot,
  makeSubject,
  makeVerifier,
  makeVerifierCompleted,
} from '../fixtures.ts';

const subject = makeSubject('1.6.0');

function stagesOf(facts: readonly Fact[]) {
  const message = foldFacts(facts);
  if (!message) throw new Error('Nobody told of the sending');
  return timeline(message, facts);
}

/** Each stage with its time; a dash where that is not known. */
const shown = (...facts: readonly Fact[]) =>
  stagesOf(facts).map(({ status, at }) => `${status} ${at?.slice(11, 19) ?? '-'}`);

describe('for any facts that tell of a sending', () => {
  const facts = fc
    .tuple(fc.constantFrom('1.5.0', '1.6.0', '2.0.0', null), fc.integer({ min: 0, max: 1e6 }))
    .chain(([version]) => {
      const about = makeSubject(version);
      return fc.array(factsAbout(about), { maxLength: 8 }).map((more) => [makeSent(about), ...more]);
    });

  test('it begins with SENT, ends with the status, and goes on with every step', () => {
    fc.assert(
      fc.property(facts, (given) => {
        const stages = stagesOf(given);
        expect(stages[0]?.status).toBe('SENT');
        expect(stages.at(-1)?.status).toBe(foldFacts(given)?.status);
        expect(stages.at(-1)?.dwellMs).toBeNull();
        const ranks = stages.map(({ status }) => statusRank(status));
        expect(ranks).toEqual([...ranks].sort((a, b) => a - b));
        for (const { status, dwellMs } of stages) {
          expect(dwellMs ?? 0).toBeGreaterThanOrEqual(0);
          if (status !== 'FAILED') expect(stages.filter((stage) => stage.status === status)).toHaveLength(1);
        }
      }),
    );
  });

  test('it is the same in any order and with repetitions', () => {
    const shuffled = facts.chain((given) =>
      fc.tuple(
        fc.constant(given),
        fc.shuffledSubarray([...given, ...given], { minLength: given.length * 2 }),
      ),
    );
    fc.assert(
      fc.property(shuffled, ([given, other]) => {
        expect(stagesOf(other)).toEqual(stagesOf(given));
      }),
    );
  });
});

test('a stage is as old as the first word of it', () => {
  const facts = [
    makeSent(subject),
    makeRange('Committed', subject, 1, 3, 4004),
    makeRange('Committed', subject, 0, 2, 4001),
  ];
  expect(shown(...facts)).toEqual(['SENT 00:00:01', 'COMMITTED 01:06:41']);
});

test('what caused what decides the order, where the clocks of two chains disagree', () => {
  const late = makeMessage({ sendTimestamp: '2026-01-01T01:06:50.000Z' });
  const stages = stagesOf([makeSent(late), makeRange('Committed', late, 1, 1, 4000)]);
  expect(stages.map(({ status, dwellMs }) => `${status} ${dwellMs}`)).toEqual(['SENT 0', 'COMMITTED null']);
});

describe('finality that was noticed only after what it leads to', () => {
  test('is a stage without a time', () => {
    const committed = makeRange('Committed', subject, 1, 1, 4000);
    const facts = [makeSent(subject), makeFinalized(subject, 4010), committed];
    expect(shown(...facts)).toEqual(['SENT 00:00:01', 'SOURCE_FINALIZED -', 'COMMITTED 01:06:40']);
    for (const { dwellMs } of stagesOf(facts)) expect(dwellMs).toBeNull();
  });

  test('takes the time of verifying with it, unless a verifier has told of that', () => {
    const verified = makeSubject('2.0.0');
    const facts = [makeSent(verified), makeFinalized(verified, 5010), makeExecuted(verified, true, 5000)];
    expect(shown(...facts).join()).toBe('SENT 00:00:01,SOURCE_FINALIZED -,VERIFYING -,SUCCESS 01:23:20');
    expect(shown(...facts, makeVerifierCompleted(verified, 'Alice', 4900))).toEqual([
      'SENT 00:00:01',
      'SOURCE_FINALIZED -',
      'VERIFYING 01:21:40',
      'SUCCESS 01:23:20',
    ]);
  });

  test('keeps its time at the same moment, and while nothing follows', () => {
    expect(shown(makeSent(subject), makeFinalized(subject, 5010))[1]).toEqual('SOURCE_FINALIZED 01:23:30');
    const committed = makeRange('Committed', subject, 1, 1, 4000);
    expect(shown(makeSent(subject), makeFinalized(subject, 4000), committed)[1]).toEqual(
      'SOURCE_FINALIZED 01:06:40',
    );
  });
});

test('a failure that is told after the success stands before it', () => {
  const facts = [makeSent(subject), makeExecuted(subject, true, 5000), makeExecuted(subject, false, 5010)];
  expect(stagesOf(facts).map(({ status }) => status)).toEqual(['SENT', 'FAILED', 'SUCCESS']);
});

test('completions that chains and imports tell add up to the moment of verification', () => {
  const told = makeMessage({
    version: '2.0.0',
    verifiers: {
      items: [makeVerifier('Alice', { completedAt: '2026-01-01T01:00:00.000Z' }), makeVerifier('Bob')],
      optionalThreshold: 0,
    },
  });
  const pending = makeSubject('2.0.0');
  const snapshot = makeSnapshot({ ...told, status: 'VERIFYING' });
  expect(shown(snapshot, makeVerifierCompleted(told, 'Bob', 3900))).toEqual([
    'SENT 00:00:01',
    'VERIFYING 01:05:00',
    'VERIFIED 01:05:00',
  ]);
  expect(shown(makeSent(pending), makeVerifierCompleted(pending, 'Alice', 3500))).toEqual([
    'SENT 00:00:01',
    'VERIFYING 00:58:20',
  ]);
});
