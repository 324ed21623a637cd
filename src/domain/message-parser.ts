/**
 * Parses unknown JSON into a canonical Message, or returns the list of all problems.
 *
 * It checks each rule of the record, converts addresses, hashes, numbers and times to their canonical notation, and names
 * each problem by its JSON path. Unknown members are ignored and reported, so that nothing is dropped silently.
 */

import { parseTime } from '../base/iso-time.ts';
import { type ChainFamily, chainFamilies, parseAddress, parseTransactionHash } from './addresses.ts';
import { statuses } from './lifecycle.ts';
import type { Fees, Message, NetworkInfo, TokenAmount, Verifier, Verifiers } from './message.ts';
import { networkBySelector } from './networks.ts';

export interface RecordProblem {
  /** JSON path, such as `$.tokenAmounts[0].amount`. */
  readonly path: string;
  readonly problem: string;
}

export type ParsedMessage =
  | { readonly ok: true; readonly message: Message; readonly ignored: readonly string[] }
  | { readonly ok: false; readonly problems: readonly RecordProblem[] };

/**
 * @example
 * const parsed = parseMessage(JSON.parse(line));
 * if (!parsed.ok) for (const { path, problem } of parsed.problems) console.error(path, problem);
 */
export function parseMessage(value: unknown): ParsedMessage {
  const report: Report = { problems: [], ignored: [] };
  const message = readMessage(value, report);
  return report.problems.length === 0 && message
    ? { ok: true, message, ignored: report.ignored }
    : { ok: false, problems: report.problems };
}

interface Report {
  readonly problems: RecordProblem[];
  readonly ignored: string[];
}

const UINT64_MAX = 2n ** 64n - 1n;
const UINT256_MAX = 2n ** 256n - 1n;
const MAX_TEXT_LENGTH = 1_000;
const MAX_BLOB_LENGTH = 2_000_000;
/** Far more than any protocol allows; longer lists are an attack on the store. */
const MAX_ELEMENTS = 1_000;

/**
 * The members of one JSON object, read one at a time. An invalid member is reported once and replaced by a placeholder, so
 * that the parser finds the other problems too; the record is then discarded.
 *
 * Nearly every value is valid, so error texts are only made for invalid ones.
 */
class Members {
  readonly path: string;
  readonly report: Report;
  readonly #members: Readonly<Record<string, unknown>>;

  constructor(members: Readonly<Record<string, unknown>>, path: string, report: Report) {
    this.#members = members;
    this.path = path;
    this.report = report;
  }

  at(key: string): string {
    return `${this.path}.${key}`;
  }

  problem(key: string, problem: string): void {
    this.report.problems.push({ path: this.at(key), problem });
  }

  has(key: string): boolean {
    return this.raw(key) !== undefined;
  }

  /** Safe without `hasOwn`: no member of a record has the name of an inherited property. */
  raw(key: string): unknown {
    return this.#members[key];
  }

