/**
 * Queries for logs, fitted to what one endpoint accepts.
 *
 * Endpoints limit the blocks, the results, the topics and the addresses of a query, and say so in any words. An RPC error
 * that is not understood is therefore examined: the same filter over one block shows whether the range is too long or the
 * filter too wide. Limits of the filter are learned here, and later queries are split accordingly. A range that is too
 * long is thrown as RangeTooLargeError, and a filter that needs addresses as AddressRequiredError, because only the caller
 * knows what to ask for instead. The last resort for single blocks are their receipts.
 */
import { NodeError, RangeTooLargeError } from '../../engine/faults.ts';
import { AnswerTooHeavyError, EndpointError, type RpcAnswer } from '../../engine/json-rpc/endpoint.ts';
import type { RpcError, RpcErrorKind } from '../../engine/json-rpc/rpc-error.ts';
import { inParallel } from '../../work.ts';
import { sortLogs } from './answers.ts';
import type { ChainLog, ChainNode, FilterLimits, Hex, LogFilter } from './chain.ts';

/** The endpoint gives logs only of addresses that are named, or the block has too many logs to ask for all. */
export class AddressRequiredError extends NodeError {
  override readonly name = 'AddressRequiredError';
  constructor(message: string) {
    super(message, 'refused');
  }
}

/** Both ends included. */
interface Blocks {
  readonly fromBlock: number;
  readonly toBlock: number;
}

export type LogPlace = Blocks | { readonly blockHash: Hex };

export interface TopicFilter {
  readonly topics: readonly Hex[];
  readonly addresses: readonly Hex[] | undefined;
  readonly isBulk?: boolean | undefined;
}

export interface LogQueriesOptions {
  /** Asks with these filters, each as one call, in the order given. */
  ask(filters: readonly object[], isBulk?: boolean): Promise<readonly RpcAnswer[]>;
  isAlive(): Promise<boolean>;
  /** The logs in an answer, checked against the filter. */
  parse(result: unknown, place: LogPlace, filter: TopicFilter): readonly ChainLog[];
  readonly receiptLogs: ChainNode['receiptLogs'];
  hashesOf(numbers: readonly number[]): Promise<readonly Hex[]>;
  /** The error that an RPC error is when nothing is left to try. */
  rejected(rpcError: RpcError): NodeError;
  /** Called with what was learned, in words. */
  learned(text: string): void;
  /** Milliseconds since 1970. */
  now(): number;
}

/** About the endpoint or the block, and not about the size of the query. */
const otherReasons: ReadonlySet<RpcErrorKind> = new Set(['rate', 'denied', 'pruned', 'unknown', 'reverted']);
/** Understood as: too many blocks, results or bytes. */
const sizeReasons: ReadonlySet<RpcErrorKind> = new Set(['range', 'size', 'slow']);
const PARTS_AT_ONCE = 4;
const ROUND_NUMBER = 100;
/** Blocks that are read by their receipts at once, where an endpoint rejects every query for logs. */
const MAX_RECEIPT_BLOCKS = 25;
/** Plans and nodes change, and a limit may have been a passing fault: what was learned is forgotten in the end. */
const LEARNED_FOR_MS = 3_600_000;
/** With neither logs nor receipts an endpoint is of no use, so that asking again costs little. */
const REJECTED_FOR_MS = 10_000;

const unlimited: FilterLimits = {
  needsAddress: false,
  maxTopics: undefined,
  maxAddresses: undefined,
  offersLogs: true,
};

