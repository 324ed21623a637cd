// @module-tag slow: indexes whole chains, one for each oddity
/** Chains that are odd: bloom filters that are wrong, contracts that are not known. */
import { describe, expect, test } from 'vitest';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import { type CcipWorldOptions, makeCcipWorld } from '../virtual-chain/ccip-chain.ts';
import { archiveNode, type EndpointProfile } from '../virtual-chain/endpoint-profile.ts';
import { serveChain, serveWorld } from '../virtual-chain/served-world.ts';

const worldOptions: CcipWorldOptions = { blocks: 300, messages: 12 };

async function indexed(
  traits: Partial<EndpointProfile>,
  overrides: Partial<EvmSource> = {},
  options: Partial<CcipWorldOptions> = {},
) {
  const served = await serveWorld(makeCcipWorld({ ...worldOptions, ...options }), [
    { ...archiveNode, ...traits },
  ]);
  const index = () => served.index(overrides);
  return { ...served, ...(await index()), index };
}

describe('everything is read', () => {
  test.each(['zero', 'absent'] as const)('where bloom filters are %s, and that is noticed', async (bloom) => {
    const { differences, findings, logLines } = await indexed({ bloom }, { verify: 'all' });
    expect(await differences()).toEqual([]);
    expect((await findings()).map(({ kind }) => kind)).toEqual(['bloom-wrong']);
    expect(logLines).toContainEqual(expect.stringMatching(/bloom filter of block \d+ denies a log/));
  });

  test('with verify: off, where nothing is checked and nothing noticed', async () => {
    const { differences, findings } = await indexed({ bloom: 'zero' }, { verify: 'off' });
    expect(await differences()).toEqual([]);
    expect(await findings()).toEqual([]);
  });
});

describe('a ramp of a version that is not known', () => {
  test('is kept, and examined again at the next start', async () => {
    const unknown = { onRampType: 'OnRamp 3.0.0' };
    const { world, a, findings, index, differences } = await indexed({}, {}, unknown);
    const [onRamp] = world.a.onRamps;
    expect(await findings()).toMatchObject([
      { kind: 'contract-unknown', subject: onRamp, detail: expect.stringContaining('OnRamp 3.0.0') },
    ]);
    expect(await differences()).not.toEqual([]);

    // As after an upgrade: the same chain, with a ramp that this version knows.
    const known = makeCcipWorld(worldOptions);
    await a[0]?.close();
    await serveChain(known.a, archiveNode, Number(a[0]?.url.port));
    await index();
    expect(await findings()).toEqual([]);
    expect(await differences()).toEqual([]);
  });
});
