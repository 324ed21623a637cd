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
import { EVMChain, type SdkEvmChain, type SdkWallet, silent } from './sdk-chain.ts';

export type { Blessing, Commit, Ramps, SentMessage, VerifierResults } from './deployment.ts';
export { PERMISSIONLESS_AFTER_SECONDS } from './deployment.ts';
export { FIRST_FREE_ACCOUNT, type Version, versions } from './foundation.ts';
export { type Execution, type Lane, NotExecuted, type SendOptions } from './lane.ts';
export type { Contract, Fork, NetworkKey, RawBlock, RawLog, RawReceipt, Reorganisation } from './network.ts';

export interface LabOptions {
  /** Default: all. */
  readonly versions?: readonly Version[];
  /** A block every so many milliseconds, from when the lab is ready. */
  readonly blockEveryMs?: number;
}

export interface LabNetwork extends Network {
  /** As the official client calls it. */
  readonly name: string;
  /** Of the versions that the lab has. */
  readonly routers: Readonly<Partial<Record<Version, Hex>>>;
  /** By version and name; the ramps are the present ones (`onRamp` sends from here, `offRamp` receives here). */
  readonly contracts: Readonly<Partial<Record<Version, Readonly<Record<string, Hex>>>>>;
  /** Tokens, receiver and the sender that is a contract. */
  readonly foundation: Foundation;
  /** The official client on this network, with nothing but the chain to read from. A new one, for it remembers heads. */
  sdk(): Promise<SdkEvmChain>;
  /** One of the node's accounts as the official client wants its wallets. */
  sdkWallet(account?: Hex): Promise<SdkWallet>;
}

export interface Lab {
  readonly a: LabNetwork;
  readonly b: LabNetwork;
  readonly networks: readonly [LabNetwork, LabNetwork];
  readonly lanes: readonly Lane[];
  /** The lane of a version that starts at a network. */
  lane(version: Version, from?: NetworkKey): Lane;
  /** The lane that a message took. */
  laneOf(message: Pick<SentMessage, 'version' | 'from'>): Lane;
  network(key: NetworkKey): LabNetwork;
  /** Moves the clocks of both networks. */
  travel(seconds: number): Promise<void>;
  stop(): Promise<void>;
}

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

export async function startLab(options: LabOptions = {}): Promise<Lab> {
  const { versions: wanted = versions, blockEveryMs = 0 } = options;
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
    const lane: Lab['lane'] = (version, from = 'a') => {
      const found = lanes.find((lane) => lane.version === version && lane.from === from);
      if (!found) throw new Error(`This lab was started without ${version}.`);
      return found;
    };
    return {
      ...networks,
      networks: [networks.a, networks.b],
      lanes,
      lane,
      laneOf: ({ version, from }) => lane(version, from),
      network: (key) => networks[key],
      async travel(seconds) {
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
      return createNetwork({ key, chainId, selector, accounts, node });
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
): LabNetwork {
  const { key } = network;
  const clients: SdkEvmChain[] = [];
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
    name: chains[key].name,
    foundation,
    routers: Object.fromEntries(deployments.map(({ version, routers }) => [version, routers[key].address])),
    get contracts() {
      return Object.fromEntries(
        deployments.map(({ version, contracts }) => [version, { ...contracts[key], ...rampsOf(version) }]),
      );
    },
    sdk,
    async sdkWallet(account = accountAt(network, 0)) {
      return (await sdk()).provider.getSigner(account);
    },
    async stop() {
      for (const client of clients) client.destroy();
      await network.stop();
    },
  };
}
