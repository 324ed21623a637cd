/** What an indexer makes of endpoints: everything, or less and it says so, or less in silence, which must never be. */
import { findingKinds } from '../../src/domain/networks/index-findings.ts';
import type { Store } from '../../src/store/store.ts';
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
  const reasons: string[] = [];
  for (const { network, worker } of indexed.statuses) {
    if ((worker?.failedRanges ?? 0) > 0)
      reasons.push(`${network.name}: ${worker?.failedRanges} failed ranges`);
    if (worker?.stuckBecause) reasons.push(`${network.name}: given up: ${worker.stuckBecause}`);
    if (worker?.problem) reasons.push(`${network.name}: ${worker.problem}`);
    for (const { kind, detail } of await store.index.checks.findings(network.selector))
      if (findingKinds[kind].isLoss) reasons.push(`${network.name}: ${kind}: ${detail}`);
  }
  if (differences.length === 0) return { kind: 'complete', reasons, differences };
  const kind = reasons.length > 0 ? 'incomplete and said so' : 'incomplete in silence';
  return { kind, reasons, differences };
}
