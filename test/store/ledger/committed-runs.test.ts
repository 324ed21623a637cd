/** Which sequence numbers commits cover does not depend on how a stored fact is written. */
import { expect, onTestFinished, test } from 'vitest';
import { addressColumn } from '../../../src/store/write/message-row.ts';
import { openTestStore } from '../../database.ts';
import { makeMessage, makeRange } from '../../fixtures.ts';

test('the kind may stand anywhere in a fact, and a blessing covers only what was committed', async () => {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const message = makeMessage();
  const { kind, ...rest } = makeRange('Committed', message, 1, 5);
  await store.apply([
    { ...rest, kind },
    makeRange('Committed', message, 6, 9),
    makeRange('Blessed', message, 6, 9, 4001),
  ]);
  const lane = {
    sourceSelector: message.sourceNetworkInfo.chainSelector,
    destSelector: message.destNetworkInfo.chainSelector,
    onramp: addressColumn(message.onramp, 'EVM'),
  };
  expect(await store.index.checks.committedRuns(lane)).toEqual([{ from: '1', to: '9' }]);
  await store.index.lease(lane.sourceSelector, 'holder', 60);
  const counters = [{ ...lane, kind: 'committed' as const, lastNumber: '9', isWhole: true }];
  await store.index.record(lane.sourceSelector, 'holder', { counters });
  expect((await store.countedLanes({})).map(({ present }) => present)).toEqual([[{ from: '1', to: '9' }]]);
});
