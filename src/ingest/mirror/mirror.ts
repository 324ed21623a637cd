/**
 * Follows a server that speaks the same API: what it has, what it gets, and what becomes of it.
 *
 * Three kinds of work share one polite source. The walk into the past goes from the newest message backwards by
 * cursor. Rounds look at the newest pages for what has come since, down to known ground and somewhat below it,
 * for a server may learn of messages late. Messages that still move are asked for one by one, less and less
 * often as they grow old.
 *
 * Progress is recorded behind the apply of what it speaks of. Whoever kills the mirror makes it do some work
 * twice, which changes nothing, and never makes it leave any out.
 */

import { parseTime } from '../../base/iso-time.ts';
import type { Notice } from '../../base/notice.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Message } from '../../domain/message.ts';
import { parseMessage, type RecordProblem } from '../../domain/message-parser.ts';
import { MAX_MESSAGE_IDS } from '../../domain/query.ts';
import type { RawParameters } from '../../domain/search-parameters.ts';
import type {
  MirrorHeartbeat,
  MirrorProgress,
  MirrorUpdate,
  OwedMessage,
} from '../../store/mirror-ledger.ts';
import type { Store } from '../../store/store.ts';
import { inParallel, untilLater } from '../work.ts';
import { readPage, type SourcePage } from './pages.ts';
import { type Source, type SourceAnswer, SourceFailure } from './source.ts';

export interface MirrorOptions {
  readonly source: Source;
  readonly store: Pick<Store, 'apply' | 'mirror' | 'search' | 'simulated'>;
  /** Filters of the search, for the source to apply. */
  readonly filters?: RawParameters;
  /** How far back, in milliseconds since 1970; without it, to the end. */
  readonly since?: number;
  /** Ends when everything is up to date, instead of following for ever. */
  readonly once?: boolean;
  readonly signal: AbortSignal;
  /** Called whenever something has been brought. */
  readonly progress?: (counts: Readonly<MirrorCounts>) => void;
  /** Called for each record that cannot be stored, once. */
  readonly reject?: (record: RejectedRecord) => void;
  readonly notice?: Notice;
  readonly pace?: Partial<MirrorPace>;
}

export interface MirrorCounts {
  created: number;
  updated: number;
  unchanged: number;
  rejected: number;
  /** Messages that the source listed but would not give; they are asked for again later. */
  missed: number;
  /** Requests that a 304 answered. */
  notModified: number;
  /** Bytes of answers. */
  bytes: number;
  /** How far back the walk into the past has come, in milliseconds since 1970. */
  reached: number | null;
  isBackfilled: boolean;
}

export interface RejectedRecord {
  readonly messageId: string | null;
  readonly problems: readonly RecordProblem[];
}

/** All in milliseconds. */
export interface MirrorPace {
  /** Between two rounds over what is new. */
  readonly roundEvery: number;
  /** How far below known ground a round looks. */
  readonly overlap: number;
  /** Now and then a round looks further down. */
  readonly sweepEvery: number;
  readonly sweepOverlap: number;
  /** A moving message is asked for after a twentieth of its age, within these bounds. */
  readonly soonestCheck: number;
  readonly latestCheck: number;
  /** Behind a failure of the source that outlasted all attempts. */
  readonly rest: number;
  /** Between two heartbeats. */
  readonly beatEvery: number;
}

const usualPace: MirrorPace = {
  roundEvery: 10_000,
  overlap: 10 * 60_000,
  sweepEvery: 15 * 60_000,
  sweepOverlap: 24 * 3_600_000,
  soonestCheck: 15_000,
  latestCheck: 6 * 3_600_000,
  rest: 30_000,
  beatEvery: 10_000,
};

const REQUESTS_AT_ONCE = 4;
/** Whole records asked for one by one are stored in groups of this size: so much is asked for again after a kill. */
const RECORDS_PER_GROUP = 20;
const ATTEMPTS_FOR_A_RECORD = 4;
const MAX_REMEMBERED_REJECTS = 10_000;

