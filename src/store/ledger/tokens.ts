/**
 * The ledger of tokens (`token`, `token_search`): which tokens messages name, and which of them the chains are to be asked
 * about.
 *
 * Tokens are found by a walk through the history, which covers a store of an earlier schema and every source of records
 * alike. All indexers of a store share the walk; each asks its own network about the tokens there.
 */
import type { ClientBase } from 'pg';
import type { BytesHex } from '../../domain/addresses.ts';
import {
  familyOf,
  isZero,
  type TokenClaims,
  type TokenKey,
  tokenKey,
  tokenKeyOf,
} from '../../domain/names/tokens.ts';
import { readUsing } from '../reads/reads.ts';
import { inTransaction, type UseClient } from '../server/client.ts';
import { selectorOf, storedSelector } from '../write/message-row.ts';

/** A token of a network that is to be asked about. */
export interface DueToken {
  readonly bytes: BytesHex;
  readonly attempts: number;
}

/** What came of a request about a token. */
export interface TokenReading {
  readonly bytes: BytesHex;
  /** Null: no answer. The token is asked about again, and keeps what is known of it. */
  readonly claims: TokenClaims | null;
  /** Milliseconds until the next request. */
  readonly dueInMs: number;
}

export function createTokenLedger(withReader: UseClient, withWriter: UseClient) {
  return {
    /** Looks for tokens in the next changes of the history; true where more of it is left. */
    discover: () => withWriter(discoverTokens),
    /** Tokens whose time has come: those that were never asked in vain, or those that were. */
    due: (network: string, state: 'fresh' | 'retried', limit: number) =>
      readUsing(withReader)<DueToken>(
        `select encode(address, 'hex') as bytes, attempts from token
         where network = $1 and due_at <= now() and (attempts = 0) = $2 order by due_at, address limit $3`,
        [storedSelector(network), state === 'fresh', limit],
      ),
    /** For a store without indexers: one with simulated data. */
    write: (network: string, readings: readonly TokenReading[]) =>
      withWriter((client) => writeTokens(client, storedSelector(network), readings)),
  };
}

/** Changes of the history in one transaction. */
const CHANGES_AT_ONCE = 2_000;

/**
 * The text before the fee token of a record. Records are canonical JSON: within a text value, its quotes would be escaped.
 * PostgreSQL finds a fixed text in a tenth of the time of a regular expression.
 */
const BEFORE_FEE_TOKEN = '"fixedFeesDetails":{"tokenAddress":"';

async function discoverTokens(client: ClientBase): Promise<boolean> {
  const { rows: waiting } = await client.query(
    'select from store where position > coalesce((select position from token_search), 0)',
  );
  return waiting.length > 0 && inTransaction(client, () => searchNextChanges(client));
}

async function searchNextChanges(client: ClientBase): Promise<boolean> {
  await client.query('insert into token_search default values on conflict do nothing');
  // Another process that is at it goes on.
  const { rows: places } = await client.query(
    'select position::text from token_search for update skip locked',
  );
  if (!places[0]) return false;
  const after = BigInt(places[0].position);
  const { rows: heads } = await client.query('select position::text from store');
  const newest = BigInt(heads[0]?.position ?? 0);
  const last = after + BigInt(CHANGES_AT_ONCE) < newest ? after + BigInt(CHANGES_AT_ONCE) : newest;
  await addTokens(client, await namedTokens(client, after, last));
  await client.query('update token_search set position = $1', [String(last)]);
  return last < newest;
}

async function namedTokens(client: ClientBase, after: bigint, last: bigint): Promise<readonly TokenKey[]> {
  const changed = `select distinct message_id from history where position > $1 and position <= $2`;
  const range = [String(after), String(last)];
  const { rows: transferred } = await client.query(
    `with changed as (${changed})
     select distinct network::text, encode(token, 'hex') as bytes
     from message_token join changed using (message_id)
     cross join lateral (values (source_selector, source_token), (dest_selector, dest_token)) as ends (network, token)`,
    range,
  );
  const { rows: paid } = await client.query(
    `with changed as (${changed})
     select distinct source_selector::text as network, split_part(split_part(record, $3, 2), '"', 1) as address
     from message join changed using (message_id)`,
    [...range, BEFORE_FEE_TOKEN],
  );
  const found = new Map<string, TokenKey>();
  for (const { network: stored, bytes, address } of [...transferred, ...paid]) {
    const network = selectorOf(stored);
    const family = familyOf(network);
    if (!family) continue;
    const transferredKey = bytes && !isZero(bytes, family) ? { network, bytes } : undefined;
    const key = address ? tokenKeyOf(network, address, family) : transferredKey;
    if (key) found.set(tokenKey(key), key);
  }
  return [...found.values()];
}

/** Adds tokens that are not known yet, in one order, so that two transactions never wait for each other. */
async function addTokens(client: ClientBase, tokens: readonly TokenKey[]): Promise<void> {
  if (tokens.length === 0) return;
  await client.query(
    `insert into token (network, address)
     select * from unnest($1::bigint[], $2::bytea[]) as found (network, address) order by 1, 2
     on conflict do nothing`,
    [
      tokens.map((token) => storedSelector(token.network)),
      tokens.map(({ bytes }) => Buffer.from(bytes, 'hex')),
    ],
  );
}

/** Writes what a network answered; also of tokens that no message names yet. */
export async function writeTokens(client: ClientBase, network: string, readings: readonly TokenReading[]) {
  for (const { bytes, claims, dueInMs } of readings) {
    const { symbol = null, name = null, decimals = null } = claims ?? {};
    await client.query(
      `insert into token as known (network, address, symbol, name, decimals, read_at, attempts, due_at)
       values ($1, $2, $3, $4, $5, case when $6 then now() end, case when $6 then 0 else 1 end,
               now() + make_interval(secs => $7 / 1000.0))
       on conflict (network, address) do update set
         symbol = case when $6 then excluded.symbol else known.symbol end,
         name = case when $6 then excluded.name else known.name end,
         decimals = case when $6 then excluded.decimals else known.decimals end,
         read_at = coalesce(excluded.read_at, known.read_at),
         attempts = case when $6 then 0 else known.attempts + 1 end, due_at = excluded.due_at`,
      [network, Buffer.from(bytes, 'hex'), symbol, name, decimals, claims !== null, dueInMs],
    );
  }
}
