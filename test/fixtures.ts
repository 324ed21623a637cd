/** Records and facts for tests: valid by default, each part to be overridden. */
import { createHash } from 'node:crypto';
import { base58 } from '@scure/base';
import fc from 'fast-check';
import { parseAddress, zeroAddresses } from '../src/domain/addresses.ts';
import type {
  ChainFact,
  Executed,
  ExecutionDetails,
  Fact,
  ManualExecutionOpened,
  Observation,
  RangeFact,
  RootFact,
  Sent,
  Snapshot,
  SourceFinalized,
  VerifierCompleted,
  VerifierPolicy,
} from '../src/domain/facts.ts';
import { statuses } from '../src/domain/lifecycle.ts';
import type { Message, NetworkInfo, TokenAmount, Verifier } from '../src/domain/message.ts';
import { findNetwork } from '../src/domain/networks/networks.ts';
import { type ParsedMessage, parseMessage } from '../src/domain/records/message-parser.ts';

/** Properties run on the same cases every time; `FC_SEED` chooses others. */
fc.configureGlobal({ seed: Number(process.env.FC_SEED ?? 20_260_101) });

export function networkInfo(text: string): NetworkInfo {
  const network = findNetwork(text);
  if (!network) throw new Error(`No network ${text}`);
  const { name, selector, chainId, family, displayName } = network;
  return { name, chainSelector: selector, chainId, chainFamily: family, displayName };
}

export const sepolia = networkInfo('ethereum-testnet-sepolia');
export const fuji = networkInfo('avalanche-testnet-fuji');
export const solanaDevnet = networkInfo('solana-devnet');

type Words = readonly (string | number)[];

/** 64 hexadecimal digits that look random and are always the same for the same words. */
export function digits(...words: Words): string {
  return createHash('sha256').update(words.join('|')).digest('hex');
}

export const hashOf = (...words: Words) => `0x${digits(...words)}`;
export const evmAddress = (...words: Words) => `0x${digits('evm', ...words).slice(0, 40)}`;
export const svmAddress = (...words: Words) => base58.encode(Buffer.from(digits('svm', ...words), 'hex'));
export const svmSignature = (...words: Words) =>
  base58.encode(Buffer.from(digits('a', ...words) + digits('b', ...words), 'hex'));

const spelled = (network: NetworkInfo, ...words: Words) =>
  network.chainFamily === 'SVM' ? svmAddress(...words) : evmAddress(...words);
const transaction = (network: NetworkInfo, ...words: Words) =>
  network.chainFamily === 'SVM' ? svmSignature(...words) : hashOf(...words);

/** A canonical record. `number` tells one from another; everything else may be overridden. */
export function makeMessage(overrides: Partial<Message> & { number?: number } = {}): Message {
  const { number = 1, ...given } = overrides;
  const source = given.sourceNetworkInfo ?? sepolia;
  const dest = given.destNetworkInfo ?? fuji;
  const executed = given.status === 'SUCCESS' || given.status === 'FAILED';
  const sentAt = Date.UTC(2026, 0, 1) + number * 1000;
  const record: Message = {
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
  };
  return canonical(record);
}

/** The record as the parser would have it; a fixture that is not valid is a mistake in the test. */
export function canonical(record: unknown): Message {
  const parsed: ParsedMessage = parseMessage(record);
  if (!parsed.ok) throw new Error(`Bad fixture: ${JSON.stringify(parsed.problems)}`);
  return parsed.message;
}

/** What the parser returns for a record that is complete and canonical. */
export function acceptedAs(message: unknown): unknown {
  return { ok: true, message, kept: [], ignored: [], derived: [], unknown: [] };
}

export function makeToken(source: NetworkInfo, dest: NetworkInfo, symbol: string): TokenAmount {
  return {
    sourceTokenAddress: spelled(source, 'token', symbol),
    destTokenAddress: spelled(dest, 'dest token', symbol),
    sourcePoolAddress: spelled(source, 'pool', symbol),
    amount: '5000000000000000000',
    extraData: '0x12',
    destGasAmount: '90000',
  };
}

export function seenOn(network: NetworkInfo, blockNumber: number, more: Partial<Observation> = {}) {
  return {
    network: network.chainSelector,
    blockNumber,
    blockHash: hashOf('block', network.name, blockNumber),
    transactionHash: transaction(network, 'tx', blockNumber),
    logIndex: 0,
    at: new Date(Date.UTC(2026, 0, 1) + blockNumber * 1000).toISOString(),
    ...more,
  };
}
/** What is read from a block, and not from a log in it. */
const inNoLog = { transactionHash: null, logIndex: null };

export function makeSent(message: Message, more: Partial<Observation> = {}): Sent {
  const { status, receiptTransactionHash, receiptTimestamp, deliveryTime, readyForManualExecution, ...sent } =
    message;
  const { sendTransactionHash: transactionHash, sendTimestamp: at } = message;
  const seen = seenOn(message.sourceNetworkInfo, message.sendBlockNumber, { transactionHash, at, ...more });
  return { kind: 'Sent', message: sent, seen };
}

