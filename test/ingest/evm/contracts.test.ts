// @module-tag slow: starts chain nodes; indexer.test.ts is the quick pass
import { encodeAbiParameters, pad, parseAbiParameters, toHex } from 'viem';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from 'vitest';
import { findNetwork } from '../../../src/domain/networks/networks.ts';
import * as abi from '../../../src/ingest/evm/contracts/abi.ts';
import {
  type ContractRole,
  currentRegistrations,
  type GenuineContract,
  identify,
  registrationsIn,
} from '../../../src/ingest/evm/contracts/contracts.ts';
import type { ChainLog, Hex } from '../../../src/ingest/evm/rpc/chain.ts';
import { createChain } from '../../../src/ingest/evm/rpc/node.ts';
import { labSource } from '../../chain/indexing.ts';
import { readHistory } from '../../chain/lab-history.ts';
import { type Lab, type LabNetwork, startLab } from '../../lab/lab.ts';
import { answeringNode } from './answering-node.ts';

test.each([
  [abi.ccipSendRequested, '0xd0c3c799bf9e2639de44391e7f524d229b2b55f5b1ea94b2bf7da42f7243dddd'],
  [abi.reportAccepted, '0x291698c01aa71f912280535d88a00d2c59fb63530a3f5d0098560468acb9ebf5'],
  [abi.taggedRootBlessed, '0x8257378aa73bf8e4ada848713526584a3dcee0fd3db3beed7397f7a7f5067cc9'],
  [abi.executionStateChanged15, '0xd4f851956a5d67c3997d1c9205045fef79bae2947fdee7e9e2641abc7391ef65'],
  [abi.ccipMessageSent16, '0x192442a2b2adb6a7948f097023cb6b57d29d3a7a5dd33e6666d33c39cc456f32'],
  [abi.commitReportAccepted, '0xb967c9b9e1b7af9a61ca71ff00e9f5b89ec6f2e268de8dacf12f0de8e51f3e47'],
  [abi.executionStateChanged16, '0x05665fe9ad095383d018353f4cbcba77e84db27dd215081bbf7cdf9ae6fbe48b'],
  [abi.ccipMessageSent20, '0x371bc2ff0a006f4ef863b1d27a065d4e9f938b6d883eb154572b4aea593b32cc'],
  [abi.executionStateChanged20, '0x8c324ce1367b83031769f6a813e3bb4c117aba2185789d66b98b791405be6df2'],
])('the topic of $name is that of the public networks', ({ topic }, known) => {
  expect(topic).toBe(known);
  expect(abi.watchedTopics).toContain(known);
});

const network = findNetwork('ethereum-testnet-sepolia');
if (!network) throw new Error('Sepolia is not in the table of networks.');

const addressOf = (number: number): Hex => pad(toHex(number), { size: 20 });
const text = (words: string) => encodeAbiParameters(parseAbiParameters('string'), [words]);
const words = (...values: readonly (bigint | Hex)[]): Hex =>
  `0x${values.map((value) => pad(typeof value === 'bigint' ? toHex(value) : value).slice(2)).join('')}`;

/** A contract that calls itself so, deployed with these words. */
function identifyAs(role: ContractRole, typeAndVersion: string | undefined, config?: Hex) {
  const node = answeringNode({
    answer: ({ data }) => {
      if (data === abi.typeAndVersion.selector)
        return typeAndVersion === undefined ? undefined : text(typeAndVersion);
      return data === abi.getStaticConfig.selector ? config : undefined;
    },
  });
  return identify(
    node,
    [{ address: addressOf(1), role, namedBy: addressOf(2) }],
    network as NonNullable<typeof network>,
  );
}

