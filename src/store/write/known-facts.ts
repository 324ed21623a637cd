/** What the fold of a message needs: its stored row, its stored facts, and the new facts of the batch. */
import type { ClientBase } from 'pg';
import type {
  ChainFact,
  Fact,
  MessageFact,
  RangeFact,
  SentMessage,
  SourceFinalized,
} from '../../domain/facts.ts';
import { joinSnapshots } from '../../domain/fold.ts';
import type { Message } from '../../domain/message.ts';
import { kindNumbers } from '../facts/kinds.ts';
import { detailsPlace, factColumnsWithoutDetails, factId, readMessageFact } from '../facts/stored-fact.ts';
import { readWith } from '../reads/reads.ts';
import { KEPT_ATTEMPTS, readEarlierIds } from './earlier-attempts.ts';
import { rangesCovering } from './lane-facts.ts';
import { type MessageRow, messageIdArray, SEND_TEXT, TOKENS_TEXT } from './message-row.ts';
import type { CountedMessage } from './statistics.ts';

export interface StoredMessage {
  readonly digest: string;
  readonly isSnapshot: boolean;
  readonly counted: CountedMessage;
  /** `sendTextOf` of the row, and `tokensTextOf` of its tokens. */
  readonly sendText: string;
  readonly tokensText: string;
}

/** Of one message: its stored row, its stored facts, and the new ones. */
export interface KnownFacts {
  readonly id: string;
  readonly stored: StoredMessage | undefined;
  /** By id. Of stored details there is only the place: the fold does not need what they say, and it may be long. */
  readonly chainFacts: Map<string, ChainFact>;
  snapshot: Message | undefined;
  /** The chain facts that are not stored yet. */
  readonly toStore: { readonly id: string; readonly fact: ChainFact }[];
  /** The body of the snapshot in `fact`, if it has a row there; replaced when the snapshot changes. */
  readonly storedSnapshot: Buffer | undefined;
  ranges: RangeFact[];
  /** Members that the snapshots of this batch had left out. */
  derived: readonly string[];
}

export async function readStored(client: ClientBase, ids: readonly string[]) {
  if (ids.length === 0) return new Map();
  const { rows } = await client.query(
    `select encode(message_id, 'hex') as id, encode(digest, 'hex') as digest, is_snapshot as "isSnapshot",
            source_selector as "sourceSelector", dest_selector as "destSelector", encode(onramp, 'hex') as onramp,
            sequence_number as "sequenceNumber", to_char(sent_at at time zone 'UTC', 'YYYY-MM-DD') as day, status, ready,
            delivery_ms as "deliveryMs", ${SEND_TEXT} as "sendText",
            (select ${TOKENS_TEXT} from message_token t where t.message_id = m.message_id) as "tokensText"
     from message m where message_id = any($1)`,
    [messageIdArray(ids)],
  );
  return new Map(
    rows.map(({ id, digest, isSnapshot, sendText, tokensText, deliveryMs, ...counted }) => [
      id,
      {
        digest,
        isSnapshot,
        sendText,
        tokensText,
        counted: { ...counted, deliveryMs: deliveryMs === null ? null : Number(deliveryMs) },
      },
    ]),
  );
}

/** Whether the new facts are just the stored snapshot again, as in a repeated import. Needs no stored record. */
export function isUnchangedSnapshot(
  newFacts: readonly MessageFact[],
  stored: StoredMessage | undefined,
  rows: ReadonlyMap<Message, MessageRow>,
): boolean {
  const [fact] = newFacts;
  return (
    stored?.isSnapshot === true &&
    newFacts.length === 1 &&
    fact?.kind === 'Snapshot' &&
    rows.get(fact.message)?.digest === stored.digest
  );
}

