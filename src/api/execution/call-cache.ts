/**
 * Cache of those simulated calls of one message that no gas limit changes, such as the one for its state: visitors try several
 * limits, and each trial would ask again.
 */
import type { CallOutcome, DestinationCalls } from '../../domain/manual-execution/diagnosis.ts';

interface Remembered {
  readonly outcome: Promise<CallOutcome>;
  /** On the clock of performance.now(). */
  readonly validUntil: number;
}

/** @param cacheable the data of calls whose outcome no gas limit changes */
export function cacheCalls(
  destination: DestinationCalls,
  cacheable: readonly string[],
  ttlMs: number,
): DestinationCalls {
  const known = new Map<string, Remembered>();

  return {
    async simulate(calls) {
      for (const [data, { validUntil }] of known) if (validUntil <= performance.now()) known.delete(data);
      const missing = calls.filter(({ data }) => !known.has(data));
      // The block is that of the calls which are sent now.
      const sent = missing.length > 0 ? missing : calls;
      const answer = destination.simulate(sent);
      const validUntil = performance.now() + ttlMs;
      const outcomes = calls.map((call): Promise<CallOutcome> => {
        const earlier = known.get(call.data);
        if (earlier && missing.length > 0) return earlier.outcome;
        const outcome = answer.then(({ outcomes }) => outcomes[sent.indexOf(call)] as CallOutcome);
        if (!cacheable.includes(call.data)) return outcome;
        known.set(call.data, { outcome, validUntil });
        // Whoever waits for it sees the failure; whoever comes next asks again.
        outcome.catch(() => known.delete(call.data));
        return outcome;
      });
      const [{ block }, ...found] = await Promise.all([answer, ...outcomes]);
      return { block, outcomes: found };
    },
    estimateGas: (calls) => destination.estimateGas(calls),
  };
}
