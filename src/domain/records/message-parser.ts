/**
 * Parses unknown JSON into a canonical Message, or returns the list of all problems.
 *
 * It checks each rule of the record, converts addresses, hashes, numbers and times to their canonical notation, and names
 * each problem by its JSON path. Sources differ in what they leave out and in what they add: what can be derived is
 * derived and listed, members that the record does not define are kept, and only what nobody can know is a problem.
 */

import { type ChainFamily, chainFamilies, parseAddress, zeroAddressOf } from '../addresses.ts';
import { type Status, statuses, usesVerifiers } from '../lifecycle.ts';
import {
  type ExtensionFields,
  type Fees,
  type Message,
  type NetworkInfo,
  UNNAMED_VERIFIER,
  type Verifier,
  type Verifiers,
} from '../message.ts';
import { type Network, networkBySelector } from '../networks/networks.ts';
import {
  createReport,
  describe,
  MAX_BLOB_LENGTH,
  type Members,
  type RecordProblem,
  type Report,
  readObject,
  UINT64_MAX,
  UINT256_MAX,
} from './record-members.ts';

export { MAX_AHEAD_MS, type RecordProblem } from './record-members.ts';

export type ParsedMessage =
  | ({ readonly ok: true; readonly message: Message } & ParserRemarks)
  | { readonly ok: false; readonly problems: readonly RecordProblem[] };

/** What a valid record had beyond the contract, or lacked of it. Paths have `[]` for any element of a list, but in `derived`. */
export type ParserRemarks = Readonly<Pick<Report, 'kept' | 'ignored' | 'derived' | 'unknown'>>;

/**
 * `now` is the reader's clock, in milliseconds since 1970: times of more than a day after it are problems. Left out, any time
 * may come: the clocks of chains differ.
 *
 * @example
 * const parsed = parseMessage(JSON.parse(line), Date.now());
 * if (!parsed.ok) for (const { path, problem } of parsed.problems) console.error(path, problem);
 */
export function parseMessage(value: unknown, now = Number.POSITIVE_INFINITY): ParsedMessage {
  const report = createReport(now);
  const message = readMessage(value, report);
  const { problems, kept, ignored, derived, unknown } = report;
  return problems.length === 0 && message
    ? { ok: true, message, kept, ignored, derived, unknown }
    : { ok: false, problems };
}

const isMessageId = (text: string) => /^0x[0-9a-fA-F]{64}$/.test(text);
const isVersion = (text: string) => /^\d+(\.\d+)+([-+][\w.+-]+)?$/.test(text);
/** The name of a status or of a family. Names of inherited properties could not be looked up in tables. */
const isName = (text: string) => /^[A-Za-z][A-Za-z0-9_]{0,31}$/.test(text) && !(text in Object.prototype);
const COUNT = 'a non-negative integer';
const UINT64_TEXT = 'an unsigned 64-bit integer as a string';
const isNotEmpty = (text: string) => text !== '';

/** Every member of a record, so that the compiler finds missing ones; undefined where it is invalid. */
type Read<T> = { readonly [Key in keyof T]: T[Key] | undefined };
type ContractFields = Omit<Message, keyof ExtensionFields>;

