/**
 * A virtual EVM chain: blocks, logs, transactions and views are computed when they are asked for, so that ten million
 * blocks take no memory. It knows nothing of CCIP (ccip-chain.ts does) or of HTTP (provider.ts does).
 *
 * Events come in series. A series says at which block its n-th event is and what it contains; the chain finds the
 * events of a range by bisection. Hashes are not digests: a block hash holds branch and number, a transaction hash holds
 * series and index, so that both are looked up without an index.
 */
import type { Network } from '../../../src/domain/networks.ts';
import type { Hex } from '../../../src/ingest/evm/chain.ts';
import { bloomOf } from './bloom-filter.ts';

export interface VirtualEvent {
  readonly topics: readonly Hex[];
  readonly data: Hex;
}

/** Events of one topic in the order of the chain. */
export interface EventSeries {
  /** Unique in the chain. It names the transactions, which are the same in every branch that has the event. */
  readonly id: number;
  readonly topic: Hex;
  readonly emitter: Hex;
  readonly count: number;
  /** Never descending. */
  blockOf(index: number): number;
  eventOf(index: number): VirtualEvent;
}

/** What a view may look at: the block it is asked for, and how many events of a series the chain has up to there. */
export interface ViewState {
  readonly block: number;
  countOf(seriesId: number): number;
}

export interface VirtualContract {
  readonly address: Hex;
  readonly deployedAt: number;
  /** By function selector; `args` is the encoding behind it. Undefined: the call reverts. */
  readonly views: Readonly<Record<Hex, (args: Hex, state: ViewState) => Hex | undefined>>;
}

export interface VirtualLog extends VirtualEvent {
  readonly address: Hex;
  readonly blockNumber: number;
  readonly blockHash: Hex;
  readonly transactionHash: Hex;
  readonly transactionIndex: number;
  readonly logIndex: number;
  /** Seconds since 1970. */
  readonly blockTimestamp: number;
}

export interface VirtualBlock {
  readonly number: number;
  readonly hash: Hex;
  readonly parentHash: Hex;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly logsBloom: Hex;
  readonly transactions: readonly VirtualTransaction[];
}

export interface VirtualTransaction {
  readonly hash: Hex;
  readonly from: Hex;
  readonly to: Hex;
  readonly blockNumber: number;
  readonly blockHash: Hex;
  readonly transactionIndex: number;
}

export interface LogQuery {
  /** Both ends included. */
  readonly from: number;
  readonly to: number;
  /** Any of these as first topic; every topic where it is left out. */
  readonly topics?: readonly Hex[] | undefined;
  readonly addresses?: readonly Hex[] | undefined;
}

export interface Reorganization {
  /** The last block that both branches have. */
  readonly fork: number;
  /** The events of the new branch; those at or below the fork are ignored. The same events where it is left out. */
  readonly series?: readonly EventSeries[];
  /** The height of the new branch; one more than before where it is left out. */
  readonly head?: number;
}

export interface VirtualChain {
  readonly network: Network;
  /** The highest block. Events above it are not there yet. */
  readonly head: number;
  readonly contracts: ReadonlyMap<Hex, VirtualContract>;
  readonly series: readonly EventSeries[];
  grow(blocks: number): void;
  reorganize(reorganization: Reorganization): void;
  /** Undefined above the head. */
  block(number: number): VirtualBlock | undefined;
  /** Blocks of abandoned branches are found too. */
  blockByHash(hash: Hex): VirtualBlock | undefined;
  logs(query: LogQuery): readonly VirtualLog[];
  logsOfBlock(hash: Hex): readonly VirtualLog[] | undefined;
  transaction(hash: Hex): VirtualTransaction | undefined;
  hasCode(address: Hex, block: number): boolean;
  /** Undefined where the call reverts or there is no contract at that block. */
  call(to: Hex, data: Hex, block: number): Hex | undefined;
}

export interface VirtualChainOptions {
  readonly network: Network;
  readonly head: number;
  readonly series: readonly EventSeries[];
  readonly contracts: readonly VirtualContract[];
  /** Seconds between blocks. */
  readonly blockSeconds?: number;
  /** Milliseconds since 1970, of the head. */
  readonly headAtMs?: number;
}

