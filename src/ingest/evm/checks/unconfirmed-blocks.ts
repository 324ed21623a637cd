/**
 * The review of unconfirmed events: those that only one endpoint has shown, and those that the contracts' counters deny.
 *
 * Their blocks are asked for by hash, from one endpoint after the other, until two agree on what the contracts said in
 * them. What is stored and is not among that is retracted. A single configured endpoint is asked for logs and for receipts,
 * because endpoints leave out logs at times: what it shows in either stays.
 */
import type { Fact } from '../../../domain/facts.ts';
import type { BlockId, FindingKey, IndexFinding, StoredFinding } from '../../../store/ledger/index-ledger.ts';
import { withFinality } from '../../engine/block-readings.ts';
import { RequestRejectedError } from '../../engine/faults.ts';
import { historyRange } from '../../engine/pending-ranges.ts';
import type { Progress } from '../../engine/progress.ts';
import { repairDelay, type WorkerTiming } from '../../engine/timing.ts';
import { watchedTopics } from '../contracts/abi.ts';
import type { Decoder } from '../decode/decoder.ts';
import type { EvmContractRegistry } from '../reading.ts';
import { keyOf } from '../reading.ts';
import { sortLogs } from '../rpc/answers.ts';
import type { Chain, ChainLog, ChainNode, Hex } from '../rpc/chain.ts';

/** Blocks that a finding lists. Of more, only their number is kept. */
const MAX_LISTED = 1_000;
const REVIEWED_AT_ONCE = 50;

/** What a finding keeps for the review. */
export interface ListedBlocks {
  readonly blocks: readonly BlockId[];
  /** How many more there are that are not listed. */
  readonly more: number;
}

/** A block on which two endpoints agree: the events of trusted contracts in it. */
interface Settled {
  readonly block: BlockId;
  readonly isAbsent: boolean;
  readonly facts: readonly Fact[];
}

const reviewedKinds: ReadonlySet<string> = new Set([
  'events-unconfirmed',
  'messages-invented',
  'commits-invented',
]);

export type UnconfirmedBlocks = ReturnType<typeof createUnconfirmedBlocks>;

