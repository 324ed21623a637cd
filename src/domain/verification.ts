/** The fold of verifiers: who they are, which of them the destination requires, and which have verified the message. */
import { zeroAddressOf } from './addresses.ts';
import type { Fact, SentMessage, VerifierCompleted, VerifierPolicy } from './facts.ts';
import { type Message, UNNAMED_VERIFIER, type Verifier, type Verifiers } from './message.ts';
import { compareObservations, compareText, greatest } from './total-order.ts';

/** The verifiers, their state, and whether they ever sufficed for the destination. */
export function foldVerifiers(facts: readonly Fact[], sent: SentMessage) {
  const listed = joinLists(
    facts.flatMap((fact) =>
      (fact.kind === 'Sent' || fact.kind === 'Snapshot') && fact.message.verifiers
        ? [fact.message.verifiers]
        : [],
    ),
  );
  if (!listed) return { verifiers: null, wasVerified: false };

  const unknownAddresses: readonly string[] = [
    zeroAddressOf(sent.sourceNetworkInfo.chainFamily),
    zeroAddressOf(sent.destNetworkInfo.chainFamily),
  ];
  const completions = facts
    .filter((fact) => fact.kind === 'VerifierCompleted')
    .filter(({ verifier }) => !unknownAddresses.includes(verifier));
  const policies = facts.filter((fact) => fact.kind === 'VerifierPolicy');
  const listUnder = (policy: VerifierPolicy | undefined) =>
    completed(policy ? withPolicy(listed, policy, sent) : listed, completions);
  return {
    verifiers: listUnder(greatest(policies, comparePolicies)),
    // A destination that requires other verifiers later does not revoke an earlier verification.
    wasVerified: [undefined, ...policies].some((policy) => isVerified(listUnder(policy), sent)),
  };
}

/**
 * Joins lists of the same verifiers: the requirements are those of the greatest list, and a verifier is completed as soon
 * as any source says so. Of lists with different verifiers, only the greatest counts.
 */
function joinLists(lists: readonly Verifiers[]): Verifiers | undefined {
  const base = greatest(lists, compareLists);
  if (!base) return undefined;
  const agreeing = lists.filter((list) => sourcesText(list) === sourcesText(base));
  return {
    ...base,
    items: base.items.map((listed, index) => {
      const known = agreeing.flatMap(({ items }) => items[index]?.verification ?? []);
      const verification = greatest(known, compareVerifications);
      return verification ? { ...listed, status: 'COMPLETED', verification } : listed;
    }),
  };
}

function sourcesText({ items }: Verifiers): string {
  return JSON.stringify(items.map(({ sourceAddress }) => sourceAddress));
}

/** By the verifiers, then by the requirements; never by their state. */
function compareLists(a: Verifiers, b: Verifiers): number {
  const requirements = ({ items, optionalThreshold }: Verifiers) =>
    JSON.stringify([
      optionalThreshold,
      items.map(({ isRequired, destAddress, metadata: { name, logoUrl } }) => [
        isRequired,
        destAddress,
        name,
        logoUrl,
      ]),
    ]);
  return (
    a.items.length - b.items.length ||
    compareText(sourcesText(a), sourcesText(b)) ||
    compareText(requirements(a), requirements(b))
  );
}

/** The earliest counts: a repeated verification does not change the time. */
function compareVerifications(a: Verification, b: Verification): number {
  return compareText(b.timestamp, a.timestamp) || compareText(b.data, a.data);
}

type Verification = NonNullable<Verifier['verification']>;

/** The latest policy of the destination counts. */
function comparePolicies(a: VerifierPolicy, b: VerifierPolicy): number {
  const text = ({ required, optional, optionalThreshold }: VerifierPolicy) =>
    JSON.stringify([optionalThreshold, required, optional]);
  return compareObservations(a.seen, b.seen) || compareText(text(a), text(b));
}

/**
 * The list with the requirements of the destination. The source names verifiers by addresses on the source chain, the
 * destination by addresses on its own chain, and nothing links the two. Verifiers with the same address on both chains are
 * the same, and so are the others, in order, where their number is equal. Otherwise both are listed: those of the source
 * as not required, because the destination does not ask for them, and those of the destination without a source address,
 * because they show what the execution waits for.
 */
