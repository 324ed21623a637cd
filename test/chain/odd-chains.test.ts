// @module-tag slow: indexes whole chains, one for each oddity; backfill.test.ts is the quick pass
/** Chains and endpoints that are odd: order and indexes of logs, bloom filters, contracts that are not known. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import { openTestStore } from '../database.ts';
import { type CcipWorldOptions, makeCcipWorld } from '../virtual-chain/ccip-chain.ts';
import { startProvider } from '../virtual-chain/endpoint.ts';
import type { EndpointProfile } from '../virtual-chain/endpoint-profile.ts';
import { archiveNode } from '../virtual-chain/endpoint-profile.ts';
import { differencesFrom, indexWorld, sourceOf } from '../virtual-chain/indexed-world.ts';

const worldOptions: CcipWorldOptions = { blocks: 300, messages: 12 };

async function indexed(
  traits: Partial<EndpointProfile>,
  {
    options = {},
    overrides = {},
  }: { options?: Partial<CcipWorldOptions>; overrides?: Partial<EvmSource> } = {},
) {
  const world = makeCcipWorld({ ...worldOptions, ...options });
  const a = await startProvider(world.a, { profile: { ...archiveNode, ...traits } });
  const b = await startProvider(world.b);
  const store = await openTestStore();
  onTestFinished(async () => {
    await a.close();
    await b.close();
    await store.close();
  });
  const index = () =>
    indexWorld(store, { sources: [sourceOf(world.a, [a], overrides), sourceOf(world.b, [b])] });
  const { logLines } = await index();
  const findings = async () => store.index.checks.findings(world.a.network.selector);
  return { world, a, b, store, logLines, findings, index, differences: () => differencesFrom(world, store) };
}

describe('everything is read', () => {
  test.each<[string, Partial<EndpointProfile>]>([
    ['logs come in the reverse order', { logs: { order: 'reversed' } }],
    ['logs come by address', { logs: { order: 'by address' } }],
    ['log indexes count in each transaction', { logs: { hasIndexPerTransaction: true } }],
  ])('where %s', async (_, traits) => {
    const { differences } = await indexed(traits);
    expect(await differences()).toEqual([]);
  });

  test.each(['zero', 'absent'] as const)('where bloom filters are %s, and that is noticed', async (bloom) => {
    const { differences, findings, logLines } = await indexed({ bloom }, { overrides: { verify: 'all' } });
    expect(await differences()).toEqual([]);
    expect((await findings()).map(({ kind }) => kind)).toEqual(['bloom-wrong']);
    expect(logLines).toContainEqual(expect.stringMatching(/bloom filter of block \d+ denies a log/));
  });

  test('with verify: off, where nothing is checked and nothing noticed', async () => {
    const { differences, findings } = await indexed({ bloom: 'zero' }, { overrides: { verify: 'off' } });
    expect(await differences()).toEqual([]);
    expect(await findings()).toEqual([]);
  });
});

describe('a ramp of a version that is not known', () => {
  test('is kept, and examined again at the next start', async () => {
    const { world, a, findings, index, differences } = await indexed(
      {},
      { options: { onRampType: 'OnRamp 3.0.0' } },
    );
    const [onRamp] = world.a.onRamps;
    expect(await findings()).toMatchObject([
      { kind: 'contract-unknown', subject: onRamp, detail: expect.stringContaining('OnRamp 3.0.0') },
    ]);
    expect(await differences()).not.toEqual([]);

    // As after an upgrade: the same chain, with a ramp that this version knows.
    const known = makeCcipWorld(worldOptions);
    const port = Number(a.url.port);
    await a.close();
    const again = await startProvider(known.a, { port });
    onTestFinished(() => again.close());
    await index();
    expect(await findings()).toEqual([]);
    expect(await differences()).toEqual([]);
  });
});