function readMessage(value: unknown, report: Report): Message | undefined {
  return readObject(value, '$', report, (m) => {
    const sourceNetworkInfo = m.object('sourceNetworkInfo', readNetwork);
    const destNetworkInfo = m.object('destNetworkInfo', readNetwork);
    const source = sourceNetworkInfo?.chainFamily;
    const dest = destNetworkInfo?.chainFamily;
    const status = readStatus(m, 'status', statuses, NEAREST_STATUS, (told) => told.toUpperCase());
    const version = m.nullable('version', (key) => m.text(key, 'a dotted version such as 1.6.0', isVersion));
    const nonce = m.nullable('nonce', (key) => m.decimal(key, UINT64_MAX, UINT64_TEXT));
    const hasNoOrder = usesVerifiers(version) || nonce === '0';
    const extraArgs = m.object('extraArgs', (args) => readExtraArgs(args, dest, hasNoOrder));
    const message = {
      messageId: m.text('messageId', '0x and 64 hexadecimal digits', isMessageId).toLowerCase(),
      origin: m.address('origin', source),
      sender: m.address('sender', source),
      receiver: m.address('receiver', dest),
      status: status.shown,
      sourceNetworkInfo,
      destNetworkInfo,
      sendTransactionHash: m.transactionHash('sendTransactionHash', source),
      sendTimestamp: m.time('sendTimestamp'),
      nonce,
      sequenceNumber: m.decimal('sequenceNumber', UINT64_MAX, UINT64_TEXT),
      onramp: m.address('onramp', source),
      routerAddress: m.nullable('routerAddress', (key) => m.address(key, source)),
      sendBlockNumber: m.integer('sendBlockNumber', COUNT),
      sendLogIndex: m.integer('sendLogIndex', COUNT),
      receiptTransactionHash: m.nullable('receiptTransactionHash', (key) => m.transactionHash(key, dest)),
      receiptTimestamp: m.nullable('receiptTimestamp', (key) => m.time(key)),
      // Nothing was sent before 1970, and clocks of two chains disagree in either direction.
      deliveryTime: m.nullable('deliveryTime', (key) =>
        m.integer(
          key,
          'an integer of milliseconds, no more than since 1970',
          -report.latestMs,
          report.latestMs,
        ),
      ),
      data: m.nullable('data', (key) => m.hex(key)),
      tokenAmounts: m.objects('tokenAmounts', (token) => readTokenAmount(token, source, dest)),
      extraArgs,
      readyForManualExecution: m.derivable('readyForManualExecution', status.shown === 'FAILED', (key) =>
        m.boolean(key),
      ),
      version,
      finality: m.derivable('finality', requestedDepth(m.raw('extraArgs')), (key) => m.integer(key, COUNT)),
      verifiers: m.nullable('verifiers', (key) =>
        m.object(key, (verifiers) => readVerifiers(verifiers, { source, dest, status: status.shown })),
      ),
      executor: m.nullable('executor', (key) =>
        m.object(key, (executor) => ({ address: executor.address('address', source, dest) })),
      ),
      fees: m.object('fees', (fees) => readFees(fees, source)),
      ...extensionFields(m, dest, status.reported),
    } satisfies Read<ContractFields>;
    // Members are undefined only where a problem was reported.
    return message as Message;
  });
}

/** A status that the contract does not have is shown as the nearest that it has, and kept as it was told. */
function readStatus<T extends string>(
  m: Members,
  noun: string,
  known: readonly T[],
  nearest: T,
  spelled: (told: string) => string = (told) => told,
): { readonly shown: T; readonly reported: string | undefined } {
  const told = m.raw('status');
  if (typeof told !== 'string' || !isName(told)) {
    m.reportInvalid('status', `one of ${known.join(', ')}`);
    return { shown: nearest, reported: undefined };
  }
  const name = spelled(told);
  const shown = known.find((status) => status === name);
  if (shown) return { shown, reported: undefined };
  m.report.unknown.push(`${noun} ${name}, shown as ${nearest}`);
  return { shown: nearest, reported: name };
}

/** The one that claims least. It is so for UNCONFIRMED too: an execution that the receiver has not confirmed. */
const NEAREST_STATUS = 'SENT';

/** Members that came after the contract. One that cannot be used is dropped: it must not cost the record. */
function extensionFields(m: Members, dest: ChainFamily | undefined, reported: string | undefined) {
  const told = m.raw('offramp');
  const offramp = typeof told === 'string' && dest ? parseAddress(told, dest)?.text : undefined;
  const encodedMessage = encodedBytes(m.raw('encodedMessage'));
  const reportedStatus = reported ?? m.raw('reportedStatus');
  return {
    ...(offramp !== undefined && { offramp }),
    ...(encodedMessage !== undefined && { encodedMessage }),
    ...(typeof reportedStatus === 'string' && isName(reportedStatus) && { reportedStatus }),
  };
}

/** With or without 0x: servers that read Canton leave it out. */
function encodedBytes(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '' || value.length > MAX_BLOB_LENGTH) return undefined;
  const digits = /^(?:0x)?((?:[0-9a-fA-F]{2})*)$/.exec(value)?.[1];
  return digits === undefined ? undefined : `0x${digits.toLowerCase()}`;
}

/** The block depth that the extra arguments of 2.0 ask for; 0, the chain's own finality, where they ask for none. */
function requestedDepth(extraArgs: unknown): number {
  const { requestedFinalityConfig, finality, blockConfirmations } = (extraArgs ?? {}) as Record<
    string,
    unknown
  >;
  const told = requestedFinalityConfig ?? finality ?? blockConfirmations;
  const isNumber =
    typeof told === 'number' || (typeof told === 'string' && /^(0x[0-9a-f]{1,8}|\d{1,9})$/i.test(told));
  const number = isNumber ? Number(told) : 0;
  return Number.isSafeInteger(number) && number > 0 ? number & DEPTH_BITS : 0;
}

