// @module-tag slow: starts chain nodes; consistency.test.ts is the quick pass
/** What real contracts of every version count, against what was read from them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { openTestStore } from '../database.ts';
import { type Lab, startLab } from '../lab/lab.ts';
import { FINALITY, indexOnce, labSource } from './indexing.ts';

let lab: Lab;
let store: Store;

beforeAll(async () => {
  lab = await startLab();
  for (const lane of lab.lanes) {
    const messages = await lane.send({ count: 3 });
    if (lane.version !== '2.0') await lane.commit(messages);
    await lane.sendOne();
  }
  for (const network of lab.networks) await network.mine(3 * FINALITY);
  store = await openTestStore();
});
afterAll(async () => {
  await store?.close();
  await lab?.stop();
});

test('counts of all on-ramps and commit stores agree with a whole history', async () => {
  const notices: string[] = [];
  await indexOnce(store, lab, {
    sources: lab.networks.map((network) => labSource(network, { verify: 'head' })),
    notice: (line) => notices.push(line),
  });
  expect(notices.filter((line) => /not found|no event|could not be compared/.test(line))).toEqual([]);
  const counted = await store.countedLanes({});
  const sent = counted.filter(({ kind }) => kind === 'sent');
  const committed = counted.filter(({ kind }) => kind === 'committed');
  expect(sent).toHaveLength(lab.lanes.length);
  expect(committed).toHaveLength(lab.lanes.filter(({ version }) => version !== '2.0').length);
  for (const { lastNumber, isWhole, present } of sent)
    expect({ lastNumber, isWhole, present }).toEqual({
      lastNumber: '4',
      isWhole: true,
      present: [{ from: '1', to: '4' }],
    });
  for (const { lastNumber, present } of committed)
    expect({ lastNumber, present }).toEqual({ lastNumber: '3', present: [{ from: '1', to: '3' }] });
  for (const network of lab.networks) {
    const { selector } = labSource(network).network;
    expect(await store.index.checks.findings(selector)).toEqual([]);
  }
});
