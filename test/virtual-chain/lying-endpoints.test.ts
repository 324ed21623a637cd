// @module-tag slow: each test indexes two chains
/**
 * One of several endpoints lies about what contracts said: messages that nobody sent, ramps that are not what it says,
 * registrations that no router made. Block hashes are the same on all endpoints; only the lie differs.
 */
import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import { briefly } from '../chain/faulty-node.ts';
import { allRecords } from '../chain/indexing.ts';
import { type CcipWorld, type CcipWorldOptions, makeCcipWorld, networkA } from './ccip-chain.ts';
import type { Provider } from './endpoint.ts';
import { archiveNode, type EndpointProfile } from './endpoint-profile.ts';
import { impostorOnRamp, inventedMessages, miscountingOnRamps } from './invented-events.ts';
import { serveChain, serveWorld } from './served-world.ts';

const options: CcipWorldOptions = { blocks: 1_000, messages: 40 };
const away: EndpointProfile = {
  ...archiveNode,
  fails: { every: 1, error: { message: 'Service Unavailable', status: 503, isPlainText: true } },
};
/** Every endpoint reads some of the pieces. */
const shortRanges: Partial<EvmSource> = { maxRange: 100 };

function withInventions(world: CcipWorld): CcipWorld {
  return makeCcipWorld({ ...options, series: [inventedMessages(world.a, { first: 101, count: 20 })] });
}

/** Endpoints that tell chain `a` as these worlds have it, and indexing of the first world through some of them. */
async function open(world: CcipWorld, worlds: readonly CcipWorld[]) {
  const { store, sources, ...served } = await serveWorld(world, []);
  const endpoints = await Promise.all(worlds.map(({ a }) => serveChain(a)));
  const index = async (used: readonly Provider[] = endpoints, overrides: Partial<EvmSource> = {}) => {
    const given = { sources: sources(overrides, used), timing: { endpoints: briefly } };
    const indexed = await served.index({}, given);
    const findings = await served.findings();
    return {
      ...indexed,
      differences: await served.differences(),
      findings: findings.map(({ kind }) => kind),
      details: findings.map(({ detail }) => detail),
    };
  };
  return { store, index, endpoints: endpoints as unknown as readonly [Provider, Provider, Provider] };
}

/** Three endpoints, the liar at this place. */
async function indexWithLiar(
  world: CcipWorld,
  lying: CcipWorld,
  place: number,
  overrides: Partial<EvmSource> = {},
) {
  const worlds = [world, world, world].map((honest, at) => (at === place ? lying : honest));
  const { store, index, endpoints } = await open(world, worlds);
  return { ...(await index(endpoints, overrides)), store, liar: endpoints[place]?.url.host };
}