/** Follows the source until the signal, or with `once` until everything is up to date. */
export async function followSource(options: MirrorOptions): Promise<Readonly<MirrorCounts>> {
  const mirror = new Mirror(options);
  try {
    await mirror.open();
    if (options.once) {
      await mirror.catchUp();
      await mirror.beat({ isCurrent: true, isOver: true });
    } else {
      await followAlive(mirror, options.pace?.beatEvery ?? usualPace.beatEvery);
    }
  } catch (error) {
    if (!options.signal.aborted) throw error;
  }
  return mirror.counts;
}

/** Heartbeats go on while the source is slow or away: they tell that the process lives, not that it succeeds. */
async function followAlive(mirror: Mirror, everyMs: number): Promise<void> {
  await mirror.beat();
  // A heartbeat that fails is made up for by the next.
  const beating = setInterval(() => void mirror.beat().catch(() => undefined), everyMs);
  await mirror.follow().finally(() => clearInterval(beating));
}

/** An item of a page, as far as it can be read at all. */
interface Item {
  readonly id: string;
  readonly sentAt: number;
  readonly status: unknown;
  readonly value: Readonly<Record<string, unknown>>;
}

class Mirror {
  readonly counts: MirrorCounts = {
    created: 0,
    updated: 0,
    unchanged: 0,
    rejected: 0,
    missed: 0,
    notModified: 0,
    bytes: 0,
    reached: null,
    isBackfilled: false,
  };
  private readonly options: MirrorOptions;
  private readonly pace: MirrorPace;
  /** Names source and filters: what the progress belongs to. */
  private readonly key: string;
  private readonly rejectedIds = new Set<string>();
  private progress: MirrorProgress = {
    groundSentAt: null,
    backfillCursor: null,
    backfillOldest: null,
    completeSince: null,
  };
  private canSeek = true;

  constructor(options: MirrorOptions) {
    this.options = options;
    this.pace = { ...usualPace, ...options.pace };
    const filters = new URLSearchParams(
      (options.filters ?? []).map(([name, value]): [string, string] => [name, value]),
    );
    filters.sort();
    this.key = `${options.source.name}${filters.size > 0 ? `?${filters}` : ''}`;
  }

  /** Reads how far an earlier run has come. */
  async open(): Promise<void> {
    this.progress = await this.options.store.mirror.progress(this.key);
    const { completeSince } = this.progress;
    if (completeSince !== null && (this.options.since ?? 0) < completeSince) {
      // Further back than before: the walk goes on where it ended.
      await this.record({ progress: { completeSince: null, backfillCursor: null } });
    }
    this.counts.reached = this.progress.backfillOldest;
    this.counts.isBackfilled = this.progress.completeSince !== null;
  }

  beat(heartbeat: MirrorHeartbeat = {}): Promise<void> {
    const roundSeconds = this.pace.roundEvery / 1000;
    return this.options.store.mirror.beat(this.key, { roundSeconds, ...heartbeat });
  }

  async catchUp(): Promise<void> {
    const startedAt = Date.now();
    try {
      while (this.progress.completeSince === null) await this.backfillPage();
      await this.round(this.pace.sweepOverlap);
      for (;;) {
        const owed = await this.options.store.mirror.notCheckedSince(this.key, startedAt, RECORDS_PER_GROUP);
        if (owed.length === 0) return;
        await this.refresh(owed);
      }
    } catch (error) {
      if (!(error instanceof SourceFailure)) throw error;
      throw new OperatorError(
        `The source does not answer as it should: ${error.message}.`,
        'What was brought is stored; run the same command again to go on.',
        { cause: error },
      );
    }
  }

