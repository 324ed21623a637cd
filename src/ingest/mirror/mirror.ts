/**
 * Mirrors a server with the same API: its history, its new messages, and their status changes.
 *
 * Three kinds of work share one rate-limited source. The backfill walks from the newest message into the past by cursor.
 * Rounds poll the newest pages for new messages, down to the high-water mark and somewhat below it, because a server may
 * learn of messages late. Messages that can still change are fetched one by one, less often as they grow older.
 */
import { backoffMs } from '../../base/backoff.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { RawParameters } from '../../domain/filters/search-parameters.ts';
import type { MirrorHeartbeat, MirrorProgress, MirrorUpdate } from '../../store/ledger/mirror-ledger.ts';
import { untilLater } from '../work.ts';
import {
  createIntake,
  defaultTiming,
  type Intake,
  type MirrorCounts,
  type MirrorOptions,
  newCounts,
  OWED_PER_ROUND,
} from './intake.ts';
import { createPageReader, createWalkWatch, type SourcePage } from './pages.ts';
import { type Source, SourceError } from './source.ts';

const HEARTBEAT_INTERVAL_MS = 10_000;
/** How far below the high-water mark a round reads. */
const OVERLAP_MS = 600_000;
const SWEEP_INTERVAL_MS = 900_000;
const LONGEST_PAUSE_FACTOR = 20;
/** The longest pause of the loop, so that it looks for due messages. */
const MAX_IDLE_MS = 1_000;

/** A page, and the times that it spans once its records are stored. */
interface StartedPage {
  readonly page: SourcePage;
  readonly taken: ReturnType<Intake['takeItems']>;
}

/** Follows the source until the signal, or with `once` until everything is up to date. */
export async function followSource(options: MirrorOptions): Promise<Readonly<MirrorCounts>> {
  const mirror = createMirror(options);
  try {
    await mirror.open();
    if (options.once) {
      await mirror.catchUp();
      await mirror.beat({ isCurrent: true, isEnding: true });
    } else {
      await mirror.beat();
      // Heartbeats continue while the source is slow or away: they show that the process is alive, not that it succeeds.
      // After a heartbeat that fails comes the next one.
      const beating = setInterval(() => void mirror.beat().catch(() => undefined), HEARTBEAT_INTERVAL_MS);
      await mirror.follow().finally(() => clearInterval(beating));
    }
  } catch (error) {
    if (!options.signal.aborted) throw error;
  } finally {
    await mirror.settle();
  }
  return mirror.counts;
}

