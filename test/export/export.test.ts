/** The export over HTTP: the same rows as a page walk, from one moment, in two formats. */
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { statuses } from '../../src/domain/lifecycle.ts';
import type { Message } from '../../src/domain/message.ts';
import { importRecords } from '../../src/ingest/import/import.ts';
import { expectError, serverForAll, startServerForTest, walkPages } from '../api/running-server.ts';
import { isOnCluster, openTestStore } from '../database.ts';
import { sampleMessages, tokenToEvm } from '../fixtures/sample-messages.ts';
import { evmAddress, fuji, makeMessage, makeSnapshot, sepolia, solanaDevnet } from '../fixtures.ts';
import { readCsv } from './csv.ts';

const formula = makeMessage({
  number: 50,
  sourceNetworkInfo: {
    ...sepolia,
    name: '=HYPERLINK("http://evil.example","x")',
    displayName: '@sum, "quoted"\r\nand more',
  },
  destNetworkInfo: { ...fuji, displayName: '-2+3' },
  status: 'SUCCESS',
  deliveryTime: -5,
});
const crowd = Array.from({ length: 700 }, (_, index) =>
  makeMessage({
    number: 1000 + index,
    sender: evmAddress('crowd', index % 5),
    status: statuses[index % statuses.length] ?? 'SENT',
    ...(index % 3 === 0 && { destNetworkInfo: solanaDevnet }),
    sendTimestamp: new Date(Date.UTC(2026, 0, 2) + Math.floor(index / 9) * 1000).toISOString(),
  }),
);

const server = serverForAll([...sampleMessages, formula, ...crowd]);

const records = (ndjson: string) =>
  ndjson
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Message);

const possible = {
  status: fc.subarray([...statuses], { minLength: 1 }).map((list) => list.join(',')),
  sender: fc.constantFrom(...[0, 1, 2, 3, 4].map((who) => evmAddress('crowd', who))),
  address: fc.constantFrom(evmAddress('receiver'), evmAddress('origin')),
  destChainSelector: fc.constantFrom(fuji.chainSelector, solanaDevnet.chainSelector),
  sourceChainSelector: fc.constantFrom(sepolia.chainSelector, '42'),
  readyForManualExecOnly: fc.constantFrom('true', 'false'),
  sentAfter: fc.constantFrom('2026-01-01T00:00:10Z', '2026-01-02T00:00:20Z'),
  sentBefore: fc.constantFrom('2026-01-02T00:00:30Z', '2026-01-02T00:01:00.000Z'),
  sourceTokenAddress: fc.constant(tokenToEvm.tokenAmounts[0]?.sourceTokenAddress ?? ''),
  q: fc.constantFrom(evmAddress('sender'), evmAddress('crowd', 1), evmAddress('receiver')),
};

test('an export has the rows of a page walk, row for row, whatever the filters', {
  tags: 'slow',
}, async () => {
  let rows = 0;
  const names = Object.keys(possible) as (keyof typeof possible)[];
  const anyFilters = fc
    .subarray(names, { maxLength: 3 })
    .chain((chosen) => fc.record(Object.fromEntries(chosen.map((name) => [name, possible[name]]))));
  await fc.assert(
    fc.asyncProperty(anyFilters, async (filters) => {
      const query = new URLSearchParams(filters as Record<string, string>).toString();
      const { messages: walked, ids } = await walkPages(server, `limit=100&${query}`);
      const exported = await server.ask(`/v2/messages/export?format=ndjson&${query}`);
      expect(exported.status).toBe(200);
      expect(records(exported.text)).toEqual(walked);
      const table = readCsv((await server.ask(`/v2/messages/export?${query}`)).text);
      expect(table.map(({ messageId }) => messageId)).toEqual(ids);
      rows += walked.length;
    }),
    { numRuns: 40, examples: [[{}]] },
  );
  expect(rows).toBeGreaterThan(2_000);
});

// On a cluster each page of an export is of its own moment (docs/cluster.md).
const testOnOneNode = test.skipIf(isOnCluster);

testOnOneNode(
  'an export shows one moment, whatever is written while it is read',
  { tags: 'slow' },
  async () => {
    const own = await startServerForTest(crowd);
    let isReading = true;
    let waves = 0;
    const write = async () => {
      while (isReading) {
        const wave = waves++;
        await own.store.apply(
          [
            makeMessage({ number: 5000 + wave }),
            makeMessage({ number: 900 - (wave % 800) }),
            ...crowd
              .slice(wave % 600, (wave % 600) + 5)
              .map((message) => ({ ...message, status: 'SUCCESS' as const })),
          ].map(makeSnapshot),
        );
      }
    };
    const writing = write();
    try {
      for (let round = 0; round < 5; round++) {
        const batches = own.store.exportRecords({});
        const first = await batches.next();
        const before = waves;
        const atThatMoment = await own.store.latestPosition();
        while (waves < before + 3) await new Promise((resolve) => setTimeout(resolve, 5));
        const lines = [...(first.value ?? [])];
        for await (const batch of batches) lines.push(...batch);
        const seen = lines.map((line) => JSON.parse(line) as Message);
        expect(new Set(seen.map(({ messageId }) => messageId)).size).toBe(seen.length);
        // Each wave brings two messages: those of the moment and no others, and none in a later state.
        expect(Number(atThatMoment)).toBeGreaterThanOrEqual(seen.length);
        const extra = seen.length - crowd.length;
        const newest = seen.filter(({ sequenceNumber }) => Number(sequenceNumber) >= 5000).length;
        const oldest = seen.filter(({ sequenceNumber }) => Number(sequenceNumber) <= 900).length;
        expect(newest + oldest).toBe(extra);
        expect(newest).toBe(oldest);
        expect(newest).toBeLessThanOrEqual(before + 1);
      }
    } finally {
      isReading = false;
      await writing;
    }
    expect(waves).toBeGreaterThan(10);
  },
);