export function createLogQueries(options: LogQueriesOptions) {
  let limits = unlimited;
  let learnedAt = 0;
  /** When every query was rejected. */
  let rejectedAt = 0;
  /** Sizes of filters that were accepted over one block at least. */
  const accepted = new Set<string>();

  const currentLimits = (): FilterLimits => {
    if (limits !== unlimited && options.now() - learnedAt > LEARNED_FOR_MS) limits = unlimited;
    return limits;
  };
  const learn = (change: Partial<FilterLimits>, text: string) => {
    if (limits === unlimited) learnedAt = options.now();
    const before = JSON.stringify(limits);
    limits = { ...limits, ...change };
    // Of several queries under way at once, each may come to the same.
    if (JSON.stringify(limits) !== before) options.learned(text);
  };

  /** One call. */
  const askOnce = async (place: LogPlace, filter: TopicFilter): Promise<readonly ChainLog[] | RpcError> => {
    const [answer] = await options.ask([queryOf(place, filter)], filter.isBulk);
    return take(answer, place, filter);
  };

  const take = (answer: RpcAnswer | undefined, place: LogPlace, filter: TopicFilter) => {
    if (answer !== undefined && 'error' in answer) return answer.error;
    const logs = options.parse(answer?.result, place, filter);
    accepted.add(sizeOf(filter));
    return logs;
  };

  /** The logs of each block, or the RPC error of one of its parts. */
  const askBlocks = async (hashes: readonly Hex[], filter: TopicFilter) => {
    const filters = splitBy(filter, limits);
    const queries = hashes.flatMap((blockHash) => filters.map((part) => ({ place: { blockHash }, part })));
    const answers = await options.ask(queries.map(({ place, part }) => queryOf(place, part)));
    const taken = queries.map(({ place, part }, index) => take(answers[index], place, part));
    return chunksOf(taken, filters.length).map(
      (parts) =>
        parts.find((part): part is RpcError => !isLogs(part)) ?? sortLogs(parts.filter(isLogs).flat()),
    );
  };

  const isAccepted = async (filter: TopicFilter, block: number): Promise<boolean> => {
    if (accepted.has(sizeOf(filter))) return true;
    const answer = await askOnce({ fromBlock: block, toBlock: block }, filter);
    if (isLogs(answer)) return true;
    if (otherReasons.has(answer.kind)) throw options.rejected(answer);
    return false;
  };

  /**
   * Finds a narrower filter that the endpoint accepts over one block, and remembers its size. Throws where addresses are
   * needed and the filter has none.
   */
  const learnFilter = async (filter: TopicFilter, block: number, rpcError: RpcError): Promise<void> => {
    const { topics, addresses } = filter;
    const accepts = (maxTopics: number, maxAddresses: number | undefined) =>
      isAccepted({ topics: topics.slice(0, maxTopics), addresses: addresses?.slice(0, maxAddresses) }, block);
    for (const maxTopics of halvesOf(topics.length)) {
      if (await accepts(maxTopics, addresses?.length))
        return learn({ maxTopics }, `it takes ${maxTopics} topics in one filter`);
    }
    if (addresses === undefined) {
      learn({ needsAddress: true }, 'it gives logs only of addresses that are named');
      throw addressRequired(rpcError);
    }
    for (const maxAddresses of halvesOf(addresses.length)) {
      if (await accepts(topics.length, maxAddresses))
        return learn({ maxAddresses }, `it takes ${maxAddresses} addresses in one filter`);
    }
    for (const maxAddresses of topics.length > 1 ? halvesOf(addresses.length) : []) {
      const text = `it takes one topic and ${maxAddresses} addresses in one filter`;
      if (await accepts(1, maxAddresses)) return learn({ maxAddresses, maxTopics: 1 }, text);
    }
    rejectedAt = options.now();
    learn({ offersLogs: false }, 'it rejects every query for logs');
  };

  /** Neither logs nor receipts. The RPC errors may have been a passing fault: after a while the limits are learned anew. */
  const nothingOffered = (): NodeError => {
    if (options.now() - rejectedAt >= REJECTED_FOR_MS) limits = unlimited;
    return options.rejected(rejectsLogs);
  };

  /** In the words of the RPC error that it was learned from. */
  let addressError: RpcError | undefined;
  const addressRequired = (rpcError = addressError) => {
    addressError = rpcError;
    return new AddressRequiredError(options.rejected(rpcError ?? rejectsLogs).message);
  };

  /** What to do after an RPC error; ends with the logs or an error. */
  const afterRpcError = async ({ fromBlock, toBlock }: Blocks, filter: TopicFilter, rpcError: RpcError) => {
    const { kind, accepts } = rpcError;
    const blocks = toBlock - fromBlock + 1;
    const again = () => logs({ fromBlock, toBlock, ...filter });
    if (otherReasons.has(kind)) throw options.rejected(rpcError);
    if (kind === 'address' && filter.addresses === undefined) {
      learn({ needsAddress: true }, 'it gives logs only of addresses that are named');
      throw addressRequired(rpcError);
    }
    if (kind === 'filter') {
      await learnFilter(filter, toBlock, rpcError);
      return again();
    }
    const tooLarge = (acceptedBlocks?: number) =>
      new RangeTooLargeError(options.rejected(rpcError).message, acceptedBlocks);
    if (blocks > 1 && kind === 'range' && accepts !== undefined && accepts < blocks) throw tooLarge(accepts);
    if (blocks > 1) {
      // A block may have more logs than the endpoint gives; both ends seldom have.
      if ((await isAccepted(filter, toBlock)) || (await isAccepted(filter, fromBlock))) throw tooLarge();
      await learnFilter(filter, toBlock, rpcError);
      return again();
    }
    const isThisBlock = sizeReasons.has(kind) || (await isAccepted(filter, Math.max(0, fromBlock - 1)));
    if (!isThisBlock) {
      await learnFilter(filter, Math.max(0, fromBlock - 1), rpcError);
      return again();
    }
    return readCrowdedBlock({ fromBlock, toBlock }, filter, rpcError);
  };

  /** One block with more logs than the endpoint gives at once: by address, in parts, by its receipts. */
  const readCrowdedBlock = async (place: Blocks, filter: TopicFilter, rpcError: RpcError) => {
    if (filter.addresses === undefined) throw addressRequired(rpcError);
    const halves = halved(filter);
    if (halves.length > 1) return joined(halves, (half) => logs({ ...place, ...half }));
    return (await byReceipts([place.fromBlock], filter)) ?? Promise.reject(options.rejected(rpcError));
  };

  const byReceipts = async (numbers: readonly number[], { topics, addresses }: TopicFilter) => {
    const found = await options.receiptLogs(await options.hashesOf(numbers), topics);
    return found && sortLogs(found.flat().filter(({ address }) => addresses?.includes(address) ?? true));
  };

  /** A query that brought no answer: is it the query or the endpoint? */
  const afterFault = async (error: unknown, place: Blocks, filter: TopicFilter) => {
    const { fromBlock, toBlock } = place;
    const isOfQuery =
      error instanceof AnswerTooHeavyError ||
      (error instanceof EndpointError && error.kind === 'unreachable');
    if (!isOfQuery || fromBlock === toBlock || !(await options.isAlive())) throw error;
    if (!(error instanceof AnswerTooHeavyError)) {
      // It may have been a passing fault.
      const second = await askOnce(place, filter).catch((repeated: unknown) => repeated);
      if (isLogs(second)) return second;
      if (!(second instanceof EndpointError)) throw second instanceof Error ? second : error;
      if (!(await isAccepted(filter, toBlock))) throw error;
    }
    throw new RangeTooLargeError((error as Error).message);
  };

  const askRange = async (place: Blocks, filter: TopicFilter): Promise<readonly ChainLog[]> => {
    let answer: readonly ChainLog[] | RpcError;
    try {
      answer = await askOnce(place, filter);
    } catch (error) {
      return afterFault(error, place, filter);
    }
    if (!isLogs(answer)) return afterRpcError(place, filter, answer);
    const { fromBlock, toBlock } = place;
    if (fromBlock === toBlock || !mayBeCut(answer)) return answer;
    const middle = Math.floor((fromBlock + toBlock) / 2);
    const lower = await askRange({ fromBlock, toBlock: middle }, filter);
    return [...lower, ...(await askRange({ fromBlock: middle + 1, toBlock }, filter))];
  };

  const logs = async (wanted: Blocks & TopicFilter): Promise<readonly ChainLog[]> => {
    const { fromBlock, toBlock, ...filter } = wanted;
    const { addresses } = filter;
    const { needsAddress, offersLogs } = currentLimits();
    if (!offersLogs) {
      const blocks = toBlock - fromBlock + 1;
      if (blocks > MAX_RECEIPT_BLOCKS)
        throw new RangeTooLargeError(
          'it rejects queries for logs; receipts are read instead',
          MAX_RECEIPT_BLOCKS,
        );
      const numbers = Array.from({ length: blocks }, (_, index) => fromBlock + index);
      return (await byReceipts(numbers, filter)) ?? Promise.reject(nothingOffered());
    }
    if (needsAddress && addresses === undefined) throw addressRequired();
    return joined(splitBy(filter, limits), (part) => askRange({ fromBlock, toBlock }, part));
  };

  return {
    get limits() {
      return currentLimits();
    },
    /** All logs of the filter, in the order of the chain. */
    logs: ({ addresses, ...rest }: LogFilter) => logs({ ...rest, addresses }),
    /**
     * Of single blocks, in the order asked for.
     *
     * @param addresses asked for where the endpoint does not give the logs of every contract
     */
    async logsOfBlocks(hashes: readonly Hex[], topics: readonly Hex[], addresses?: readonly Hex[]) {
      const { needsAddress, offersLogs } = currentLimits();
      if (needsAddress && addresses === undefined) throw addressRequired();
      const found = new Map<Hex, readonly ChainLog[]>();
      let rpcError: RpcError | undefined = offersLogs ? undefined : rejectsLogs;
      const ask = async (filter: TopicFilter) => {
        const left = hashes.filter((hash) => !found.has(hash));
        for (const [index, answer] of (await askBlocks(left, filter)).entries()) {
          if (isLogs(answer)) found.set(left[index] as Hex, answer);
          else if (otherReasons.has(answer.kind)) throw options.rejected(answer);
          else rpcError = answer;
        }
      };
      if (offersLogs && !needsAddress) await ask({ topics, addresses: undefined });
      if (offersLogs && found.size < hashes.length && addresses) await ask({ topics, addresses });
      const left = hashes.filter((hash) => !found.has(hash));
      if (left.length > 0) {
        const receipts = await options.receiptLogs(left, topics);
        if (!receipts) throw offersLogs ? options.rejected(rpcError ?? rejectsLogs) : nothingOffered();
        for (const [index, hash] of left.entries()) found.set(hash, receipts[index] ?? []);
      }
      return hashes.map((hash) => found.get(hash) ?? []);
    },
  };
}

