/** Records of every shape pass through import, mirror, store, API and export, and back: equal, or rejected with the reason. */
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Message } from '../../../src/domain/message.ts';
import { importRecords, type RejectedLine } from '../../../src/ingest/import/import.ts';
import type { RejectedRecord } from '../../../src/ingest/mirror/intake.ts';
import type { Store } from '../../../src/store/store.ts';
import { type RunningServer, startServer } from '../../api/running-server.ts';
import { recordShapes, storedShape } from '../../fixtures/record-shapes.ts';
import { openStoreForTest, run } from './running-mirror.ts';
import { startStandIn } from './stand-in.ts';

type Shape = Readonly<Record<string, unknown>>;
const accepted = recordShapes.filter(({ rejected }) => rejected === undefined);
const rejected = recordShapes.filter((shape) => shape.rejected !== undefined);
const idOf = (record: Shape) => record.messageId as string;

const lines = (records: readonly unknown[]) =>
  Readable.from([Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(''))]);

async function exported(store: Store): Promise<ReadonlyMap<string, Shape>> {
  const all = new Map<string, Shape>();
  for await (const batch of store.exportRecords({}))
    for (const text of batch) all.set(idOf(JSON.parse(text)), JSON.parse(text));
  return all;
}

test('there are at least 80 shapes, each of another message', () => {
  expect(recordShapes.length).toBeGreaterThanOrEqual(80);
  expect(new Set(recordShapes.map(({ record }) => record.messageId)).size).toBe(recordShapes.length);
});

describe('an import', () => {
  let server: RunningServer;
  const rejects: RejectedLine[] = [];

  beforeAll(async () => {
    server = await startServer();
    await importRecords({
      input: lines(recordShapes.map(({ record }) => record)),
      store: server.store,
      reject: async (line) => void rejects.push(line),
    });
  });
  afterAll(() => server.close());

  test.each(accepted)('takes $what, and serves it back', async (shape) => {
    const { record, derived } = shape;
    const answer = await server.ask(`/v2/messages/${idOf(record)}`);
    expect(answer.status).toBe(200);
    expect(answer.json<Shape>()).toEqual(storedShape(shape));
    const history = await server.ask(`/v2/messages/${idOf(record)}/history`);
    expect(history.json<{ changes: readonly Shape[] }>().changes[0]?.derived).toEqual(derived);
  });

  test.each(rejected)('rejects $what, with the reason', ({ record, rejected }) => {
    const found = rejects.find(({ text }) => text?.includes(idOf(record)));
    expect(found?.problems[0]?.path).toBe(rejected);
  });

  test('exports them, and an import of the export is the same', async () => {
    const first = await exported(server.store);
    expect(first.size).toBe(accepted.length);
    const other = await openStoreForTest();
    const report = await importRecords({
      input: lines([...first.values()]),
      store: other,
      reject: async ({ problems }) => expect.unreachable(JSON.stringify(problems)),
    });
    expect(report.created).toBe(accepted.length);
    // What was derived is there now, and what was unknown has a known name beside it.
    expect(report.warnings.incomplete).toBe(0);
    expect(await exported(other)).toEqual(first);
    // Once more, nothing changes.
    const again = await importRecords({
      input: lines(accepted.map(({ record }) => record)),
      store: other,
      reject: async () => undefined,
    });
    expect(again).toMatchObject({ created: 0, updated: 0 });
  });
});

test.each([
  ['summaries, as the hosted service lists them', false],
  ['whole records, as a Lanescan lists them', true],
])('a mirror of %s ends with the same records, and the same reasons', async (_, isWhole) => {
  const standIn = await startStandIn();
  standIn.isWhole = isWhole;
  for (const { record } of recordShapes) standIn.records.set(idOf(record), record as unknown as Message);
  const store = await openStoreForTest();
  const rejects: RejectedRecord[] = [];
  const logLines: string[] = [];
  await run(standIn, store, {
    reject: (record) => rejects.push(record),
    writeLog: (line) => logLines.push(line),
  });
  const all = await exported(store);
  for (const shape of accepted) expect(all.get(idOf(shape.record)), shape.what).toEqual(storedShape(shape));
  expect(all.size).toBe(accepted.length);
  for (const shape of rejected) {
    const found = rejects.find(({ messageId }) => messageId === idOf(shape.record));
    expect(found?.problems[0]?.path, shape.what).toBe(shape.rejected);
    expect(found?.record).toEqual(shape.record);
  }
  // Each unknown value is told once.
  expect(logLines.filter((line) => line.includes('UNCONFIRMED'))).toHaveLength(1);
});
