/**
 * A virtual EVM chain: blocks, logs, transactions and views are computed when they are asked for, so that ten million
 * blocks take no memory. It knows nothing of CCIP (ccip-chain.ts does) or of HTTP (endpoint.ts does).
 *
 * Events come in series. A series says at which block its n-th event is and what it contains; the chain finds the
 * events of a range by bisection. Hashes are not digests: a block hash holds branch and number, a transaction hash holds
 * series and index, so that both are looked up without an index.
 */
import { keccak256 } from 'viem';
import type { Network } from '../../src/domain/networks/networks.ts';
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';

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

/** How somebody else tells a chain. */
export interface Telling {
  /** Blocks above it have other hashes; without it all blocks have the hashes of the chain. */
  readonly fork?: number;
  /** In place of the chain's; above the fork where there is one. */
  readonly series?: readonly EventSeries[];
  /** In place of the chain's with the same address. */
  readonly contracts?: readonly VirtualContract[];
  /** Where it is left out: that of the chain, at any time. */
  readonly head?: number;
  /** How far the block that is called final is below the head, whatever the profile of the endpoint says. */
  readonly finalLag?: number;
}

export interface VirtualChain {
  readonly network: Network;
  /** The highest block. Events above it are not there yet. */
  readonly head: number;
  readonly finalLag: number | undefined;
  readonly contracts: ReadonlyMap<Hex, VirtualContract>;
  readonly series: readonly EventSeries[];
  grow(blocks: number): void;
  reorganize(reorganization: Reorganization): void;
  /** Another telling of this chain, for an endpoint that lies or is on a fork. A height of its own brings no time of its own. */
  retell(telling: Telling): VirtualChain;
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

const USUAL_BLOCK_SECONDS = 2;
const HEAD_AGE_SECONDS = 60;
const SENDER: Hex = `0x${'5e'.repeat(20)}`;

interface Branch {
  /** Part of the hashes of its blocks. */
  readonly id: number;
  readonly fork: number;
  readonly series: readonly EventSeries[];
}

/** An event and its place, before it is encoded. */
interface Placed {
  readonly series: EventSeries;
  readonly index: number;
  readonly block: number;
}

/** Branches of tellings have numbers of their own: no two of them have the same blocks. */
const FIRST_TOLD_BRANCH = 1_000;
let toldBranches = 0;

/**
 * @param blockSeconds seconds between blocks
 * @param headAtMs milliseconds since 1970, of the head
 */
export function createVirtualChain({
  blockSeconds = USUAL_BLOCK_SECONDS,
  headAtMs = Date.now() - HEAD_AGE_SECONDS * 1000,
  ...options
}: Pick<VirtualChain, 'network' | 'head' | 'series'> & {
  readonly contracts: readonly VirtualContract[];
  readonly blockSeconds?: number;
  readonly headAtMs?: number;
}): VirtualChain {
  const genesisAt = Math.floor(headAtMs / 1000) - options.head * blockSeconds;
  return tell({
    network: options.network,
    contracts: new Map(options.contracts.map((contract) => [contract.address, contract])),
    branches: [{ id: 0, fork: -1, series: options.series }],
    headOf: () => options.head,
    timeOf: (number) => genesisAt + number * blockSeconds,
  });
}

/**
 * @param headOf the head while the chain has not grown or been reorganized
 * @param timeOf seconds since 1970
 */
function tell({
  network,
  contracts,
  branches,
  headOf,
  timeOf,
  finalLag,
}: Pick<VirtualChain, 'network' | 'contracts'> & {
  readonly branches: Branch[];
  readonly headOf: () => number;
  readonly timeOf: (number: number) => number;
  readonly finalLag?: number | undefined;
}): VirtualChain {
  const chainId = Number(network.chainId);
  let ownHead: number | undefined;
  const currentHead = () => ownHead ?? headOf();

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
    to: Math.min(currentHead(), ...branches.slice(branch + 1).map(({ fork }) => fork)),
  });

  const hashIn = (branch: number, number: number): Hex =>
    composeHash(BLOCK_MARK, chainId, (branches[branch] as Branch).id, number);
  const hashOf = (number: number, tip?: number): Hex =>
    number < 0 ? `0x${'00'.repeat(32)}` : hashIn(ownerOf(number, tip), number);

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
        blockHash: hashIn(branch, block),
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
    const branch = branches.findIndex(({ id }) => id === parts?.high);
    if (!parts || branch < 0) return undefined;
    const isPresent = ownerOf(parts.low, branch) === branch && parts.low <= currentHead();
    return isPresent ? { branch, number: parts.low } : undefined;
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
    finalLag,
    get head() {
      return currentHead();
    },
    get series() {
      return (branches.at(-1) as Branch).series;
    },
    grow(blocks) {
      ownHead = currentHead() + blocks;
    },
    reorganize({ fork, series = (branches.at(-1) as Branch).series, head = currentHead() + 1 }) {
      if (fork >= currentHead())
        throw new RangeError(`A fork at ${fork} abandons nothing below the head ${currentHead()}.`);
      branches.push({ id: branches.length, fork, series });
      ownHead = head;
    },
    retell({ fork, series = (branches.at(-1) as Branch).series, contracts: others = [], head, ...rest }) {
      const newest = branches.at(-1) as Branch;
      const latest = Math.max(Math.floor(Date.now() / 1000), timeOf(currentHead()));
      return tell({
        network,
        contracts: new Map([...contracts, ...others.map((one) => [one.address, one] as const)]),
        branches:
          fork === undefined
            ? [...branches.slice(0, -1), { ...newest, series }]
            : [...branches, { id: FIRST_TOLD_BRANCH + toldBranches++, fork, series }],
        headOf: () => head ?? currentHead(),
        timeOf: (number) => (head === undefined ? timeOf(number) : Math.min(timeOf(number), latest)),
        finalLag: rest.finalLag,
      });
    },
    block: (number) => (number < 0 || number > currentHead() ? undefined : blockIn(number)),
    blockByHash(hash) {
      const found = locate(hash);
      return found && blockIn(found.number, found.branch);
    },
    logs: ({ from, to, ...filter }) =>
      placedBetween(from, Math.min(to, currentHead()))
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

export const EMPTY_BLOOM: Hex = `0x${'00'.repeat(256)}`;

const MAX_CACHED = 100_000;
const cachedBits = new Map<Hex, readonly number[]>();

/** The bloom filter of a block's logs, as a node computes it. */
function bloomOf(logs: readonly Pick<VirtualLog, 'address' | 'topics'>[]): Hex {
  if (logs.length === 0) return EMPTY_BLOOM;
  const bloom = new Uint8Array(256);
  for (const { address, topics } of logs) {
    for (const entry of [address, ...topics]) {
      for (const bit of bitsOf(entry)) {
        const byte = 255 - (bit >> 3);
        bloom[byte] = (bloom[byte] ?? 0) | (1 << (bit & 7));
      }
    }
  }
  return `0x${Buffer.from(bloom).toString('hex')}`;
}

function bitsOf(entry: Hex): readonly number[] {
  const cached = cachedBits.get(entry);
  if (cached) return cached;
  const hash = Buffer.from(keccak256(entry).slice(2), 'hex');
  const bits = [0, 2, 4].map((at) => hash.readUInt16BE(at) & 2047);
  if (cachedBits.size >= MAX_CACHED) cachedBits.clear();
  cachedBits.set(entry, bits);
  return bits;
}