/** @param recheck called when a review has removed something: the counters are to be compared again */
export function createUnconfirmedBlocks(
  progress: Progress,
  chain: Chain,
  registry: EvmContractRegistry,
  decoder: Decoder,
  recheck: () => void,
) {
  const { selector, timing } = progress;
  const { checks } = progress.ledger;
  /** On performance.now()'s clock. */
  let lookAt = 0;
  let isPending = true;
  /** Endpoints may have come since the last attempt. */
  let isFirstLook = true;
  /** Hashes of blocks with commits that two endpoints have shown although the counter is lower, since the start. */
  const confirmed = new Set<string>();
  const isOnly = () => chain.health().length === 1;

  /** What an endpoint says of a block: its logs, or that it has another block there; undefined where it cannot say. */
  const wordsOn = async (node: ChainNode, { number, hash }: BlockId) => {
    const header = await node.blockByHash(hash as Hex);
    if (!header) {
      const isFinal = number <= (progress.head.final?.number ?? -1);
      const [block] = isFinal ? await node.blocks([number]) : [];
      return block && block.hash !== hash ? { text: 'absent', logs: [] } : undefined;
    }
    const logs = (await shownLogs(node, hash as Hex)).filter(({ address }) =>
      registry.contracts.has(address),
    );
    const isEmpty = /^0x0*$/.test(header.logsBloom);
    if (logs.length === 0 && !isEmpty && (await node.hasLogs(hash as Hex)) !== true) return undefined;
    return { text: logs.map(keyOf).sort().join('\n'), logs };
  };

  const shownLogs = async (node: ChainNode, hash: Hex): Promise<readonly ChainLog[]> => {
    const query = () => node.logsOfBlocks([hash], watchedTopics, [...registry.contracts.keys()]);
    const [found = []] = await query();
    if (!isOnly()) return found;
    const [again = []] = (await node.receiptLogs([hash], watchedTopics)) ?? (await query());
    return sortLogs([...new Map([...again, ...found].map((log) => [keyOf(log), log])).values()]);
  };

  /** Asks one endpoint after the other until two agree on a block; undefined where no two do. */
  const reviewBlock = async (block: BlockId): Promise<Settled | undefined> => {
    const heard = new Set<string>();
    const isEnough = (text: string) => heard.has(text) || isOnly();
    const ask = async (node: ChainNode): Promise<Settled | undefined> => {
      const words = await wordsOn(node, block).catch((error: unknown) => {
        if (error instanceof RequestRejectedError) return undefined;
        throw error;
      });
      if (!words) return undefined;
      const { text, logs } = words;
      if (isEnough(text)) return { block, isAbsent: text === 'absent', facts: await factsOf(node, logs) };
      heard.add(text);
      return undefined;
    };
    for await (const settled of chain.opinions([], ask)) if (settled) return settled;
    return undefined;
  };

  const factsOf = async (node: ChainNode, logs: readonly ChainLog[]): Promise<readonly Fact[]> => {
    const { facts } = await decoder.decode(node, logs, registry.contracts);
    return withFinality(facts, progress.head.final?.number ?? -1, progress);
  };

  const stored = async ({ kind, subject }: FindingKey): Promise<StoredFinding | undefined> =>
    (await checks.findings(selector)).find((finding) => finding.kind === kind && finding.subject === subject);

  /** What is left of a finding when some of its blocks have been reviewed. One that is stuck comes last the next time. */
  const remainder = async (key: FindingKey, done: ReadonlySet<string>, stuck: BlockId | undefined) => {
    const finding = await stored(key);
    if (!finding) return {};
    const { blocks, more } = finding.body as ListedBlocks;
    const left = blocks.filter(({ hash }) => !done.has(hash) && hash !== stuck?.hash);
    const body: ListedBlocks = { blocks: stuck ? [...left, stuck] : left, more };
    // Whether the counters agree by now is for the check to say.
    const isOver = body.blocks.length === 0 && more === 0 && key.kind === 'events-unconfirmed';
    if (isOver) return { resolved: [key] };
    const attempts = finding.attempts + 1;
    const isLater = stuck !== undefined || left.length === 0;
    const retry = isLater && { attempts, retryInMs: repairDelay(attempts + 1, timing) };
    return { findings: [{ ...finding, body, ...retry }] };
  };

  /**
   * Reviews the first blocks of a finding, up to one on which no two endpoints agree. Resolves to whether more of its blocks
   * can be reviewed at once.
   */
  const reviewFinding = async ({ kind, subject, detail, body }: StoredFinding): Promise<boolean> => {
    const { blocks } = body as ListedBlocks;
    const settled: Settled[] = [];
    let stuck: BlockId | undefined;
    for (const block of blocks.slice(0, REVIEWED_AT_ONCE)) {
      const found = await reviewBlock(block);
      if (!found) stuck = block;
      if (!found) break;
      settled.push(found);
    }
    const done = new Set(settled.map(({ block }) => block.hash));
    const final = progress.head.final?.number ?? -1;
    const before = progress.recorder.counts;
    await progress.recorder.record(async () => ({
      facts: settled.flatMap(({ facts }) => facts),
      reviewed: [...done],
      // What the true block at this height said may not have been read.
      pending: settled
        .filter(({ isAbsent, block }) => isAbsent && block.number <= final)
        .map(({ block: { number } }) => historyRange(number, number)),
      ...(await remainder({ kind, subject }, done, stuck)),
    }));
    // Off-ramps can be set to count commits from a lower number again; on-ramps cannot.
    if (kind === 'commits-invented' && !isOnly()) for (const { block } of settled) confirmed.add(block.hash);
    const { removed, updated } = progress.recorder.counts;
    if (removed > before.removed || updated > before.updated) {
      progress.log(`${detail}. What no two endpoints show was removed`, 'error');
      recheck();
    }
    return stuck === undefined && settled.length < blocks.length;
  };

  return {
    get isBehind() {
      return isPending;
    },
    confirmed,
    /** A check is about to record findings with blocks to review. */
    expect(): void {
      isPending = true;
      lookAt = 0;
    },
    /** Notes blocks whose logs only one endpoint has shown. Called before they are stored. */
    async note(witness: string, blocks: readonly BlockId[]): Promise<void> {
      await progress.recorder.record(async () => {
        const known = await stored({ kind: 'events-unconfirmed', subject: witness });
        return { findings: [noted(witness, known, blocks, timing)] };
      });
      lookAt = 0;
    },
    async work(): Promise<undefined> {
      if (performance.now() < lookAt) return undefined;
      const open = (await checks.findings(selector)).filter(
        ({ kind, isDue, attempts, body }) =>
          reviewedKinds.has(kind) &&
          (isDue || isFirstLook || (attempts === 0 && kind !== 'events-unconfirmed')) &&
          (body as ListedBlocks | undefined)?.blocks.length,
      );
      lookAt = performance.now() + timing.repairMinMs;
      isPending = false;
      isFirstLook = false;
      for (const finding of open) isPending = (await reviewFinding(finding)) || isPending;
      if (isPending) lookAt = 0;
      return undefined;
    },
  };
}

function noted(
  witness: string,
  known: StoredFinding | undefined,
  added: readonly BlockId[],
  timing: WorkerTiming,
): IndexFinding {
  const { blocks, more } = (known?.body as ListedBlocks | undefined) ?? { blocks: [], more: 0 };
  const all = [...new Map([...blocks, ...added].map((block) => [block.hash, block])).values()];
  const body: ListedBlocks = {
    blocks: all.slice(0, MAX_LISTED),
    more: more + Math.max(0, all.length - MAX_LISTED),
  };
  const numbers = body.blocks.map(({ number }) => number);
  const count = body.blocks.length + body.more;
  return {
    kind: 'events-unconfirmed',
    subject: witness,
    detail:
      `${witness} alone has shown the events of ${count} blocks, from block ${Math.min(...numbers)} on: ` +
      'no other endpoint answered, or has logs that old',
    body,
    ...(!known && { retryInMs: repairDelay(1, timing) }),
  };
}
