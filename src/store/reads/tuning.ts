/**
 * Tuning constants of the read path, each with the measurement that set it.
 *
 * "Chosen, not measured" means that no other value was compared. Decision records are in docs/decisions/.
 */

// ---- Time limits

/** The longest wait of a read for a connection, free or new. Chosen, not measured: clients retry after a second or two. */
export const READ_WAIT_MS = 2_000;
/** `statement_timeout` of reads: one expensive search must not hold a connection for long. Chosen, not measured. */
export const STATEMENT_TIMEOUT_MS = 15_000;
/**
 * `query_timeout` of reads, in this process. It is longer than the server's own limit, so it ends only reads whose server
 * is silent. Chosen, not measured.
 */
export const SILENCE_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
/** The same for the revision of the primary, which takes microseconds. Chosen, not measured. */
export const POSITION_TIMEOUT_MS = 2_000;

// ---- Admission

/**
 * Reads that may wait for each connection before more are refused. Chosen, not measured: at 0.2 ms of the database for a
 * short search (docs/performance.md) a full queue is served in 20 ms, and long reads end by READ_WAIT_MS.
 */
export const WAITING_PER_CONNECTION = 100;
/** Time limit of the circuit breaker's probe. Chosen, not measured. */
export const PROBE_TIMEOUT_MS = 2_000;
/** How long a read waits for the probe while the circuit is open. Chosen, not measured. */
export const OPEN_CIRCUIT_WAIT_MS = 250;

// ---- Overload

/**
 * A wait that means overload when the oldest read has had it for READ_WAIT_MS; in overload also the longest wait. Chosen,
 * not measured by itself: with 512 connections on two cores p50 is 196 ms and nothing is refused
 * (bench/results/bench-searches-pages-connections-1m.json), so ordinary load stays below it.
 */
export const OVERLOAD_WAIT_MS = 250;

// ---- Pipelining
// Decision 0019: pipelined on few connections, a page took 195 instead of 237 µs of the client and 235 instead of 340 µs of
// the database.

/** The most reads of one batch. Chosen, not measured. */
export const MAX_BATCH_READS = 8;
/** The most time that a batch should take, by the recent average. A read that takes as long goes alone. Chosen. */
export const MAX_BATCH_MS = 10;
/**
 * Share of the connections that is used while reads take about a millisecond. Measured (decision 0019): a fifth answers
 * 5 to 12 % more short pages than two fifths, with one process and with two, because fewer sessions share two cores.
 */
export const STEADY_SHARE = 0.2;
/** A batch that takes longer does not count against that share. Chosen, not measured. */
export const SLOW_BATCH_MS = 25;
/** How often the queue is examined while batches run. Chosen, not measured. */
export const EXAMINE_INTERVAL_MS = 25;
/** Weight of the latest batch in the moving average of how long a read takes (EWMA). Chosen, not measured. */
export const LATEST_WEIGHT = 0.2;

// ---- Single-flight

/**
 * The shortest time between two reads of the store's version. More callers share one read the longer it is, and a cached
 * answer waits up to as long. Chosen, not measured alone: with it a cached page takes 0.2 ms, most of it HTTP
 * (docs/performance.md).
 */
export const VERSION_INTERVAL_MS = 2;

// ---- Replicas

/** A primary that does not answer with its revision within this time counts as away. Chosen, not measured. */
export const PRIMARY_WAIT_MS = 250;
/** The same while it is away: a refusal comes at once, and silence is not worth a wait. Chosen, not measured. */
export const AWAY_PRIMARY_WAIT_MS = 50;
/** Between two checks of a replica that is behind or away. Chosen, not measured. */
export const REPLICA_CHECK_INTERVAL_MS = 100;
/** A replica that is unused for less time is not logged. Chosen, not measured. */
export const REPLICA_LOG_AFTER_MS = 5_000;

// ---- Prepared statements

/**
 * Prepared statements of each connection. Measured: one takes some 40 kB of the server's memory, so 200 are 8 MB, and a
 * prepared page takes 0.23 instead of 0.59 ms of the database (docs/performance.md).
 */
export const MAX_PREPARED_STATEMENTS = 200;

// ---- Raw rows
// Measured as a whole (decision 0024, bench/results/raw-rows-arm64.json): a search of 20 rows takes 189 instead of 355 µs of
// CPU time. The two sizes are part of it and were not varied.

/** Memory into which a connection receives. Chosen, not measured: it holds four pages of 20 records of 1.6 kB. */
export const RECEIVE_BUFFER_BYTES = 128 * 1024;
/** Memory for the rows of one read that outlast a chunk; what a longer read took beyond it is freed. Chosen. */
export const ROW_BUFFER_BYTES = 256 * 1024;
