/** What transactions say, held against what they say on a second endpoint. */

import type { HistoryReading } from '../engine/block-readings.ts';
import type { Claim, Confirmation, Opinion } from '../engine/confirmation.ts';
import type { TransactionReading } from './decode/transaction-facts.ts';
import type { ChainNode } from './node.ts';
import type { SolanaTransaction } from './transaction.ts';

/** A transaction, what it says, and the endpoint that has shown it. */
export interface Decoded {
  readonly transaction: Pick<SolanaTransaction, 'signature' | 'slot'>;
  readonly reading: TransactionReading;
  readonly witness: ChainNode;
}

interface TransactionClaim extends Claim {
  readonly signature: string;
  readonly slot: number;
  readonly said: string;
}

/** What it says of a transaction that an endpoint has; undefined where it cannot be read. */
export type ReadFound = (
  other: ChainNode,
  found: Exclude<Awaited<ReturnType<ChainNode['find']>>[number], string>,
) => Promise<TransactionReading | undefined>;

/**
 * Confirms every transaction that says something. Throws a NodeError where one is denied. Returns the slots of those that
 * only one endpoint has shown while others were away.
 */
export async function confirmTransactions(
  confirmation: Confirmation<ChainNode>,
  decoded: readonly Decoded[],
  logAlone: (witness: string, what: string) => void,
  readFound: ReadFound,
): Promise<NonNullable<HistoryReading['unconfirmed']>> {
  const opinionsOn = async (other: ChainNode, claims: readonly TransactionClaim[]) => {
    const found = await other.find(claims);
    return Promise.all(
      claims.map(async ({ said }, index): Promise<Opinion> => {
        const own = found[index];
        if (own === 'absent') return 'denies';
        const reading = own === undefined || own === 'unknown' ? undefined : await readFound(other, own);
        if (!reading) return 'lacks';
        if (sayingOf(reading) === said) return 'has';
        // An endpoint without logs, inner instructions or stack heights has a part of what a transaction says.
        return reading.isContradictory || reading.unreadable.length > 0 ? 'lacks' : 'denies';
      }),
    );
  };

  const unconfirmed = new Map<number, string>();
  for (const witness of new Set(decoded.map((one) => one.witness))) {
    const claims = decoded
      .filter(
        (one) => one.witness === witness && one.reading.facts.length + one.reading.registrations.length > 0,
      )
      .map(({ transaction: { signature, slot }, reading }) => ({
        signature,
        slot,
        said: sayingOf(reading),
        what: `the transaction ${signature} in slot ${slot}`,
      }));
    const minimumHead = Math.max(...claims.map(({ slot }) => slot));
    const left = await confirmation.confirm(witness, claims, { opinionsOn, minimumHead });
    // Where all others were asked and none keeps the slot, none ever will.
    for (const { slot, what } of left.claims)
      if (left.areAllAsked) logAlone(witness.name, what);
      else
        unconfirmed.set(
          slot,
          `${witness.name} alone has shown ${what}; it is recorded, and is to be confirmed`,
        );
  }
  return [...unconfirmed].map(([number, reason]) => ({ number, reason }));
}

/** What endpoints may have or not: old nodes lack compute units and stack heights, and lines are counted by what is there. */
const optionalKeys: ReadonlySet<string> = new Set(['logIndex', 'sendLogIndex', 'gasUsed', 'roles']);

/** The same text for the same facts. */
export function sayingOf({
  facts,
  registrations,
}: Pick<TransactionReading, 'facts' | 'registrations'>): string {
  return JSON.stringify([facts, registrations], (key, value: unknown) => {
    if (optionalKeys.has(key)) return undefined;
    return typeof value === 'bigint' ? value.toString() : value;
  });
}
