/** The slot where the configured history begins. */
import type { NetworkSource } from '../engine/family.ts';
import type { ChainNode, FinalizedHead } from './chain.ts';

/** No slot is shorter, in seconds: so many slots at most lie between two times. */
const SHORTEST_SLOT = 0.35;

/** Undefined where history begins with the first transaction of a router. */
export async function startSlotOf(
  node: ChainNode,
  start: NetworkSource['start'],
  head: FinalizedHead,
): Promise<number | undefined> {
  if (start === null) return undefined;
  return 'block' in start ? start.block : slotAtTime(node, start.time / 1_000, head);
}

/** A slot at or before a time (seconds since 1970), and near it, by bisection. A future time is above the head. */
async function slotAtTime(node: ChainNode, time: number, head: FinalizedHead): Promise<number> {
  if (head.timestamp < time) return head.slot + 1;
  let low = await node.firstAvailableSlot();
  const first = await node.timeAt(low);
  // The node does not have that time. A slot that is certainly before it makes the gap visible.
  if (first !== undefined && first > time) {
    return Math.max(0, low - Math.ceil((first - time) / SHORTEST_SLOT));
  }
  let high = head.slot;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const seconds = await node.timeAt(middle);
    // A long run of skipped slots is taken for later: history then begins somewhat too early, never too late.
    if (seconds === undefined || seconds >= time) high = middle;
    else low = middle + 1;
  }
  return low;
}
