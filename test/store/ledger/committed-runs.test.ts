/** Which sequence numbers commits cover does not depend on how a stored fact is written. */
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { readCommittedRuns, writeCounters } from '../../../src/store/ledger/counters.ts';
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
  const client = new pg.Client(store.url);
  await client.connect();
  onTestFinished(() => client.end());
  const lane = {
    sourceSelector: message.sourceNetworkInfo.chainSelector,
    destSelector: message.destNetworkInfo.chainSelector,
    onramp: addressColumn(message.onramp, 'EVM'),
  };
  expect(await readCommittedRuns(client, lane)).toEqual([{ from: '1', to: '9' }]);
  await writeCounters(client, [{ ...lane, kind: 'committed', lastNumber: '9', isWhole: true }]);
  expect((await store.countedLanes({})).map(({ present }) => present)).toEqual([[{ from: '1', to: '9' }]]);
});