  async follow(): Promise<void> {
    const { signal, notice, store } = this.options;
    let roundAt = 0;
    let sweepAt = Date.now() + this.pace.sweepEvery;
    while (!signal.aborted) {
      try {
        // The walk into the past begins first: it sets the ground that rounds come down to.
        const hasBegun = this.progress.backfillOldest !== null || this.progress.completeSince !== null;
        if (hasBegun && Date.now() >= roundAt) {
          const isSweep = Date.now() >= sweepAt;
          await this.round(isSweep ? this.pace.sweepOverlap : this.pace.overlap);
          await this.beat({ isCurrent: true });
          roundAt = Date.now() + this.pace.roundEvery;
          if (isSweep) sweepAt = Date.now() + this.pace.sweepEvery;
        }
        const owed = await store.mirror.due(this.key, Date.now(), RECORDS_PER_GROUP);
        if (owed.length > 0) await this.refresh(owed);
        if (this.progress.completeSince === null) await this.backfillPage();
        else if (owed.length === 0) await untilLater(Math.min(roundAt - Date.now(), 1_000), signal);
      } catch (error) {
        if (!(error instanceof SourceFailure)) throw error;
        notice?.(`${error.message}; trying again in ${Math.round(this.pace.rest / 1000)} s`, {
          level: 'warn',
        });
        await untilLater(this.pace.rest, signal);
      }
    }
  }

  /** One page further into the past. */
  private async backfillPage(): Promise<void> {
    const { backfillCursor, backfillOldest, groundSentAt } = this.progress;
    // Without a cursor the walk goes on by time, the millisecond it had reached included; or else from the top.
    const seeksTime = backfillCursor === null && backfillOldest !== null && this.canSeek;
    const page = await this.page(
      backfillCursor,
      seeksTime ? [['sentBefore', new Date(backfillOldest + 1).toISOString()]] : [],
    );
    if (page.kind === 'expired') {
      await this.record({ progress: { backfillCursor: null } });
      return;
    }
    if (page.kind === 'refused') {
      if (!seeksTime) throw refusal(this.options.source.name, page.problem);
      this.canSeek = false;
      return;
    }
    const { newest, oldest } = await this.bring(page);
    const since = this.options.since ?? 0;
    const isEnd = page.cursor === null || (oldest !== null && oldest < since);
    const reached = earlier(backfillOldest, oldest);
    await this.record({
      progress: {
        backfillCursor: isEnd ? null : page.cursor,
        backfillOldest: reached,
        completeSince: isEnd ? (page.cursor === null ? 0 : since) : null,
        ...(groundSentAt === null && newest !== null && { groundSentAt: Math.min(newest, Date.now()) }),
      },
    });
    this.counts.reached = reached;
    this.counts.isBackfilled = isEnd;
    this.tell();
  }

  /** Pages from the newest down to known ground; the ground rises when all of them are in. */
  private async round(overlap: number): Promise<void> {
    const { groundSentAt } = this.progress;
    const target = Math.max(groundSentAt === null ? 0 : groundSentAt - overlap, this.options.since ?? 0);
    let cursor: string | null = null;
    let top: number | null = null;
    for (;;) {
      const page = await this.page(cursor);
      // What was brought is stored; the next round begins at the top again.
      if (page.kind === 'expired') throw new SourceFailure('The cursor of a round expired');
      if (page.kind === 'refused') throw refusal(this.options.source.name, page.problem);
      const { newest, oldest } = await this.bring(page);
      top ??= newest;
      this.tell();
      if (page.cursor === null || (oldest !== null && oldest < target)) break;
      cursor = page.cursor;
    }
    // A time in the future, from a clock that is wrong, would make later rounds end too early.
    const ground = top === null ? groundSentAt : Math.max(Math.min(top, Date.now()), groundSentAt ?? 0);
    if (ground !== groundSentAt) await this.record({ progress: { groundSentAt: ground } });
  }

  private async page(cursor: string | null, more: RawParameters = []): Promise<SourcePage> {
    const page = await readPage(this.options.source, cursor, [...(this.options.filters ?? []), ...more]);
    this.counts.bytes += page.bytes;
    if (page.isSimulated !== null) this.refuseMixture(page.isSimulated);
    return page;
  }

