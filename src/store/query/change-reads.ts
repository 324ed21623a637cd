/** Reads of the history as a feed of changes: the position of the store, and what comes after a position. */
import type pg from 'pg';
import type { Layout } from '../cluster/layout.ts';
import { createSingleFlight, type Read, type Reads } from '../reads/reads.ts';
import {
  type ChangeListener,
  createChangeSignal,
  listenForChanges,
  type WakeFollower,
} from './change-listener.ts';
import { type ChangesRead, readChangesAfter, readLastChangeAt } from './history.ts';

export interface ChangeReads {
  /**
   * The changes of all messages after a position, in order: at most `limit`, and at most `maxBytes` of records
   * (MAX_CHANGES_BYTES by default), but always the first one.
   */
  changesAfter(position: string, limit: number, maxBytes?: number): Promise<ChangesRead>;
  /** The position of the latest change. */
  latestPosition(): Promise<string>;
  /**
   * Changes with everything that a search can find, as soon as it is committed. Concurrent callers share one query (single-flight).
   * Undefined while the primary is unavailable and only replicas answer.
   */
  version(): Promise<string | undefined>;
  /** Calls back whenever there may be changes, and every second with the position of the store. */
  onChanges(wake: WakeFollower): ChangeListener;
  /** When the latest change was recorded; null before the first change. */
  lastChangeAt(): Promise<Date | null>;
}

/** `connection` leads to the primary, for notifications. */
export function createChangeReads(reads: Reads, connection: pg.ClientConfig, layout: Layout): ChangeReads {
  return {
    changesAfter: (position, limit, maxBytes) =>
      readChangesAfter(reads.readOnPrimaryAs('changes'), position, limit, maxBytes, layout),
    latestPosition: async () => String((await readPosition(reads.readAs('position'))) ?? 0),
    version: reads.version,
    onChanges: createChangeSignal(
      (onChange) => listenForChanges(connection, onChange),
      async () => Number(await readPosition(reads.readOnPrimaryAs('position'))),
    ),
    lastChangeAt: createSingleFlight(() => readLastChangeAt(reads.readAs('lastChange'))),
  };
}

async function readPosition(read: Read): Promise<unknown> {
  return (await read('select position from store', []))[0]?.position;
}