test('NDJSON comes back in through an import unchanged', async () => {
  const { text } = await server.ask('/v2/messages/export?format=ndjson');
  const copy = await openTestStore();
  onTestFinished(() => copy.close());
  const report = await importRecords({
    input: Readable.from([Buffer.from(text)]),
    store: copy,
    reject: async ({ problems }) => expect(problems).toEqual([]),
  });
  expect(report).toMatchObject({ created: sampleMessages.length + 1 + crowd.length, rejected: 0 });
  let again = '';
  for await (const batch of copy.exportRecords({})) again += batch.map((record) => `${record}\n`).join('');
  expect(again).toBe(text);
});

test('CSV has a header row, quotes as RFC 4180 does, and starts no formula', async () => {
  const { text } = await server.ask('/v2/messages/export?format=csv');
  expect(text.startsWith('messageId,status,readyForManualExecution,sendTimestamp,')).toBe(true);
  const rows = readCsv(text);
  const expected = new Map(
    [...sampleMessages, formula, ...crowd].map((message) => [message.messageId, message]),
  );
  expect(rows).toHaveLength(expected.size);
  const nullable = (cell: string | undefined) => (cell === '' ? null : cell);
  for (const row of rows) {
    const message = expected.get(row.messageId ?? '');
    if (!message) throw new Error(`Nobody made ${row.messageId}`);
    for (const [name, cell] of Object.entries(row))
      if (name !== 'deliveryTime') expect(cell, name).not.toMatch(/^[=+\-@\t\r]/);
    expect(row).toMatchObject({
      status: message.status,
      sender: message.sender,
      sourceChainSelector: message.sourceNetworkInfo.chainSelector,
      destNetwork: message.destNetworkInfo.name,
      feeAmount: message.fees.fixedFeesDetails.totalAmount,
      readyForManualExecution: String(message.readyForManualExecution),
    });
    expect(nullable(row.nonce)).toBe(message.nonce);
    expect(nullable(row.data)).toBe(message.data);
    expect(nullable(row.executor)).toBe(message.executor?.address ?? null);
    expect(JSON.parse(row.tokenAmounts ?? '')).toEqual(message.tokenAmounts);
    expect(JSON.parse(row.extraArgs ?? '')).toEqual(message.extraArgs);
    expect(JSON.parse(row.verifiers || 'null')).toEqual(message.verifiers);
  }
  const guarded = rows.find(({ messageId }) => messageId === formula.messageId);
  expect(guarded).toMatchObject({
    sourceNetwork: `'=HYPERLINK("http://evil.example","x")`,
    sourceNetworkDisplayName: `'@sum, "quoted"\r\nand more`,
    destNetworkDisplayName: "'-2+3",
    deliveryTime: '-5',
  });
});

test('headers say what the file is; HEAD has them alone; the static path wins over a message id', async () => {
  for (const [format, type] of [
    ['csv', 'text/csv'],
    ['ndjson', 'application/x-ndjson'],
  ] as const) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await server.ask(`/v2/messages/export?format=${format}&status=FAILED`, { method });
      expect(answer.status).toBe(200);
      expect(answer.headers['content-type']).toBe(`${type}; charset=utf-8`);
      const name = `lanescan-messages-\\d{4}-\\d\\d-\\d\\dT\\d\\d-\\d\\d-\\d\\dZ\\.${format}`;
      const { 'content-disposition': disposition } = answer.headers;
      expect(disposition).toMatch(new RegExp(`^attachment; filename="${name}"$`));
      expect(answer.headers['content-length']).toBeUndefined();
      expect(answer.text === '').toBe(method === 'HEAD');
    }
  }
  const accepting = (accept: string) =>
    server.ask('/v2/messages/export?status=FAILED', { headers: { accept } });
  expect((await accepting('text/csv')).status).toBe(200);
  expectError(await accepting('image/png'), 406, 'NOT_ACCEPTABLE');
  const nothing = await server.ask('/v2/messages/export?sourceChainSelector=42');
  expect(readCsv(nothing.text)).toEqual([]);
  expect(nothing.text).toMatch(/^messageId,.*,data,offramp,.*,sourceMembers\r\n$/);
});

test('parameters that an export does not take are rejected by name', async () => {
  const rejected = async (query: string) => {
    const answer = await server.ask(`/v2/messages/export?${query}`);
    const { details, message } = expectError(answer, 400, 'INVALID_PARAMETERS');
    return { names: details.map(({ parameter }) => parameter).sort(), message };
  };
  const problem = expect.stringContaining('format takes csv or ndjson');
  expect(await rejected('format=xml')).toEqual({ names: ['format'], message: problem });
  expect((await rejected('cursor=abc')).names).toEqual(['cursor']);
  const several = await rejected('limit=5&format=&sender=nobody');
  expect(several.names).toEqual(['format', 'limit', 'sender']);
});