/** The lower half of the four bytes; the upper half has flags, such as that for the safe head. */
const DEPTH_BITS = 0xffff;

/** Cache of canonical networks by selector: records share these few objects. */
const knownNetworks = new Map<unknown, NetworkInfo>();
const MAX_KNOWN_NETWORKS = 1_000;

function readNetwork(m: Members): NetworkInfo {
  const known = knownNetworks.get(m.raw('chainSelector'));
  if (known && m.areExactly(known)) return known;
  const problems = m.report.problems.length;
  const network = readNewNetwork(m);
  if (m.report.problems.length === problems && m.areExactly(network)) {
    if (knownNetworks.size >= MAX_KNOWN_NETWORKS) knownNetworks.clear();
    knownNetworks.set(network.chainSelector, network);
  }
  return network;
}

function readNewNetwork(m: Members): NetworkInfo {
  const name = m.text('name', 'a non-empty name', isNotEmpty);
  const chainSelector = m.decimal('chainSelector', UINT64_MAX, UINT64_TEXT);
  const known = networkBySelector(chainSelector);
  return {
    name,
    chainSelector,
    chainId: m.text('chainId', 'a non-empty string', isNotEmpty),
    chainFamily: readFamily(m, known),
    displayName:
      m.nullable('displayName', (key) => m.text(key, 'a string or null')) ?? known?.displayName ?? null,
  } satisfies Read<NetworkInfo> as NetworkInfo;
}

/** In any letter case. The family of a known selector is known; that of another is what the source says. */
function readFamily(m: Members, known: Network | undefined): ChainFamily | undefined {
  const told = m.raw('chainFamily');
  if (known && (told === undefined || told === null)) {
    m.report.derived.push(m.at('chainFamily'));
    return known.family;
  }
  if (typeof told !== 'string' || !isName(told)) {
    m.reportInvalid('chainFamily', `one of ${chainFamilies.join(', ')}`);
    return undefined;
  }
  const family = chainFamilies.find((name) => name === told.toUpperCase());
  if (family && known && known.family !== family) {
    m.problem(
      'chainFamily',
      `is ${family}; selector ${known.selector} is ${known.name}, an ${known.family} network`,
    );
  }
  if (family) return family;
  m.report.unknown.push(
    known ? `chain family ${told} of ${known.name}, shown as ${known.family}` : `chain family ${told}`,
  );
  return known?.family ?? (told as ChainFamily);
}

function readTokenAmount(m: Members, source: ChainFamily | undefined, dest: ChainFamily | undefined) {
  return {
    sourceTokenAddress: m.address('sourceTokenAddress', source),
    destTokenAddress: m.address('destTokenAddress', dest),
    sourcePoolAddress: m.address('sourcePoolAddress', source),
    amount: m.decimal('amount', UINT256_MAX, 'a positive integer below 2^256 as a string', 1),
    extraData: m.nullable('extraData', (key) => m.text(key, 'a string', undefined, MAX_BLOB_LENGTH)),
    destGasAmount: m.nullable('destGasAmount', (key) =>
      m.decimal(key, UINT256_MAX, 'an unsigned integer as a string'),
    ),
  };
}

/** @param hasNoOrder whether the message may be executed before earlier ones, where its arguments do not say */
function readExtraArgs(m: Members, dest: ChainFamily | undefined, hasNoOrder: boolean): Message['extraArgs'] {
  if (m.has('computeUnits')) {
    return {
      computeUnits: m.integer('computeUnits', COUNT),
      accountIsWritableBitmap: m.text('accountIsWritableBitmap', 'a string'),
      allowOutOfOrderExecution: m.boolean('allowOutOfOrderExecution'),
      tokenReceiver: m.address('tokenReceiver', dest),
      accounts: m.array('accounts', (element, path) => {
        const account = typeof element === 'string' && dest ? parseAddress(element, dest) : undefined;
        if (!account)
          m.report.problems.push({ path, problem: `is ${describe(element)}; it must be an address` });
        return account?.text;
      }),
    };
  }
  return {
    gasLimit: m.decimal('gasLimit', UINT256_MAX, 'an unsigned integer as a string (or give computeUnits)'),
    // The first form of the arguments has no such member, and neither has that of 2.0, which has no order at all.
    allowOutOfOrderExecution: m.derivable('allowOutOfOrderExecution', hasNoOrder, (key) => m.boolean(key)),
  };
}

