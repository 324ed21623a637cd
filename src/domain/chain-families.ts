/**
 * The chain families, each declared once: how it writes addresses and hashes, what it calls things, and how its executions
 * behave. Parsers turn notations to canonical bytes and text. Which families can be indexed is in `ingest/families.ts`.
 */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base58, base64, hex } from '@scure/base';

/** Canonical bytes as lower-case hex without prefix: what the store keeps and compares. */
export type BytesHex = string;

/** One address or hash: `bytes` to compare, `text` to show. */
export interface Spelling {
  readonly bytes: BytesHex;
  readonly text: string;
}

type NotationParser = (text: string) => Spelling | undefined;

// ---- Numbers below 2^256

const twelveZeroBytes = '0'.repeat(24);

/** Lower-case digits, at most 64, to 20 bytes where the number fits, else 32. */
function numberBytes(digits: string): BytesHex {
  const padded = digits.padStart(64, '0');
  return padded.startsWith(twelveZeroBytes) ? padded.slice(24) : padded;
}

// A wrong mixed-case checksum is accepted, because old tools printed such addresses.
const EVM_ADDRESS = /^0[xX](?:0{24})?[0-9a-fA-F]{40}$/;

// Cache of checksums: an import repeats a few contracts, and keccak is most of the cost. The keys are the two usual
// notations, with the checksum and in lower case. A full cache is cleared as a whole: the busy contracts return at once.
const evmSpellings = new Map<string, Spelling>();
const MAX_CACHED_EVM_ADDRESSES = 20_000;

function parseEvmAddress(text: string): Spelling | undefined {
  const known = evmSpellings.get(text);
  if (known) return known;
  return EVM_ADDRESS.test(text) ? checksummed(text.slice(-40).toLowerCase()) : undefined;
}

/** The EIP-55 checksum notation of 40 lower-case digits. */
function checksummed(digits: BytesHex): Spelling {
  const known = evmSpellings.get(`0x${digits}`);
  if (known) return known;

  const characters = new Uint8Array(40);
  for (let i = 0; i < 40; i++) characters[i] = digits.charCodeAt(i);
  const hash = keccak_256(characters);
  // Both strings are copies: `digits` may be a slice that keeps a whole chunk of an import in memory.
  let upperAndLower = '';
  for (let i = 0; i < 40; i++) {
    const character = characters[i] ?? 0;
    const nibble = ((hash[i >> 1] ?? 0) >> (i & 1 ? 0 : 4)) & 0xf;
    const isLetter = character >= 0x61;
    upperAndLower += String.fromCharCode(isLetter && nibble >= 8 ? character - 0x20 : character);
  }
  const spelling = { bytes: upperAndLower.toLowerCase(), text: `0x${upperAndLower}` };

  if (evmSpellings.size >= MAX_CACHED_EVM_ADDRESSES) evmSpellings.clear();
  evmSpellings.set(spelling.text, spelling);
  evmSpellings.set(`0x${spelling.bytes}`, spelling);
  return spelling;
}

function parseSvmAddress(text: string): Spelling | undefined {
  const bytes = decodeBase58(text, 32);
  return bytes === undefined ? undefined : { bytes: numberBytes(bytes), text };
}

// Aptos and Sui name modules and coin types by an address and one or two Move identifiers: `0x2::sui::SUI`.
const MOVE_ADDRESS = /^0[xX]([0-9a-fA-F]{1,64})((?:::[A-Za-z_][A-Za-z0-9_]*){0,2})$/;

function parseMoveAddress(text: string): Spelling | undefined {
  const [, number = '', path = ''] = MOVE_ADDRESS.exec(text) ?? [];
  if (number === '') return undefined;
  const digits = number.toLowerCase().padStart(64, '0');
  const canonical = `0x${digits}${path}`;
  return { bytes: path === '' ? numberBytes(digits) : asciiBytes(canonical), text: canonical };
}

// ---- TON

