// @module-tag slow: fills a lane with fifty thousand messages
/** What is told of a long lane is found without reading it; api.test.ts and cli.test.ts show that holes are named exactly. */
import { expect, onTestFinished, test } from 'vitest';
import { statementForms } from '../../src/store/cluster/statement-forms.ts';
import { readLanes, readStats } from '../../src/store/query/lanes.ts';
import { readNetworkTraffic } from '../../src/store/query/network-progress.ts';
import type { Read } from '../../src/store/reads/reads.ts';
import { openTestStore } from '../database.ts';
import { makeManyMessages } from '../fixtures/many-messages.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';

interface Plan {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Plan[];
}

/** By which index, or without one, a plan reads the table of messages. */
function messageScans(plan: Plan): string[] {
  const own = plan['Relation Name'] === 'message' ? [plan['Index Name'] ?? plan['Node Type']] : [];
  return [...own, ...(plan.Plans ?? []).flatMap(messageScans)];
}

test('a long lane is told of in the time that a short one takes: messages are read through the in-flight index only', async () => {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  await makeManyMessages(store, 50_000, { status: 'SUCCESS' });
  await store.apply(
    Array.from({ length: 40 }, (_, index) => makeSnapshot(makeMessage({ number: 1_000 + index }))),
  );
  const client = await connectTo(store.url, { options: '-c timezone=UTC' });
  onTestFinished(() => client.end());
  await client.query('vacuum analyze message');
  const scans: string[] = [];
  const explained: Read = async (text, values) => {
    const { rows } = await client.query(`explain (format json, analyze) ${text}`, [...values]);
    scans.push(...messageScans(rows[0]['QUERY PLAN'][0].Plan));
    return (await client.query(text, [...values])).rows;
  };
  const { lanes } = await readLanes(statementForms.single, explained, {
    now: new Date(),
    deliveredSince: '2020-01-01',
    namedRanges: 100,
    limit: 1000,
  });
  expect(lanes[0]).toMatchObject({ inFlight: 40, overdue: 40 });
  expect(scans).toEqual(['message_in_flight_by_lane']);

  scans.length = 0;
  await readStats(explained, { topLanes: 10, firstDay: '2020-01-01', lastDay: '2030-01-01' });
  await readNetworkTraffic(explained);
  expect(scans).toEqual([]);
});
