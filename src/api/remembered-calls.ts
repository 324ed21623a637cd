/**
 * Cache of simulated calls of one message: a call that was simulated seconds ago, or is under way, is not sent again. Which
 * state a message has does not depend on the gas limit that a visitor tries.
 */
import { createHash } from 'node:crypto';
import type {
  BlockMoment,
  CallOutcome,
  DestinationCalls,
  SimulatedCall,
} from '../domain/manual-execution/diagnosis.ts';

interface Remembered {
  readonly block: Promise<BlockMoment>;
  readonly outcome: Promise<CallOutcome>;
  /** On the clock of performance.now(). */
  readonly validUntil: number;
}

export function rememberCalls(destination: DestinationCalls, keptMs: number): DestinationCalls {
  const known = new Map<string, Remembered>();

  const send = (calls: ReadonlyMap<string, SimulatedCall>): void => {
    const answer = destination.simulate([...calls.values()]);
    const validUntil = performance.now() + keptMs;
    [...calls.keys()].forEach((key, place) => {
      const remembered: Remembered = {
        block: answer.then(({ block }) => block),
        outcome: answer.then(({ outcomes }) => {
          const outcome = outcomes[place];
          if (!outcome) throw new Error('A simulated call has no outcome.');
          return outcome;
        }),
        validUntil,
      };
      known.set(key, remembered);
      // The caller sees the failure; whoever comes next tries again.
      Promise.all([remembered.block, remembered.outcome]).catch(() => {
        if (known.get(key) === remembered) known.delete(key);
      });
    });
  };

  return {
    async simulate(calls) {
      for (const [key, { validUntil }] of known) if (validUntil <= performance.now()) known.delete(key);
      const keyed = new Map(calls.map((call) => [keyOf(call), call]));
      const missing = new Map([...keyed].filter(([key]) => !known.has(key)));
      if (missing.size > 0) send(missing);
      const found = calls.flatMap((call) => known.get(keyOf(call)) ?? []);
      const [blocks, outcomes] = await Promise.all([
        Promise.all(found.map(({ block }) => block)),
        Promise.all(found.map(({ outcome }) => outcome)),
      ]);
      // Of the oldest answer: what is told holds for no later block.
      const block = blocks.reduce((oldest, other) => (other.number < oldest.number ? other : oldest));
      return { block, outcomes };
    },
    estimateGas: (calls) => destination.estimateGas(calls),
  };
}

function keyOf({ from, to, data }: SimulatedCall): string {
  return createHash('sha256').update(`${from} ${to} ${data}`).digest('hex');
}
