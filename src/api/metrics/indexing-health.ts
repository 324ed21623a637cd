/**
 * Health of indexing and mirroring, judged by the age of heartbeats and progress.
 *
 * Every age is measured by the database's clock up to the moment of reading, so it grows while nothing is written: a dead
 * indexer must not look like one without new blocks.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { findingKinds } from '../../domain/networks/index-findings.ts';
import type { MirrorState } from '../../store/ledger/mirror-ledger.ts';
import type { NetworkProgress } from '../../store/query/network-progress.ts';
import type { Store } from '../../store/store.ts';
import {
  type CheckedState,
  FAILING_AFTER_SECONDS,
  type IndexingHealth,
  LAGGING_AFTER_BLOCKS,
  LAGGING_AFTER_SECONDS,
  type MirrorHealth,
  OLD_BLOCK_SECONDS,
  STALE_AFTER_SECONDS,
  STOPPED_AFTER_SECONDS,
} from './health-states.ts';

type Seen = Pick<NetworkProgress, 'seenAt' | 'readAt'>;

/** The first state that applies, in the order stopped, failing, stale, lagging. */
export function indexingHealth(progress: NetworkProgress): IndexingHealth {
  const { readAt, oldestFailureAt, updatedAt, headAt, indexedAt } = progress;
  if (!progress.isLeased && seenAgeSeconds(progress) > STOPPED_AFTER_SECONDS) return 'stopped';
  if (progress.problem !== null || hasLoss(progress)) return 'failing';
  if (oldestFailureAt !== null && secondsBetween(oldestFailureAt, readAt) > FAILING_AFTER_SECONDS)
    return 'failing';
  if (secondsBetween(updatedAt, readAt) > STALE_AFTER_SECONDS) return 'stale';
  if (headAt === null || indexedAt === null)
    return (lagBlocks(progress) ?? 0) > LAGGING_AFTER_BLOCKS ? 'lagging' : 'ok';
  const isBehind = secondsBetween(indexedAt, headAt) > LAGGING_AFTER_SECONDS;
  return isBehind || secondsBetween(indexedAt, readAt) > OLD_BLOCK_SECONDS ? 'lagging' : 'ok';
}

/** Whether messages or statuses are missing by the word of the network's own contracts. */
export function hasLoss({ findings }: Pick<NetworkProgress, 'findings'>): boolean {
  return findings.some(({ kind }) => findingKinds[kind].isLoss);
}

/** Seconds since an indexer was last alive. */
export function seenAgeSeconds({ seenAt, readAt }: Seen): number {
  return secondsBetween(seenAt, readAt);
}

export function lagBlocks({ headBlock, indexedBlock }: NetworkProgress): number | null {
  return headBlock === null || indexedBlock === null ? null : Math.max(0, headBlock - indexedBlock);
}

/** Seconds since the time of the newest block that was read; null where none was. */
export function lagSeconds({ indexedAt, readAt }: NetworkProgress): number | null {
  return indexedAt === null ? null : secondsBetween(indexedAt, readAt);
}

export function secondsBetween(from: Date, to: Date): number {
  return Math.max(0, (to.getTime() - from.getTime()) / 1000);
}

/** Minimum: a source that does not answer is retried for some time first. */
const MIRROR_BEHIND_AFTER_SECONDS = 300;
/** Mirror rounds that may be missed. */
const MIRROR_BEHIND_AFTER_ROUNDS = 3;
/** Heartbeats are a few seconds apart; storing a large page may take longer. */
const MIRROR_STOPPED_AFTER_SECONDS = 120;

/** Health of a mirror that follows its source. One that ended with `--once` has no heartbeat and no health. */
export function mirrorHealth({ seenAt, currentAt, roundSeconds, readAt }: MirrorState): MirrorHealth {
  if (secondsBetween(seenAt, readAt) > MIRROR_STOPPED_AFTER_SECONDS) return 'stopped';
  const behindAfterSeconds = Math.max(MIRROR_BEHIND_AFTER_SECONDS, MIRROR_BEHIND_AFTER_ROUNDS * roundSeconds);
  const isCurrent = currentAt !== null && secondsBetween(currentAt, readAt) <= behindAfterSeconds;
  return isCurrent ? 'ok' : 'behind';
}

/** Timeout of the checks in /readyz that do not decide whether the server is ready. */
const CHECK_TIMEOUT_MS = 1_000;

/** The worst state of indexing and of mirroring. Never rejects: a state that cannot be read in time is `unknown`. */
export async function checkSources(
  store: Pick<Store, 'networkProgress' | 'mirrors'>,
): Promise<{ readonly indexing: CheckedState; readonly mirror: CheckedState }> {
  const timeout = delay(CHECK_TIMEOUT_MS, undefined, { ref: false }).then(() => {
    throw new Error('timeout');
  });
  const worst = <T>(read: Promise<readonly T[]>, stateOf: (item: T) => CheckedState) =>
    Promise.race([read, timeout]).then(
      (items) => {
        const states = new Set(items.map(stateOf));
        return (['stopped', 'behind', 'ok'] as const).find((state) => states.has(state)) ?? 'not configured';
      },
      () => 'unknown' as const,
    );
  const [indexing, mirror] = await Promise.all([
    worst(store.networkProgress(), (network) => {
      const health = indexingHealth(network);
      return health === 'ok' || health === 'stopped' ? health : 'behind';
    }),
    worst(store.mirrors(), mirrorHealth),
  ]);
  return { indexing, mirror };
}
