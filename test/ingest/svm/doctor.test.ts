/** What `lanescan doctor` reports of the endpoints and programs of a Solana network. */

import { expect, test } from 'vitest';
import { probeNetwork } from '../../../src/ingest/families.ts';
import type { SvmSource } from '../../../src/ingest/svm/settings.ts';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import { profileOf } from '../../solana/endpoint/solana-profiles.ts';
import { addressOf } from '../../solana/runtime/bytes.ts';
import { configured, serve, sourceOf } from './indexed-world.ts';

async function examine(profile?: string, overrides: Partial<SvmSource> = {}) {
  const world = createSolanaWorld();
  for (let round = 0; round < 4; round++) world.send();
  world.settle();
  const provider = await serve(world.cluster, profile ? profileOf(profile) : undefined);
  return probeNetwork(sourceOf(world, [provider], { ...configured(world), ...overrides }), {
    userAgent: 'lanescan-test',
    signal: new AbortController().signal,
    now: Date.now,
  });
}

const texts = (findings: readonly { readonly severity: string; readonly text: string }[] = []) =>
  findings.map(({ severity, text }) => `${severity}: ${text}`).join('\n');

test('an archive is as it should be, and the programs belong to the network', async () => {
  const { endpoints, routers } = await examine();
  const [endpoint] = endpoints;
  expect(endpoint?.findings).toEqual([]);
  expect(endpoint?.capabilities.join(', ')).toMatch(
    /finalized up to slot \d+, history from slot [01] .*, transactions up to version 1, .* transactions a second, batches of 50/,
  );
  expect(texts(routers)).toMatch(
    /ok: router \S+ is the router of solana-devnet\nok: the off-ramps may deliver from 1 networks/,
  );
});

test.each([
  ['wrong-cluster', /error: .*genesis hash/],
  ['pruned-in-silence', /warning: its history begins at slot/],
  ['no-logs', /error: getTransaction: the answer has no logMessages/],
  ['transactions-of-a-new-version', /warning: .* cannot be read, first a transaction of version 2|^$/],
])('%s is noticed', async (profile, expected) => {
  const { endpoints } = await examine(profile);
  expect(texts(endpoints[0]?.findings)).toMatch(expected);
});

test('it says that no live cluster has been indexed yet, and what to look at first', async () => {
  for (const profile of [undefined, 'wrong-cluster']) {
    const { routers } = await examine(profile);
    const [untried] = routers;
    expect(untried).toMatchObject({ severity: 'warning' });
    expect(untried?.text).toMatch(/has not yet been run against a live one/);
    expect(untried?.remedy).toMatch(/unreadable logs .* `lanescan audit`.*docs\/operations\/solana\.md/);
  }
});

test('programs that are no router, or no off-ramp of it, are errors', async () => {
  expect(texts((await examine(undefined, { routers: [addressOf('nobody')] })).routers)).toMatch(
    /error: .* has no configuration account/,
  );
  expect(texts((await examine(undefined, { offramps: [addressOf('nobody')] })).routers)).toMatch(
    /error: No router lets the off-ramp \S+ of the configuration deliver/,
  );
});
