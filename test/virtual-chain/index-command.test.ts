// @module-tag slow: starts the program for each endpoint
/** What `lanescan index --once` makes of endpoints that people really have: what it stores, prints and exits with. */
import { expect, test } from 'vitest';
import { allRecords } from '../chain/indexing.ts';
import { lanescan } from '../cli/program.ts';
import { type CcipWorldOptions, makeCcipWorld } from './ccip-chain.ts';
import type { EndpointProfile } from './endpoint-profile.ts';
import { PROFILE_BLOCKS, profileOf } from './endpoint-profiles.ts';
import { writeWorldConfiguration } from './indexed-world.ts';
import { serveWorld } from './served-world.ts';

const MESSAGES = 29;

async function index(profile: EndpointProfile, options: Partial<CcipWorldOptions> = {}) {
  const world = makeCcipWorld({ blocks: PROFILE_BLOCKS, messages: MESSAGES, ramps: 2, ...options });
  const { a, store } = await serveWorld(world, [profile], []);
  const config = writeWorldConfiguration([[world.a, a]]);
  const { code, stdout, stderr } = await lanescan(['index', '--once', '--config', config], {
    env: { DATABASE_URL: store.url },
  });
  return { code, text: stdout + stderr, messages: (await allRecords(store)).size };
}

test.each([
  ['that rejects queries for logs without an address', 'address-required'],
  ['that limits the topics of one filter', 'few-topics'],
  ['that rejects long ranges by a code', 'range-by-code-alone'],
  ['that rejects long ranges with "nope"', 'range-unnamed'],
])('an endpoint %s is read to the end', async (_, name) => {
  const { code, text, messages } = await index(profileOf(name));
  expect(messages, text).toBe(MESSAGES);
  expect(code, text).toBe(0);
});

test('a message among 12,000 foreign logs in one block is found on an endpoint that limits results', async () => {
  const limited: EndpointProfile = {
    name: 'ten-thousand-results',
    seen: 'https://github.com/aurora-is-near/aurora-relayer/pull/327',
    logs: {
      results: { max: 10_000, error: { code: -32005, message: 'query returned more than 10000 results' } },
    },
  };
  const { code, text, messages } = await index(limited, { foreign: [{ message: 14, logs: 12_000 }] });
  expect(messages, text).toBe(MESSAGES);
  expect(code, text).toBe(0);
});

test('an endpoint whose old logs are gone ends with status 3 and the reason', async () => {
  const { code, text, messages } = await index(profileOf('pruned-with-an-error'));
  expect(messages).toBeLessThan(MESSAGES);
  expect(code).toBe(3);
  expect(text).toContain('pruned history unavailable');
});

test('an endpoint that cannot go on is given up after a few minutes, with status 3 and the reason', {
  tags: 'release',
  timeout: 900_000,
}, async () => {
  const { code, text } = await index(profileOf('payment-required'));
  expect(text).toMatch(/geth-testnet: given up after repeated failures: .*HTTP 402.*lanescan doctor/);
  expect(code, text).toBe(3);
});
