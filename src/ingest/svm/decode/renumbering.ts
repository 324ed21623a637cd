/**
 * The events with which a router sets the sequence number of a lane back, or to one that it had before: after them two
 * messages of a lane may have the same number. They are kept beside unreadable logs, where the completeness check finds them.
 */
import type { EventName, EventOf } from './layouts.ts';

const BUMPED = 'CcipVersionForDestChainVersionBumped';
const ROLLED_BACK = 'CcipVersionForDestChainVersionRolledBack';
export const renumberingEvents = [BUMPED, ROLLED_BACK] as const satisfies readonly EventName[];

export interface Renumbering {
  readonly slot: number;
  readonly destSelector: string;
  /** The number of the last message before it. */
  readonly previous: bigint;
  /** The next message has the number after this one; undefined where only an event before it would tell. */
  readonly next: bigint | undefined;
}

export function keptTopics(event: EventOf<(typeof renumberingEvents)[number]>): readonly string[] {
  const { name, destChainSelector, previousSequenceNumber, newSequenceNumber } = event;
  return [name, ...[destChainSelector, previousSequenceNumber, newSequenceNumber].map(String)];
}

/**
 * The renumberings of all lanes of a router, from the logs that are kept of it.
 *
 * A bump says that the next number is 1 in any case. After a rollback that is wrong: the lane then goes on where the newer
 * version had stopped.
 *
 * @param logs in the order of the chain
 * @param isWhole whether the router's history is known from its beginning
 */
export function keptRenumberings(
  logs: readonly { readonly blockNumber: number; readonly topics: readonly string[] }[],
  isWhole: boolean,
): readonly Renumbering[] {
  const latest = new Map<string, { readonly name: string; readonly previous: bigint }>();
  return logs.map(({ blockNumber: slot, topics }) => {
    const [name = '', destSelector = '', previousText = '0', nextText = '0'] = topics;
    const before = latest.get(destSelector);
    const previous = BigInt(previousText);
    latest.set(destSelector, { name, previous });
    const isUnknown = name === BUMPED && !before && !isWhole;
    const next = name === BUMPED && before?.name === ROLLED_BACK ? before.previous : BigInt(nextText);
    return { slot, destSelector, previous, next: isUnknown ? undefined : next };
  });
}
