/**
 * The registry of chain families: the one place that knows which families can be indexed.
 *
 * Settings are loaded with the configuration; the code that reads chains, and its libraries, only by the commands that
 * need them.
 */
import type { TUnsafe } from 'typebox';
import type {
  ChainFamily,
  DestinationCallsOptions,
  NetworkReport,
  NetworkSource,
  ProbeOptions,
} from './engine/family.ts';
import type { ConnectNetwork } from './engine/indexer.ts';
import { networksSettingOf } from './engine/settings.ts';
import { evmSettings } from './evm/settings.ts';
import { svmSettings } from './svm/settings.ts';

interface Family {
  /** Reads the sources that this family is given. */
  readonly settings: TUnsafe<NetworkSource>;
  load(): Promise<ChainFamily<never>>;
}

const families = {
  EVM: { settings: evmSettings, load: async () => (await import('./evm/family.ts')).evmFamily },
  SVM: { settings: svmSettings, load: async () => (await import('./svm/family.ts')).svmFamily },
} satisfies Partial<Record<NetworkSource['network']['family'], Family>>;

export const networksSetting = networksSettingOf(families);

export const connectNetwork: ConnectNetwork = async (source, options) =>
  (await familyOf(source)).connect(source, options);

export async function probeNetwork(source: NetworkSource, options: ProbeOptions): Promise<NetworkReport> {
  return (await familyOf(source)).probe(source, options);
}

/** Whether executions on a network can be simulated. */
export function canSimulate({ network }: NetworkSource): boolean {
  return network.family === 'EVM';
}

/** Opens the endpoints of a network for simulated calls; undefined for a family whose executions cannot be simulated. */
export async function openDestinationCalls(source: NetworkSource, options: DestinationCallsOptions) {
  return (await familyOf(source)).openCalls?.(source, options);
}

async function familyOf({ network }: NetworkSource): Promise<ChainFamily<NetworkSource>> {
  const family = (families as Partial<Record<string, Family>>)[network.family];
  if (!family) throw new Error(`There is no code to read networks of the family ${network.family}`);
  // The source was made by this family's settings: both are chosen by `network.family`.
  return (await family.load()) as unknown as ChainFamily<NetworkSource>;
}