export async function readKnownFacts(
  client: ClientBase,
  ids: readonly string[],
  newFacts: ReadonlyMap<string, readonly MessageFact[]>,
  stored: ReadonlyMap<string, StoredMessage>,
): Promise<KnownFacts[]> {
  if (ids.length === 0) return [];
  const facts = await client.query(
    `select encode(message_id, 'hex') as id, encode(fact_id, 'hex') as fact_id, ${factColumnsWithoutDetails('fact')}
     from fact where message_id = any($1)`,
    [messageIdArray(ids)],
  );
  const snapshots = await readRecords(
    client,
    ids.filter((id) => stored.get(id)?.isSnapshot),
  );

  const all = new Map<string, KnownFacts>();
  for (const id of ids) {
    all.set(id, {
      id,
      stored: stored.get(id),
      chainFacts: new Map(),
      snapshot: parsedRecord(snapshots.get(id)),
      toStore: [],
      storedSnapshot: undefined,
      ranges: [],
      derived: [],
    });
  }
  for (const row of facts.rows) {
    const known = all.get(row.id);
    if (!known) continue;
    const isDetails = row.kind === kindNumbers.ExecutionDetails;
    const fact = isDetails ? detailsPlace(row, row.id) : readMessageFact(row, row.id);
    if (fact.kind === 'Snapshot')
      all.set(row.id, { ...known, snapshot: fact.message, storedSnapshot: row.body });
    else known.chainFacts.set(row.fact_id, fact);
  }
  const earlier = await readKnownEarlier(client, all, newFacts);
  for (const known of all.values()) addFacts(known, newFacts.get(known.id) ?? [], earlier);
  await addCoveringRanges(client, [...all.values()]);
  return [...all.values()];
}

export async function readRecords(client: ClientBase, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await client.query(
    `select encode(message_id, 'hex') as id, record from message where message_id = any($1)`,
    [messageIdArray(ids)],
  );
  return new Map(rows.map((row) => [row.id, row.record]));
}

function parsedRecord(record: string | undefined): Message | undefined {
  return record === undefined ? undefined : (JSON.parse(record) as Message);
}

/** The ids of new facts that are stored among earlier attempts. A message with fewer attempts than are kept has none. */
function readKnownEarlier(
  client: ClientBase,
  all: ReadonlyMap<string, KnownFacts>,
  newFacts: ReadonlyMap<string, readonly MessageFact[]>,
): Promise<ReadonlySet<string>> {
  const crowded = [...all].filter(([, { chainFacts }]) => chainFacts.size >= KEPT_ATTEMPTS).map(([id]) => id);
  const facts = crowded.flatMap((id) => newFacts.get(id) ?? []);
  const attempts = facts.filter(({ kind }) => kind === 'Executed' || kind === 'ExecutionDetails');
  return readEarlierIds(
    client,
    crowded,
    attempts.map((fact) => factId(JSON.stringify(fact))),
  );
}

function addFacts(known: KnownFacts, facts: readonly MessageFact[], earlier: ReadonlySet<string>): void {
  for (const fact of facts) {
    if (fact.kind === 'Snapshot') {
      known.snapshot = known.snapshot ? joinSnapshots(known.snapshot, fact.message) : fact.message;
      if (fact.derived) known.derived = [...new Set([...known.derived, ...fact.derived])];
      continue;
    }
    if (fact.kind === 'SourceFinalized' && isFinalityKnown(known, fact)) continue;
    const id = factId(JSON.stringify(fact));
    if (known.chainFacts.has(id) || earlier.has(id)) continue;
    known.chainFacts.set(id, fact);
    known.toStore.push({ id, fact });
  }
}

/** Finality has no event of its own: blocks that are read again would report it again, with a later time. */
function isFinalityKnown({ chainFacts }: KnownFacts, { seen }: SourceFinalized): boolean {
  for (const fact of chainFacts.values()) {
    if (fact.kind === 'SourceFinalized' && fact.seen.blockHash === seen.blockHash) return true;
  }
  return false;
}

async function addCoveringRanges(client: ClientBase, all: readonly KnownFacts[]): Promise<void> {
  const sent = all.flatMap((known) => {
    const message = sentMessage(known);
    return message ? [{ known, message }] : [];
  });
  const covering = await rangesCovering(
    readWith(client),
    sent.map(({ message }) => message),
  );
  for (const [index, ranges] of covering) sent[index]?.known.ranges.push(...ranges);
}

/** Any source of the sending will do: lane and sequence number are part of what the message id is a hash of. */
function sentMessage(known: KnownFacts): SentMessage | undefined {
  for (const fact of known.chainFacts.values()) if (fact.kind === 'Sent') return fact.message;
  return known.snapshot;
}

export function factsOf(known: Pick<KnownFacts, 'chainFacts' | 'ranges' | 'snapshot'>): Fact[] {
  const facts: Fact[] = [...known.chainFacts.values(), ...known.ranges];
  if (known.snapshot) facts.push({ kind: 'Snapshot', message: known.snapshot });
  return facts;
}