function createMirror(options: MirrorOptions) {
  const { source, store, filters = [], since = 0, signal, writeLog } = options;
  const timing = { ...defaultTiming, ...options.timing };
  const key = ledgerKey(source, filters);
  const counts = newCounts();
  /** Whether the source has ever served a page to this mirror: then what it says is not about the configuration. */
  let hasWorked = false;
  let progress: MirrorProgress = {
    newestSentAt: null,
    backfillCursor: null,
    backfillOldest: null,
    completeSince: null,
  };

  const record = async (update: MirrorUpdate): Promise<void> => {
    const { pending = [], noted = [], settled = [] } = update;
    if (!update.progress && pending.length + noted.length + settled.length === 0) return;
    await store.mirror.record(key, update);
    if (update.progress) progress = { ...progress, ...update.progress };
  };
  const intake = createIntake({ ...options, timing, counts, record });
  const reportProgress = () => options.progress?.(counts);

  const readPage = createPageReader(source);
  const requestPage = async (cursor: string | null, more: RawParameters = []): Promise<SourcePage> => {
    const page = await readPage(cursor, [...filters, ...more]);
    counts.bytes += page.bytes;
    if (page.isSimulated !== null) {
      intake.rejectMixture(page.isSimulated);
      hasWorked = true;
    }
    return page;
  };

  // ---- The backfill: walks from the newest message into the past, page by page

  /** Whether the source accepts `sentBefore`. */
  let canSeekByTime = true;
  let ahead: Promise<StartedPage> | null = null;
  let walk = createWalkWatch();
  /** How far the walk was when a cursor last expired. */
  let expiredAt: number | null | undefined;

  const startPage = async (cursor: string | null, parameters?: RawParameters): Promise<StartedPage> => {
    const page = await requestPage(cursor, parameters);
    const taken = intake.takeItems(page.kind === 'page' ? page.items : []);
    // Awaited later; until then a failure must not end the process.
    taken.catch(() => undefined);
    return { page, taken };
  };

  /** Waits for the work on the next page; after that nothing is under way. Never throws. */
  const settle = async (): Promise<void> => {
    const started = ahead;
    ahead = null;
    await started?.then(({ taken }) => taken).catch(() => undefined);
  };

  const advance = async (): Promise<void> => {
    const { backfillCursor, backfillOldest, newestSentAt } = progress;
    // Without a cursor the walk continues by time, including the millisecond that it had reached; or from the top.
    const seek: RawParameters | undefined =
      backfillCursor === null && backfillOldest !== null && canSeekByTime
        ? [['sentBefore', new Date(backfillOldest + 1).toISOString()]]
        : undefined;
    const started = ahead ?? startPage(backfillCursor, seek);
    ahead = null;
    const { page, taken } = await started;
    if (page.kind === 'expired') {
      await record({ progress: { backfillCursor: null } });
      const isAgain = expiredAt === backfillOldest;
      expiredAt = backfillOldest;
      if (isAgain) throw new SourceError('The cursors of the source expire before they lead any further');
      return;
    }
    if (page.kind === 'rejected') {
      if (!seek) throw rejectionError(source.name, page.problem);
      canSeekByTime = false;
      return;
    }
    if (backfillCursor === null) walk = createWalkWatch();
    // While the last records of a page are under way, those of the next one use the requests that the rate allows. When
    // following, new messages must not wait behind them.
    if (page.cursor !== null && options.once) {
      ahead = startPage(page.cursor);
      ahead.catch(() => undefined);
    }
    const { newest, oldest } = await taken;
    const isLast = page.cursor === null && page.problem === null;
    const isEnd = isLast || (oldest !== null && oldest < since);
    await record({
      progress: {
        backfillCursor: isEnd ? null : page.cursor,
        backfillOldest: oldest === null ? backfillOldest : Math.min(backfillOldest ?? oldest, oldest),
        completeSince: isEnd ? (isLast ? 0 : since) : null,
        ...(newestSentAt === null && newest !== null && { newestSentAt: Math.min(newest, Date.now()) }),
      },
    });
    if (isEnd) return settle();
    if (page.problem !== null) throw new SourceError(page.problem);
    walk.add(oldest);
  };

  const countBackfilled = () => {
    counts.reached = progress.backfillOldest;
    counts.isBackfilled = progress.completeSince !== null;
  };
  /** Stores one page further into the past. */
  const backfillPage = async (): Promise<void> => {
    try {
      await advance();
    } catch (error) {
      await settle();
      throw error;
    }
    countBackfilled();
    reportProgress();
  };

  // ---- Rounds

  /** Reads pages from the newest down to the high-water mark, which rises when all of them are stored. */
  const readRound = async (overlapMs: number): Promise<void> => {
    const { newestSentAt } = progress;
    const target = Math.max(newestSentAt === null ? 0 : newestSentAt - overlapMs, since);
    const watch = createWalkWatch();
    let cursor: string | null = null;
    let top: number | null = null;
    for (;;) {
      const page = await requestPage(cursor);
      // The pages so far are stored; the next round begins at the top again.
      if (page.kind === 'expired') throw new SourceError('The cursor of a round expired');
      if (page.kind === 'rejected') throw rejectionError(source.name, page.problem);
      const { newest, oldest } = await intake.takeItems(page.items);
      top ??= newest;
      reportProgress();
      if (oldest !== null && oldest < target) break;
      if (page.problem !== null) throw new SourceError(page.problem);
      if (page.cursor === null) break;
      watch.add(oldest);
      cursor = page.cursor;
    }
    // A time in the future, from a wrong clock, would make later rounds end too early.
    const ground = top === null ? newestSentAt : Math.max(Math.min(top, Date.now()), newestSentAt ?? 0);
    if (ground !== newestSentAt) await record({ progress: { newestSentAt: ground } });
  };

  const beat = (heartbeat: MirrorHeartbeat = {}) =>
    store.mirror.heartbeat(key, { roundSeconds: timing.roundIntervalMs / 1000, ...heartbeat });

  return {
    counts,

    /** Reads the progress of an earlier run. */
    async open(): Promise<void> {
      progress = await store.mirror.progress(key);
      if (progress.completeSince !== null && since < progress.completeSince) {
        // Further back than before: the walk continues where it ended.
        await record({ progress: { completeSince: null, backfillCursor: null } });
      }
      countBackfilled();
      hasWorked = counts.isBackfilled || progress.backfillOldest !== null;
    },

    beat,
    /** Waits for what is still under way after an error or a stop. */
    settle,

    /** Brings everything up to date. */
    async catchUp(): Promise<void> {
      const startedAt = Date.now();
      try {
        while (progress.completeSince === null) await backfillPage();
        await readRound(timing.sweepOverlapMs);
        for (;;) {
          const pending = await store.mirror.notCheckedSince(key, startedAt, OWED_PER_ROUND);
          if (pending.length === 0) return;
          await intake.refresh(pending);
          counts.rechecked += pending.length;
          reportProgress();
        }
      } catch (error) {
        if (!(error instanceof SourceError)) throw error;
        if (error.remedy !== undefined) throw configurationError(error, error.remedy);
        throw new OperatorError(
          `The source failed: ${error.message}.`,
          'What was read is stored; run the same command again to continue.',
          { cause: error },
        );
      }
    },

    async follow(): Promise<void> {
      const rounds: Task = { dueAt: 0, failures: 0 };
      const backfilling: Task = { dueAt: 0, failures: 0 };
      let sweepAt = Date.now() + SWEEP_INTERVAL_MS;
      /** What the source says never ends the mirror, and a task that fails does not delay the other. */
      const attempt = async (task: Task, work: () => Promise<void>): Promise<void> => {
        try {
          await work();
          task.failures = 0;
        } catch (error) {
          if (!(error instanceof SourceError)) throw error;
          if (!hasWorked && error.remedy !== undefined) throw configurationError(error, error.remedy);
          const { failurePauseMs: firstPauseMs } = timing;
          const longestPauseMs = firstPauseMs * LONGEST_PAUSE_FACTOR;
          const pauseMs = backoffMs(++task.failures, { firstPauseMs, longestPauseMs }, Math.random());
          task.dueAt = Date.now() + pauseMs;
          writeLog?.(`${error.message}; trying again in ${Math.ceil(pauseMs / 1000)} s`, { level: 'warn' });
        }
      };
      while (!signal.aborted) {
        // The backfill begins first: it sets the high-water mark for the rounds.
        const hasBegun = progress.backfillOldest !== null || progress.completeSince !== null;
        if (hasBegun && Date.now() >= rounds.dueAt) {
          await attempt(rounds, async () => {
            const isSweep = Date.now() >= sweepAt;
            await readRound(isSweep ? timing.sweepOverlapMs : OVERLAP_MS);
            await beat({ isCurrent: true });
            rounds.dueAt = Date.now() + timing.roundIntervalMs;
            if (isSweep) sweepAt = Date.now() + SWEEP_INTERVAL_MS;
          });
        }
        const pending = await store.mirror.due(key, Date.now(), OWED_PER_ROUND);
        if (pending.length > 0) await intake.refresh(pending);
        const isIncomplete = progress.completeSince === null;
        if (isIncomplete && Date.now() >= backfilling.dueAt) await attempt(backfilling, backfillPage);
        else if (pending.length === 0) {
          const dueAt = [...(hasBegun ? [rounds.dueAt] : []), ...(isIncomplete ? [backfilling.dueAt] : [])];
          await untilLater(Math.min(...dueAt.map((at) => at - Date.now()), MAX_IDLE_MS), signal);
        }
      }
    },
  };
}

/** A kind of work on the source, which is retried with backoff. */
interface Task {
  /** Milliseconds since 1970. */
  dueAt: number;
  failures: number;
}

function configurationError(error: SourceError, remedy: string): OperatorError {
  return new OperatorError(`${error.message}.`, remedy, { cause: error });
}

/** Identifies source and filters, which the progress belongs to. */
function ledgerKey({ name }: Source, filters: RawParameters): string {
  const query = new URLSearchParams(
    filters.map(([parameter, value]): [string, string] => [parameter, value]),
  );
  query.sort();
  return `${name}${query.size > 0 ? `?${query}` : ''}`;
}

function rejectionError(name: string, problem: string): SourceError {
  return new SourceError(
    `${name} rejects the search: ${problem}`,
    'Check the URL (the part before /v2), its credentials, and the filters.',
  );
}
