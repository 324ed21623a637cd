/**
 * Health of indexing and mirroring, judged by the age of heartbeats and progress.
 *
 * Every age is measured by the database's clock up to the moment of reading, so it grows while nothing is written: a dead
 * indexer must not look like one without new blocks.
 *
 * Without I/O: the schemas use these states, and the explorer takes its types from the schemas.
 */
import { findingKinds } from '../../domain/networks/index-findings.ts';
import type { MirrorState } from '../../store/ledger/mirror-ledger.ts';
import type { NetworkProgress } from '../../store/query/network-progress.ts';

/** No lease and no heartbeat for this long: the network is not indexed. A restart takes less. */
export const STOPPED_AFTER_SECONDS = 30;
/** An indexer that holds the lease reports progress at least this often, even when nothing is new. */
export const STALE_AFTER_SECONDS = 300;
/** Further behind the head than this is lagging. */
export const LAGGING_AFTER_SECONDS = 300;
/** The same in blocks, where no block times are known. */
export const LAGGING_AFTER_BLOCKS = 100;
/** An endpoint can stop at a block without an error: a head block older than this is lagging too. */
export const OLD_BLOCK_SECONDS = 900;
/** A range of blocks that could not be read for this long is a failure. */
export const FAILING_AFTER_SECONDS = 3600;

export const indexingHealths = ['ok', 'lagging', 'stale', 'failing', 'stopped'] as const;
export type IndexingHealth = (typeof indexingHealths)[number];

export const mirrorHealths = ['ok', 'behind', 'stopped'] as const;
export type MirrorHealth = (typeof mirrorHealths)[number];

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

/** Whether messages or statuses are missing according to the network's own contracts. */
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
