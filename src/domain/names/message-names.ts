/**
 * Names for what a message shows as addresses: tokens with their units, contracts by their part in the message, and the
 * operator's labels. Used by the explorer and the command line.
 */
import { addressBytes, parseAddress } from '../addresses.ts';
import type { Message, NetworkInfo, TokenAmount } from '../message.ts';
import { decimalsOfPool, shortWithDecimals, withDecimals } from './tokens.ts';

/** A token as the API writes it. */
export interface NamedToken {
  readonly chainSelector: string;
  readonly address: string;
  readonly symbol: string | null;
  readonly name: string | null;
  readonly decimals: number | null;
  readonly source: 'chain' | 'operator';
}

/** A label as the API writes it. */
export interface NamedAddress {
  readonly name: string;
  readonly address: string;
  readonly chainSelector: string | null;
}

export interface Names {
  token(network: NetworkInfo, address: string): NamedToken | undefined;
  label(network: NetworkInfo, address: string): string | undefined;
}

/** Records and the API write an address in the same notation, so that texts can be compared. */
export function createNames(tokens: readonly NamedToken[], labels: readonly NamedAddress[]): Names {
  const tokensByKey = new Map(tokens.map((token) => [`${token.chainSelector}:${token.address}`, token]));
  const labelsByKey = new Map<string, string>();
  for (const { name, address, chainSelector } of labels) {
    for (const bytes of addressBytes(address)) {
      const key = `${chainSelector ?? ''}:${bytes}`;
      if (!labelsByKey.has(key)) labelsByKey.set(key, name);
    }
  }
  return {
    token: ({ chainSelector }, address) => tokensByKey.get(`${chainSelector}:${address}`),
    label({ chainSelector }, address) {
      if (labelsByKey.size === 0) return undefined;
      const meanings = addressBytes(address);
      const found = (prefix: string) =>
        meanings.map((bytes) => labelsByKey.get(`${prefix}:${bytes}`)).find((name) => name !== undefined);
      return found(chainSelector) ?? found('');
    },
  };
}

export const noNames: Names = createNames([], []);

export type AmountWords = NonNullable<ReturnType<typeof amountWords>>;

/** Null where the decimals are not known. */
export function transferredAmount(
  { amount, extraData }: Pick<TokenAmount, 'amount' | 'extraData'>,
  token: NamedToken | undefined,
): AmountWords | null {
  return amountWords(amount, token, decimalsOfPool(extraData));
}

/** The same for a fee. */
export function paidAmount(amount: string, token: NamedToken | undefined): AmountWords | null {
  return amountWords(amount, token, null);
}

function amountWords(amount: string, token: NamedToken | undefined, ofPool: number | null) {
  const told = token?.decimals ?? null;
  const decimals = told ?? ofPool;
  if (decimals === null) return null;
  // Who says how many decimals there are.
  const source = told === null ? 'pool' : token?.source === 'operator' ? 'operator' : 'token';
  const exact = withDecimals(amount, decimals);
  const short = shortWithDecimals(amount, decimals);
  return { exact, short, symbol: token?.symbol ?? null, decimals, source } as const;
}

export const decimalsSources: Readonly<Record<AmountWords['source'], string>> = {
  token: 'as the token says',
  operator: 'as this server’s operator says',
  pool: 'as the source pool says',
};

/** The tokens of messages, by address: those that they transfer, on both sides, and those that they pay with. */
export function tokenAddressesOf(messages: readonly Message[]): readonly string[] {
  return [
    ...new Set(
      messages.flatMap(({ tokenAmounts, fees }) => [
        fees.fixedFeesDetails.tokenAddress,
        ...tokenAmounts.flatMap(({ sourceTokenAddress, destTokenAddress }) => [
          sourceTokenAddress,
          destTokenAddress,
        ]),
      ]),
    ),
  ].filter((address) => addressBytes(address).length > 0);
}

/** What contracts on the source chain are to a message; undefined for any other address. */
export function contractRole(message: Message, address: string, names: Names): string | undefined {
  const { sourceNetworkInfo, destNetworkInfo, routerAddress, onramp, executor, verifiers } = message;
  if (address === routerAddress) return 'router';
  if (address === onramp) return `on-ramp to ${destNetworkInfo.displayName?.trim() || destNetworkInfo.name}`;
  if (address === executor?.address) return 'executor';
  const verifier = verifiers?.items.find(({ sourceAddress }) => sourceAddress === address);
  if (verifier) return `verifier ${verifier.metadata.name}`;
  const pooled = message.tokenAmounts.find(({ sourcePoolAddress }) => sourcePoolAddress === address);
  if (!pooled) return undefined;
  const { symbol = null, source } = names.token(sourceNetworkInfo, pooled.sourceTokenAddress) ?? {};
  if (symbol === null) return 'token pool';
  return source === 'operator' ? `pool of ${symbol}` : `pool of a token that calls itself ${symbol}`;
}

/** A reason of a failure, as far as its amounts are concerned. */
interface ReasonWithAmounts {
  readonly code: string;
  readonly saidBy: string;
  readonly text: string;
  readonly error: { readonly arguments: readonly { readonly value: string }[] } | null;
}

/** Errors of pools whose explanations have amounts, and which argument is the token. All figures in them are amounts. */
const tokenArguments: Readonly<Record<string, number>> = {
  TokenRateLimitReached: 2,
  TokenMaxCapacityExceeded: 2,
};

/** The token on the destination chain whose amounts a reason names; undefined where it names none. */
export function reasonToken({ code, saidBy, error }: ReasonWithAmounts): string | undefined {
  const isOfPool = saidBy === 'token-pool' && Object.hasOwn(tokenArguments, code);
  const index = isOfPool ? tokenArguments[code] : undefined;
  const address = index === undefined ? undefined : error?.arguments[index]?.value;
  return address === undefined ? undefined : parseAddress(address, 'EVM')?.text;
}

/** The text of a reason with its amounts in units that people use, where the decimals of `reasonToken` are known. */
export function reasonInUnits(reason: ReasonWithAmounts, network: NetworkInfo, names: Names): string {
  const address = reasonToken(reason);
  const token = address === undefined ? undefined : names.token(network, address);
  const decimals = token?.decimals ?? null;
  if (!token || decimals === null) return reason.text;
  const symbol = token.symbol === null ? '' : ` ${token.symbol}`;
  const text = reason.text.replace(
    /\b(\d[\d,]*)(?: smallest units)?/g,
    (_, figures: string) => `${withDecimals(figures.replaceAll(',', ''), decimals)}${symbol}`,
  );
  // The pool names the token, and the token its symbol.
  return symbol === '' || token.source === 'operator' ? text : `${text} (${token.symbol}: ${address})`;
}