const TON_RAW_ADDRESS = /^(0|-?[1-9]\d{0,9}):([0-9a-fA-F]{64})$/;
const TON_FRIENDLY_ADDRESS = /^[A-Za-z0-9+/_-]{48}$/;
const TON_TEST_ONLY_FLAG = 0x80;
const tonTags: ReadonlySet<number> = new Set([0x11, 0x51]);

function parseTonAddress(text: string): Spelling | undefined {
  const raw = TON_RAW_ADDRESS.exec(text);
  if (raw?.[1] !== undefined && raw[2] !== undefined) return tonAddress(Number(raw[1]), raw[2].toLowerCase());

  // 48 characters: tag, workchain (signed byte), 32 bytes of hash, CRC over all of these.
  const bytes = TON_FRIENDLY_ADDRESS.test(text) ? decodeBase64(text, 36) : undefined;
  if (!bytes || crc16(bytes) !== 0) return undefined;
  const [tag = 0, workchain = 0] = bytes;
  if (!tonTags.has(tag & ~TON_TEST_ONLY_FLAG)) return undefined;
  return tonAddress((workchain << 24) >> 24, hex.encode(bytes.subarray(2, 34)));
}

function tonAddress(workchain: number, hash: BytesHex): Spelling | undefined {
  const isInt32 = (workchain | 0) === workchain;
  if (!isInt32) return undefined;
  return {
    bytes: (workchain >>> 0).toString(16).padStart(8, '0') + hash,
    text: `${workchain}:${hash}`,
  };
}

/** CRC-16/XMODEM. Over a message followed by its own checksum it is 0. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1;
  }
  return crc;
}

const TON_COMPOSITE_HASH = /^(?:0|-?[1-9]\d{0,9}):[0-9a-fA-F]{64}:\d{1,20}:([0-9a-fA-F]{64})$/;
const TON_HEX_HASH = /^(?:0[xX])?([0-9a-fA-F]{64})$/;

function parseTonHash(text: string): Spelling | undefined {
  const composite = TON_COMPOSITE_HASH.exec(text)?.[1];
  if (composite !== undefined) return { bytes: composite.toLowerCase(), text: text.toLowerCase() };
  const bytes = TON_HEX_HASH.exec(text)?.[1]?.toLowerCase() ?? decodeBase64Hash(text);
  return spellingIf(bytes, bytes);
}

// ---- Canton

const CANTON_PARTY = /^([A-Za-z0-9:_ -]{1,185}::)(1220[0-9a-fA-F]{64})$/;

function parseCantonAddress(text: string): Spelling | undefined {
  const [, name, fingerprint] = CANTON_PARTY.exec(text) ?? [];
  if (name !== undefined && fingerprint !== undefined) {
    // Letter case matters in the name, not in the hex after it.
    const canonical = name + fingerprint.toLowerCase();
    return { bytes: asciiBytes(canonical), text: canonical };
  }
  const contract = parsePrefixedHash(text);
  return contract && { bytes: numberBytes(contract.bytes), text: contract.text };
}

const CANTON_MULTIHASH = /^1220[0-9a-fA-F]{64}$/;

function parseCantonUpdateId(text: string): Spelling | undefined {
  if (CANTON_MULTIHASH.test(text)) return { bytes: text.toLowerCase(), text: text.toLowerCase() };
  const bytes = decodeBase64Hash(text);
  return parsePrefixedHash(text) ?? spellingIf(bytes, `0x${bytes}`);
}

// ---- Families that are not known here, which an import may name

const OPAQUE_TEXT = /^[\x21-\x7e]{1,300}$/;
const OPAQUE_NUMBER = /^0[xX]([0-9a-fA-F]{1,64})$/;

/** Any printable text without spaces, as it is; numbers in hexadecimal are compared as numbers. */
function parseOpaque(text: string): Spelling | undefined {
  if (!OPAQUE_TEXT.test(text)) return undefined;
  const number = OPAQUE_NUMBER.exec(text)?.[1];
  return { bytes: number === undefined ? asciiBytes(text) : numberBytes(number.toLowerCase()), text };
}

