/** The configured networks as destinations on which executions are simulated. Each is connected to when it is first asked. */
import { setMaxListeners } from 'node:events';
import type { Destination, Destinations } from '../../api/execution/diagnoses.ts';
import type { DestinationCallsOptions, NetworkSource } from '../../ingest/engine/family.ts';
import { canSimulate, openDestinationCalls } from '../../ingest/families.ts';
import { lanescanVersion } from '../version.ts';
import type { Config } from './config.ts';

/** Of an endpoint's rate, for diagnoses. */
const DIAGNOSIS_SHARE = 1 / 5;

export function createDestinations({
  sources,
  signal,
  writeLog,
}: Pick<DestinationCallsOptions, 'signal' | 'writeLog'> & {
  readonly sources: readonly NetworkSource[];
}): Destinations {
  // Each network that is opened listens.
  setMaxListeners(0, signal);
  const opened = new Map<string, Promise<Destination | undefined>>();
  const open = async (chainSelector: string): Promise<Destination | undefined> => {
    const source = sources.find(({ network }) => network.selector === chainSelector);
    if (!source) return undefined;
    const userAgent = `lanescan/${lanescanVersion}`;
    const calls = await openDestinationCalls(source, { userAgent, signal, writeLog });
    return calls && { calls, callsPerSecond: DIAGNOSIS_SHARE * source.requestsPerSecond };
  };
  return {
    destinationOf(chainSelector) {
      // A selector comes from a stored message: there are as many as networks.
      const destination = opened.get(chainSelector) ?? open(chainSelector);
      opened.set(chainSelector, destination);
      return destination;
    },
  };
}

/**
 * The sources as an indexer reads them. Where executions are simulated for visitors, it leaves their share of the rate to
 * servers: these are other processes, and together they stay within what the endpoint allows.
 */
export function sourcesToIndex(sources: readonly NetworkSource[], { diagnosis }: Pick<Config, 'diagnosis'>) {
  if (!diagnosis) return sources;
  return sources.map((source) =>
    canSimulate(source)
      ? { ...source, requestsPerSecond: (1 - DIAGNOSIS_SHARE) * source.requestsPerSecond }
      : source,
  );
}
