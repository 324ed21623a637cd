/**
 * What snapshots (imports, mirrors) add to what a chain says about a message. The chain wins field by field: a snapshot
 * only fills what the chain leaves unknown, and adds members that no chain has.
 */
import { zeroAddresses } from '../addresses.ts';
import type { Fact, SentMessage } from '../facts.ts';
import { type ExtensionFields, extensionKeys, type Message, sourceMembers } from '../message.ts';
import { compareObservations, compareText, greatest } from '../total-order.ts';

type Json = Readonly<Record<string, unknown>>;

/** Contracts that are unknown have the zero address in a record. */
const unknownValues: ReadonlySet<unknown> = new Set([undefined, null, ...Object.values(zeroAddresses)]);

/** What the chain says of the sent message, with the fields of a snapshot where the chain leaves one unknown. */
export function completeSent(chain: SentMessage, snapshot: SentMessage): SentMessage {
  // Verifiers are joined separately (`verification.ts`).
  const { verifiers, ...rest } = chain;
  const { verifiers: _, ...others } = snapshot;
  const completed: Record<string, unknown> = { verifiers };
  for (const [key, value] of Object.entries(rest))
    completed[key] = completeValue(value, (others as Json)[key]);
  return completed as SentMessage;
}

function completeValue(known: unknown, other: unknown): unknown {
  if (unknownValues.has(known)) return other ?? known;
  if (!agrees(known, other)) return known;
  if (Array.isArray(known) && Array.isArray(other)) {
    return known.map((element, index) => completeValue(element, other[index]));
  }
  if (!isObject(known) || !isObject(other)) return known;
  const completed: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(known), ...Object.keys(other)])) {
    completed[key] = completeValue(known[key], other[key]);
  }
  return completed;
}

/** Whether the values contradict each other nowhere: only then do they describe the same thing. */
function agrees(known: unknown, other: unknown): boolean {
  if (known === other || unknownValues.has(known) || unknownValues.has(other)) return true;
  if (Array.isArray(known) || Array.isArray(other)) {
    return (
      Array.isArray(known) &&
      Array.isArray(other) &&
      known.length === other.length &&
      known.every((element, index) => agrees(element, other[index]))
    );
  }
  return (
    isObject(known) && isObject(other) && Object.keys(known).every((key) => agrees(known[key], other[key]))
  );
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The members behind the contract: what the chain tells, and beside it every member that a snapshot has. Where snapshots
 * contradict each other, the greatest text counts, for each member by itself.
 */
export function foldExtensionFields(facts: readonly Fact[]): ExtensionFields {
  const members = new Map<string, { readonly text: string; readonly value: unknown }>();
  for (const fact of facts) {
    if (fact.kind !== 'Snapshot') continue;
    for (const [key, value] of Object.entries(extensionMembers(fact.message))) {
      const text = JSON.stringify(value);
      const known = members.get(key);
      if (!known || compareText(text, known.text) > 0) members.set(key, { text, value });
    }
  }
  const ofSnapshots = Object.fromEntries([...members].map(([key, { value }]) => [key, value]));
  return { ...ofSnapshots, ...extensionFieldsOfChain(facts) };
}

/** The reported status belongs to the status, not to what a snapshot adds. */
function extensionMembers(message: Message): Json {
  const keys = extensionKeys.filter((key) => message[key] !== undefined && key !== 'reportedStatus');
  return { ...Object.fromEntries(keys.map((key) => [key, message[key]])), ...sourceMembers(message) };
}

/** Up to 1.6 only a commit names the off-ramp; the message of 2.0 names it itself. */
function extensionFieldsOfChain(facts: readonly Fact[]): ExtensionFields {
  const sent = greatest(
    facts.filter((fact) => fact.kind === 'Sent'),
    (a, b) => compareObservations(a.seen, b.seen),
  );
  const execution = sent?.execution;
  if (execution && 'encodedMessage' in execution) {
    const { offramp, encodedMessage } = execution;
    return { offramp, encodedMessage };
  }
  const commit = greatest(
    facts.flatMap((fact) =>
      fact.kind === 'Committed' && fact.offramp !== undefined
        ? [{ seen: fact.seen, offramp: fact.offramp }]
        : [],
    ),
    (a, b) => compareObservations(a.seen, b.seen) || compareText(a.offramp, b.offramp),
  );
  return commit ? { offramp: commit.offramp } : {};
}
