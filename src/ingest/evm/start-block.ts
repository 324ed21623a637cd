/** The first block at or after a time. */
import type { Block, ChainNode } from './chain.ts';

/** `time` is in milliseconds since 1970. A time in the future begins above the head. */
export async function blockAtTime(node: ChainNode, time: number, head: Block): Promise<number> {
  const seconds = time / 1000;
  if (head.timestamp < seconds) return head.number + 1;
  let low = 0;
  let high = head.number;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [block] = await node.blocks([middle]);
    if (block && block.timestamp >= seconds) high = middle;
    else low = middle + 1;
  }
  return low;
}
