/**
 * The states of indexing and mirroring, and the thresholds between them.
 *
 * Without I/O: the schemas use these states, and the explorer takes its types from the schemas.
 */

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

export const checkedStates = ['ok', 'behind', 'stopped', 'unknown', 'not configured'] as const;
/** State in /readyz. */
export type CheckedState = (typeof checkedStates)[number];
