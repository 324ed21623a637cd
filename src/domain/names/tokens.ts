/** Tokens: what their contracts say of themselves, what the operator says of them, and amounts in their units. */
import {
  addressFromBytes,
  type BytesHex,
  type ChainFamily,
  parseAddress,
  zeroAddressOf,
} from '../addresses.ts';
import { networkBySelector } from '../networks/networks.ts';

export const MAX_SYMBOL_CHARACTERS = 24;
export const MAX_NAME_CHARACTERS = 64;
/** `decimals()` is a uint8. */
export const MAX_DECIMALS = 255;

/** What is said of a token; null where nothing is. */
export interface TokenClaims {
  readonly symbol: string | null;
  readonly name: string | null;
  readonly decimals: number | null;
}

export interface TokenKey {
  readonly network: string;
  readonly bytes: BytesHex;
}

export interface Token extends TokenKey, TokenClaims {
  /** As the network's family writes it. */
  readonly address: string;
  /** Who says it: the contract itself, or the operator in lanescan.yaml. */
  readonly source: 'chain' | 'operator';
  /** When the chain answered; null while it was not asked, and for the operator's words. */
  readonly readAt: Date | null;
}

/** A token of lanescan.yaml. What it leaves out stays as the contract says. */
export interface TokenDefinition extends TokenKey, Partial<TokenClaims> {
  readonly address: string;
}

let defined: readonly TokenDefinition[] = [];

/** Replaces what an earlier call defined, for the whole process. */
export function defineTokens(definitions: readonly TokenDefinition[]): void {
  defined = definitions;
}

export function definedTokens(): readonly TokenDefinition[] {
  return defined;
}

/** One text for each token: `network:bytes`. */
export function tokenKey({ network, bytes }: TokenKey): string {
  return `${network}:${bytes}`;
}

/** The canonical notation of a token's bytes. */
export function tokenAddress(bytes: BytesHex, family: ChainFamily | undefined): string {
  return (family && addressFromBytes(bytes.padStart(64, '0'), family)?.text) ?? `0x${bytes}`;
}

/** The key of a token in a record; undefined for a text that is no address, and for the zero address. */
export function tokenKeyOf(network: string, address: string, family: ChainFamily): TokenKey | undefined {
  const bytes = parseAddress(address, family)?.bytes;
  return bytes === undefined || isZero(bytes, family) ? undefined : { network, bytes };
}

export function isZero(bytes: BytesHex, family: ChainFamily): boolean {
  return bytes === parseAddress(zeroAddressOf(family), family)?.bytes;
}

export function familyOf(network: string): ChainFamily | undefined {
  return networkBySelector(network)?.family;
}

// ---- Amounts

/** Pools of version 1.5.1 and later send their token's decimals along, as one ABI word. */
export function decimalsOfPool(extraData: string | null): number | null {
  const word = /^0x0{62}([0-9a-f]{2})$/.exec(extraData ?? '')?.[1];
  const decimals = word === undefined ? Number.NaN : Number.parseInt(word, 16);
  return decimals <= 36 ? decimals : null;
}

/** An integer amount with its decimal point and thousands separators: `1,047.674`. Exact. */
export function withDecimals(amount: string, decimals: number): string {
  const padded = amount.padStart(decimals + 1, '0');
  const whole = padded.slice(0, padded.length - decimals);
  const fraction = padded.slice(padded.length - decimals).replace(/0+$/, '');
  return `${grouped(whole)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** The same for a narrow place: at most six decimals. Below that, `< 0.000001`. */
export function shortWithDecimals(amount: string, decimals: number): string {
  const [whole = '', fraction = ''] = withDecimals(amount, decimals).split('.');
  const shown = fraction.slice(0, 6).replace(/0+$/, '');
  if (whole === '0' && shown === '' && fraction !== '') return '< 0.000001';
  return shown === '' ? whole : `${whole}.${shown}`;
}

/** Whole numbers of any size with thousands separators. */
export function grouped(number: number | string | bigint): string {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}
