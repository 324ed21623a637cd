/** Which blocks of a contradiction are read again, and from which endpoint. */
import { expect, test } from 'vitest';
import { type Contradiction, planRescans, subjectOf } from '../../../src/ingest/engine/history-check.ts';
import type { StoredFinding } from '../../../src/store/ledger/index-ledger.ts';

const messages: Contradiction = {
  kind: 'messages-missing',
  subject: 'x',
  detail: 'missing',
  range: { from: 0, to: 9, purpose: 'contracts', contracts: ['x'] },
};
const registration: Contradiction = {
  kind: 'registrations-missing',
  subject: 'y',
  detail: 'missing',
  range: { from: 0, to: 9, purpose: 'routers', contracts: ['r'] },
};
const stored = (contradiction: Contradiction, given: Partial<StoredFinding> = {}): StoredFinding => ({
  ...contradiction,
  tried: [],
  attempts: 0,
  foundAt: new Date(),
  isDue: false,
  ...given,
});
const several = { only: undefined, last: undefined };

test('the first endpoint is tried first, and the routers’ history before the rest', () => {
  const plan = planRescans([messages, registration], [], ['a', 'b'], several);
  expect(plan).toMatchObject({ endpoint: 'a', again: [registration] });
  expect(plan.findings).toMatchObject([{ tried: [] }, { tried: [] }]);
});

test('an endpoint counts as tried only for what was read from it', () => {
  const last = { endpoint: 'a', subjects: new Set([subjectOf(registration)]) };
  const known = [stored(messages), stored(registration)];
  const plan = planRescans([messages, registration], known, ['a', 'b'], { only: undefined, last });
  expect(plan.findings).toMatchObject([{ tried: [] }, { tried: ['a'] }]);
  expect(plan).toMatchObject({ endpoint: 'a', again: [messages] });
});

test('the only endpoint there is is not asked again at once, but when the time has come', () => {
  const only = { only: 'a', last: undefined };
  expect(planRescans([messages], [], ['a'], only)).toMatchObject({ endpoint: undefined, again: [] });
  const known = stored(messages, { tried: ['a'] });
  expect(planRescans([messages], [known], ['a'], only)).toMatchObject({ endpoint: undefined });
  const due = planRescans([messages], [{ ...known, isDue: true }], ['a'], only);
  expect(due).toMatchObject({ endpoint: 'a', again: [messages], findings: [{ tried: [], attempts: 1 }] });
});

test('an endpoint that is added later is tried', () => {
  const known = stored(messages, { tried: ['a'] });
  expect(planRescans([messages], [known], ['a', 'b'], several)).toMatchObject({
    endpoint: 'b',
    again: [messages],
  });
});
