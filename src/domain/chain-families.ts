/**
 * The chain families, each declared once: how it writes addresses and hashes, what it calls things, and how its executions
 * behave. Which families can be indexed is in `ingest/families.ts`.
 */
import {
  type BytesHex,
  type NotationParser,
  parseCantonAddress,
  parseCantonUpdateId,
  parseEvmAddress,
  parseMoveAddress,
  parseOpaque,
  parsePrefixedHash,
  parseSuiDigest,
  parseSvmAddress,
  parseSvmSignature,
  parseTonAddress,
  parseTonHash,
  type Spelling,
  svmAddressOfBytes,
  tonAddressOfBytes,
} from './address-notations.ts';

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
    parseTransactionHash: parseSvmSignature,
    addressOfBytes: ofDigits([64], svmAddressOfBytes),
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
    addressOfBytes: ofDigits([72], tonAddressOfBytes),
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

/** The traits of a family, by its name in a record. */
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

/** What people call the numbers by which a chain counts its history. */
export function blockNoun(family: string): 'block' | 'slot' {
  return familyTraits(family).blockNoun;
}

/** The same as the name of a field. */
export function blockTitle(family: string): 'Block' | 'Slot' {
  return blockNoun(family) === 'slot' ? 'Slot' : 'Block';
}
