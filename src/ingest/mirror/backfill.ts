/**
 * The backfill of a mirror: walks from the newest message into the past, page by page.
 *
 * The records of two pages are fetched at a time: while the last ones of a page are under way, those of the next page use
 * the requests that the rate allows (`canReadAhead`). Progress is recorded page by page, in order.
 */
import type { RawParameters } from '../../domain/filters/search-parameters.ts';
import type { MirrorProgress } from '../../store/ledger/mirror-ledger.ts';
import type { Intake } from './intake.ts';
import { createWalkWatch, type SourcePage } from './pages.ts';
import { SourceError } from './source.ts';

/** A page, and the times that it spans once its records are stored. */
interface StartedPage {
  readonly page: SourcePage;
  readonly taken: ReturnType<Intake['takeItems']>;
}

export function createBackfill(options: {
  readonly takeItems: Intake['takeItems'];
  readonly requestPage: (cursor: string | null, parameters?: RawParameters) => Promise<SourcePage>;
  readonly since: number;
  /** Off where new messages must not wait behind the records of another page. */
  readonly canReadAhead: boolean;
  /** The recorded progress. */
  readonly progress: () => MirrorProgress;
  readonly record: (progress: Partial<MirrorProgress>) => Promise<void>;
  /** Throws the error of a search that the source rejects. */
  readonly fail: (problem: string) => never;
}) {
  const { takeItems, requestPage, since, canReadAhead, record } = options;
  /** Whether the source accepts `sentBefore`. */
  let canSeekByTime = true;
  let ahead: Promise<StartedPage> | null = null;
  let watch = createWalkWatch();
  /** How far the walk was when a cursor last expired. */
  let expiredAt: number | null | undefined;

  const startPage = async (cursor: string | null, parameters?: RawParameters): Promise<StartedPage> => {
    const page = await requestPage(cursor, parameters);
    const taken = takeItems(page.kind === 'page' ? page.items : []);
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
    const { backfillCursor, backfillOldest, newestSentAt } = options.progress();
    // Without a cursor the walk continues by time, including the millisecond that it had reached; or from the top.
    const seek: RawParameters | undefined =
      backfillCursor === null && backfillOldest !== null && canSeekByTime
        ? [['sentBefore', new Date(backfillOldest + 1).toISOString()]]
        : undefined;
    const started = ahead ?? startPage(backfillCursor, seek);
    ahead = null;
    const { page, taken } = await started;
    if (page.kind === 'expired') {
      await record({ backfillCursor: null });
      const isAgain = expiredAt === backfillOldest;
      expiredAt = backfillOldest;
      if (isAgain) throw new SourceError('The cursors of the source expire before they lead any further');
      return;
    }
    if (page.kind === 'rejected') {
      if (!seek) return options.fail(page.problem);
      canSeekByTime = false;
      return;
    }
    if (backfillCursor === null) watch = createWalkWatch();
    if (page.cursor !== null && canReadAhead) {
      ahead = startPage(page.cursor);
      ahead.catch(() => undefined);
    }
    const { newest, oldest } = await taken;
    const isLast = page.cursor === null && page.problem === null;
    const isEnd = isLast || (oldest !== null && oldest < since);
    await record({
      backfillCursor: isEnd ? null : page.cursor,
      backfillOldest: oldest === null ? backfillOldest : Math.min(backfillOldest ?? oldest, oldest),
      completeSince: isEnd ? (isLast ? 0 : since) : null,
      ...(newestSentAt === null && newest !== null && { newestSentAt: Math.min(newest, Date.now()) }),
    });
    if (isEnd) return settle();
    if (page.problem !== null) throw new SourceError(page.problem);
    watch.add(oldest);
  };

  return {
    /** Stores one page further into the past. */
    async advance(): Promise<void> {
      try {
        await advance();
      } catch (error) {
        await settle();
        throw error;
      }
    },
    settle,
  };
}
