/** Reads of the history as a feed of changes: the position of the store, and what comes after a position. */
import type pg from 'pg';
import type { Layout } from '../cluster/layout.ts';
import { createSingleFlight, type Read, type Reads } from '../reads/reads.ts';
import { createChangeSignal } from './change-listener.ts';
import { readChangesAfter, readLastChangeAt } from './history.ts';

/** `connection` leads to the primary, for notifications. */
export function createChangeReads(reads: Reads, connection: pg.ClientConfig, layout: Layout) {
  return {
    /**
     * The changes of all messages after a position, in order: at most `limit`, and at most `maxBytes` of records
     * (MAX_CHANGES_BYTES by default), but always the first one.
     */
    changesAfter: (position: string, limit: number, maxBytes?: number) =>
      readChangesAfter(reads.readOnPrimaryAs('changes'), position, limit, maxBytes, layout),
    /** The position of the latest change. */
    latestPosition: async () => String((await readPosition(reads.readAs('position'))) ?? 0),
    version: reads.version,
    /** Calls back whenever there may be changes, and every second with the position of the store. */
    onChanges: createChangeSignal(connection, async () =>
      Number(await readPosition(reads.readOnPrimaryAs('position'))),
    ),
    /** When the latest change was recorded; null before the first change. */
    lastChangeAt: createSingleFlight(() => readLastChangeAt(reads.readAs('lastChange'))),
  };
}

async function readPosition(read: Read): Promise<unknown> {
  return (await read('select position from store', []))[0]?.position;
}
