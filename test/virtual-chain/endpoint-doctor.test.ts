// @module-tag slow: starts the program for each endpoint
/** What `lanescan doctor` reports of endpoints with limits, tested with the filters that the indexer uses. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { lanescan } from '../cli/program.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { makeCcipWorld } from './ccip-chain.ts';
import { PROFILE_BLOCKS, profileOf } from './endpoint-profiles.ts';
import { writeWorldConfiguration } from './indexed-world.ts';
import { serveChain } from './served-world.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function examine(name: string, settings: object = {}): Promise<string> {
  const { a } = makeCcipWorld({ blocks: PROFILE_BLOCKS, messages: 29, ramps: 2 });
  const provider = await serveChain(a, profileOf(name));
  const config = writeWorldConfiguration([[a, [provider]]], settings);
  const { stdout } = await lanescan(['doctor', '--port', '0', '--config', config], {
    env: { DATABASE_URL: database.url },
  });
  return stdout;
}

test.each([
  ['archive-node', /logs of 1,201 blocks at once, batches of \d+, logs from/],
  ['address-required', /only by address[\s\S]*gives logs only of addresses that are named/],
  ['short-range-without-address', /logs of 1,201 blocks at once, of 10 blocks without an address/],
  ['few-topics', /logs of 512 blocks at once, 3 topics in one filter/],
  ['one-address', /1 address in one filter/],
  ['range-unnamed', /logs of 100 blocks at once/],
  ['logs-rejected', /no receipts[\s\S]*eth_getLogs/],
  ['small-batches', /batches of 10,/],
  ['no-batches', /no batches/],
  ['no-old-state', /state of the newest 100 blocks or more/],
  ['unknown-finalized', /it knows no finalized block/],
])('%s', async (name, expected) => {
  expect(await examine(name)).toMatch(expected);
});

test('logs that are gone in silence are noticed by the header of a block that had some', async () => {
  const { a } = makeCcipWorld({ blocks: PROFILE_BLOCKS, messages: 29, ramps: 2 });
  const text = await examine('pruned-in-silence', { start: a.blockOfMessage(0) - 3 });
  expect(text).toMatch(/it shows no logs of block \d+, whose header says that there are some/);
  expect(text).toMatch(/Use an endpoint with the whole history/);
});
