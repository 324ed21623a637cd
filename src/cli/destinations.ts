/** The configured networks as destinations on which executions are simulated. Each is connected to when it is first asked. */
import { setMaxListeners } from 'node:events';
import type { Destinations } from '../api/diagnoses.ts';
import type { DestinationCalls } from '../domain/manual-execution/diagnosis.ts';
import type { DestinationCallsOptions, NetworkSource } from '../ingest/chain/family.ts';
import { openDestinationCalls } from '../ingest/families.ts';
import { lanescanVersion } from './version.ts';

export interface DestinationsOptions extends Pick<DestinationCallsOptions, 'signal' | 'notice'> {
  readonly sources: readonly NetworkSource[];
}

export function createDestinations({ sources, signal, notice }: DestinationsOptions): Destinations {
  // Each network that is opened listens.
  setMaxListeners(0, signal);
  const opened = new Map<string, Promise<DestinationCalls | undefined>>();
  const open = async (chainSelector: string) => {
    const source = sources.find(({ network }) => network.selector === chainSelector);
    return (
      source && openDestinationCalls(source, { userAgent: `lanescan/${lanescanVersion}`, signal, notice })
    );
  };
  return {
    callsOf(chainSelector) {
      // A selector comes from a stored message: there are as many as networks.
      const calls = opened.get(chainSelector) ?? open(chainSelector);
      opened.set(chainSelector, calls);
      return calls;
    },
  };
}