export function makeExecuted(
  { messageId, destNetworkInfo }: Message,
  success: boolean,
  block = 5000,
): Executed {
  return { kind: 'Executed', messageId, success, seen: seenOn(destNetworkInfo, block) };
}

/** What the execution in that block left behind. */
export function makeExecutionDetails(
  { messageId, destNetworkInfo }: Message,
  returnData: string,
  block = 5000,
  gasUsed: string | null = null,
): ExecutionDetails {
  const details = { messageId, returnData, gasUsed, caller: evmAddress('caller') };
  return { kind: 'ExecutionDetails', ...details, seen: seenOn(destNetworkInfo, block) };
}

export function makeRange(
  kind: RangeFact['kind'],
  { sourceNetworkInfo, destNetworkInfo, onramp }: Message,
  from: number,
  to: number,
  block = 4000,
): RangeFact {
  const [sourceChainSelector, destChainSelector] = [
    sourceNetworkInfo.chainSelector,
    destNetworkInfo.chainSelector,
  ];
  return {
    kind,
    lane: { sourceChainSelector, destChainSelector, onramp },
    fromSequenceNumber: String(from),
    toSequenceNumber: String(to),
    merkleRoot: hashOf('root', from, to),
    seen: seenOn(destNetworkInfo, block),
  };
}

export function makeFinalized({ messageId, sourceNetworkInfo }: Message, block = 3000): SourceFinalized {
  return { kind: 'SourceFinalized', messageId, seen: seenOn(sourceNetworkInfo, block, inNoLog) };
}

export function makeManualExecutionOpened(
  { messageId, destNetworkInfo }: Message,
  block = 4500,
): ManualExecutionOpened {
  return { kind: 'ManualExecutionOpened', messageId, seen: seenOn(destNetworkInfo, block, inNoLog) };
}

export function makeVerifierCompleted(message: Message, name: string, block = 3500): VerifierCompleted {
  const { messageId, sourceNetworkInfo, destNetworkInfo } = message;
  const verifier = verifierAddress(sourceNetworkInfo, name);
  const data = `0x${digits('verification', name).slice(0, 16)}`;
  return { kind: 'VerifierCompleted', messageId, verifier, data, seen: seenOn(destNetworkInfo, block) };
}

/** What the destination asks for, by the names of verifiers. */
export function makePolicy(
  { messageId, destNetworkInfo }: Message,
  asked: { required?: readonly string[]; optional?: readonly string[]; threshold?: number },
  block = 3200,
): VerifierPolicy {
  const addresses = (names: readonly string[] = []) =>
    names.map((name) => verifierAddress(destNetworkInfo, name));
  return {
    kind: 'VerifierPolicy',
    messageId,
    required: addresses(asked.required),
    optional: addresses(asked.optional),
    optionalThreshold: asked.threshold ?? 0,
    seen: seenOn(destNetworkInfo, block, inNoLog),
  };
}

/** The blessing of the root that `makeRange` commits. */
export function makeRootBlessed(message: Message, from: number, to: number, blockNumber = 4100): RootFact {
  const { merkleRoot } = makeRange('Committed', message, from, to);
  return { kind: 'RootBlessed', merkleRoot, seen: seenOn(message.destNetworkInfo, blockNumber) };
}

export function makeSnapshot(message: Message): Snapshot {
  return { kind: 'Snapshot', message };
}

/** A verifier that is pending, or, when told since when, completed. */
export function makeVerifier(
  name: string,
  { isRequired = true, completedAt = null }: { isRequired?: boolean; completedAt?: string | null } = {},
): Verifier {
  const [sourceAddress, destAddress] = [sepolia, fuji].map((at) => spelled(at, 'verifier', name)) as [
    string,
    string,
  ];
  const about = { sourceAddress, destAddress, metadata: { name }, isRequired };
  if (completedAt === null) return { ...about, status: 'PENDING', verification: null };
  return { ...about, status: 'COMPLETED', verification: { data: '0xabcd', timestamp: completedAt } };
}

/** The same on every EVM chain, as resolvers often are. */
export function verifierAddress(network: NetworkInfo, name: string): string {
  const address = spelled(network, 'verifier', name);
  return parseAddress(address, network.chainFamily)?.text ?? address;
}

const verifierNames = ['Alice', 'Bob', 'Carol'] as const;

/**
 * A message for random facts to speak of: on a lane from Sepolia to Fuji, with three verifiers where its
 * version has them.
 */
export function makeSubject(version: string | null, number = 1): Message {
  const items = [makeVerifier('Alice'), makeVerifier('Bob'), makeVerifier('Carol', { isRequired: false })];
  const hasVerifiers = version !== null && version >= '1.7';
  return makeMessage({ number, version, verifiers: hasVerifiers ? { items, optionalThreshold: 1 } : null });
}