describe('the version of a lane', () => {
  const selector = BigInt(network.selector);
  const laneOnRamp = words(addressOf(9), selector, 5n);
  const common = words(selector);

  test.each([
    ['EVM2EVMOnRamp 1.2.0', '1.2.0', laneOnRamp],
    ['EVM2EVMOnRamp 1.5.0', '1.5.0', laneOnRamp],
    ['EVM2EVMOnRamp 1.5.1', '1.5.0', laneOnRamp],
    ['EVM2EVMOnRamp 1.5.0-dev', '1.5.0', laneOnRamp],
    ['OnRamp 1.6.0', '1.6.0', common],
    ['OnRamp 1.6.3', '1.6.0', common],
    ['OnRamp 1.6.1-dev', '1.6.0', common],
    ['OnRamp 1.7.0', '2.0.0', common],
    ['OnRamp 2.0.0', '2.0.0', common],
    ['OnRamp 2.1.4', '2.0.0', common],
  ])('of %s is %s', async (typeAndVersion, version, config) => {
    const { contracts, rejected } = await identifyAs('onRamp', typeAndVersion, config);
    expect(rejected).toEqual([]);
    expect(contracts).toEqual([
      {
        address: addressOf(1),
        role: 'onRamp',
        version,
        typeAndVersion,
        namedBy: addressOf(2),
        ...(config === laneOnRamp && { destChainSelector: '5' }),
      },
    ]);
  });

  test.each([
    ['onRamp', 'EVM2EVMOnRamp 1.0.0', /version that we do not know/],
    ['onRamp', 'EVM2EVMOnRamp 1.6.0', /version that we do not know/],
    ['onRamp', 'OnRamp 1.5.0', /version that we do not know/],
    ['onRamp', 'OnRamp 3.0.0', /version that we do not know/],
    ['onRamp', 'OffRamp 1.6.0', /"OffRamp 1\.6\.0", which is no onRamp/],
    ['offRamp', 'OnRamp 1.6.0', /no offRamp/],
    ['onRamp', 'OnRamp 1.6.0 and more', /no onRamp/],
    ['onRamp', 'x'.repeat(101), /no onRamp/],
    ['router', 'PriceRegistry 1.2.0', /no router/],
    ['rmn', 'MockRMN 1.0.0', /no rmn/],
    ['onRamp', undefined, /no code/],
  ] as const)('is not looked for in a %s that says %s', async (role, typeAndVersion, reason) => {
    const { contracts, rejected } = await identifyAs(role, typeAndVersion, words(selector));
    expect(contracts).toEqual([]);
    expect(rejected).toEqual([
      {
        registration: { address: addressOf(1), role, namedBy: addressOf(2) },
        reason: expect.stringMatching(reason),
        // A node that is behind may not have it yet; one that answers otherwise has.
        isSilent: typeAndVersion === undefined,
      },
    ]);
    expect(rejected[0]?.reason.length).toBeLessThan(250);
  });

  it('is not asked of a contract that was deployed for another chain, or does not say for which', async () => {
    for (const config of [words(5n), undefined, '0x'] as const) {
      const { contracts, rejected } = await identifyAs('offRamp', 'OffRamp 1.6.0', config);
      expect(contracts).toEqual([]);
      expect(rejected[0]?.reason).toMatch(
        config === words(5n) ? /deployed for chain selector 5/ : /static config/,
      );
    }
  });
});

test('a router is asked for the on-ramps to chains from which it has off-ramps, and for no others', async () => {
  const [router, other] = [addressOf(1), addressOf(2)];
  const offRamps = [
    { sourceChainSelector: 5n, offRamp: addressOf(51) },
    { sourceChainSelector: 5n, offRamp: addressOf(52) },
    { sourceChainSelector: 7n, offRamp: addressOf(71) },
  ];
  const node = answeringNode({
    answer: ({ to, data }) => {
      if (data === abi.getOffRamps.selector)
        return encodeAbiParameters(abi.getOffRamps.outputs, [to === router ? offRamps : []]);
      // The lane to 7 is closed.
      return words(data === abi.callOf(abi.getOnRamp, router, 5n).data ? addressOf(50) : 0n);
    },
  });
  const named = await currentRegistrations(node, [router, other]);
  expect(node.batches).toEqual([
    [router, other].map((address) => abi.callOf(abi.getOffRamps, address)),
    [5n, 7n].map((selector) => abi.callOf(abi.getOnRamp, router, selector)),
  ]);
  expect(named).toEqual([
    { address: addressOf(51), role: 'offRamp', selector: '5', namedBy: router },
    { address: addressOf(52), role: 'offRamp', selector: '5', namedBy: router },
    { address: addressOf(71), role: 'offRamp', selector: '7', namedBy: router },
    { address: addressOf(50), role: 'onRamp', selector: '5', namedBy: router },
  ]);
});

