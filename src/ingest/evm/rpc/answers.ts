/** JSON of a node to values that can be believed in shape. Everything that does not fit is the node's fault. */
import { fieldsOf, listOf, UnreadableDataError } from '../../engine/json-rpc/answer-reader.ts';
import type { Block, ChainLog, Hex, Transaction } from './chain.ts';

const EMPTY_BLOOM = `0x${'00'.repeat(256)}`;

export function parseBlock(value: unknown): Block {
  const block = fieldsOf(value, 'block');
  return {
    number: parseQuantity(block.number, 'number of a block'),
    hash: bytesOf(block.hash, 32, 'hash of a block'),
    parentHash: bytesOf(block.parentHash, 32, 'parentHash of a block'),
    timestamp: parseQuantity(block.timestamp, 'timestamp of a block'),
    // Some chains have no filters. One that denies everything is taken for what it is when a log contradicts it.
    logsBloom: bytesOf(block.logsBloom ?? EMPTY_BLOOM, 256, 'logsBloom of a block'),
  };
}

export function parseLog(value: unknown): ChainLog {
  const log = fieldsOf(value, 'log');
  // A node says so of logs that a reorganisation has taken back.
  if (log.removed === true) throw new UnreadableDataError('a log that was removed');
  if (!Array.isArray(log.topics) || log.topics.length > 4)
    throw new UnreadableDataError('no topics in a log');
  return {
    address: bytesOf(log.address, 20, 'address of a log'),
    topics: log.topics.map((topic) => bytesOf(topic, 32, 'topic of a log')),
    data: bytesOf(log.data, undefined, 'data of a log'),
    blockNumber: parseQuantity(log.blockNumber, 'blockNumber of a log'),
    blockHash: bytesOf(log.blockHash, 32, 'blockHash of a log'),
    transactionHash: bytesOf(log.transactionHash, 32, 'transactionHash of a log'),
    logIndex: parseQuantity(log.logIndex, 'logIndex of a log'),
    ...parseBlockTimestamp(log.blockTimestamp),
  };
}

/** An extension that not all nodes have, and some fill with zero: what is no time is left out. */
function parseBlockTimestamp(value: unknown): Pick<ChainLog, 'blockTimestamp'> {
  const isTime = typeof value === 'string' && /^0x[0-9a-fA-F]{1,12}$/.test(value) && Number(value) > 0;
  return isTime ? { blockTimestamp: Number(value) } : {};
}

export function parseLogs(value: unknown): readonly ChainLog[] {
  return listOf(value, 'list of logs').map(parseLog);
}

export function parseReceiptLogs(value: unknown, blockHash: Hex): readonly ChainLog[] {
  return listOf(value, 'list of receipts').flatMap((entry) => {
    const receipt = fieldsOf(entry, 'receipt');
    if (bytesOf(receipt.blockHash, 32, 'blockHash of a receipt') !== blockHash)
      throw new UnreadableDataError('a receipt of another block');
    const transactionHash = bytesOf(receipt.transactionHash, 32, 'transactionHash of a receipt');
    const logs = parseLogs(receipt.logs);
    if (logs.some((log) => log.transactionHash !== transactionHash))
      throw new UnreadableDataError('a receipt with a log of another transaction');
    return logs;
  });
}

export function parseTransaction(value: unknown): Transaction {
  const transaction = fieldsOf(value, 'transaction');
  const { to } = transaction;
  return {
    hash: bytesOf(transaction.hash, 32, 'hash of a transaction'),
    from: bytesOf(transaction.from, 20, 'from of a transaction'),
    to: to === null || to === undefined ? null : bytesOf(to, 20, 'to of a transaction'),
    input: bytesOf(transaction.input, undefined, 'input of a transaction'),
  };
}

/** A number in hexadecimal, not larger than JavaScript can count. */
export function parseQuantity(value: unknown, what: string): number {
  const number =
    typeof value === 'string' && /^0x[0-9a-fA-F]{1,16}$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw new UnreadableDataError(`no ${what}`);
  return number;
}

/** Bytes in hexadecimal, in lower case; of any length where none is given. */
export function bytesOf(value: unknown, length: number | undefined, what: string): Hex {
  const isHex =
    typeof value === 'string' &&
    value.length % 2 === 0 &&
    (length === undefined || value.length === 2 + 2 * length) &&
    /^0x[0-9a-fA-F]*$/.test(value);
  if (!isHex) throw new UnreadableDataError(`no ${what}`);
  return value.toLowerCase() as Hex;
}

/**
 * The logs by block and index, or what is wrong with them. Nodes answer in the order of the chain, as a rule; some answer in
 * another one, and some count log indexes anew in each transaction. Both are brought to one form; what contradicts itself is
 * rejected.
 */
export function orderLogs(logs: readonly ChainLog[]) {
  const hashes = new Map<number, string>();
  const numbers = new Map<string, number>();
  const places = new Set<string>();
  for (const { blockNumber, blockHash, transactionHash, logIndex } of logs) {
    const hash = hashes.get(blockNumber) ?? blockHash;
    const number = numbers.get(blockHash) ?? blockNumber;
    if (hash !== blockHash || number !== blockNumber)
      return { problem: `two hashes for block ${blockNumber}, or one for two blocks` };
    hashes.set(blockNumber, blockHash);
    numbers.set(blockHash, blockNumber);
    // Of two transactions the same index is no contradiction: it counts within each.
    const place = `${transactionHash} ${logIndex}`;
    if (places.has(place)) return { problem: `log ${logIndex} of block ${blockNumber} twice` };
    places.add(place);
  }
  return { logs: sortLogs(logs) };
}

/** By block and index, the order of the chain. */
export function sortLogs(logs: readonly ChainLog[]): readonly ChainLog[] {
  return logs.toSorted((one, other) => one.blockNumber - other.blockNumber || one.logIndex - other.logIndex);
}