interface VerifierContext {
  readonly source: ChainFamily | undefined;
  readonly dest: ChainFamily | undefined;
  readonly status: Status;
}

function readVerifiers(m: Members, context: VerifierContext): Verifiers {
  return {
    items: m.derivable('items', [], (key) => m.objects(key, (item) => readVerifier(item, context))),
    optionalThreshold: m.derivable('optionalThreshold', 0, (key) => {
      const told = m.raw(key);
      // Some servers write the number as a text.
      return typeof told === 'string' && /^\d{1,4}$/.test(told) ? Number(told) : m.integer(key, COUNT);
    }),
  };
}

/** Before the execution a source may not know who the verifier is on the destination, nor whether it is required. */
function readVerifier(m: Members, { source, dest, status: messageStatus }: VerifierContext): Verifier {
  const verification =
    m.nullable('verification', (key) =>
      m.object(key, (v) => ({ data: v.hex('data'), timestamp: v.time('timestamp') })),
    ) ?? null;
  const derived: Verifier['status'] = verification === null ? 'PENDING' : 'COMPLETED';
  const status = m.derivable('status', { shown: derived, reported: undefined }, () =>
    readStatus(m, 'verifier status', ['PENDING', 'COMPLETED'], derived),
  );
  if (status.shown === 'COMPLETED' && verification === null) {
    m.problem('verification', 'is null; a COMPLETED verifier has verification data and a timestamp');
  }
  if (status.shown === 'PENDING' && verification !== null) {
    m.problem('verification', 'is an object; it must be null while the verifier is PENDING');
  }
  const isPastVerification = messageStatus === 'VERIFIED' || messageStatus === 'SUCCESS';
  return {
    sourceAddress: m.address('sourceAddress', source),
    destAddress: m.derivable('destAddress', dest ? zeroAddressOf(dest) : '', (key) => m.address(key, dest)),
    metadata: m.derivable<Verifier['metadata']>(
      'metadata',
      { name: UNNAMED_VERIFIER },
      (key) => m.object(key, readMetadata) ?? { name: '' },
    ),
    // What is not known is taken for required, unless the message came through without it.
    isRequired: m.derivable('isRequired', status.shown === 'COMPLETED' || !isPastVerification, (key) =>
      m.boolean(key),
    ),
    status: status.shown,
    verification,
    ...(status.reported !== undefined && { reportedStatus: status.reported }),
  };
}

function readMetadata(m: Members): Verifier['metadata'] {
  return {
    name: m.derivable('name', UNNAMED_VERIFIER, (key) => m.text(key, 'a string')),
    ...(m.has('logoUrl') && { logoUrl: m.text('logoUrl', 'an http or https URI', isWebAddress) }),
  };
}

function readFees(m: Members, source: ChainFamily | undefined): Fees {
  const details = m.object('fixedFeesDetails', (d) => ({
    tokenAddress: d.address('tokenAddress', source),
    totalAmount: d.decimal('totalAmount', UINT256_MAX, 'an unsigned integer below 2^256 as a string'),
    ...(d.has('items') && {
      items: d.objects('items', (item) => ({
        contractAddress: item.address('contractAddress', source),
        feeType: item.enumerated('feeType', ['VERIFIER', 'EXECUTOR', 'TOKEN_POOL', 'NETWORK']),
        amount: item.decimal('amount', UINT256_MAX, 'an unsigned integer below 2^256 as a string'),
      })),
    }),
  }));
  const bpsFeeDetails = m.raw('bpsFeeDetails');
  return {
    fixedFeesDetails: details ?? { tokenAddress: '', totalAmount: '0' },
    ...(Array.isArray(bpsFeeDetails) &&
      m.report.unknownMembers.accepts('bpsFeeDetails', bpsFeeDetails) && { bpsFeeDetails }),
  };
}

/** Logos are shown in browsers, so schemes such as `javascript:` and `data:` are rejected. */
function isWebAddress(text: string): boolean {
  return /^https?:\/\/([A-Za-z0-9\-._~:/?#@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+$/.test(text) && URL.canParse(text);
}