// ---- Hashes and encodings that families share

const PREFIXED_HASH = /^0[xX][0-9a-fA-F]{64}$/;

function parsePrefixedHash(text: string): Spelling | undefined {
  if (!PREFIXED_HASH.test(text)) return undefined;
  const bytes = text.slice(2).toLowerCase();
  return { bytes, text: `0x${bytes}` };
}

function parseSuiDigest(text: string): Spelling | undefined {
  const prefixed = parsePrefixedHash(text);
  if (prefixed) return { bytes: prefixed.bytes, text: base58.encode(hex.decode(prefixed.bytes)) };
  return spellingIf(decodeBase58(text, 32), text);
}

function spellingIf(bytes: BytesHex | undefined, text: string | undefined): Spelling | undefined {
  return bytes === undefined || text === undefined ? undefined : { bytes, text };
}

// The bounds are those of 32 zero bytes and of 64 bytes 0xff. They keep the quadratic decoding short.
const BASE58_TEXT = /^[1-9A-HJ-NP-Za-km-z]{32,88}$/;

/** Base58 of exactly `length` bytes. It is unambiguous, so the text is canonical. */
function decodeBase58(text: string, length: 32 | 64): BytesHex | undefined {
  if (!BASE58_TEXT.test(text)) return undefined;
  const bytes = base58.decode(text);
  return bytes.length === length ? hex.encode(bytes) : undefined;
}

/** Base64 or base64url, padded, of exactly `length` bytes. */
function decodeBase64(text: string, length: number): Uint8Array | undefined {
  try {
    const bytes = base64.decode(text.replaceAll('-', '+').replaceAll('_', '/'));
    return bytes.length === length ? bytes : undefined;
  } catch {
    return undefined;
  }
}

const BASE64_HASH = /^[A-Za-z0-9+/_-]{43}=$/;

function decodeBase64Hash(text: string): BytesHex | undefined {
  const bytes = BASE64_HASH.test(text) ? decodeBase64(text, 32) : undefined;
  return bytes && hex.encode(bytes);
}

/** UTF-8 of text that is known to be ASCII. */
function asciiBytes(text: string): BytesHex {
  let bytes = '';
  for (let i = 0; i < text.length; i++) bytes += text.charCodeAt(i).toString(16).padStart(2, '0');
  return bytes;
}

interface FamilyTraits {
  readonly parseAddress: NotationParser;
  readonly parseTransactionHash: NotationParser;
  /** From lower-case digits, as contracts of other chains encode the address. */
  readonly addressOfBytes: (digits: BytesHex) => Spelling | undefined;
  readonly zeroAddress: string;
  /** The unit that counts its history. Solana has slots, some of which have no block. */
  readonly blockNoun: 'block' | 'slot';
  /** What an execution consumes, as the name of a field. */
  readonly gasTitle: 'Gas used' | 'Compute units';
  /** On Move chains an on-ramp is a module, of which a committed root names the account alone. */
  readonly onRampSuffix: '' | '::onramp';
  /**
   * Whether anybody may execute a message again once an attempt has failed. On Solana a failed attempt leaves no trace on
   * chain: anybody may execute only after the delay of the lane.
   */
  readonly isReadyOnceFailed: boolean;
  /** Its class in `@chainlink/ccip-sdk`. */
  readonly sdkClass: string;
  /** Pages of its usual block explorers, `{}` being the value; null where they have no such page, or none is known. */
  readonly explorerPaths: Readonly<
    Record<'transaction' | 'address' | 'token', string> & { block: string | null }
  > | null;
}

const zeroBytes32 = `0x${'0'.repeat(64)}`;

/** What most families have, and what is assumed of others, which records of imports may name. */
const unknownFamily: FamilyTraits = {
  parseAddress: parseOpaque,
  parseTransactionHash: parseOpaque,
  addressOfBytes: () => undefined,
  zeroAddress: zeroBytes32,
  blockNoun: 'block',
  gasTitle: 'Gas used',
  onRampSuffix: '',
  isReadyOnceFailed: true,
  sdkClass: 'Chain',
  explorerPaths: null,
};