const USUAL_BLOCK_SECONDS = 2;
const HEAD_AGE_SECONDS = 60;
const SENDER: Hex = `0x${'5e'.repeat(20)}`;

interface Branch {
  readonly fork: number;
  readonly series: readonly EventSeries[];
}

/** An event and its place, before it is encoded. */
interface Placed {
  readonly series: EventSeries;
  readonly index: number;
  readonly block: number;
}

export function createVirtualChain(options: VirtualChainOptions): VirtualChain {
  const { network, blockSeconds = USUAL_BLOCK_SECONDS } = options;
  const headAt = Math.floor((options.headAtMs ?? Date.now() - HEAD_AGE_SECONDS * 1000) / 1000);
  const genesisAt = headAt - options.head * blockSeconds;
  const chainId = Number(network.chainId);
  const contracts = new Map(options.contracts.map((contract) => [contract.address, contract]));
  const branches: Branch[] = [{ fork: -1, series: options.series }];
  let { head } = options;

  /** The branch that a block belongs to in the chain whose newest branch is `tip`. */
  const ownerOf = (number: number, tip = branches.length - 1): number => {
    for (let owner = tip; owner > 0; owner--) {
      if ((branches[owner] as Branch).fork < number) return owner;
    }
    return 0;
  };
  /** The blocks of a branch in today's chain. */
  const extentOf = (branch: number) => ({
    from: (branches[branch] as Branch).fork + 1,
    to: Math.min(head, ...branches.slice(branch + 1).map(({ fork }) => fork)),
  });

  const hashOf = (number: number, tip?: number): Hex =>
    number < 0 ? `0x${'00'.repeat(32)}` : composeHash(BLOCK_MARK, chainId, ownerOf(number, tip), number);
  const timeOf = (number: number) => genesisAt + number * blockSeconds;

  /** Every event of some blocks of one branch, in order. */
  const placedIn = (branch: number, from: number, to: number): readonly Placed[] =>
    (branches[branch] as Branch).series
      .flatMap((series) => {
        const placed: Placed[] = [];
        for (let index = firstAtOrAbove(series, from); index < series.count; index++) {
          const block = series.blockOf(index);
          if (block > to) break;
          placed.push({ series, index, block });
        }
        return placed;
      })
      .sort((a, b) => a.block - b.block);

  /** Those of the chain as it is now, or of a branch of its own. */
  const placedBetween = (from: number, to: number): readonly (readonly [number, readonly Placed[]])[] =>
    branches.map((_, branch) => {
      const extent = extentOf(branch);
      const [low, high] = [Math.max(from, extent.from), Math.min(to, extent.to)];
      return [branch, low > high ? [] : placedIn(branch, low, high)] as const;
    });

  const logsFrom = (
    placed: readonly Placed[],
    branch: number,
    { topics, addresses }: Pick<LogQuery, 'topics' | 'addresses'>,
  ): readonly VirtualLog[] => {
    const logs: VirtualLog[] = [];
    let inBlock = { block: -1, next: 0 };
    for (const { series, index, block } of placed) {
      if (inBlock.block !== block) inBlock = { block, next: 0 };
      const place = inBlock.next++;
      if (topics && !topics.includes(series.topic)) continue;
      if (addresses && !addresses.includes(series.emitter)) continue;
      logs.push({
        ...series.eventOf(index),
        address: series.emitter,
        blockNumber: block,
        blockHash: composeHash(BLOCK_MARK, chainId, branch, block),
        transactionHash: transactionHashOf(chainId, series.id, index),
        transactionIndex: place,
        logIndex: place,
        blockTimestamp: timeOf(block),
      });
    }
    return logs;
  };

  const logsAt = (number: number, branch: number) => logsFrom(placedIn(branch, number, number), branch, {});

  const blockIn = (number: number, tip = branches.length - 1): VirtualBlock => {
    const logs = logsAt(number, ownerOf(number, tip));
    return {
      number,
      hash: hashOf(number, tip),
      parentHash: hashOf(number - 1, tip),
      timestamp: timeOf(number),
      logsBloom: bloomOf(logs),
      transactions: logs.map(transactionOf),
    };
  };

  /** The branch and number of a block that exists or existed. */
  const locate = (hash: Hex): { readonly branch: number; readonly number: number } | undefined => {
    const parts = decomposeHash(hash, BLOCK_MARK, chainId);
    if (!parts || parts.high >= branches.length) return undefined;
    const isPresent = ownerOf(parts.low, parts.high) === parts.high && parts.low <= head;
    return isPresent ? { branch: parts.high, number: parts.low } : undefined;
  };

  const countOf = (seriesId: number, upTo: number): number =>
    branches.reduce((sum, { series }, branch) => {
      const { from, to } = extentOf(branch);
      const found = series.find(({ id }) => id === seriesId);
      const high = Math.min(to, upTo);
      if (!found || from > high) return sum;
      return sum + firstAtOrAbove(found, high + 1) - firstAtOrAbove(found, from);
    }, 0);

  return {
    network,
    contracts,
    get head() {
      return head;
    },
    get series() {
      return (branches.at(-1) as Branch).series;
    },
    grow(blocks) {
      head += blocks;
    },
    reorganize({ fork, series = (branches.at(-1) as Branch).series, head: newHead = head + 1 }) {
      if (fork >= head) throw new RangeError(`A fork at ${fork} abandons nothing below the head ${head}.`);
      branches.push({ fork, series });
      head = newHead;
    },
    block: (number) => (number < 0 || number > head ? undefined : blockIn(number)),
    blockByHash(hash) {
      const found = locate(hash);
      return found && blockIn(found.number, found.branch);
    },
    logs: ({ from, to, ...filter }) =>
      placedBetween(from, Math.min(to, head))
        .flatMap(([branch, placed]) => logsFrom(placed, branch, filter))
        .sort((a, b) => a.blockNumber - b.blockNumber),
    logsOfBlock(hash) {
      const found = locate(hash);
      return found && logsAt(found.number, found.branch);
    },
    transaction(hash) {
      const parts = decomposeHash(hash, TRANSACTION_MARK, chainId);
      if (!parts) return undefined;
      for (const [branch, { series }] of branches.entries()) {
        const own = series.find(({ id }) => id === parts.high);
        if (!own || parts.low >= own.count) continue;
        const number = own.blockOf(parts.low);
        const { from, to } = extentOf(branch);
        if (number < from || number > to) continue;
        const log = logsAt(number, branch).find(({ transactionHash }) => transactionHash === hash);
        return log && transactionOf(log);
      }
      return undefined;
    },
    hasCode: (address, block) => (contracts.get(address)?.deployedAt ?? Infinity) <= block,
    call(to, data, block) {
      const contract = contracts.get(to);
      if (!contract || contract.deployedAt > block) return undefined;
      const view = contract.views[data.slice(0, 10) as Hex];
      return view?.(`0x${data.slice(10)}`, { block, countOf: (id) => countOf(id, block) });
    },
  };
}

