/** What an indexer makes of endpoints: everything, or less and it says so, or less in silence, which must never be. */
import type { Store } from '../../../src/store/store.ts';
import type { CcipWorld } from './ccip-chain.ts';
import { differencesFrom, type IndexedWorld } from './indexed-world.ts';

export interface Verdict {
  readonly kind: 'complete' | 'incomplete and said so' | 'incomplete in silence';
  /** Why the indexer says that something is missing. */
  readonly reasons: readonly string[];
  readonly differences: readonly string[];
}

export async function judge(world: CcipWorld, store: Store, indexed: IndexedWorld): Promise<Verdict> {
  const differences = await differencesFrom(world, store);
  const reasons = indexed.statuses.flatMap(({ network, worker }) => [
    ...((worker?.failedRanges ?? 0) > 0 ? [`${network.name}: ${worker?.failedRanges} failed ranges`] : []),
    ...(worker?.problem ? [`${network.name}: ${worker.problem}`] : []),
  ]);
  if (differences.length === 0) return { kind: 'complete', reasons, differences };
  const kind = reasons.length > 0 ? 'incomplete and said so' : 'incomplete in silence';
  return { kind, reasons, differences };
}
