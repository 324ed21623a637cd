/** Reads for what people type: values that begin and end with some digits, and contracts by their address. */
import type { BytesHex } from '../../domain/addresses.ts';
import { type ByteRange, base58OfHex, base58Ranges } from '../../domain/filters/base58-ranges.ts';
import type { ShortenedText } from '../../domain/filters/search-text.ts';
import type { StatementForms } from '../cluster/statement-forms.ts';
import type { Read } from '../reads/reads.ts';
import { selectorOf } from '../write/message-row.ts';

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

/** Message ids, transactions and addresses with these hexadecimal digits at their ends. */
export async function readShortened(read: Read, forms: StatementForms, { head, tail }: ShortenedText) {
  const isOdd = head.length % 2 === 1;
  const lowest = Buffer.from(isOdd ? `${head}0` : head, 'hex');
  const highest = Buffer.from(`${isOdd ? `${head}f` : head}${'ff'.repeat(64)}`, 'hex');
  const valuesOf = async (kind: ByteRange['kind']) =>
    (await distinctValues(read, forms, { kind, lowest, highest }, tail, MAX_MATCHES)).slice(0, MAX_MATCHES);
  const [ids, transactions, addresses] = await Promise.all([
    read<ValueRow>(
      `select encode(message_id, 'hex') as bytes
       from (select message_id from message where message_id between $1 and $2 order by message_id limit $4) candidate
       where encode(message_id, 'hex') like '%' || $3 limit $5`,
      [lowest, highest, tail, MAX_CANDIDATES, MAX_MATCHES],
    ),
    valuesOf('transaction'),
    valuesOf('address'),
  ]);
  return { messageIds: unique(ids), transactions, addresses };
}

/** The same for addresses and signatures in base58, as lists shorten them: `DXDb…HvK9`. */
export async function readShortenedBase58(read: Read, forms: StatementForms, { head, tail }: ShortenedText) {
  const found = await Promise.all(
    base58Ranges(head).map(async (range) => ({
      kind: range.kind,
      values: await distinctValues(read, forms, range, '', MAX_STEPS),
    })),
  );
  const matching = (kind: ByteRange['kind']) =>
    [...new Set(found.filter((one) => one.kind === kind).flatMap(({ values }) => values))]
      // The bytes of a range may be of another length, whose text begins otherwise.
      .filter((bytes) => base58OfHex(bytes).startsWith(head) && base58OfHex(bytes).endsWith(tail))
      .slice(0, MAX_MATCHES);
  return { transactions: matching('transaction'), addresses: matching('address') };
}

interface ValueRow {
  readonly bytes: BytesHex;
}

/** Where values of each kind are. */
const columnsOfKind = {
  transaction: [
    ['message', 'send_transaction'],
    ['message', 'receipt_transaction'],
  ],
  address: [
    ['message', 'sender'],
    ['message', 'receiver'],
    ['message_token', 'source_token'],
  ],
} as const;

/** Distinct values in a range of bytes that end with some hexadecimal digits, at most `limit` of each column. */
async function distinctValues(
  read: Read,
  forms: StatementForms,
  { kind, lowest, highest }: ByteRange,
  tail: string,
  limit: number,
): Promise<readonly BytesHex[]> {
  const values = [Buffer.from(lowest), Buffer.from(highest), tail, MAX_STEPS, limit];
  const lists = await Promise.all(
    columnsOfKind[kind].map(([table, column]) => read<ValueRow>(forms.distinctValues(table, column), values)),
  );
  return unique(lists.flat());
}

function unique(rows: readonly ValueRow[]): readonly BytesHex[] {
  return [...new Set(rows.map(({ bytes }) => bytes))];
}

/**
 * What a contract is to CCIP, as far as messages or an indexer have named it.
 *
 * @param spelling the address as records have it
 */
export async function readContractRoles(read: Read, bytes: BytesHex, spelling: string) {
  const rows = await read<KnownContract>(
    `select 'onRamp' as role, source_selector as network, dest_selector as remote
     from lane_onramp where onramp = $1
     union
     select role, network, remote from index_registration where contract = $2
     union
     select 'router', source_selector, null from lane_onramp where strpos(description, $3) > 0
     order by role, network, remote limit 100`,
    [Buffer.from(bytes, 'hex'), spelling.toLowerCase(), `"routerAddress":${JSON.stringify(spelling)}`],
  );
  return rows
    .filter(({ role }) => role === 'router' || role === 'onRamp' || role === 'offRamp')
    .map(({ role, network, remote }) => ({
      role,
      network: selectorOf(network),
      remote: remote === null ? null : selectorOf(remote),
    }));
}
