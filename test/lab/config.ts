/** The lab's networks as lanescan.yaml names them. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { stringify } from 'yaml';
import type { Lab, LabNetwork, NetworkKey } from './lab.ts';

export interface ConfigurationOptions {
  readonly pollSeconds?: number;
  /** Other endpoints than the nodes themselves, such as proxies in front of them. */
  readonly rpc?: Readonly<Record<NetworkKey, readonly string[]>>;
  /** Further keys, or others, of each network. */
  readonly extra?: (network: LabNetwork) => Readonly<Record<string, unknown>>;
  /** Further networks as they stand. */
  readonly others?: readonly Readonly<Record<string, unknown>>[];
}

/** Writes lanescan.yaml into a folder and says where it is. */
export function writeConfiguration(
  lab: Lab,
  folder: string,
  { pollSeconds = 0.5, rpc, extra, others = [] }: ConfigurationOptions = {},
): string {
  const file = path.join(folder, 'lanescan.yaml');
  const networks = lab.networks.map((network) => ({
    network: network.name,
    rpc: rpc?.[network.key] ?? [network.url],
    routers: Object.values(network.routers),
    start: 0,
    finality: 5,
    requestsPerSecond: 5_000,
    pollSeconds,
    ...extra?.(network),
  }));
  writeFileSync(file, stringify({ networks: [...networks, ...others] }));
  return file;
}