const rejectsLogs: RpcError = {
  kind: 'unsupported',
  code: undefined,
  message: 'it rejects every query for logs, and offers no receipts',
};

function isLogs(answer: unknown): answer is readonly ChainLog[] {
  return Array.isArray(answer);
}

/** Some endpoints cut answers off at a round number, without a word: the halves of the range then have more. */
function mayBeCut({ length }: readonly ChainLog[]): boolean {
  return length >= ROUND_NUMBER && length % ROUND_NUMBER === 0;
}

function sizeOf({ topics, addresses }: TopicFilter): string {
  return `${topics.length} topics, ${addresses?.length ?? 'any'} addresses`;
}

function queryOf(place: LogPlace, { topics, addresses }: TopicFilter): object {
  const blocks =
    'blockHash' in place ? place : { fromBlock: quantity(place.fromBlock), toBlock: quantity(place.toBlock) };
  return { ...blocks, topics: [topics], ...(addresses && { address: addresses }) };
}

export function quantity(number: number): Hex {
  return `0x${number.toString(16)}`;
}

/** Sizes to try, each half of the one before. @example halvesOf(13) // [6, 3, 1] */
function halvesOf(size: number): readonly number[] {
  return size <= 1 ? [] : [size >> 1, ...halvesOf(size >> 1)];
}

