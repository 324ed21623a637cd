/**
 * Logs of trusted contracts, held against the logs of a second endpoint. An endpoint that has the block and not the logs
 * denies them. Where no other can tell, because it is away or no longer has logs that old, the logs count, and their blocks
 * are noted for a review (checks/unconfirmed-blocks.ts).
 */
import { groupBy } from '../../store/group-by.ts';
import type { BlockId } from '../../store/ledger/index-ledger.ts';
import type { Claim, Confirmation, Opinion } from '../engine/confirmation.ts';
import { RangeTooLargeError, RequestRejectedError } from '../engine/faults.ts';
import { mayHaveLogs } from './bloom.ts';
import { watchedTopics } from './contracts/abi.ts';
import type { ChainLog, ChainNode, Hex } from './rpc/chain.ts';

export type ConfirmLogs = ReturnType<typeof createLogConfirmation>;

/** The logs of a block that an endpoint has shown. */
interface LogClaim extends Claim {
  readonly number: number;
  readonly hash: Hex;
  readonly logs: readonly ChainLog[];
}

/** @param noteUnconfirmed called with blocks whose logs only one endpoint has shown, before they are stored */
export function createLogConfirmation(
  confirmation: Confirmation<ChainNode>,
  noteUnconfirmed: (witness: string, blocks: readonly BlockId[]) => Promise<void>,
) {
  /** How many blocks endpoints have accepted in one request, by name, where they rejected more. */
  const longest = new Map<string, number>();

  /** Logs of these blocks by as few requests as the endpoint allows. Those that it does not show are left. */
  const notShown = async (other: ChainNode, claims: readonly LogClaim[]): Promise<readonly LogClaim[]> => {
    const addresses = [...new Set(claims.flatMap(({ logs }) => logs.map(({ address }) => address)))];
    const left: LogClaim[] = [];
    let waiting = claims;
    for (;;) {
      const [first] = waiting;
      if (!first) return left;
      const end = first.number + (longest.get(other.name) ?? Infinity);
      const span = waiting.filter(({ number }) => number < end);
      const toBlock = span.at(-1)?.number ?? first.number;
      const request = { fromBlock: first.number, toBlock, topics: watchedTopics, addresses, isBulk: true };
      try {
        const shown = keysOf(await other.logs(request));
        left.push(...span.filter((claim) => !isShown(claim, shown)));
      } catch (error) {
        if (!(error instanceof RangeTooLargeError)) throw error;
        const blocks = toBlock - first.number + 1;
        if (blocks > 1) {
          longest.set(other.name, Math.max(1, Math.min(error.acceptedBlocks ?? Infinity, blocks >> 1)));
          continue;
        }
        left.push(first);
      }
      waiting = waiting.slice(span.length);
    }
  };

  /** By the block's hash: whether the endpoint has the block, and if it does not show the logs, whether it has any. */
  const opinionOn = async (other: ChainNode, claim: LogClaim, isFinal: boolean): Promise<Opinion> => {
    const { number, hash, logs } = claim;
    const header = await other.blockByHash(hash);
    if (!header) {
      if (!isFinal) return 'lacks';
      const [block] = await other.blocks([number]);
      return block?.hash === hash ? 'lacks' : 'denies';
    }
    const addresses = [...new Set(logs.map(({ address }) => address))];
    const [found = []] = await other.logsOfBlocks([hash], watchedTopics, addresses);
    if (isShown(claim, keysOf(found))) return 'has';
    const [inReceipts = []] = (await other.receiptLogs([hash], watchedTopics)) ?? [];
    if (isShown(claim, keysOf(inReceipts))) return 'has';
    if (found.length > 0 || inReceipts.length > 0) return 'denies';
    // One that has pruned its logs answers with none, although the block's filter says that there are some.
    const isEmpty = /^0x0*$/.test(header.logsBloom);
    const hasLogs = await other.hasLogs(hash);
    const mayHave = ({ address, topics }: ChainLog) =>
      topics.every((topic) => mayHaveLogs(header.logsBloom, [address], [topic]));
    const lacks = hasLogs === undefined ? logs.every(mayHave) : !hasLogs && !isEmpty;
    return lacks ? 'lacks' : 'denies';
  };

  const opinionsOn = async (other: ChainNode, claims: readonly LogClaim[], isFinal: boolean) => {
    const opinions = new Map<Hex, Opinion>();
    try {
      const hidden = isFinal ? await notShown(other, claims) : claims;
      for (const claim of claims) if (!hidden.includes(claim)) opinions.set(claim.hash, 'has');
      for (const claim of hidden) opinions.set(claim.hash, await opinionOn(other, claim, isFinal));
    } catch (error) {
      // It works, and does not answer for these blocks.
      if (!(error instanceof RequestRejectedError)) throw error;
    }
    return claims.map(({ hash }) => opinions.get(hash) ?? 'lacks');
  };

  /**
   * Throws a NodeError where another endpoint denies one of these logs.
   *
   * @param isFinal whether the blocks cannot be abandoned any more
   */
  return async (node: ChainNode, logs: readonly ChainLog[], isFinal: boolean): Promise<void> => {
    const claims = claimsOf(logs);
    const unconfirmed = await confirmation.confirm(node, claims, {
      opinionsOn: (other, left) => opinionsOn(other, left, isFinal),
      minimumHead: isFinal ? claims.at(-1)?.number : undefined,
      isNew: !isFinal,
    });
    const blocks = unconfirmed.claims.map(({ number, hash }) => ({ number, hash }));
    if (blocks.length > 0) await noteUnconfirmed(node.name, blocks);
  };
}

function claimsOf(shown: readonly ChainLog[]): readonly LogClaim[] {
  return [...groupBy(shown, ({ blockHash }) => blockHash)].map(([hash, logs]) => {
    const number = logs[0]?.blockNumber ?? 0;
    return { number, hash, logs, what: `logs of block ${number}` };
  });
}

/** What a log says. Its index is left out: some nodes count it in the block, some in the transaction. */
export function keyOf({ blockHash, transactionHash, address, topics, data }: ChainLog): string {
  return [blockHash, transactionHash, address, ...topics, data].join(' ');
}

function keysOf(logs: readonly ChainLog[]): ReadonlySet<string> {
  return new Set(logs.map(keyOf));
}

function isShown({ logs }: LogClaim, shown: ReadonlySet<string>): boolean {
  return logs.every((log) => shown.has(keyOf(log)));
}
