/**
 * One network's worker: follows the head, reads history behind it, and sees to what is owed.
 *
 * Two loops share the book of contracts. `#follow` takes the newest blocks as they come, across forks. `#catchUp`
 * works off the backlog from its newest end and the ledger of failures. Every step is one transaction of the store,
 * so that the worker can be killed at any moment and goes on where it was.
 */
import type { Fact, Observation, SourceFinalized } from '../../domain/facts.ts';
import type { Network } from '../../domain/networks.ts';
import {
  type BlockId,
  type BlockRange,
  type HeadFigures,
  type IndexLedger,
  type IndexState,
  type IndexStep,
  LeaseLost,
  type NamedContract,
  type NewFailure,
} from '../../store/index-ledger.ts';
import type { Store } from '../../store/store.ts';
import { untilLater } from '../work.ts';
import { type Block, type Chain, type ChainNode, type Hex, NodeFault, RangeTooLarge } from './chain.ts';
import { type Chores, createChores } from './chores.ts';
import { ContractBook } from './contract-book.ts';
import { createDecoder } from './decode/decoder.ts';
import { DeepReorganization, readHeaders, refuseStrangers, viewHead } from './head.ts';
import { type BlockReader, createBlockReader, type Reading } from './reading.ts';
import type { NetworkSource } from './source.ts';
import { blockAtTime } from './start-block.ts';
import { createVerifierResults } from './verifier-results.ts';

export interface WorkerOptions {
  readonly source: NetworkSource;
  readonly chain: Chain;
  readonly store: Pick<Store, 'index' | 'findMessage'>;
  readonly holder: string;
  readonly signal: AbortSignal;
  readonly notice: (line: string) => void;
  readonly userAgent: string;
  readonly pace?: Partial<WorkerPace>;
}

/** Milliseconds, unless it says otherwise. */
export interface WorkerPace {
  /** The first pause behind a failure, and the longest; each doubles the one before. */
  readonly soonestRetry: number;
  readonly latestRetry: number;
  /** The same for a range on the ledger of failures. */
  readonly soonestRepair: number;
  readonly latestRepair: number;
  /** How often the world is told of progress. */
  readonly tellEvery: number;
  readonly choresEvery: number;
  /** The same for a chore that came to nothing. */
  readonly soonestChore: number;
  readonly latestChore: number;
}

const usualPace: WorkerPace = {
  soonestRetry: 250,
  latestRetry: 30_000,
  soonestRepair: 5_000,
  latestRepair: 3_600_000,
  tellEvery: 1_000,
  choresEvery: 2_000,
  soonestChore: 2_000,
  latestChore: 300_000,
};

/** New blocks in one step. */
const MAX_NEW_BLOCKS = 256;
/** Further behind the final block than this, the head comes first and the gap goes to the backlog. */
const MAX_GAP = 4 * MAX_NEW_BLOCKS;
/** Logs that one step over history should have: enough to be worth a transaction, few enough to fit in memory. */
const WANTED_LOGS = 1_000;
const FIRST_RANGE = 1_000;
/** Pieces that are read well before one dares to ask for more again than was refused. */
const PIECES_BEFORE_MORE = 16;
/** Headers are asked for one by one; a range that is checked against them is shorter. */
const MAX_CHECKED_RANGE = 250;
/** How often a range is tried before it goes to the ledger of failures. */
const ATTEMPTS = 3;
const REPAIRS_AT_ONCE = 4;
const FACT_BLOCKS_AT_ONCE = 100;
const MAX_REASON = 300;

/** What there is to know of a worker from outside. */
export interface WorkerStatus {
  readonly network: Network;
  readonly figures: HeadFigures | null;
  /** Where history begins; null while it is being looked for. */
  readonly startBlock: number | null;
  /** Blocks of history that are still to be read. */
  readonly owedBlocks: number;
  readonly isSearchingRouters: boolean;
  readonly created: number;
  readonly updated: number;
  readonly removed: number;
  readonly failedRanges: number;
  readonly problem: string | null;
  /** All blocks have been read, or are on the ledger of failures. */
  readonly isUpToDate: boolean;
  /** When it last began to ask all that there was to ask, on performance.now()'s clock. */
  readonly askedAt: number;
}