/** The logs of all parts of a filter, in the order of the chain. */
async function joined(
  filters: readonly TopicFilter[],
  read: (filter: TopicFilter) => Promise<readonly ChainLog[]>,
): Promise<readonly ChainLog[]> {
  const parts: (readonly ChainLog[])[] = [];
  await inParallel(filters, PARTS_AT_ONCE, async (filter) => {
    parts.push(await read(filter));
  });
  return sortLogs(parts.flat());
}

function chunksOf<T>(list: readonly T[], size: number): readonly (readonly T[])[] {
  const chunks: (readonly T[])[] = [];
  for (let at = 0; at < list.length; at += size) chunks.push(list.slice(at, at + size));
  return chunks;
}

function splitBy({ topics, addresses, isBulk }: TopicFilter, { maxTopics, maxAddresses }: FilterLimits) {
  const lists = addresses ? chunksOf(addresses, maxAddresses ?? addresses.length) : [undefined];
  return chunksOf(topics, maxTopics ?? topics.length).flatMap((some) =>
    lists.map((list) => ({ topics: some, addresses: list, isBulk })),
  );
}

/** Two filters that come to the same; the filter alone where it has one topic and one address. */
function halved({ topics, addresses, ...rest }: TopicFilter): readonly TopicFilter[] {
  if (addresses && addresses.length > 1) {
    const lists = chunksOf(addresses, Math.ceil(addresses.length / 2));
    return lists.map((list) => ({ topics, addresses: list, ...rest }));
  }
  return chunksOf(topics, Math.ceil(topics.length / 2)).map((some) => ({ topics: some, addresses, ...rest }));
}
