/** Reads for what people type: values that begin and end with some digits, and contracts by their address. */
import type { BytesHex } from '../domain/addresses.ts';
import type { ShortenedText } from '../domain/search-text.ts';
import type { StatementForms } from './cluster/statement-forms.ts';
import { selectorOf } from './message-row.ts';
import type { Read } from './reads/reads.ts';

export interface ShortenedMatches {
  /** 64 digits each. */
  readonly messageIds: readonly BytesHex[];
  readonly transactions: readonly BytesHex[];
  readonly addresses: readonly BytesHex[];
}

export interface KnownContract {
  readonly role: 'router' | 'onRamp' | 'offRamp';
  /** Chain selector of the contract's own network. */
  readonly network: string;
  /** The chain at the other end of a ramp; null for a router. */
  readonly remote: string | null;
}

/** Values that are looked at, at most: with four digits in front, a store of ten million messages has about 150. */
const MAX_CANDIDATES = 5_000;
/** Distinct accounts and transactions are found one by one, whatever number of messages each has. */
const MAX_STEPS = 500;
const MAX_MATCHES = 10;

export async function readShortened(
  read: Read,
  forms: StatementForms,
  { head, tail }: ShortenedText,
): Promise<ShortenedMatches> {
  const isOdd = head.length % 2 === 1;
  const lowest = Buffer.from(isOdd ? `${head}0` : head, 'hex');
  const highest = Buffer.from(`${isOdd ? `${head}f` : head}${'ff'.repeat(64)}`, 'hex');
  const ids = read(
    `select encode(message_id, 'hex') as bytes
     from (select message_id from message where message_id between $1 and $2 order by message_id limit $4) candidate
     where encode(message_id, 'hex') like '%' || $3 limit $5`,
    [lowest, highest, tail, MAX_CANDIDATES, MAX_MATCHES],
  );
  const distinct = (table: 'message' | 'message_token', column: string) =>
    read(forms.distinctValues(table, column), [lowest, highest, tail, MAX_STEPS, MAX_MATCHES]);
  const [messageIds, sends, receipts, ...accounts] = await Promise.all([
    ids,
    distinct('message', 'send_transaction'),
    distinct('message', 'receipt_transaction'),
    distinct('message', 'sender'),
    distinct('message', 'receiver'),
    distinct('message_token', 'source_token'),
  ]);
  return {
    messageIds: unique([messageIds]),
    transactions: unique([sends ?? [], receipts ?? []]),
    addresses: unique(accounts),
  };
}

function unique(lists: readonly (readonly Record<string, unknown>[])[]): readonly BytesHex[] {
  return [...new Set(lists.flat().map(({ bytes }) => bytes as string))].slice(0, MAX_MATCHES);
}

/**
 * What a contract is to CCIP, as far as messages or an indexer have named it.
 *
 * @param spelling the address as records have it
 */
export async function readContractRoles(
  read: Read,
  bytes: BytesHex,
  spelling: string,
): Promise<readonly KnownContract[]> {
  const rows = await read(
    `select 'onRamp' as role, source_selector as network, dest_selector as remote
     from lane_onramp where onramp = $1
     union
     select role, network, remote from index_registration where contract = $2
     union
     select 'router', source_selector, null from lane_onramp where strpos(description, $3) > 0
     order by role, network, remote limit 100`,
    [Buffer.from(bytes, 'hex'), spelling.toLowerCase(), `"routerAddress":${JSON.stringify(spelling)}`],
  );
  return rows.flatMap(({ role, network, remote }) =>
    role === 'router' || role === 'onRamp' || role === 'offRamp'
      ? [
          {
            role,
            network: selectorOf(String(network)),
            remote: remote === null ? null : selectorOf(String(remote)),
          },
        ]
      : [],
  );
}
