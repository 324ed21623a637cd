/** Reads of tokens: what their contracts say, with the definitions of lanescan.yaml over it. */
import type { BytesHex } from '../../domain/addresses.ts';
import {
  definedTokens,
  familyOf,
  type Token,
  type TokenDefinition,
  tokenAddress,
  tokenKey,
} from '../../domain/names/tokens.ts';
import type { Read } from '../reads/reads.ts';
import { joinSql, renderSql, type Sql, sql } from '../sql.ts';
import { selectorOf, storedSelector } from '../write/message-row.ts';

export interface TokenSelection {
  /** A chain selector. */
  readonly network?: string | undefined;
  /** Any of these. */
  readonly addresses?: readonly BytesHex[] | undefined;
  /** In any letter case. */
  readonly symbol?: string | undefined;
  readonly limit: number;
}

export async function readTokens(read: Read, { network, addresses, symbol, limit }: TokenSelection) {
  const byNetwork = network === undefined ? [] : [sql`network = ${storedSelector(network)}::bigint`];
  const conditions: Sql[] = [
    ...byNetwork,
    ...(addresses
      ? [sql`address = any(${addresses.map((bytes) => Buffer.from(bytes, 'hex'))}::bytea[])`]
      : []),
  ];
  const definitions = definedTokens().filter(
    (token) =>
      (network === undefined || token.network === network) &&
      (addresses === undefined || addresses.includes(token.bytes)),
  );
  // A definition may give a symbol, or replace one: what is defined is read whatever its symbol is on the chain.
  if (symbol !== undefined) {
    const isNamed = sql`lower(symbol) = lower(${symbol}::text)`;
    const networks = definitions.map((token) => storedSelector(token.network));
    const bytes = definitions.map((token) => Buffer.from(token.bytes, 'hex'));
    const isDefined = sql`(network, address) in (select * from unnest(${networks}::bigint[], ${bytes}::bytea[]))`;
    conditions.push(definitions.length === 0 ? isNamed : sql`(${isNamed} or ${isDefined})`);
  }
  const where = conditions.length === 0 ? sql`true` : joinSql(conditions, ' and ');
  const { text, values } = renderSql(
    sql`select network::text, encode(address, 'hex') as bytes, symbol, name, decimals, read_at, count(*) over () as total
      from token where ${where} order by network, address limit ${limit + definitions.length}`,
  );
  const pendingQuery = renderSql(
    sql`select count(*) as pending from token where read_at is null and ${byNetwork[0] ?? sql`true`}`,
  );
  const [rows, [counted]] = await Promise.all([
    read(text, values),
    read(pendingQuery.text, pendingQuery.values),
  ]);
  const stored = rows.map(tokenOf);
  const merged = mergeDefinitions(stored, definitions);
  const matching =
    symbol === undefined
      ? merged
      : merged.filter((token) => token.symbol?.toLowerCase() === symbol.toLowerCase());
  const unread = Math.max(0, Number(rows[0]?.total ?? 0) - rows.length);
  return {
    /** By network and address. */
    tokens: matching.slice(0, limit),
    /** How many match. */
    total: matching.length + unread,
    /** How many of all tokens of the selected network, or of all networks, the chains have not been asked about yet. */
    pending: Number(counted?.pending ?? 0),
  };
}

function tokenOf(row: Record<string, unknown>): Token {
  const network = selectorOf(row.network as string);
  const bytes = row.bytes as string;
  return {
    network,
    bytes,
    address: tokenAddress(bytes, familyOf(network)),
    symbol: row.symbol as string | null,
    name: row.name as string | null,
    decimals: row.decimals === null ? null : Number(row.decimals),
    source: 'chain',
    readAt: row.read_at as Date | null,
  };
}

function mergeDefinitions(stored: readonly Token[], definitions: readonly TokenDefinition[]) {
  const merged = new Map(stored.map((token) => [tokenKey(token), token]));
  for (const definition of definitions) {
    const key = tokenKey(definition);
    const known = merged.get(key) ?? { symbol: null, name: null, decimals: null, readAt: null };
    merged.set(key, { ...known, ...definition, source: 'operator' });
  }
  return [...merged.values()].sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

function sortKey({ network, bytes }: Token): string {
  return `${network.padStart(20, '0')}:${bytes}`;
}