  /** Whether the members are exactly these, in the same notation. */
  areExactly(other: object): boolean {
    const others = Object.keys(other);
    return (
      Object.keys(this.#members).length === others.length &&
      others.every((key) => this.#members[key] === (other as Readonly<Record<string, unknown>>)[key])
    );
  }

  #reportInvalid(key: string, what: string): void {
    this.problem(key, `is ${describe(this.raw(key))}; it must be ${what}`);
  }

  /** `null` for a member that is null or absent, otherwise the result of `read`. */
  nullable<T>(key: string, read: () => T): T | null {
    const value = this.raw(key);
    return value === undefined || value === null ? null : read();
  }

  text(key: string, what: string, accepts?: (text: string) => boolean, maxLength = MAX_TEXT_LENGTH): string {
    const value = this.raw(key);
    if (typeof value === 'string' && value.length <= maxLength && (!accepts || accepts(value))) return value;
    this.#reportInvalid(key, what);
    return '';
  }

  /** A decimal string without leading zeros. */
  decimal(key: string, max: bigint, what: string, min = 0): string {
    const text = this.raw(key);
    if (typeof text === 'string' && isDecimal(text, min, max)) {
      return text.startsWith('0') && text.length > 1 ? text.replace(/^0+(?=.)/, '') : text;
    }
    this.#reportInvalid(key, what);
    return '';
  }

  integer(key: string, what: string, min = 0): number {
    const value = this.raw(key);
    if (Number.isSafeInteger(value) && (value as number) >= min) return value === 0 ? 0 : (value as number);
    this.#reportInvalid(key, what);
    return 0;
  }

  boolean(key: string): boolean {
    const value = this.raw(key);
    if (typeof value !== 'boolean') this.#reportInvalid(key, 'true or false');
    return value === true;
  }

  enumerated<T extends string>(key: string, values: readonly T[]): T {
    const value = this.raw(key) as T;
    if (values.includes(value)) return value;
    this.#reportInvalid(key, `one of ${values.join(', ')}`);
    return '' as T;
  }

  time(key: string): string {
    const text = this.raw(key);
    const time = typeof text === 'string' && text.length <= MAX_TEXT_LENGTH ? canonicalTime(text) : undefined;
    if (time === undefined) this.#reportInvalid(key, 'an ISO 8601 date-time with a time zone');
    return time ?? '';
  }

  hex(key: string): string {
    return this.text(
      key,
      'hexadecimal bytes: 0x and an even number of digits',
      isHex,
      MAX_BLOB_LENGTH,
    ).toLowerCase();
  }

  /** An address of a family, or of either of two. */
  address(key: string, family: ChainFamily | undefined, other?: ChainFamily): string {
    return this.#canonical(key, 'address', parseAddress, family, other);
  }

  transactionHash(key: string, family: ChainFamily | undefined): string {
    return this.#canonical(key, 'transaction hash', parseTransactionHash, family);
  }

  #canonical(
    key: string,
    noun: string,
    parse: typeof parseAddress,
    family: ChainFamily | undefined,
    other?: ChainFamily,
  ): string {
    const value = this.raw(key);
    if (typeof value === 'string') {
      // Without a family (which is reported elsewhere) the notation cannot be checked.
      if (!family && !other) return '';
      const text = family && parse(value, family)?.text;
      if (text === value || !other) {
        if (text !== undefined) return text;
      } else {
        // A text that is canonical in one of two families is not converted to the other's notation.
        const otherText = parse(value, other)?.text;
        const chosen = otherText === value ? otherText : (text ?? otherText);
        if (chosen !== undefined) return chosen;
      }
    }
    const families = [...new Set([family, other])].filter((known) => known !== undefined);
    const article = families[0] === 'EVM' || families[0] === 'APTOS' ? 'an' : 'a';
    this.#reportInvalid(key, `${article} ${families.join(' or ')} ${noun}`);
    return '';
  }

  object<T extends object>(key: string, read: (members: Members) => T): T | undefined {
    return readObject(this.raw(key), this.at(key), this.report, read);
  }

  array<T>(key: string, read: (element: unknown, path: string) => T | undefined): T[] {
    const value = this.raw(key);
    if (!Array.isArray(value)) {
      this.#reportInvalid(key, 'an array');
      return [];
    }
    if (value.length > MAX_ELEMENTS) {
      this.problem(key, `has ${value.length} elements; at most ${MAX_ELEMENTS} are possible`);
      return [];
    }
    return value.flatMap((element, index) => read(element, `${this.at(key)}[${index}]`) ?? []);
  }
}

/** Reports the members of `value` that the parsed result does not have as ignored. */
function readObject<T extends object>(
  value: unknown,
  path: string,
  report: Report,
  read: (members: Members) => T,
): T | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    report.problems.push({ path, problem: `is ${describe(value)}; it must be an object` });
    return undefined;
  }
  const result = read(new Members(value as Record<string, unknown>, path, report));
  for (const key of Object.keys(value)) {
    if (!Object.hasOwn(result, key)) report.ignored.push(`${path}.${key}`.replace(/\[\d+\]/g, '[]'));
  }
  return result;
}

const isMessageId = (text: string) => /^0x[0-9a-fA-F]{64}$/.test(text);
const isHex = (text: string) => text.length % 2 === 0 && /^0x[0-9a-fA-F]*$/.test(text);
const isVersion = (text: string) => /^\d+(\.\d+)+([-+][\w.+-]+)?$/.test(text);
const isNotEmpty = (text: string) => text !== '';

function isDecimal(text: string, min: number, max: bigint): boolean {
  if (!/^[0-9]{1,100}$/.test(text)) return false;
  if (text.length <= 15) return Number(text) >= min;
  const number = BigInt(text);
  return number >= min && number <= max;
}