  /** Stores what a page shows, and says which times it spans. */
  private async bring(
    page: SourcePage & { kind: 'page' },
  ): Promise<{ newest: number | null; oldest: number | null }> {
    const items = page.items.flatMap((value) => this.itemOf(value) ?? []);
    const times = items.map(({ sentAt }) => sentAt);
    const wanted = items.filter(({ sentAt }) => sentAt >= (this.options.since ?? 0));
    const summaries = wanted.filter(({ value }) => isSummary(value));
    await this.store(
      wanted
        .filter(({ value }) => !isSummary(value))
        .map((item) => ({ item, value: item.value, etag: null })),
    );
    await this.bringSummaries(summaries);
    return {
      newest: times.length > 0 ? times.reduce((a, b) => Math.max(a, b)) : null,
      oldest: times.length > 0 ? times.reduce((a, b) => Math.min(a, b)) : null,
    };
  }

  /** Fetches the whole records of those that are not stored in the very status that the summary tells. */
  private async bringSummaries(items: readonly Item[]): Promise<void> {
    for (const group of groupsOf(items, MAX_MESSAGE_IDS)) {
      const stored = await this.storedStatuses(group.map(({ id }) => id));
      const known = group.filter(({ id, status }) => stored.get(id) === status);
      this.counts.unchanged += known.length;
      await this.record({
        // A kill may have come between storing them and noting that they move.
        noted: known.filter(({ status }) => status !== 'SUCCESS').map((item) => this.owed(item, null, 0)),
      });
      const news = group.filter((item) => !known.includes(item));
      for (const part of groupsOf(news, RECORDS_PER_GROUP)) {
        await this.refresh(part.map((item) => this.owed(item, null)));
        this.tell();
      }
    }
  }

  private async storedStatuses(ids: readonly string[]): Promise<ReadonlyMap<string, unknown>> {
    if (ids.length === 0) return new Map();
    const { records } = await this.options.store.search({
      filters: { messageId: ids },
      view: 'summary',
      limit: ids.length,
      after: null,
    });
    return new Map(
      records.map((record) => {
        const { messageId, status } = JSON.parse(record) as Message;
        return [messageId.slice(2), status];
      }),
    );
  }

  /** Asks for messages one by one and stores what has become of them. */
  private async refresh(messages: readonly OwedMessage[]): Promise<void> {
    const unsettled: OwedMessage[] = [];
    const brought: Brought[] = [];
    await inParallel(messages, REQUESTS_AT_ONCE, async (message) => {
      const item = { id: message.messageId, sentAt: message.sentAt, status: null, value: {} };
      const answer = await this.wholeRecord(message);
      if (answer?.status === 200) {
        brought.push({ item, value: answer.body, etag: answer.etag });
        return;
      }
      if (answer?.status === 304) this.counts.notModified++;
      else this.counts.missed++;
      unsettled.push(this.owed(item, message.etag));
    });
    await this.store(brought);
    await this.record({ owed: unsettled });
    this.tell();
  }

  private async wholeRecord({ messageId, etag }: OwedMessage): Promise<SourceAnswer | null> {
    try {
      const answer = await this.options.source.get(`/v2/messages/0x${messageId}`, {
        etag,
        attempts: ATTEMPTS_FOR_A_RECORD,
      });
      this.counts.bytes += answer.bytes;
      if (answer.status === 200) this.refuseMixture(answer.isSimulated);
      return answer;
    } catch (error) {
      // One message that cannot be had must not stop the rest; it stays owed.
      if (error instanceof SourceFailure) return null;
      throw error;
    }
  }

  private async store(brought: readonly Brought[]): Promise<void> {
    const messages: Message[] = [];
    const owed: OwedMessage[] = [];
    const settled: string[] = [];
    for (const { item, value, etag } of brought) {
      const parsed = parseMessage(value);
      const isOther = parsed.ok && parsed.message.messageId.slice(2) !== item.id;
      if (!parsed.ok || isOther) {
        const problems = parsed.ok
          ? [{ path: '$.messageId', problem: 'is not the message that was asked for' }]
          : parsed.problems;
        this.reject(`0x${item.id}`, problems);
        // What still moves may come out well in the end.
        if ((value as { status?: unknown } | null)?.status === 'SUCCESS') settled.push(item.id);
        else owed.push(this.owed(item, etag));
        continue;
      }
      const { message } = parsed;
      messages.push(message);
      if (message.status === 'SUCCESS') settled.push(item.id);
      else owed.push(this.owed({ ...item, sentAt: parseTime(message.sendTimestamp) }, etag));
    }
    if (messages.length > 0) {
      const report = await this.options.store.apply(
        messages.map((message) => ({ kind: 'Snapshot', message })),
      );
      this.counts.created += report.created;
      this.counts.updated += report.updated;
      this.counts.unchanged += messages.length - report.created - report.updated;
    }
    await this.record({ owed, settled });
  }