function withPolicy(list: Verifiers, policy: VerifierPolicy, sent: SentMessage): Verifiers {
  const required = new Set(policy.required);
  const unpaired = new Set([...policy.required, ...policy.optional]);
  unpaired.delete(zeroAddressOf(sent.destNetworkInfo.chainFamily));
  const pairs = new Map<Verifier, string>();
  for (const nameOf of [(item: Verifier) => item.destAddress, (item: Verifier) => item.sourceAddress]) {
    for (const item of list.items) {
      if (!pairs.has(item) && unpaired.delete(nameOf(item))) pairs.set(item, nameOf(item));
    }
  }
  const unmatched = list.items.filter((item) => !pairs.has(item));
  if (unmatched.length === unpaired.size) {
    for (const [index, address] of [...unpaired].entries()) {
      const item = unmatched[index];
      if (item) pairs.set(item, address);
    }
    unpaired.clear();
  }
  const unknownAddress = zeroAddressOf(sent.sourceNetworkInfo.chainFamily);
  return {
    optionalThreshold: policy.optionalThreshold,
    items: [
      ...list.items.map((item) => {
        const destAddress = pairs.get(item);
        return destAddress === undefined
          ? { ...item, isRequired: false }
          : { ...item, destAddress, isRequired: required.has(destAddress) };
      }),
      ...[...unpaired].map((destAddress) => ({
        sourceAddress: unknownAddress,
        destAddress,
        metadata: { name: UNNAMED_VERIFIER },
        isRequired: required.has(destAddress),
        status: 'PENDING' as const,
        verification: null,
      })),
    ],
  };
}

function completed(list: Verifiers, completions: readonly VerifierCompleted[]): Verifiers {
  return {
    ...list,
    items: list.items.map((item) => {
      if (item.status === 'COMPLETED') return item;
      const verification = greatest(
        completions
          .filter(({ verifier }) => verifier === item.sourceAddress || verifier === item.destAddress)
          .map(({ data, seen }) => ({ data, timestamp: seen.at })),
        compareVerifications,
      );
      return verification ? { ...item, status: 'COMPLETED', verification } : item;
    }),
  };
}

/**
 * Whether all verifiers that the destination requires, and enough of its optional ones, have completed. Verifiers whose
 * address on the destination is unknown do not count; if that is all of them, the requirements are unknown.
 */
export function isVerified(
  verifiers: Verifiers | null,
  { destNetworkInfo }: Pick<Message, 'destNetworkInfo'>,
): boolean {
  const unknownAddress = zeroAddressOf(destNetworkInfo.chainFamily);
  const known = verifiers?.items.filter(({ destAddress }) => destAddress !== unknownAddress) ?? [];
  const missing = known.some((item) => item.isRequired && item.status !== 'COMPLETED');
  const optional = known.filter((item) => !item.isRequired && item.status === 'COMPLETED');
  return known.length > 0 && !missing && optional.length >= (verifiers?.optionalThreshold ?? 0);
}

/**
 * The verifiers of a message that the destination has executed. The off-ramp executes nothing that is not verified: so a
 * required verifier has verified it, also where the data of the verification is not known (`0x`), and a verifier that
 * only the source names was not needed.
 */
export function settleVerifiers(
  verifiers: Verifiers,
  executedAt: string,
  { destNetworkInfo }: Pick<Message, 'destNetworkInfo'>,
): Verifiers {
  const unknownAddress = zeroAddressOf(destNetworkInfo.chainFamily);
  return {
    ...verifiers,
    items: verifiers.items.map((item) => {
      if (!item.isRequired || item.status === 'COMPLETED') return item;
      return item.destAddress === unknownAddress
        ? { ...item, isRequired: false }
        : { ...item, status: 'COMPLETED', verification: { data: UNKNOWN_DATA, timestamp: executedAt } };
    }),
  };
}

/** What an off-ramp can be shown of the verifiers' results: those whose data is known, of verifiers that it knows. */
export function knownVerifications({
  verifiers,
  destNetworkInfo,
}: Pick<Message, 'verifiers' | 'destNetworkInfo'>) {
  const unknownAddress = zeroAddressOf(destNetworkInfo.chainFamily);
  return (verifiers?.items ?? []).flatMap(({ sourceAddress, destAddress, verification }) =>
    verification && verification.data !== UNKNOWN_DATA && destAddress !== unknownAddress
      ? [{ sourceAddress, destAddress, ...verification }]
      : [],
  );
}

/** Whether the data of all verifications that the destination requires is known. */
export function hasAllVerifications(message: Pick<Message, 'verifiers' | 'destNetworkInfo'>): boolean {
  const { verifiers } = message;
  const items = verifiers?.items.map((item) =>
    item.verification?.data === UNKNOWN_DATA
      ? { ...item, status: 'PENDING' as const, verification: null }
      : item,
  );
  return isVerified(verifiers && { ...verifiers, items: items ?? [] }, message);
}

/** In a record: a verification that follows from the execution, whose data was not seen. */
const UNKNOWN_DATA = '0x';
