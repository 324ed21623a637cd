/**
 * Confirmation of events by a second endpoint: an endpoint can invent logs of genuine contracts, and nothing else in its
 * answers would show it.
 *
 * Logs of trusted contracts count when another endpoint shows the same. Where another one has the block and not the logs,
 * the endpoint that showed them is at fault. Where no other can tell, because it is away or no longer has logs that old,
 * reading waits for a while; then the logs count, and their blocks are noted for a review (checks/unconfirmed-blocks.ts). A single
 * configured endpoint is believed: there is nobody to ask.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { BlockId } from '../../store/ledger/index-ledger.ts';
import { NodeError, RangeTooLargeError, RequestRejectedError } from '../engine/faults.ts';
import { createPatience } from '../engine/patience.ts';
import { mayHaveLogs } from './bloom.ts';
import { watchedTopics } from './contracts/contracts.ts';
import type { Chain, ChainLog, ChainNode, Hex } from './rpc/chain.ts';

/** Others may be a moment behind the endpoint that has shown a new block. */
const BEHIND_MS = 2_000;
const LOOK_AGAIN_MS = 100;

export interface Confirmation {
  /**
   * Throws a NodeError where another endpoint denies one of these logs.
   *
   * @param isFinal whether the blocks cannot be abandoned any more
   */
  confirm(node: ChainNode, logs: readonly ChainLog[], isFinal: boolean): Promise<void>;
}

export interface ConfirmationOptions {
  readonly chain: Chain;
  /** How long endpoints that are away are waited for. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
  /** Called with blocks whose logs only one endpoint has shown, before they are stored. */
  readonly noteDoubts: (witness: string, blocks: readonly BlockId[]) => Promise<void>;
}

/** For readers without a store. */
export const unconfirmed: Confirmation = { confirm: async () => undefined };

/** The logs of a block that an endpoint has shown. */
interface Claim {
  readonly number: number;
  readonly hash: Hex;
  readonly logs: readonly ChainLog[];
}

/** `lacks`: the endpoint does not have the block or its logs, which says nothing of the claim. */
type Opinion = 'has' | 'denies' | 'lacks';

export function createConfirmation(options: ConfirmationOptions): Confirmation {
  const { chain, waitMs, signal, noteDoubts } = options;
  /** How many blocks endpoints have accepted in one request, by name, where they rejected more. */
  const longest = new Map<string, number>();
  const patience = createPatience(waitMs);

  /** Logs of these blocks by as few requests as the endpoint allows. Those that it does not show are left. */
  const notShown = async (other: ChainNode, claims: readonly Claim[]): Promise<readonly Claim[]> => {
    const addresses = [...new Set(claims.flatMap(({ logs }) => logs.map(({ address }) => address)))];
    const left: Claim[] = [];
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
  const opinionOn = async (other: ChainNode, claim: Claim, isFinal: boolean): Promise<Opinion> => {
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

  const opinionsOn = async (
    other: ChainNode,
    claims: readonly Claim[],
    isFinal: boolean,
  ): Promise<ReadonlyMap<Hex, Opinion>> => {
    const opinions = new Map<Hex, Opinion>(claims.map(({ hash }) => [hash, 'lacks']));
    try {
      const doubtful = isFinal ? await notShown(other, claims) : claims;
      for (const claim of claims) if (!doubtful.includes(claim)) opinions.set(claim.hash, 'has');
      for (const claim of doubtful) opinions.set(claim.hash, await opinionOn(other, claim, isFinal));
    } catch (error) {
      // It works, and does not answer for these blocks.
      if (!(error instanceof RequestRejectedError)) throw error;
    }
    return opinions;
  };

  /** Asks all others until each claim has been confirmed: those that are left, and whether all others have answered. */
  const ask = async (node: ChainNode, claims: readonly Claim[], isFinal: boolean) => {
    let left = claims;
    let answers = 0;
    const deniers = new Map<Claim, readonly string[]>();
    const work = async (other: ChainNode) => ({
      name: other.name,
      opinions: await opinionsOn(other, left, isFinal),
    });
    for await (const { name, opinions } of chain.opinions(
      node,
      work,
      isFinal ? claims.at(-1)?.number : undefined,
    )) {
      answers++;
      left = left.filter(({ hash }) => opinions.get(hash) !== 'has');
      for (const claim of left)
        if (opinions.get(claim.hash) === 'denies') deniers.set(claim, [...(deniers.get(claim) ?? []), name]);
      if (left.length === 0) break;
    }
    const denied = left.find((claim) => deniers.has(claim));
    if (denied)
      throw new NodeError(
        `${node.name} shows logs of block ${denied.number} that ${deniers.get(denied)?.join(' and ')} does not have`,
      );
    return { left, areAllAsked: answers === chain.health().length - 1 };
  };

  /** Two endpoints that lie at different times must not confirm each other: after a wait both have to say the same at once. */
  const requireStillShown = async (
    node: ChainNode,
    claims: readonly Claim[],
    isFinal: boolean,
  ): Promise<void> => {
    const opinions = await opinionsOn(node, claims, isFinal);
    const gone = claims.find(({ hash }) => opinions.get(hash) !== 'has');
    if (gone)
      throw new NodeError(`${node.name} no longer shows the logs of block ${gone.number} that it has shown`);
  };

  /** Whether others are to be asked again, or the claims count as they are. */
  const isWaiting = (areAllAsked: boolean, isFinal: boolean, begunAt: number): boolean =>
    areAllAsked ? !isFinal && performance.now() - begunAt < Math.min(BEHIND_MS, waitMs) : patience.isLeft();

  return {
    async confirm(node, logs, isFinal) {
      if (logs.length === 0 || chain.health().length === 1) return;
      const claims = claimsOf(logs);
      let left = claims;
      let hasWaited = false;
      for (const begunAt = performance.now(); ; await delay(LOOK_AGAIN_MS, undefined, { signal })) {
        const outcome = await ask(node, left, isFinal);
        left = outcome.left;
        if (left.length === 0) {
          patience.renew();
          if (hasWaited) await requireStillShown(node, claims, isFinal);
          return;
        }
        if (!isWaiting(outcome.areAllAsked, isFinal, begunAt)) break;
        hasWaited = true;
      }
      await noteDoubts(
        node.name,
        left.map(({ number, hash }) => ({ number, hash })),
      );
    },
  };
}

function claimsOf(logs: readonly ChainLog[]): readonly Claim[] {
  const claims = new Map<Hex, Claim & { readonly logs: ChainLog[] }>();
  for (const log of logs) {
    const known = claims.get(log.blockHash);
    if (known) known.logs.push(log);
    else claims.set(log.blockHash, { number: log.blockNumber, hash: log.blockHash, logs: [log] });
  }
  return [...claims.values()];
}

/** What a log says. Its index is left out: some nodes count it in the block, some in the transaction. */
export function keyOf({ blockHash, transactionHash, address, topics, data }: ChainLog): string {
  return [blockHash, transactionHash, address, ...topics, data].join(' ');
}

function keysOf(logs: readonly ChainLog[]): ReadonlySet<string> {
  return new Set(logs.map(keyOf));
}

function isShown({ logs }: Claim, shown: ReadonlySet<string>): boolean {
  return logs.every((log) => shown.has(keyOf(log)));
}
