/** Records and facts for tests: valid by default, each part to be overridden. */
import { createHash } from 'node:crypto';
import { base58 } from '@scure/base';
import type { Executed, Observation, RangeFact, Sent } from '../src/domain/facts.ts';
import type { Message, NetworkInfo } from '../src/domain/message.ts';
import { type ParsedMessage, parseMessage } from '../src/domain/message-parser.ts';
import { findNetwork } from '../src/domain/networks.ts';

export function networkInfo(name: string): NetworkInfo {
  const network = findNetwork(name);
  if (!network) throw new Error(`No network ${name}`);
  return {
    name: network.name,
    chainSelector: network.selector,
    chainId: network.chainId,
    chainFamily: network.family,
    displayName: network.displayName,
  };
}

export const sepolia = networkInfo('ethereum-testnet-sepolia');
export const fuji = networkInfo('avalanche-testnet-fuji');
export const solanaDevnet = networkInfo('solana-devnet');

/** 64 hexadecimal digits that look random and are always the same for the same words. */
export function digits(...words: readonly (string | number)[]): string {
  return createHash('sha256').update(words.join('|')).digest('hex');
}

export const hashOf = (...words: readonly (string | number)[]) => `0x${digits(...words)}`;
export const evmAddress = (...words: readonly (string | number)[]) =>
  `0x${digits('evm', ...words).slice(0, 40)}`;
export const svmAddress = (...words: readonly (string | number)[]) =>
  base58.encode(Buffer.from(digits('svm', ...words), 'hex'));
export const svmSignature = (...words: readonly (string | number)[]) =>
  base58.encode(Buffer.from(digits('a', ...words) + digits('b', ...words), 'hex'));

const spelled = (network: NetworkInfo, ...words: readonly (string | number)[]) =>
  network.chainFamily === 'SVM' ? svmAddress(...words) : evmAddress(...words);
const transaction = (network: NetworkInfo, ...words: readonly (string | number)[]) =>
  network.chainFamily === 'SVM' ? svmSignature(...words) : hashOf(...words);

/** A canonical record. `number` tells one from another; everything else may be overridden. */
export function makeMessage(overrides: Partial<Message> & { number?: number } = {}): Message {
  const { number = 1, ...given } = overrides;
  const source = given.sourceNetworkInfo ?? sepolia;
  const dest = given.destNetworkInfo ?? fuji;
  const executed = given.status === 'SUCCESS' || given.status === 'FAILED';
  const sentAt = Date.UTC(2026, 0, 1) + number * 1000;
  return canonical({
    messageId: hashOf('message', number),
    origin: spelled(source, 'origin'),
    sender: spelled(source, 'sender'),
    receiver: spelled(dest, 'receiver'),
    status: 'SENT',
    sourceNetworkInfo: source,
    destNetworkInfo: dest,
    sendTransactionHash: transaction(source, 'send', number),
    sendTimestamp: new Date(sentAt).toISOString(),
    nonce: '0',
    sequenceNumber: String(number),
    onramp: spelled(source, 'onramp'),
    routerAddress: spelled(source, 'router'),
    sendBlockNumber: 1000 + number,
    sendLogIndex: 3,
    receiptTransactionHash: executed ? transaction(dest, 'receipt', number) : null,
    receiptTimestamp: executed ? new Date(sentAt + 60_000).toISOString() : null,
    deliveryTime: executed ? 60_000 : null,
    data: '0x68656c6c6f',
    tokenAmounts: [],
    extraArgs:
      dest.chainFamily === 'SVM'
        ? {
            computeUnits: 200_000,
            accountIsWritableBitmap: '0',
            allowOutOfOrderExecution: true,
            tokenReceiver: svmAddress('token receiver'),
            accounts: [],
          }
        : { gasLimit: '200000', allowOutOfOrderExecution: true },
    readyForManualExecution: given.status === 'FAILED',
    version: '1.6.0',
    finality: 0,
    verifiers: null,
    executor: null,
    fees: { fixedFeesDetails: { tokenAddress: spelled(source, 'link'), totalAmount: '1000000' } },
    ...given,
  });
}

/** The record as the parser would have it; a fixture that is not valid is a mistake in the test. */
export function canonical(record: unknown): Message {
  const parsed: ParsedMessage = parseMessage(record);
  if (!parsed.ok) throw new Error(`Bad fixture: ${JSON.stringify(parsed.problems)}`);
  return parsed.message;
}

export function makeToken(
  source: NetworkInfo,
  dest: NetworkInfo,
  symbol: string,
): Message['tokenAmounts'][number] {
  return {
    sourceTokenAddress: spelled(source, 'token', symbol),
    destTokenAddress: spelled(dest, 'dest token', symbol),
    sourcePoolAddress: spelled(source, 'pool', symbol),
    amount: '5000000000000000000',
    extraData: '0x12',
    destGasAmount: '90000',
  };
}

export function seenOn(
  network: NetworkInfo,
  blockNumber: number,
  overrides: Partial<Observation> = {},
): Observation {
  return {
    network: network.chainSelector,
    blockNumber,
    blockHash: hashOf('block', network.name, blockNumber),
    transactionHash: transaction(network, 'tx', blockNumber),
    logIndex: 0,
    at: new Date(Date.UTC(2026, 0, 1) + blockNumber * 1000).toISOString(),
    ...overrides,
  };
}

export function makeSent(message: Message, seen: Partial<Observation> = {}): Sent {
  const { status, receiptTransactionHash, receiptTimestamp, deliveryTime, readyForManualExecution, ...sent } =
    message;
  return {
    kind: 'Sent',
    message: sent,
    seen: seenOn(message.sourceNetworkInfo, message.sendBlockNumber, {
      transactionHash: message.sendTransactionHash,
      at: message.sendTimestamp,
      ...seen,
    }),
  };
}

export function makeExecuted(message: Message, success: boolean, blockNumber = 5000): Executed {
  return {
    kind: 'Executed',
    messageId: message.messageId,
    success,
    seen: seenOn(message.destNetworkInfo, blockNumber),
  };
}

export function makeRange(
  kind: RangeFact['kind'],
  message: Message,
  from: number,
  to: number,
  blockNumber = 4000,
): RangeFact {
  return {
    kind,
    lane: {
      sourceChainSelector: message.sourceNetworkInfo.chainSelector,
      destChainSelector: message.destNetworkInfo.chainSelector,
      onramp: message.onramp,
    },
    fromSequenceNumber: String(from),
    toSequenceNumber: String(to),
    merkleRoot: hashOf('root', from, to),
    seen: seenOn(message.destNetworkInfo, blockNumber),
  };
}