describe('messages', () => {
  test.each([
    [0, 'head'],
    [1, 'head'],
    [2, 'all'],
  ] as const)('that endpoint %i of three invents are not stored (verify: %s)', async (place, verify) => {
    const world = makeCcipWorld(options);
    const lying = withInventions(world);
    const overrides = { ...shortRanges, verify };
    const { differences, findings, logLines, liar } = await indexWithLiar(world, lying, place, overrides);
    expect(differences).toEqual([]);
    expect(findings).toEqual([]);
    expect(logLines.join('\n')).toContain(`${liar} shows logs of block`);
  });

  test('that were believed are named when only their inventor is asked, and removed when others are', async () => {
    const world = makeCcipWorld(options);
    const { index, endpoints } = await open(world, [withInventions(world), world, world]);
    const alone = await index([endpoints[0]]);
    expect(alone.differences).toEqual(['20 messages that no chain has']);
    expect(alone.findings).toEqual(['messages-invented']);
    expect(alone.details[0]).toMatch(/^On-ramp 0x\w+ has sent 40 messages to .*, but .* higher numbers/);

    const together = await index();
    expect(together.differences).toEqual([]);
    expect(together.findings).toEqual([]);
    expect(together.logLines.join('\n')).toContain('What no two endpoints show was removed');
  });

  test('stay when the only endpoint counts too few and leaves out logs at times', async () => {
    const world = makeCcipWorld(options);
    // Only the check asks for the count, when everything has been read.
    const startLeavingOut = () => {
      only.profile = { ...archiveNode, logs: { leavesOutEvery: 3 } };
    };
    const contracts = miscountingOnRamps(world.a, 11n, startLeavingOut);
    const { index, endpoints } = await open(world, [makeCcipWorld({ ...options, contracts })]);
    const [only] = endpoints;
    const { differences, findings } = await index();
    expect(differences).toEqual([]);
    expect(findings).toEqual(['messages-invented']);
  });

  test('that nobody could confirm are stored and marked, and reviewed when another endpoint answers', async () => {
    const world = makeCcipWorld(options);
    const { index, endpoints } = await open(world, [withInventions(world), world, world]);
    const [liar, ...dead] = endpoints;
    for (const provider of dead) provider.profile = away;
    const alone = await index();
    expect(alone.findings).toContain('events-unconfirmed');
    expect(alone.details.join('\n')).toContain(`${liar.url.host} alone has shown the events`);

    for (const provider of dead) provider.profile = archiveNode;
    const together = await index();
    expect(together.differences).toEqual([]);
    expect(together.findings).toEqual([]);
  });
});

describe('contracts', () => {
  test.each([0, 1, 2])('that endpoint %i of three calls something else stay trusted', async (place) => {
    const world = makeCcipWorld(options);
    const lying = makeCcipWorld({ ...options, onRampType: 'Impostor 6.6.6' });
    const { differences, findings, logLines } = await indexWithLiar(world, lying, place, shortRanges);
    expect(differences).toEqual([]);
    expect(findings).toEqual([]);
    expect(logLines.join('\n')).not.toContain('it is not trusted');
  });

  test.each([0, 1, 2])('that only endpoint %i of three knows are not trusted', async (place) => {
    const world = makeCcipWorld({ ...options, onRampType: 'Unknown 9.9.9' });
    const { findings, store } = await indexWithLiar(world, makeCcipWorld(options), place, shortRanges);
    expect(findings).toContain('contract-unknown');
    expect(findings).not.toContain('contract-disputed');
    expect([...(await allRecords(store)).values()].filter((record) => isFrom(record, networkA.name))).toEqual(
      [],
    );
  });

  test.each([0, 1, 2])(
    'that only endpoint %i of three shows as registered are not trusted',
    async (place) => {
      const world = makeCcipWorld(options);
      const lying = makeCcipWorld({ ...options, ...impostorOnRamp(world.a) });
      const { differences, findings } = await indexWithLiar(world, lying, place, shortRanges);
      expect(differences).toEqual([]);
      expect(findings).toEqual([]);
    },
  );

  test('on which two endpoints disagree are asked about again, and the dispute is named', async () => {
    const world = makeCcipWorld(options);
    const lying = makeCcipWorld({ ...options, onRampType: 'Impostor 6.6.6' });
    const { index, endpoints } = await open(world, [lying, world]);
    const [liar, honest] = endpoints;
    const both = await index();
    expect(both.findings).toContain('contract-disputed');
    expect(both.details.join('\n')).toContain(`${liar.url.host}: it calls itself "Impostor 6.6.6"`);
    expect(both.details.join('\n')).toContain(`${honest.url.host}: OnRamp 1.6.0`);
    expect(both.statuses.find(({ network }) => network === networkA)?.worker?.failedRanges).toBeGreaterThan(
      0,
    );

    const later = await index([honest]);
    expect(later.differences).toEqual([]);
    expect(later.findings).toEqual([]);
  });
});

const isFrom = (record: string, network: string) =>
  (JSON.parse(record) as Message).sourceNetworkInfo.name === network;
