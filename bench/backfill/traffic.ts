/** What was asked of some endpoints: calls by method, and the time from the first call to the last answer. */
import type { Provider } from '../../test/virtual-chain/endpoint.ts';

export interface Traffic {
  readonly calls: number;
  readonly callsByMethod: Readonly<Record<string, number>>;
  /** From the first call to the last answer. */
  readonly seconds: number;
  /** The most calls to one endpoint within any second. */
  readonly peakPerSecond: number;
}

/** Counts from now on; the result reads the counts. */
export function meterTraffic(providers: readonly Provider[]): () => Traffic {
  const times = providers.map((): number[] => []);
  for (const [index, provider] of providers.entries()) {
    provider.resetCounts();
    provider.onCall = () => times[index]?.push(performance.now());
  }
  return () => {
    const callsByMethod: Record<string, number> = {};
    for (const { callsByMethod: counted } of providers)
      for (const [method, calls] of counted) callsByMethod[method] = (callsByMethod[method] ?? 0) + calls;
    const all = times.flat().sort((one, other) => one - other);
    const [first = 0, last = 0] = [all[0], all.at(-1)];
    const latencyMs = Math.max(...providers.map(({ profile }) => profile.latencyMs ?? 0));
    return {
      calls: all.length,
      callsByMethod,
      seconds: (last - first + latencyMs) / 1000,
      peakPerSecond: Math.max(...times.map(peakOf)),
    };
  };
}

function peakOf(times: readonly number[]): number {
  let from = 0;
  let peak = 0;
  for (const [index, time] of times.entries()) {
    while ((times[from] ?? time) <= time - 1_000) from++;
    peak = Math.max(peak, index - from + 1);
  }
  return peak;
}