function transactionOf(log: VirtualLog): VirtualTransaction {
  const { transactionHash: hash, address: to, blockNumber, blockHash, transactionIndex } = log;
  return { hash, from: SENDER, to, blockNumber, blockHash, transactionIndex };
}

/** The index of the first event at a block or above it; the count where there is none. */
function firstAtOrAbove({ count, blockOf }: EventSeries, block: number): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (blockOf(middle) >= block) high = middle;
    else low = middle + 1;
  }
  return low;
}

const BLOCK_MARK = 0xb10c;
const TRANSACTION_MARK = 0x7a11;

/** The transaction of the n-th event of a series. */
export function transactionHashOf(chainId: number, seriesId: number, index: number): Hex {
  return composeHash(TRANSACTION_MARK, chainId, seriesId, index);
}

/** 32 bytes: a mark, the chain, and two numbers. */
export function composeHash(mark: number, chainId: number, high: number, low: number): Hex {
  const word = (value: number, digits: number) => value.toString(16).padStart(digits, '0');
  return `0x${word(mark, 8)}${word(chainId, 24)}${word(high, 16)}${word(low, 16)}`;
}

function decomposeHash(
  hash: Hex,
  mark: number,
  chainId: number,
): { readonly high: number; readonly low: number } | undefined {
  const [high, low] = [Number(`0x${hash.slice(34, 50)}`), Number(`0x${hash.slice(50)}`)];
  return composeHash(mark, chainId, high, low) === hash ? { high, low } : undefined;
}
