/**
 * Addresses and transaction hashes of every chain family.
 *
 * One account has many notations: letter case, padding, base64 variants. The store keeps and compares bytes; the canonical
 * text is shown.
 */
import {
  type BytesHex,
  type ChainFamily,
  chainFamilies,
  familyTraits,
  type Spelling,
} from './chain-families.ts';

export type { BytesHex, Spelling } from './chain-families.ts';
export { type ChainFamily, chainFamilies } from './chain-families.ts';

/** The longest notation, a Canton party, has 255 characters. */
const MAX_INPUT_LENGTH = 300;

// Bounds on the interpretations of a text, over all families. Tests search for texts that exceed them.

/** A text that is an address in several families is 0x and hexadecimal digits, with the same bytes in each. */
export const MAX_ADDRESS_MEANINGS = 1;
/** 61 to 64 digits `1`, filled up to 64 characters, are a TON hash in hexadecimal and an SVM signature in base58. */
export const MAX_HASH_MEANINGS = 2;
/** A Move path behind the shortest address: `0x0::…`, whose address gets 63 digits more. */
export const MAX_ADDRESS_BYTES = MAX_INPUT_LENGTH + 63;
/** An SVM signature. */
export const MAX_HASH_BYTES = 64;

/**
 * Parses an address of a known family; undefined when `text` is not valid.
 *
 * Addresses that are numbers below 2^256 (all but TON's and Canton's parties) have 20 bytes where the
 * number fits, else 32. So an EVM address, the same left-padded to 32 bytes, and the Move short form
 * of the same number are one key.
 *
 * @example parseAddress('0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed', 'EVM')?.text // '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
 */
export function parseAddress(text: string, family: ChainFamily): Spelling | undefined {
  return text.length > MAX_INPUT_LENGTH ? undefined : familyTraits(family).parseAddress(text);
}

/** Every interpretation of an address of unknown family: usually one; none when it is not valid in any family. */
export function addressBytes(text: string): readonly BytesHex[] {
  return meaningsInAnyFamily(text, parseAddress);
}

/**
 * The address of these bytes on another chain; undefined where the family has no such address.
 *
 * Contracts encode addresses of other chains as bytes: EVM's 20, or padded to 32 as the ABI does; 32 for SVM, Aptos and
 * Sui; for TON the workchain in 4 and the hash in 32; for Canton the 32 bytes of the Keccak hash of a party or of a
 * contract's instance address, from which the party's name cannot be recovered.
 *
 * @example addressFromBytes('00'.repeat(12) + '5aaeb6053f3e94c9b9a09f33669435e7ef1beaed', 'EVM')?.text // '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
 */
export function addressFromBytes(bytes: BytesHex, family: ChainFamily): Spelling | undefined {
  if (!EVEN_HEX_DIGITS.test(bytes)) return undefined;
  return familyTraits(family).addressOfBytes(bytes.toLowerCase());
}

const EVEN_HEX_DIGITS = /^(?:[0-9a-fA-F]{2}){1,36}$/;

/** All zeros: in a record, a contract that is unknown. */
export const zeroAddresses = Object.fromEntries(
  chainFamilies.map((family) => [family, familyTraits(family).zeroAddress]),
) as Readonly<Record<ChainFamily, string>>;

/** The zero address of a family; of one that is not known here, 32 bytes. */
export function zeroAddressOf(family: ChainFamily): string {
  return familyTraits(family).zeroAddress;
}

/**
 * Parses a transaction hash of a known family; undefined when `text` is not valid.
 *
 * TON's composite `workchain:account:lt:hash` has the bytes of its hash alone, but keeps its text:
 * the other parts are what a TON node needs to find the transaction.
 */
export function parseTransactionHash(text: string, family: ChainFamily): Spelling | undefined {
  return text.length > MAX_INPUT_LENGTH ? undefined : familyTraits(family).parseTransactionHash(text);
}

/** Every interpretation of a transaction hash of unknown family; none when it is not valid in any family. */
export function transactionHashBytes(text: string): readonly BytesHex[] {
  return meaningsInAnyFamily(text, parseTransactionHash);
}

function meaningsInAnyFamily(text: string, parse: typeof parseAddress): readonly BytesHex[] {
  const meanings = new Set<BytesHex>();
  for (const family of chainFamilies) {
    const spelling = parse(text, family);
    if (spelling) meanings.add(spelling.bytes);
  }
  return [...meanings];
}
