/** The course of a chain as a seed has it: its head climbs, leaves the final chain for a branch, and comes back. */
import type { Randomness } from '../../src/ingest/demo/randomness.ts';
import { FINALITY } from '../chain/indexing.ts';
import { type ChainView, type RecordedChain, viewOf } from './recorded-chain.ts';

/**
 * The views that the head of a chain has one after the other, the last being the whole chain. No view takes back more
 * blocks than `FINALITY` of the one before.
 */
export function chooseTimeline(
  { chain, branches }: RecordedChain,
  firstHead: number,
  randomness: Randomness,
): readonly ChainView[] {
  const last = chain.length - 1;
  const ordered = [...branches].sort((a, b) => a.forkNumber - b.forkNumber);
  // Much of the chain is history when some indexers start, nothing is when others do.
  let height = randomness.chance(0.3)
    ? firstHead
    : randomness.integer(firstHead, Math.floor((firstHead + 2 * last) / 3));
  const views = [viewOf(chain, height)];
  const climb = (to: number) => {
    while (height < to) {
      const left = to - height;
      // A long way is gone in leaps: there may be nothing on it.
      const isLeap = left > 200 && randomness.chance(0.5);
      const step = isLeap ? randomness.integer(100, left) : randomness.pick([1, 1, 2, 3, 5, 8, 20]);
      height = Math.min(to, height + step);
      views.push(viewOf(chain, height));
    }
  };
  for (const branch of ordered) {
    const { forkNumber } = branch;
    if (forkNumber < height || randomness.chance(0.15)) continue;
    // First a little way along the chain that will be the final one, for both branches are new to an indexer.
    climb(
      forkNumber +
        (randomness.chance(0.4) ? randomness.integer(0, Math.min(FINALITY, last - forkNumber)) : 0),
    );
    for (let visits = randomness.chance(0.2) ? 2 : 1; visits > 0; visits--) {
      const longest = Math.min(FINALITY, branch.blocks.length);
      for (
        let length = randomness.integer(1, longest);
        length <= longest;
        length += randomness.integer(1, 3)
      ) {
        views.push(viewOf(chain, forkNumber + length, branch));
        height = forkNumber + length;
      }
      // The other branch is longer as a rule; at times it is just another one.
      height = Math.min(last, height + (randomness.chance(0.8) ? 1 : 0));
      views.push(viewOf(chain, height));
      if (height > forkNumber + FINALITY) break;
    }
  }
  climb(last);
  return views;
}
