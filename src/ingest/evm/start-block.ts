/** The block where the configured history begins. */
import type { Block, ChainNode } from './rpc/chain.ts';
import type { EvmSource } from './settings.ts';

/** Undefined where history begins with the deployment of the first router. */
export async function startBlockOf(
  node: ChainNode,
  start: EvmSource['start'],
  head: Block,
): Promise<number | undefined> {
  if (start === null) return undefined;
  return 'block' in start ? start.block : blockAtTime(node, start.time, head);
}

/** The first block at or after a time (milliseconds since 1970), by bisection. A future time is above the head. */
async function blockAtTime(node: ChainNode, time: number, head: Block): Promise<number> {
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
