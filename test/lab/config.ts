/** The lab's networks as lanescan.yaml names them. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { stringify } from 'yaml';
import type { Lab, LabNetwork, NetworkKey } from './lab.ts';

export interface ConfigurationOptions {
  /** Blocks behind the head that count as final. Default 5. */
  readonly finality?: number;
  readonly requestsPerSecond?: number;
  readonly pollSeconds?: number;
  /** Other endpoints than the nodes themselves, such as proxies in front of them. */
  readonly rpc?: Readonly<Record<NetworkKey, readonly string[]>>;
  /** Further keys, or others, of each network. */
  readonly extra?: (network: LabNetwork) => Readonly<Record<string, unknown>>;
  /** Further networks as they stand. */
  readonly others?: readonly Readonly<Record<string, unknown>>[];
}

export function labConfiguration(lab: Lab, options: ConfigurationOptions = {}): string {
  const { finality = 5, requestsPerSecond = 5000, pollSeconds = 0.5 } = options;
  return stringify({
    networks: [
      ...lab.networks.map((network) => ({
        network: network.name,
        rpc: options.rpc?.[network.key] ?? [network.url],
        routers: Object.values(network.routers),
        start: 0,
        finality,
        requestsPerSecond,
        pollSeconds,
        ...options.extra?.(network),
      })),
      ...(options.others ?? []),
    ],
  });
}

/** Writes it into a folder and says where it is. */
export function writeConfiguration(lab: Lab, folder: string, options: ConfigurationOptions = {}): string {
  const file = path.join(folder, 'lanescan.yaml');
  writeFileSync(file, labConfiguration(lab, options));
  return file;
}
