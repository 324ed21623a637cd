/** Writes steps of lives into a store, as the indexer of each network does. */
import type { IndexStep } from '../../src/store/ledger/index-ledger.ts';
import type { Store } from '../../src/store/store.ts';
import { finalHeight, type NetworkStep } from './timeline.ts';

const HOLDER = 'bench:life';
/** Longer than any run. Who holds it may take it again. */
const LEASE_SECONDS = 400 * 86_400;

/**
 * A step with the blocks that the indexer holds until they are final.
 *
 * @param at the time of the chains (ms since 1970)
 */
export function indexStepOf({ facts, orphaned }: NetworkStep, at: number) {
  const blocks = new Map(facts.map(({ seen }) => [seen.blockNumber, seen.blockHash]));
  return {
    facts,
    orphaned,
    blocks: [...blocks].map(([number, hash]) => ({ number, hash })),
    forgetBelow: finalHeight(at),
    // The indexer asked the destination for the policy because of this task.
    tasksDone: facts.flatMap((fact) =>
      fact.kind === 'VerifierPolicy'
        ? [{ messageId: fact.messageId.slice(2), kind: 'policy' as const, attempts: 0 }]
        : [],
    ),
  } satisfies IndexStep;
}

export function createWriter({ index }: Store) {
  const leased = new Set<string>();
  return {
    async write(step: NetworkStep, at: number): Promise<void> {
      const { network } = step;
      if (!leased.has(network)) {
        if (!(await index.lease(network, HOLDER, LEASE_SECONDS)))
          throw new Error(`Another process indexes ${network} in this store.`);
        leased.add(network);
      }
      await index.record(network, HOLDER, indexStepOf(step, at));
    },
  };
}
