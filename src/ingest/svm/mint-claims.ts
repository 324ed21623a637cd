/**
 * What mints say of themselves: decimals in the mint's account, name and symbol in its metadata extension (Token-2022) or in
 * the account that Metaplex derives from it. Anybody can make a mint and its metadata: all of it is hostile input.
 */
import { base58, hex } from '@scure/base';
import type { BytesHex } from '../../domain/addresses.ts';
import { tokenPrograms } from '../../domain/failures/program-errors.ts';
import { claimedText } from '../../domain/names/claimed-text.ts';
import { MAX_NAME_CHARACTERS, MAX_SYMBOL_CHARACTERS, type TokenClaims } from '../../domain/names/tokens.ts';
import type { Account } from './accounts.ts';
import { BorshReader, readable } from './decode/borsh.ts';
import type { ChainNode } from './node.ts';
import { METADATA_PROGRAM, programAddresses } from './program-addresses.ts';

/** Enough for the extensions of a mint; an account can have megabytes. */
const MAX_ACCOUNT_BYTES = 4_096;

/** In the order of the tokens. */
export async function readMintClaims(
  node: Pick<ChainNode, 'accounts'>,
  tokens: readonly BytesHex[],
  minContextSlot: number,
): Promise<readonly TokenClaims[]> {
  const mints = tokens.map((bytes) => base58.encode(hex.decode(bytes)));
  const addresses = mints.flatMap((mint) => [mint, programAddresses.metadata(mint)]);
  const accounts = await node.accounts(addresses, minContextSlot, MAX_ACCOUNT_BYTES);
  return mints.map((mint, index) => mintClaims(mint, accounts[2 * index], accounts[2 * index + 1]));
}

const NO_CLAIMS: TokenClaims = { symbol: null, name: null, decimals: null };

export function mintClaims(mint: string, account: Account | undefined, metadata: Account | undefined) {
  const decimals = account && mintDecimals(account);
  if (account === undefined || decimals === undefined) return NO_CLAIMS;
  const texts = extensionTexts(mint, account) ?? metaplexTexts(mint, metadata);
  return { symbol: texts?.symbol ?? null, name: texts?.name ?? null, decimals };
}

const MINT_BYTES = 82;
const DECIMALS_AT = 44;
const IS_INITIALIZED_AT = 45;
/** With extensions, an account says at this place what it is. */
const ACCOUNT_TYPE_AT = 165;
const MINT_TYPE = 1;

/** Undefined for an account that is not a mint. */
function mintDecimals({ owner, data }: Account): number | undefined {
  if (!tokenPrograms.has(owner) || data[IS_INITIALIZED_AT] !== 1) return undefined;
  const isMint = data.length === MINT_BYTES || data[ACCOUNT_TYPE_AT] === MINT_TYPE;
  return isMint ? data[DECIMALS_AT] : undefined;
}

interface Texts {
  readonly name: string | null;
  readonly symbol: string | null;
}

const TOKEN_METADATA_EXTENSION = 19;

/** Extensions are a list of types (u16), lengths (u16) and values. */
function extensionTexts(mint: string, { data }: Account): Texts | undefined {
  const reader = new BorshReader(data.subarray(ACCOUNT_TYPE_AT + 1));
  return readable(() => {
    while (reader.remaining > 0) {
      const type = Number(reader.unsigned(2));
      const length = Number(reader.unsigned(2));
      // Of a long account only the beginning is there.
      const value = reader.fixed(Math.min(length, reader.remaining));
      if (type === TOKEN_METADATA_EXTENSION) return ownTexts(new BorshReader(value), mint);
    }
    return undefined;
  });
}

const METADATA_V1 = 4;

function metaplexTexts(mint: string, account: Account | undefined): Texts | undefined {
  if (account?.owner !== METADATA_PROGRAM) return undefined;
  const reader = new BorshReader(account.data);
  return readable(() => (reader.u8() === METADATA_V1 ? ownTexts(reader, mint) : undefined));
}

/** Both kinds have update authority, mint, name and symbol in this order. */
function ownTexts(reader: BorshReader, mint: string): Texts | undefined {
  reader.publicKey();
  if (reader.publicKey() !== mint) return undefined;
  return {
    name: claimedText(reader.bytes(), MAX_NAME_CHARACTERS),
    symbol: claimedText(reader.bytes(), MAX_SYMBOL_CHARACTERS),
  };
}
