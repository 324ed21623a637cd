/** Where history begins: at the configured block or time, or with the deployment of the first router. */
import type { Block, Chain, ChainNode, Hex } from './rpc/chain.ts';
import type { EvmSource } from './settings.ts';

/** Undefined where history begins with the deployment of the first router. */
export async function startBlockOf(node: ChainNode, start: EvmSource['start'], head: Block) {
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

/**
 * The block below which there is no history; undefined where no endpoint has the state of old blocks, or two of them
 * contradict each other.
 */
export async function confirmedDeployment(
  chain: Chain,
  node: ChainNode,
  routers: readonly Hex[],
  head: Block,
): Promise<number | undefined> {
  const deployed = await findDeployment(node, routers, head.number);
  if (deployed === undefined)
    return chain.secondOpinion(node, (other) => findDeployment(other, routers, head.number));
  const questions = routers.map((address) => ({ address, has: 'code' as const, block: deployed - 1 }));
  const second = await chain.secondOpinion(node, (other) => other.accounts(questions));
  return second?.includes(true) ? undefined : deployed;
}

/** Blocks that are asked about in one request: with three, a chain of 25 million blocks takes 13 round trips. */
const PROBES = 3;

/** Accounts that have had a balance since the early days of every public chain: people burn coins by sending them there. */
const burners: readonly Hex[] = [`0x${'00'.repeat(20)}`, '0x000000000000000000000000000000000000dead'];

/**
 * The block in which the first router was deployed, by bisection over `eth_getCode`: there is no history below it.
 *
 * Undefined where the node does not have the state of old blocks. Not all nodes say so. Some answer with the current code
 * for every block: the answer counts only if there is no code at the beginning of the chain. Others answer that there is
 * no code: it counts only if some account has a balance just before the deployment.
 */
async function findDeployment(node: ChainNode, routers: readonly Hex[], headNumber: number) {
  /** Whether any router has code, for each of these blocks. */
  const haveCode = async (blocks: readonly number[]): Promise<readonly (boolean | undefined)[]> => {
    const answers = await node.accounts(
      blocks.flatMap((block) => routers.map((address) => ({ address, has: 'code' as const, block }))),
    );
    return blocks.map((_, index) => {
      const own = answers.slice(index * routers.length, (index + 1) * routers.length);
      return own.includes(undefined) ? undefined : own.includes(true);
    });
  };

  let empty = Math.min(1, headNumber);
  let deployed = headNumber;
  const [isThere] = await haveCode([empty]);
  if (isThere !== false) return undefined;
  while (deployed - empty > 1) {
    const step = (deployed - empty) / (PROBES + 1);
    const probes = Array.from({ length: PROBES }, (_, index) => Math.floor(empty + (index + 1) * step));
    const blocks = [...new Set(probes)].filter((block) => block > empty && block < deployed);
    const answers = await haveCode(blocks);
    const first = answers.indexOf(true);
    const isConsistent = !answers.includes(undefined) && (first < 0 || !answers.slice(first).includes(false));
    if (!isConsistent) return undefined;
    empty = blocks[(first < 0 ? blocks.length : first) - 1] ?? empty;
    deployed = blocks[first] ?? deployed;
  }
  const balances = await node.accounts(
    burners.map((address) => ({ address, has: 'balance' as const, block: empty })),
  );
  return balances.includes(true) ? deployed : undefined;
}