/** A message as a source chain tells of it, which knows its verifiers by their addresses there and nothing else of them. */
export function makeToldBySource(message: Message): Message {
  return canonical({
    ...message,
    verifiers: message.verifiers && {
      items: message.verifiers.items.map((item) => ({
        ...item,
        destAddress: zeroAddresses[message.destNetworkInfo.chainFamily],
        isRequired: true,
      })),
      optionalThreshold: 0,
    },
  });
}

/** What destinations may ask for; Dave is nobody's choice on the source. */
const policies = [
  { required: ['Alice', 'Bob'], optional: ['Carol'], threshold: 1 },
  { required: ['Bob'], optional: ['Carol', 'Alice'], threshold: 1 },
  { required: ['Carol', 'Bob', 'Alice'] },
  { required: ['Alice'], optional: ['Dave'], threshold: 1 },
  { required: ['Alice', 'Bob', 'Carol', 'Dave'] },
  {},
] as const;

/** Facts that chains tell of one message: sent in up to two blocks, executed several times, and so on. */
export function chainFactsAbout(subject: Message): fc.Arbitrary<ChainFact> {
  const block = (from: number) => fc.integer({ min: from, max: from + 4 });
  return fc.oneof(
    fc.constantFrom(0, 2).map((later) =>
      makeSent(
        canonical({
          ...subject,
          sendBlockNumber: subject.sendBlockNumber + later,
          sendTransactionHash: later ? hashOf('again', subject.messageId) : subject.sendTransactionHash,
          sendTimestamp: new Date(Date.parse(subject.sendTimestamp) + later * 12_000).toISOString(),
        }),
      ),
    ),
    block(3000).map((number) => makeFinalized(subject, number)),
    fc
      .tuple(fc.constantFrom(...policies), block(3200))
      .map(([asked, number]) => makePolicy(subject, asked, number)),
    fc
      .tuple(fc.constantFrom(...verifierNames, 'Dave', 'nobody'), block(3500))
      .map(([name, number]) => makeVerifierCompleted(subject, name, number)),
    block(4500).map((number) => makeManualExecutionOpened(subject, number)),
    fc.tuple(fc.boolean(), block(5000)).map(([success, number]) => makeExecuted(subject, success, number)),
  );
}

/** Whole records of one message from somebody who knows more or less of it. */
export function snapshotsOf(subject: Message): fc.Arbitrary<Snapshot> {
  const verifiers = subject.verifiers;
  const completion = fc.option(fc.constantFrom('2026-01-01T01:00:00.000Z', '2026-01-01T01:00:07.000Z'));
  return fc
    .record({
      status: fc.constantFrom(...statuses),
      ready: fc.boolean(),
      receipt: fc.option(fc.integer({ min: 5000, max: 5004 })),
      hasReceiptHash: fc.boolean(),
      forgets: fc.subarray(['nonce', 'routerAddress', 'data', 'executor', 'verifiers'] as const),
      data: fc.constantFrom('0x', '0x01', '0x02'),
      completions: fc.array(completion, { minLength: 3, maxLength: 3 }),
    })
    .map(({ status, ready, receipt, hasReceiptHash, forgets, data, completions }) => {
      const receiptTimestamp =
        receipt === null ? null : new Date(Date.UTC(2026, 0, 1) + receipt * 1000).toISOString();
      return makeSnapshot(
        canonical({
          ...subject,
          data,
          executor: { address: evmAddress('executor') },
          verifiers: verifiers && {
            ...verifiers,
            items: verifiers.items.map((item, i) => {
              const completedAt = completions[i] ?? null;
              if (completedAt === null) return item;
              return { ...item, status: 'COMPLETED', verification: { data: '0x99', timestamp: completedAt } };
            }),
          },
          status,
          readyForManualExecution: ready,
          receiptTimestamp,
          receiptTransactionHash: receipt !== null && hasReceiptHash ? hashOf('receipt', receipt) : null,
          deliveryTime:
            receiptTimestamp === null
              ? null
              : Date.parse(receiptTimestamp) - Date.parse(subject.sendTimestamp),
          ...Object.fromEntries(forgets.map((field) => [field, null])),
        }),
      );
    });
}

/** Commits and blessings that cover the message. */
export function rangesAround(subject: Message): fc.Arbitrary<RangeFact> {
  const number = Number(subject.sequenceNumber);
  return fc
    .tuple(
      fc.constantFrom('Committed' as const, 'Blessed' as const),
      fc.integer({ min: 0, max: number }),
      fc.integer({ min: number, max: number + 3 }),
      fc.integer({ min: 4000, max: 4004 }),
    )
    .map(([kind, from, to, block]) => makeRange(kind, subject, from, to, block));
}

/** Everything that can be told of one message, by chains and by imports. */
export function factsAbout(subject: Message): fc.Arbitrary<Fact> {
  return fc.oneof(
    { arbitrary: chainFactsAbout(subject), weight: 4 },
    { arbitrary: rangesAround(subject), weight: 1 },
    { arbitrary: snapshotsOf(subject), weight: 2 },
  );
}