/** Times in the format of `toISOString`, from 1970 to 9999, except for days after the 28th, which not every month has. */
const CANONICAL_TIME =
  /^(?:19[7-9]\d|[2-9]\d{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

/** The time in the format of `toISOString`, which most sources use; undefined for an invalid time. */
function canonicalTime(text: string): string | undefined {
  if (CANONICAL_TIME.test(text)) return text;
  const time = parseTime(text);
  return Number.isNaN(time) ? undefined : new Date(time).toISOString();
}

/** Every member of a record, so that the compiler finds missing ones; undefined where it is invalid. */
type Read<T> = { readonly [Key in keyof T]: T[Key] | undefined };

function readMessage(value: unknown, report: Report): Message | undefined {
  return readObject(value, '$', report, (m) => {
    const sourceNetworkInfo = readNetwork(m, 'sourceNetworkInfo');
    const destNetworkInfo = readNetwork(m, 'destNetworkInfo');
    const source = sourceNetworkInfo?.chainFamily;
    const dest = destNetworkInfo?.chainFamily;
    const message = {
      messageId: m.text('messageId', '0x and 64 hexadecimal digits', isMessageId).toLowerCase(),
      origin: m.address('origin', source),
      sender: m.address('sender', source),
      receiver: m.address('receiver', dest),
      status: m.enumerated('status', statuses),
      sourceNetworkInfo,
      destNetworkInfo,
      sendTransactionHash: m.transactionHash('sendTransactionHash', source),
      sendTimestamp: m.time('sendTimestamp'),
      nonce: m.nullable('nonce', () =>
        m.decimal('nonce', UINT64_MAX, 'an unsigned 64-bit integer as a string'),
      ),
      sequenceNumber: m.decimal('sequenceNumber', UINT64_MAX, 'an unsigned 64-bit integer as a string'),
      onramp: m.address('onramp', source),
      routerAddress: m.nullable('routerAddress', () => m.address('routerAddress', source)),
      sendBlockNumber: m.integer('sendBlockNumber', 'a non-negative integer'),
      sendLogIndex: m.integer('sendLogIndex', 'a non-negative integer'),
      receiptTransactionHash: m.nullable('receiptTransactionHash', () =>
        m.transactionHash('receiptTransactionHash', dest),
      ),
      receiptTimestamp: m.nullable('receiptTimestamp', () => m.time('receiptTimestamp')),
      deliveryTime: m.nullable('deliveryTime', () =>
        m.integer('deliveryTime', 'an integer of milliseconds', Number.MIN_SAFE_INTEGER),
      ),
      data: m.nullable('data', () => m.hex('data')),
      tokenAmounts: m.array('tokenAmounts', (element, path) =>
        readObject(element, path, report, (token) => readTokenAmount(token, source, dest)),
      ),
      extraArgs: m.object('extraArgs', (args) => readExtraArgs(args, dest)),
      readyForManualExecution: m.boolean('readyForManualExecution'),
      version: m.nullable('version', () => m.text('version', 'a dotted version such as 1.6.0', isVersion)),
      finality: m.integer('finality', 'a non-negative integer'),
      verifiers: m.nullable('verifiers', () =>
        m.object('verifiers', (verifiers) => readVerifiers(verifiers, source, dest)),
      ),
      executor: m.nullable('executor', () =>
        m.object('executor', (executor) => ({ address: executor.address('address', source, dest) })),
      ),
      fees: m.object('fees', (fees) => readFees(fees, source)),
    } satisfies Read<Message>;
    // Members are undefined only where a problem was reported.
    return message as Message;
  });
}

/** Cache of canonical networks by selector: records share these few objects. */
const knownNetworks = new Map<unknown, NetworkInfo>();
const MAX_KNOWN_NETWORKS = 1_000;

function readNetwork(message: Members, key: string): NetworkInfo | undefined {
  return message.object(key, (m) => {
    const known = knownNetworks.get(m.raw('chainSelector'));
    if (known && m.areExactly(known)) return known;
    const problems = m.report.problems.length;
    const network = readNewNetwork(m);
    if (m.report.problems.length === problems && m.areExactly(network)) {
      if (knownNetworks.size >= MAX_KNOWN_NETWORKS) knownNetworks.clear();
      knownNetworks.set(network.chainSelector, network);
    }
    return network;
  });
}

function readNewNetwork(m: Members): NetworkInfo {
  const name = m.text('name', 'a non-empty name', isNotEmpty);
  const chainSelector = m.decimal('chainSelector', UINT64_MAX, 'an unsigned 64-bit integer as a string');
  const chainId = m.text('chainId', 'a non-empty string', isNotEmpty);
  const chainFamily = m.enumerated('chainFamily', chainFamilies);
  const known = networkBySelector(chainSelector);
  if (known && chainFamily && known.family !== chainFamily) {
    m.problem(
      'chainFamily',
      `is ${chainFamily}; selector ${chainSelector} is ${known.name}, an ${known.family} network`,
    );
  }
  const displayName = m.nullable('displayName', () => m.text('displayName', 'a string or null'));
  return {
    name,
    chainSelector,
    chainId,
    chainFamily: chainFamily || undefined,
    displayName: displayName ?? known?.displayName ?? null,
  } satisfies Read<NetworkInfo> as NetworkInfo;
}

function readTokenAmount(
  m: Members,
  source: ChainFamily | undefined,
  dest: ChainFamily | undefined,
): TokenAmount {
  return {
    sourceTokenAddress: m.address('sourceTokenAddress', source),
    destTokenAddress: m.address('destTokenAddress', dest),
    sourcePoolAddress: m.address('sourcePoolAddress', source),
    amount: m.decimal('amount', UINT256_MAX, 'a positive integer below 2^256 as a string', 1),
    extraData: m.nullable('extraData', () => m.text('extraData', 'a string', undefined, MAX_BLOB_LENGTH)),
    destGasAmount: m.nullable('destGasAmount', () =>
      m.decimal('destGasAmount', UINT256_MAX, 'an unsigned integer as a string'),
    ),
  };
}

function readExtraArgs(m: Members, dest: ChainFamily | undefined): Message['extraArgs'] {
  if (m.has('computeUnits')) {
    return {
      computeUnits: m.integer('computeUnits', 'a non-negative integer'),
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
    allowOutOfOrderExecution: m.boolean('allowOutOfOrderExecution'),
  };
}

function readVerifiers(
  m: Members,
  source: ChainFamily | undefined,
  dest: ChainFamily | undefined,
): Verifiers {
  return {
    items: m.array('items', (element, path) =>
      readObject(element, path, m.report, (item) => readVerifier(item, source, dest)),
    ),
    optionalThreshold: m.integer('optionalThreshold', 'a non-negative integer'),
  };
}

function readVerifier(m: Members, source: ChainFamily | undefined, dest: ChainFamily | undefined): Verifier {
  const status = m.enumerated('status', ['PENDING', 'COMPLETED']);
  const verification =
    m.nullable('verification', () =>
      m.object('verification', (v) => ({ data: v.hex('data'), timestamp: v.time('timestamp') })),
    ) ?? null;
  if (status === 'COMPLETED' && verification === null) {
    m.problem('verification', 'is null; a COMPLETED verifier has verification data and a timestamp');
  }
  if (status === 'PENDING' && verification !== null) {
    m.problem('verification', 'is an object; it must be null while the verifier is PENDING');
  }
  const metadata = m.object('metadata', (meta) => ({
    name: meta.text('name', 'a string'),
    ...(meta.has('logoUrl') && { logoUrl: meta.text('logoUrl', 'an http or https URI', isWebAddress) }),
  }));
  return {
    sourceAddress: m.address('sourceAddress', source),
    destAddress: m.address('destAddress', dest),
    metadata: metadata ?? { name: '' },
    isRequired: m.boolean('isRequired'),
    status,
    verification,
  };
}

function readFees(m: Members, source: ChainFamily | undefined): Fees {
  const details = m.object('fixedFeesDetails', (d) => ({
    tokenAddress: d.address('tokenAddress', source),
    totalAmount: d.decimal('totalAmount', UINT256_MAX, 'an unsigned integer below 2^256 as a string'),
    ...(d.has('items') && {
      items: d.array('items', (element, path) =>
        readObject(element, path, m.report, (item) => ({
          contractAddress: item.address('contractAddress', source),
          feeType: item.enumerated('feeType', ['VERIFIER', 'EXECUTOR', 'TOKEN_POOL', 'NETWORK']),
          amount: item.decimal('amount', UINT256_MAX, 'an unsigned integer below 2^256 as a string'),
        })),
      ),
    }),
  }));
  return { fixedFeesDetails: details ?? { tokenAddress: '', totalAmount: '0' } };
}

/** Logos are shown in browsers, so schemes such as `javascript:` and `data:` are refused. */
function isWebAddress(text: string): boolean {
  return /^https?:\/\/([A-Za-z0-9\-._~:/?#@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+$/.test(text) && URL.canParse(text);
}

/** A short description of a value for an error message. */
function describe(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