const families = {
  EVM: {
    ...unknownFamily,
    parseAddress: parseEvmAddress,
    parseTransactionHash: parsePrefixedHash,
    addressOfBytes: ofDigits([40, 64], prefixed(parseEvmAddress)),
    zeroAddress: `0x${'0'.repeat(40)}`,
    sdkClass: 'EVMChain',
    explorerPaths: pathsOf('tx', 'address', 'block', 'token'),
  },
  SVM: {
    ...unknownFamily,
    parseAddress: parseSvmAddress,
    parseTransactionHash: (text) => spellingIf(decodeBase58(text, 64), text),
    addressOfBytes: ofDigits([64], (digits) => parseSvmAddress(base58.encode(hex.decode(digits)))),
    zeroAddress: '1'.repeat(32),
    blockNoun: 'slot',
    gasTitle: 'Compute units',
    isReadyOnceFailed: false,
    sdkClass: 'SolanaChain',
    explorerPaths: pathsOf('tx', 'address', 'block', 'address'),
  },
  APTOS: {
    ...unknownFamily,
    parseAddress: parseMoveAddress,
    parseTransactionHash: parsePrefixedHash,
    addressOfBytes: ofDigits([64], prefixed(parseMoveAddress)),
    onRampSuffix: '::onramp',
    sdkClass: 'AptosChain',
    explorerPaths: pathsOf('txn', 'account', 'block', 'account'),
  },
  SUI: {
    ...unknownFamily,
    parseAddress: parseMoveAddress,
    parseTransactionHash: parseSuiDigest,
    addressOfBytes: ofDigits([64], prefixed(parseMoveAddress)),
    onRampSuffix: '::onramp',
    sdkClass: 'SuiChain',
    explorerPaths: pathsOf('tx', 'account', 'checkpoint', 'account'),
  },
  TON: {
    ...unknownFamily,
    parseAddress: parseTonAddress,
    parseTransactionHash: parseTonHash,
    /** The workchain in 4 bytes and the hash in 32. */
    addressOfBytes: ofDigits([72], (digits) =>
      tonAddress(Number.parseInt(digits.slice(0, 8), 16) | 0, digits.slice(8)),
    ),
    zeroAddress: `0:${'0'.repeat(64)}`,
    sdkClass: 'TONChain',
    explorerPaths: { transaction: 'transaction/{}', address: '{}', block: null, token: '{}' },
  },
  CANTON: {
    ...unknownFamily,
    parseAddress: parseCantonAddress,
    parseTransactionHash: parseCantonUpdateId,
    addressOfBytes: ofDigits([64], prefixed(parseCantonAddress)),
    sdkClass: 'CantonChain',
  },
} satisfies Record<string, FamilyTraits>;

export type ChainFamily = keyof typeof families;
export const chainFamilies = Object.keys(families) as readonly ChainFamily[];

export function familyTraits(family: string): FamilyTraits {
  return Object.hasOwn(families, family) ? families[family as ChainFamily] : unknownFamily;
}

function pathsOf(transaction: string, address: string, block: string, token: string) {
  const path = (page: string) => `${page}/{}`;
  return { transaction: path(transaction), address: path(address), block: path(block), token: path(token) };
}

function ofDigits(lengths: readonly number[], parse: NotationParser): FamilyTraits['addressOfBytes'] {
  return (digits) => (lengths.includes(digits.length) ? parse(digits) : undefined);
}

function prefixed(parse: NotationParser): NotationParser {
  return (digits) => parse(`0x${digits}`);
}

export function blockNoun(family: string): 'block' | 'slot' {
  return familyTraits(family).blockNoun;
}

export function blockTitle(family: string): 'Block' | 'Slot' {
  return blockNoun(family) === 'slot' ? 'Slot' : 'Block';
}
