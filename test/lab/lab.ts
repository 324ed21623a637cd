/**
 * The lab: two local networks with the real contracts of every version, lanes both ways, and a hand on all of it.
 *
 * @example
 * const lab = await startLab({ versions: ['1.6'] });
 * const lane = lab.lane('1.6', 'a');
 * const message = await lane.sendOne({ data: '0x1234' });
 * await lane.commit([message]);
 * await lane.execute(message, { fail: true });
 * await lane.executeByHand(message);
 * await lab.stop();
 */
import type { Hex } from 'viem';
import { deploy12, deploy15 } from './deploy-1.5.ts';
import { deploy16 } from './deploy-1.6.ts';
import { deploy20 } from './deploy-2.0.ts';
import type { Deployment, SentMessage } from './deployment.ts';
import {
  accountAt,
  type Foundation,
  type Foundations,
  layFoundation,
  type Version,
  versions,
} from './foundation.ts';
import { type Lane, openLane } from './lane.ts';
import { createNetwork, createRpc, type Network, type NetworkKey } from './network.ts';
import { startNode } from './nodes.ts';
import { EVMChain, type SdkEvmChain, silent } from './sdk-chain.ts';

export type { Ramps, SentMessage } from './deployment.ts';
export { PERMISSIONLESS_AFTER_SECONDS } from './deployment.ts';
export { FIRST_FREE_ACCOUNT, type Version, versions } from './foundation.ts';
export { type Execution, type Lane, NotExecuted, type SendOptions } from './lane.ts';
export type { Contract, NetworkKey, RawLog } from './network.ts';

export type LabNetwork = ReturnType<typeof labNetwork>;
export type Lab = Awaited<ReturnType<typeof startLab>>;

const chains = {
  a: { name: 'geth-testnet', chainId: 1337, selector: 3379446385462418246n },
  b: { name: 'anvil-devnet', chainId: 31337, selector: 7759470850252068959n },
} as const;

const deployers: Readonly<Record<Version, (foundations: Foundations) => Promise<Deployment>>> = {
  '1.2': deploy12,
  '1.5': deploy15,
  '1.6': deploy16,
  '2.0': deploy20,
};

/** @param blockEveryMs a block every so many milliseconds, from when the lab is ready; 0: with each transaction */
export async function startLab({
  versions: wanted = versions,
  blockEveryMs = 0,
}: {
  readonly versions?: readonly Version[];
  readonly blockEveryMs?: number;
} = {}) {
  const [a, b] = await startNetworks();
  try {
    const [foundationA, foundationB] = await Promise.all([layFoundation(a), layFoundation(b)]);
    const foundations = { a: foundationA, b: foundationB };
    const deployed = await Promise.all(
      wanted.map(async (version) => {
        const deployment = await deployers[version](foundations);
        const lanes = await Promise.all([
          openLane(deployment, foundations, 'a'),
          openLane(deployment, foundations, 'b'),
        ]);
        return { deployment, lanes };
      }),
    );
    if (blockEveryMs > 0) for (const { rpc } of [a, b]) await rpc('evm_setIntervalMining', [blockEveryMs]);
    const deployments = deployed.map(({ deployment }) => deployment);
    const lanes = deployed.flatMap((version) => version.lanes);
    const networks = {
      a: labNetwork(a, foundationA, deployments, lanes),
      b: labNetwork(b, foundationB, deployments, lanes),
    };
    /** The lane of a version that starts at a network. */
    const lane = (version: Version, from: NetworkKey = 'a'): Lane => {
      const found = lanes.find((lane) => lane.version === version && lane.from === from);
      if (!found) throw new Error(`This lab was started without ${version}.`);
      return found;
    };
    return {
      ...networks,
      networks: [networks.a, networks.b] as const,
      lanes,
      lane,
      /** The lane that a message took. */
      laneOf: ({ version, from }: Pick<SentMessage, 'version' | 'from'>) => lane(version, from),
      network: (key: NetworkKey) => networks[key],
      /** Moves the clocks of both networks. */
      async travel(seconds: number) {
        await Promise.all([a.travel(seconds), b.travel(seconds)]);
      },
      async stop() {
        await Promise.all([networks.a.stop(), networks.b.stop()]);
      },
    };
  } catch (error) {
    await Promise.all([a.stop(), b.stop()]);
    throw error;
  }
}

async function startNetworks(): Promise<readonly [Network, Network]> {
  const outcomes = await Promise.allSettled(
    (['a', 'b'] as const).map(async (key) => {
      const { chainId, selector } = chains[key];
      const node = await startNode({ chainId });
      const accounts = await createRpc(node.url)<Hex[]>('eth_accounts');
      return createNetwork(node, { key, chainId, selector, accounts });
    }),
  );
  const [a, b] = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  if (a && b) return [a, b];
  await a?.stop();
  throw outcomes.find((outcome) => outcome.status === 'rejected')?.reason;
}

function labNetwork(
  network: Network,
  foundation: Foundation,
  deployments: readonly Deployment[],
  lanes: readonly Lane[],
) {
  const { key } = network;
  const clients: SdkEvmChain[] = [];
  /** The official client on this network, with nothing but the chain to read from. A new one, for it remembers heads. */
  const sdk = async () => {
    const client = await EVMChain.fromUrl(network.url, { apiClient: null, logger: silent });
    clients.push(client);
    return client;
  };
  const rampsOf = (version: Version): Readonly<Record<string, Hex>> => {
    const out = lanes.find((lane) => lane.version === version && lane.from === key)?.ramps;
    const back = lanes.find((lane) => lane.version === version && lane.to === key)?.ramps;
    return {
      ...(out && { onRamp: out.onRamp.address }),
      ...(back && { offRamp: back.offRamp.address }),
      ...(back?.commitStore && { commitStore: back.commitStore.address }),
    };
  };
  return {
    ...network,
    /** As the official client calls it. */
    name: chains[key].name,
    /** Tokens, receiver and the sender that is a contract. */
    foundation,
    /** Of the versions that the lab has. */
    routers: Object.fromEntries(
      deployments.map(({ version, routers }) => [version, routers[key].address]),
    ) as Readonly<Partial<Record<Version, Hex>>>,
    /** By version and name; the ramps are the present ones (`onRamp` sends from here, `offRamp` receives here). */
    get contracts(): Readonly<Partial<Record<Version, Readonly<Record<string, Hex>>>>> {
      return Object.fromEntries(
        deployments.map(({ version, contracts }) => [version, { ...contracts[key], ...rampsOf(version) }]),
      );
    },
    sdk,
    /** One of the node's accounts as the official client wants its wallets. */
    async sdkWallet() {
      return (await sdk()).provider.getSigner(accountAt(network, 0));
    },
    async stop() {
      for (const client of clients) client.destroy();
      await network.stop();
    },
  };
}