describe('with the real contracts', () => {
  let lab: Lab;
  beforeAll(async () => {
    lab = await startLab();
  });
  afterAll(() => lab?.stop());

  const chainOf = (network: LabNetwork) => {
    const chain = createChain(labSource(network), { userAgent: 'test' });
    onTestFinished(() => chain.close());
    return chain;
  };

  const readLab = async (network: LabNetwork) => {
    const chain = chainOf(network);
    const history = await chain.run((node) => readHistory(node, chain, network));
    expect(history.refused).toEqual([]);
    return history;
  };

  const laneContracts = (registry: ReadonlyMap<Hex, GenuineContract>, role: ContractRole) =>
    [...registry.values()]
      .filter((contract) => contract.role === role)
      .map(({ address, version }) => `${version} ${address}`)
      .sort();

  it('finds the ramps of every version, what they were deployed with, and whom they lead to', async () => {
    for (const network of lab.networks) {
      const { book: registry } = await readLab(network);
      const outward = lab.lanes.filter(({ from }) => from === network.key);
      const inward = lab.lanes.filter(({ to }) => to === network.key);
      expect(laneContracts(registry, 'router')).toHaveLength(Object.keys(network.routers).length);
      expect(laneContracts(registry, 'onRamp')).toEqual(
        outward.map(({ version, ramps }) => `${version}.0 ${ramps.onRamp.address}`).sort(),
      );
      expect(laneContracts(registry, 'offRamp')).toEqual(
        inward.map(({ version, ramps }) => `${version}.0 ${ramps.offRamp.address}`).sort(),
      );
      const other = lab.networks.find((candidate) => candidate !== network);
      for (const { version, ramps } of inward.filter(({ ramps }) => ramps.commitStore)) {
        const commitStore = ramps.commitStore?.address as Hex;
        expect(registry.get(ramps.offRamp.address)).toMatchObject({
          commitStore,
          onRamp: ramps.onRamp.address,
          sourceChainSelector: String(other?.selector),
        });
        expect(registry.get(commitStore)).toMatchObject({
          role: 'commitStore',
          version: `${version}.0`,
          offRamp: ramps.offRamp.address,
          onRamp: ramps.onRamp.address,
          namedBy: ramps.offRamp.address,
        });
      }
      expect([...registry.values()].some(({ typeAndVersion }) => typeAndVersion === 'RMN 1.5.0')).toBe(true);
    }
  });

  it('finds by the routers’ views whom they name now, by their history also whom they no longer do', async () => {
    const lane = lab.lane('1.6', 'a');
    const { before, after } = await lane.replaceRamps();
    for (const network of [lab.a, lab.b]) {
      const [oldRamp, newRamp] =
        network === lab.a ? [before.onRamp, after.onRamp] : [before.offRamp, after.offRamp];
      const { book: registry } = await readLab(network);
      expect(registry.get(oldRamp.address)?.version).toBe('1.6.0');
      expect(registry.get(newRamp.address)?.version).toBe('1.6.0');
      const current = await chainOf(network).run((node) =>
        currentRegistrations(node, Object.values(network.routers)),
      );
      const named = current.map(({ address }) => address);
      expect(named).toContain(newRamp.address);
      expect(named).not.toContain(oldRamp.address);
      expect(named).toHaveLength(2 * Object.keys(network.routers).length);
    }
  });

  it('does not believe a contract that merely speaks like a router', async () => {
    const { book: registry, logs } = await readLab(lab.a);
    const named = logs.find((log) => log.topics[0] === abi.onRampSet.topic) as ChainLog;
    const router = registry.get(named.address) as GenuineContract;
    expect(registrationsIn(named, router)).toHaveLength(1);
    const onRamp = [...registry.values()].find(({ role }) => role === 'onRamp') as GenuineContract;
    expect(registrationsIn(named, onRamp)).toEqual([]);
    // The zero address closes a lane.
    for (const data of [pad('0x'), '0x', '0x1234'] as const)
      expect(registrationsIn({ ...named, data }, router)).toEqual([]);
    expect(registrationsIn({ ...named, topics: named.topics.slice(0, 1) }, router)).toEqual([]);
  });
});
