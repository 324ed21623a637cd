/** The block in which the first router was deployed, by bisection over `eth_getCode`: there is no history below it. */
import type { ChainNode, Hex } from '../rpc/chain.ts';

/** Blocks that are asked about in one request: with three, a chain of 25 million blocks takes 13 round trips. */
const PROBES = 3;

/** Accounts that have had a balance since the early days of every public chain: people burn coins by sending them there. */
const burners: readonly Hex[] = [`0x${'00'.repeat(20)}`, '0x000000000000000000000000000000000000dead'];

/**
 * Undefined where the node does not have the state of old blocks. Not all nodes say so. Some answer with the current code
 * for every block: the answer counts only if there is no code at the beginning of the chain. Others answer that there is
 * no code: it counts only if some account has a balance just before the deployment.
 */
export async function findDeployment(
  node: ChainNode,
  routers: readonly Hex[],
  headNumber: number,
): Promise<number | undefined> {
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