export class NetworkWorker {
  readonly #source: NetworkSource;
  readonly #chain: Chain;
  readonly #ledger: IndexLedger;
  readonly #options: WorkerOptions;
  readonly #pace: WorkerPace;
  readonly #network: string;
  readonly #book = new ContractBook();
  readonly #reader: BlockReader;
  readonly #chores: Chores;

  #state: Pick<IndexState, 'startBlock' | 'followedFrom' | 'firstRouterBlock'> = {
    startBlock: null,
    followedFrom: null,
    firstRouterBlock: null,
  };
  /** Blocks that may be abandoned, by height; the first is final. */
  #held: BlockId[] = [];
  /** Ends whenever blocks are abandoned. */
  #era = 0;
  #figures: HeadFigures | null = null;
  /** Seconds since 1970, of the newest block. */
  #headTime = 0;
  #newBlocks = MAX_NEW_BLOCKS;
  /** How often in a row the next blocks could not be read although the node told of them, and why. */
  #unread = { times: 0, reason: '' };
  #range = FIRST_RANGE;
  #piecesBeforeMore = 0;
  #problem: string | null = null;
  #toldAt = 0;
  #choresAt = 0;
  #counts = { created: 0, updated: 0, removed: 0 };
  /** How often something new came to be owed. */
  #owings = 0;
  #backlog = { owedBlocks: 0, failedRanges: 0, isSearchingRouters: false, isEmpty: false };
  #isAtHead = false;
  /** When it was last begun to do all chores that were due. */
  #askedAt = -1;
  #wakeBacklog: (() => void) | undefined;
  #recording: Promise<void> = Promise.resolve();

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#source = options.source;
    this.#chain = options.chain;
    this.#ledger = options.store.index;
    this.#pace = { ...usualPace, ...options.pace };
    this.#network = options.source.network.selector;
    this.#reader = createBlockReader(options.chain, this.#book, createDecoder(options.source.network));
    const { verifierResults } = options.source;
    this.#chores = createChores(
      verifierResults &&
        createVerifierResults(verifierResults, { userAgent: options.userAgent, signal: options.signal }),
      this.#pace,
    );
  }

  get status(): WorkerStatus {
    const { owedBlocks, isSearchingRouters, isEmpty, failedRanges } = this.#backlog;
    return {
      network: this.#source.network,
      figures: this.#figures,
      startBlock: this.#state.startBlock,
      owedBlocks,
      isSearchingRouters,
      ...this.#counts,
      failedRanges,
      problem: this.#problem,
      isUpToDate: this.#isAtHead && isEmpty,
      askedAt: this.#askedAt,
    };
  }

  /** Works until the signal, or until the network is lost to another worker (LeaseLost). */
  async run(): Promise<void> {
    const stop = new AbortController();
    const signal = AbortSignal.any([this.#options.signal, stop.signal]);
    const state = await this.#ledger.state(this.#network);
    this.#state = state;
    this.#held = [...state.blocks];
    this.#book.load(state.contracts, this.#source.routers);
    await this.#untilDone(signal, () => this.#begin(state));
    if (signal.aborted) return;
    try {
      const loops = [this.#follow(signal), this.#catchUp(signal)];
      // The first that fails stops the other; both have ended when this returns.
      await Promise.all(
        loops.map((loop) =>
          loop.catch((error: unknown) => {
            stop.abort();
            throw error;
          }),
        ),
      ).finally(() => Promise.allSettled(loops));
    } finally {
      await this.#tell().catch(() => undefined);
    }
  }

  // ---- The beginning

  /** What the configuration asks for and the store does not have yet. */
  async #begin(state: IndexState): Promise<void> {
    const { routers } = this.#source;
    const strangers = routers.filter((router) => !this.#book.contracts.has(router));
    const { final, start, current } = await this.#chain.run(async (node) => {
      const head = await node.head();
      return {
        final: await node.finalized(head),
        start: await this.#startBlock(node, head),
        current: strangers.length === 0 ? undefined : await this.#reader.readCurrent(node, strangers),
      };
    });
    for (const refusal of current?.refused ?? []) this.#notice(`${refusal}; it is not believed`);

    const contracts = current?.contracts ?? [];
    const owed: BlockRange[] = [];
    const isNew = state.followedFrom === null;
    const read = isNew ? final.number : (this.#held.at(-1)?.number ?? final.number);
    if (strangers.length > 0) {
      // All that a router ever named speaks with its authority, even if it was long before the history that is wanted.
      owed.push({ from: 0, to: read, purpose: 'routers', contracts: strangers });
    }
    if (isNew) {
      if ((start ?? 0) <= final.number) {
        owed.push(historyRange(start ?? 0, final.number));
      }
    } else {
      owed.push(...this.#owedFor(addressesOf(contracts), read));
      const before = state.startBlock;
      if (start !== undefined && before !== null && start < before) {
        owed.push(historyRange(start, before - 1));
      }
    }
    const isEarlier = start !== undefined && (state.startBlock === null || start < state.startBlock);
    await this.#record(() => ({
      contracts,
      owed,
      rereadUnreadable: true,
      ...(isEarlier && { startBlock: start }),
      ...(isNew && { followedFrom: final.number, blocks: [final] }),
    }));
    if (isNew) {
      this.#held = [{ number: final.number, hash: final.hash }];
      this.#state = { ...this.#state, followedFrom: final.number };
    }
    if (isEarlier) this.#state = { ...this.#state, startBlock: start };
  }

  async #startBlock(node: ChainNode, head: Block): Promise<number | undefined> {
    const { start } = this.#source;
    if (start === null) return undefined;
    return 'block' in start ? start.block : blockAtTime(node, start.time, head);
  }

  /** Whatever was read before a contract was named is to be read again for it. */
  #owedFor(contracts: readonly string[], readTo: number, from?: number): readonly BlockRange[] {
    const first = from ?? this.#state.startBlock ?? this.#state.followedFrom;
    if (contracts.length === 0 || first === null || first > readTo) return [];
    return [{ from: first, to: readTo, purpose: 'contracts', contracts: this.#withBlessers(contracts) }];
  }

  /** Blessings name a commit store: those of one that was not known were passed over, and are to be read again too. */
  #withBlessers(contracts: readonly string[]): readonly string[] {
    const roleOf = (address: string) => this.#book.contracts.get(address as Hex)?.role;
    if (!contracts.some((address) => roleOf(address) !== 'rmn')) return contracts;
    const blessers = [...this.#book.contracts.values()].filter(({ role }) => role === 'rmn');
    return [...new Set([...contracts, ...blessers.map(({ address }) => address)])];
  }

  /** Blocks that were being read while the other loop came to know more contracts are to be read again for those. */
  #owedForOverlap(mark: number, { from, to }: { from: number; to: number }): readonly BlockRange[] {
    return this.#owedFor(this.#book.since(mark), to, from);
  }

  // ---- The head

  async #follow(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        const hasMore = await this.#followOnce(this.#unread.times >= ATTEMPTS);
        failures = 0;
        this.#unread = { times: 0, reason: '' };
        this.#newBlocks = Math.min(MAX_NEW_BLOCKS, this.#newBlocks * 2);
        await this.#doChores();
        await this.#tellWhenDue();
        this.#isAtHead = !hasMore;
        if (!hasMore) await untilLater(this.#source.pollEvery, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof LeaseLost) throw error;
        if (error instanceof RangeTooLarge) {
          this.#newBlocks = Math.max(1, Math.min(error.acceptedBlocks ?? Infinity, this.#newBlocks >> 1));
          if (this.#newBlocks > 1) continue;
        }
        failures++;
        this.#isAtHead = false;
        // One block at a time tells which of them cannot be read.
        if (this.#unread.times >= ATTEMPTS - 1) this.#newBlocks = 1;
        this.#tellProblem(error);
        await this.#tellWhenDue();
        await untilLater(backoff(failures, this.#pace.soonestRetry, this.#pace.latestRetry), signal);
      }
    }
  }

  /** Reads what is new; true where there is more. `skip`: the next block is left to the ledger of failures. */
  async #followOnce(skip: boolean): Promise<boolean> {
    const mark = this.#book.mark;
    let isReading = false;
    const found = await this.#chain
      .run(async (node) => {
        isReading = false;
        const view = await viewHead(node, this.#held);
        const gap = Math.min(view.final.number, view.head.number) - view.base.number;
        if (gap > MAX_GAP) return { view, headers: [], reading: undefined, isGap: true };
        const count = Math.min(view.head.number - view.base.number, skip ? 1 : this.#newBlocks);
        const headers = count > 0 ? await readHeaders(node, view.base, count) : [];
        const [first, last] = [headers[0], headers.at(-1)];
        isReading = true;
        const reading =
          first && last && !skip
            ? await this.#reader.read(node, {
                from: first.number,
                to: last.number,
                contracts: null,
                headers,
                mayBeAbandoned: true,
                orphaned: view.orphans.map(({ hash }) => hash),
              })
            : undefined;
        return { view, headers, reading, isGap: false };
      })
      .catch(async (error: unknown) => {
        if (error instanceof DeepReorganization) await this.#recoverFromDeepReorganization();
        if (isReading && !(error instanceof RangeTooLarge))
          this.#unread = { times: this.#unread.times + 1, reason: describe(error) };
        throw error;
      });
    const { view, headers, reading, isGap } = found;
    const { head, final, base } = view;
    const orphaned = view.orphans.map(({ hash }) => hash);
    if (orphaned.length > 0) this.#notice(`${orphaned.length} blocks above ${base.number} were abandoned`);

    const [skipped] = skip ? headers : [];
    if (skipped) this.#notice(`Block ${skipped.number} cannot be read yet: ${this.#unread.reason}`);

    const newTip = isGap ? final : headers.at(-1);
    const indexedBlock = newTip?.number ?? base.number;
    if (headers.length > 0 || orphaned.length > 0 || isGap) {
      const [first, last] = [headers[0], headers.at(-1)];
      await this.#record(
        () => ({
          ...(reading && readingStep(reading)),
          orphaned,
          blocks: isGap ? [final] : headers.map(({ number, hash }) => ({ number, hash })),
          owed: [
            // With the blocks that were read and had not become final: that they have is told with the rest.
            ...(isGap ? [historyRange((this.#held[0] ?? base).number + 1, final.number)] : []),
            ...this.#owedFor(addressesOf(reading?.contracts ?? []), base.number),
            ...(first && last ? this.#owedForOverlap(mark, { from: first.number, to: last.number }) : []),
          ],
          failed: skipped
            ? [this.#newFailure(historyRange(skipped.number, skipped.number), this.#unread.reason)]
            : [],
          ...(isGap && { forgetBelow: final.number }),
        }),
        () => {
          this.#held = isGap
            ? [{ number: final.number, hash: final.hash }]
            : [...this.#held.filter(({ number }) => number <= base.number), ...headers];
        },
      );
      this.#noticeRefused(reading);
    }
    this.#headTime = head.timestamp;
    this.#figures = {
      headBlock: head.number,
      headAt: head.timestamp * 1000,
      finalizedBlock: final.number,
      indexedBlock,
      indexedAt: newTip ? newTip.timestamp * 1000 : this.#timeOf(indexedBlock),
    };
    await this.#finalize(Math.min(final.number, indexedBlock));
    return indexedBlock < head.number;
  }

  /** In milliseconds, of a tip that did not move: as before, or the head's where it is the head. */
  #timeOf(indexedBlock: number): number {
    const before = this.#figures;
    return before && before.indexedBlock === indexedBlock ? before.indexedAt : this.#headTime * 1000;
  }

  /** Tells of messages in blocks that have become final, and forgets those blocks. */
  async #finalize(finalNumber: number): Promise<void> {
    const anchor = this.#held[0];
    const last = this.#held.findLast(({ number }) => number <= finalNumber);
    if (!anchor || !last || last.number <= anchor.number) return;
    const settled = this.#held.filter(({ number }) => number > anchor.number && number <= finalNumber);
    const numbers = new Map(settled.map(({ hash, number }) => [hash, number]));
    await this.#record(
      async () => {
        // Asked when nothing else is recorded: a message of these blocks that is read late, because its range had
        // failed, is either among these or final when it is read.
        const sent = await this.#ledger.sentIn(this.#network, [...numbers.keys()]);
        const facts = sent.map(({ messageId, blockHash }) =>
          this.#sourceFinalized(`0x${messageId}`, { number: numbers.get(blockHash) ?? 0, hash: blockHash }),
        );
        return { facts, forgetBelow: last.number };
      },
      () => {
        this.#held = this.#held.filter(({ number }) => number >= last.number);
      },
    );
  }

  /** Finality rests on the block of the sending: it stands and falls with it. */
  #sourceFinalized(messageId: string, sentIn: BlockId): SourceFinalized {
    return { kind: 'SourceFinalized', messageId, seen: this.#noticed(sentIn) };
  }

  /** Something that the chain did not say in a log: it rests on a block, and was noticed at the head's time. */
  #noticed(block: BlockId): Observation {
    return {
      network: this.#network,
      blockNumber: block.number,
      blockHash: block.hash,
      transactionHash: null,
      logIndex: null,
      at: new Date(this.#headTime * 1000).toISOString(),
    };
  }

  /**
   * Blocks that were final are gone. What was seen in them is looked up by the facts themselves, from the newest
   * down, until the node's chain has them all; the head then begins anew at what is final now.
   */
  async #recoverFromDeepReorganization(): Promise<void> {
    const orphaned = new Set(this.#held.map(({ hash }) => hash));
    const { final, lowest } = await this.#chain.run(async (node) => {
      const newFinal = await node.finalized(await node.head());
      let below = Number.MAX_SAFE_INTEGER;
      let lowestOrphan = newFinal.number;
      for (;;) {
        const seen = await this.#ledger.factBlocks(this.#network, below, FACT_BLOCKS_AT_ONCE);
        const within = seen.filter(({ number }) => number <= newFinal.number);
        const blocks = await node.blocks(within.map(({ number }) => number));
        const gone = seen.filter(({ number, hash }) => {
          const index = within.findIndex((block) => block.number === number);
          return index < 0 || blocks[index]?.hash !== hash;
        });
        for (const { number, hash } of gone) {
          orphaned.add(hash);
          lowestOrphan = Math.min(lowestOrphan, number);
        }
        const last = seen.at(-1);
        if (gone.length === 0 || !last || seen.length < FACT_BLOCKS_AT_ONCE) {
          return { final: newFinal, lowest: lowestOrphan };
        }
        // Two blocks of one height may stand on either side of a page's end.
        below = last.number + 1;
      }
    });
    const from = Math.max(0, Math.min(lowest, this.#held[0]?.number ?? lowest));
    await this.#record(
      () => ({
        orphaned: [...orphaned],
        blocks: [final],
        owed: from <= final.number ? [historyRange(from, final.number)] : [],
      }),
      () => {
        this.#held = [{ number: final.number, hash: final.hash }];
      },
    );
    this.#notice(
      `The chain abandoned blocks that it had called final; everything from block ${from} on is read again. ` +
        'Consider a greater depth for `finality`.',
    );
  }

  // ---- What is owed

  async #catchUp(signal: AbortSignal): Promise<void> {
    let attempts = 0;
    while (!signal.aborted) {
      try {
        const repaired = await this.#repairOne(signal);
        const owings = this.#owings;
        const owed = await this.#ledger.nextOwed(this.#network);
        await this.#endSearchForRouters(owed?.purpose === 'routers');
        // The other loop may have come to owe something since we looked.
        const isEmpty = !owed && owings === this.#owings;
        this.#backlog = { ...this.#backlog, isEmpty, isSearchingRouters: owed?.purpose === 'routers' };
        if (!owed) {
          if (isEmpty && !repaired) await this.#untilWoken(signal);
          continue;
        }
        const from = Math.max(owed.from, owed.to - this.#rangeLength() + 1);
        const piece = { ...owed, from };
        const mark = this.#book.mark;
        const reading = await this.#readPiece(piece).catch((error: unknown) => {
          if (error instanceof LeaseLost || signal.aborted) throw error;
          if (this.#shorten(error, piece)) return undefined;
          if (++attempts < ATTEMPTS || !this.#isAlive()) throw error;
          return { failure: error };
        });
        if (!reading) continue;
        attempts = 0;
        if ('failure' in reading) {
          const failure = this.#newFailure(piece, describe(reading.failure));
          this.#notice(`Blocks ${piece.from} to ${piece.to} cannot be read yet: ${failure.reason}`);
          await this.#record(() => ({ failed: [failure], done: { id: owed.id, from } }));
        } else {
          await this.#record(() => ({
            ...this.#historyStep(reading, piece, mark),
            ...(piece.purpose === 'routers' &&
              reading.routerBlock !== undefined && { routerBlock: reading.routerBlock }),
            done: { id: owed.id, from },
          }));
          this.#noticeRefused(reading);
          this.#adapt(reading.logs, piece);
        }
        await this.#tellWhenDue();
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof LeaseLost) throw error;
        this.#tellProblem(error);
        await untilLater(backoff(attempts + 1, this.#pace.soonestRetry, this.#pace.latestRetry), signal);
      }
    }
  }

  #readPiece({ from, to, contracts }: BlockRange): Promise<PieceReading> {
    const anchor = this.#held[0];
    if (!anchor) throw new Error('History is read behind a block that is final');
    const isFinal = to <= anchor.number;
    const era = this.#era;
    return this.#chain.run(
      async (node) => {
        const isChecked = this.#source.verify === 'all' || !isFinal;
        // With one more, where there is one: its parent must be the last of these.
        const end = isChecked ? Math.max(to, Math.min(to + 1, anchor.number)) : from - 1;
        const numbers = Array.from({ length: end - from + 1 }, (_, index) => from + index);
        const blocks = await node.blocks([...numbers, anchor.number]);
        refuseStrangers(node, blocks.slice(0, -1));
        for (const { number, hash } of blocks) {
          const held = this.#held.find((block) => block.number === number);
          if (held && held.hash !== hash)
            throw new NodeFault(`${node.name} has another block ${number} than was read`);
        }
        const reading = await this.#reader.read(node, {
          from,
          to,
          contracts: contracts as readonly Hex[] | null,
          ...(isChecked && { headers: blocks.slice(0, to - from + 1) }),
          mayBeAbandoned: !isFinal,
        });
        return { ...reading, era: isFinal ? undefined : era };
      },
      Math.max(to, anchor.number),
    );
  }

  #rangeLength(): number {
    const longest = this.#source.verify === 'all' ? MAX_CHECKED_RANGE : this.#source.maxRange;
    return Math.max(1, Math.min(this.#range, longest, this.#source.maxRange));
  }

  /** Messages of history are final when they are read. */
  #withFinality(facts: readonly Fact[]): readonly Fact[] {
    const final = this.#held[0];
    if (!final) return facts;
    return facts.flatMap((fact) =>
      fact.kind === 'Sent' && fact.seen.blockNumber <= final.number
        ? [
            fact,
            this.#sourceFinalized(fact.message.messageId, {
              number: fact.seen.blockNumber,
              hash: fact.seen.blockHash,
            }),
          ]
        : [fact],
    );
  }

  #historyStep(reading: PieceReading, piece: BlockRange, mark: number): IndexStep {
    if (reading.era !== undefined && reading.era !== this.#era) {
      throw new NodeFault(`Blocks were abandoned while ${piece.from} to ${piece.to} were being read`);
    }
    return {
      ...readingStep(reading),
      read: piece,
      facts: this.#withFinality(reading.facts),
      owed: [
        ...this.#owedFor(addressesOf(reading.contracts), this.#held.at(-1)?.number ?? piece.to),
        ...(piece.purpose === 'history' ? this.#owedForOverlap(mark, piece) : []),
      ],
    };
  }

  #shorten(error: unknown, { from, to }: BlockRange): boolean {
    if (!(error instanceof RangeTooLarge) || to <= from) return false;
    const length = to - from + 1;
    this.#range = Math.max(1, Math.min(error.acceptedBlocks ?? Infinity, length >> 1));
    this.#piecesBeforeMore = PIECES_BEFORE_MORE;
    return true;
  }

  #adapt(logs: number, { from, to }: BlockRange): void {
    const length = to - from + 1;
    const wanted = Math.floor((length * WANTED_LOGS) / Math.max(1, logs));
    // Only a whole piece says that more might have been taken.
    const isWhole = length >= this.#rangeLength();
    const grown = isWhole && this.#piecesBeforeMore === 0 ? this.#range * 2 : this.#range;
    if (isWhole && this.#piecesBeforeMore > 0) this.#piecesBeforeMore--;
    this.#range = Math.max(1, Math.min(grown, wanted, this.#source.maxRange));
  }

  /** When the routers' history has been read, the history that is wanted may begin with it. */
  async #endSearchForRouters(isSearching: boolean): Promise<void> {
    if (isSearching || this.#state.startBlock !== null) return;
    const { firstRouterBlock, followedFrom } = await this.#ledger.state(this.#network);
    const startBlock = firstRouterBlock ?? followedFrom ?? 0;
    await this.#record(() => ({ startBlock }));
    this.#state = { ...this.#state, startBlock };
  }

  /** Tries a failed range whose time has come; true where there was one. */
  async #repairOne(signal: AbortSignal): Promise<boolean> {
    const due = await this.#ledger.dueFailures(this.#network, REPAIRS_AT_ONCE);
    for (const failure of due) {
      if (signal.aborted) return true;
      const { id, from, to, failures, since } = failure;
      try {
        const mark = this.#book.mark;
        const reading = await this.#readPiece(failure);
        await this.#record(() => ({ ...this.#historyStep(reading, failure, mark), recovered: [id] }));
        this.#notice(`Blocks ${from} to ${to} have been read after ${failures} failures`);
      } catch (error) {
        if (error instanceof LeaseLost || signal.aborted) throw error;
        // Nobody could be asked: that says nothing of these blocks.
        if (!this.#isAlive()) throw error;
        const reason = describe(error);
        const again = (part: BlockRange) => ({
          ...this.#newFailure(part, reason, failures),
          since,
          failures: failures + 1,
        });
        // Halves, so that what can be read is not held up by what cannot.
        const middle = Math.floor((from + to) / 2);
        await this.#record(() =>
          from < to
            ? {
                recovered: [id],
                failed: [again({ ...failure, to: middle }), again({ ...failure, from: middle + 1 })],
              }
            : { postponed: [{ id, reason, retryIn: this.#repairIn(failures + 1) }] },
        );
      }
    }
    return due.length > 0;
  }

  #newFailure({ from, to, purpose, contracts }: BlockRange, reason: string, failures = 0): NewFailure {
    return { from, to, purpose, contracts, reason, retryIn: this.#repairIn(failures + 1) };
  }

  #repairIn(failures: number): number {
    return backoff(failures, this.#pace.soonestRepair, this.#pace.latestRepair);
  }

  /** Whether any endpoint answers: a range that fails while none does is not at fault. */
  #isAlive(): boolean {
    return this.#problem === null || this.#chain.health().some(({ healthy }) => healthy);
  }

  /** Until something is owed, or a failed range may have come due. */
  #untilWoken(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, this.#pace.soonestRepair);
      signal.addEventListener('abort', wake);
      this.#wakeBacklog = wake;
      if (signal.aborted) wake();
    });
  }

  // ---- Chores, records, words

  /** A question that nobody answers is told of as a problem, and does not hold up new blocks. */
  async #doChores(): Promise<void> {
    const final = this.#held[0];
    if (!final || Date.now() - this.#choresAt < this.#pace.choresEvery) {
      this.#problem = null;
      return;
    }
    this.#choresAt = Date.now();
    const lookedAt = performance.now();
    try {
      const step = await this.#chores.work({
        network: this.#network,
        chain: this.#chain,
        store: this.#options.store,
        book: this.#book.contracts,
        tip: this.#held.at(-1)?.number ?? final.number,
        headTime: this.#headTime,
        seen: this.#noticed(final),
      });
      if (step) await this.#record(() => step);
      if (!this.#chores.isBehind) this.#askedAt = lookedAt;
      this.#problem = null;
    } catch (error) {
      if (!(error instanceof NodeFault)) throw error;
      this.#tellProblem(error);
    }
  }

  /**
   * Records a step. Steps come one after the other, each made from what the one before has left behind: a contract
   * that one loop has just named cannot slip past the blocks that the other loop is reading.
   */
  #record(
    makeStep: () => IndexStep | Promise<IndexStep>,
    remember: () => void = () => undefined,
  ): Promise<void> {
    const recorded = this.#recording.then(async () => {
      const step = await makeStep();
      const { holder } = this.#options;
      const { created, updated, removed } = await this.#ledger.record(this.#network, holder, step);
      this.#counts = {
        created: this.#counts.created + created,
        updated: this.#counts.updated + updated,
        removed: this.#counts.removed + removed,
      };
      this.#book.forget(step.orphaned ?? []);
      this.#book.add(step.contracts ?? []);
      if ((step.orphaned ?? []).length > 0) this.#era++;
      remember();
      if ((step.owed ?? []).length > 0) {
        this.#owings++;
        this.#backlog = { ...this.#backlog, isEmpty: false };
        this.#wakeBacklog?.();
      }
    });
    this.#recording = recorded.catch(() => undefined);
    return recorded;
  }

  #noticeRefused(reading: Reading | undefined): void {
    for (const refusal of reading?.refused ?? []) this.#notice(`${refusal}; it is not believed`);
    const [unread, ...more] = reading?.unreadable ?? [];
    if (!unread) return;
    const { blockNumber, logIndex, reason } = unread;
    const others = more.length > 0 ? ` (and ${more.length} more)` : '';
    this.#notice(
      `Log ${logIndex} of block ${blockNumber} cannot be understood and is kept: ${reason}${others}`,
    );
  }

  #notice(line: string): void {
    this.#options.notice(`${this.#source.network.name}: ${line}`);
  }

  #tellProblem(error: unknown): void {
    const problem = describe(error);
    // What endpoints did wrong has been told when they were set back.
    if (this.#problem === null && !(error instanceof NodeFault)) this.#notice(problem);
    this.#problem = problem;
  }

  async #tellWhenDue(): Promise<void> {
    if (Date.now() - this.#toldAt < this.#pace.tellEvery) return;
    await this.#tell();
  }

  async #tell(): Promise<void> {
    this.#toldAt = Date.now();
    const owed = await this.#ledger.tellProgress(this.#network, this.#figures, this.#problem);
    this.#backlog = { ...this.#backlog, ...owed };
  }

  /** Tries until it succeeds: at the start nothing else can be done. */
  async #untilDone(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await work();
        this.#problem = null;
        return;
      } catch (error) {
        if (signal.aborted || error instanceof LeaseLost) throw error;
        this.#tellProblem(error);
        await this.#tell().catch(() => undefined);
        await untilLater(backoff(failures, this.#pace.soonestRetry, this.#pace.latestRetry), signal);
      }
    }
  }
}

/** What some blocks of history said, and in which era, if that can end. */
type PieceReading = Reading & { readonly era: number | undefined };

function readingStep({ facts, contracts, unreadable, foreign }: Reading): IndexStep {
  return { facts, contracts, unreadable, foreign };
}

function historyRange(from: number, to: number): BlockRange {
  return { from, to, purpose: 'history', contracts: null };
}

function addressesOf(contracts: readonly NamedContract[]): readonly string[] {
  return contracts.map(({ address }) => address);
}

function describe(error: unknown): string {
  return String((error as Error | undefined)?.message ?? error).slice(0, MAX_REASON);
}

/** Milliseconds behind so many failures in a row, with some chance in it: others wait too. */
function backoff(failures: number, soonest: number, latest: number): number {
  return Math.min(latest, soonest * 2 ** (failures - 1)) * (0.75 + Math.random() / 2);
}