  private owed({ id, sentAt }: Item, etag: string | null, checkedAt = Date.now()): OwedMessage {
    const { soonestCheck, latestCheck } = this.pace;
    const pause = Math.min(Math.max((checkedAt - sentAt) / 20, soonestCheck), latestCheck);
    return { messageId: id, sentAt, checkedAt, dueAt: Math.round(checkedAt + pause), etag };
  }

  private itemOf(value: unknown): Item | undefined {
    const item = (typeof value === 'object' && value !== null ? value : {}) as Item['value'];
    const id =
      typeof item.messageId === 'string' && /^0x([0-9a-f]{64})$/i.exec(item.messageId)?.[1]?.toLowerCase();
    const sentAt = typeof item.sendTimestamp === 'string' ? parseTime(item.sendTimestamp) : Number.NaN;
    if (id && !Number.isNaN(sentAt)) return { id, sentAt, status: item.status, value: item };
    const problems: RecordProblem[] = [];
    if (!id) problems.push({ path: '$.messageId', problem: 'is not 0x and 64 hexadecimal digits' });
    if (Number.isNaN(sentAt)) problems.push({ path: '$.sendTimestamp', problem: 'is not an ISO 8601 time' });
    this.reject(id ? `0x${id}` : null, problems);
    return undefined;
  }

  private reject(messageId: string | null, problems: readonly RecordProblem[]): void {
    const mark = messageId ?? JSON.stringify(problems);
    if (this.rejectedIds.has(mark)) return;
    if (this.rejectedIds.size < MAX_REMEMBERED_REJECTS) this.rejectedIds.add(mark);
    this.counts.rejected++;
    this.options.reject?.({ messageId, problems });
  }

  private refuseMixture(isSimulated: boolean): void {
    if (isSimulated === this.options.store.simulated) return;
    const { name } = this.options.source;
    throw isSimulated
      ? new OperatorError(
          `${name} serves a simulated network; its records are never mixed into a store of real ones.`,
          'Mirror a server with real data, or use the store of a demo.',
        )
      : new OperatorError(
          `This store holds the demo’s simulated network; the real records of ${name} are never mixed into it.`,
          'Choose another folder with --data, or another database with DATABASE_URL.',
        );
  }

  private async record(update: MirrorUpdate): Promise<void> {
    const { progress, owed = [], noted = [], settled = [] } = update;
    if (!progress && owed.length + noted.length + settled.length === 0) return;
    await this.options.store.mirror.record(this.key, update);
    if (progress) this.progress = { ...this.progress, ...progress };
  }

  private tell(): void {
    this.options.progress?.(this.counts);
  }
}

/** A record as it came, of a message that was listed or asked for. */
interface Brought {
  readonly item: Item;
  readonly value: unknown;
  readonly etag: string | null;
}

/** The list of the hosted service has nine fields of each message. */
function isSummary(value: Item['value']): boolean {
  return value.sequenceNumber === undefined && value.onramp === undefined && value.fees === undefined;
}

function refusal(name: string, problem: string): OperatorError {
  return new OperatorError(
    `${name} refuses the search: ${problem}.`,
    'Check the URL (it is the part in front of /v2), its credentials, and the filters.',
  );
}

function earlier(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}

function groupsOf<T>(items: readonly T[], size: number): (readonly T[])[] {
  const groups: (readonly T[])[] = [];
  for (let start = 0; start < items.length; start += size) groups.push(items.slice(start, start + size));
  return groups;
}
