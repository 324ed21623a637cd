/** What was asked of some endpoints: calls by method, and the time from the first call to the last answer. */
import type { Provider } from '../../test/chain/zoo/provider.ts';

export interface Traffic {
  readonly calls: number;
  readonly callsByMethod: Readonly<Record<string, number>>;
  /** From the first call to the last. */
  readonly seconds: number;
}

export interface TrafficMeter {
  read(): Traffic;
}

export function meterTraffic(providers: readonly Provider[]): TrafficMeter {
  let firstAt: number | undefined;
  let lastAt = 0;
  for (const provider of providers) {
    provider.resetCounts();
    provider.onCall = () => {
      lastAt = performance.now();
      firstAt ??= lastAt;
    };
  }
  return {
    read() {
      const callsByMethod: Record<string, number> = {};
      for (const { callsByMethod: counted } of providers)
        for (const [method, calls] of counted) callsByMethod[method] = (callsByMethod[method] ?? 0) + calls;
      const calls = Object.values(callsByMethod).reduce((sum, count) => sum + count, 0);
      const latencyMs = Math.max(...providers.map(({ personality }) => personality.latencyMs ?? 0));
      return { calls, callsByMethod, seconds: (lastAt - (firstAt ?? lastAt) + latencyMs) / 1000 };
    },
  };
}
