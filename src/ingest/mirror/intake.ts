/**
 * Takes messages of a mirrored server into the store: the items of its pages, and single records.
 *
 * Messages that can still change are kept in the ledger (`pending`), to be fetched again. Progress is recorded only after the
 * records are stored: a mirror that is killed repeats some work, which changes nothing, and never skips any.
 */

import { ResponseTooLongError } from '../../base/bounded-exchange.ts';
import { parseTime } from '../../base/iso-time.ts';
import type { WriteLog } from '../../base/log.ts';
import type { ApiResponse } from '../../client/client.ts';
import type { Snapshot } from '../../domain/facts.ts';
import { MAX_MESSAGE_IDS } from '../../domain/filters/parameter-values.ts';
import type { RawParameters } from '../../domain/filters/search-parameters.ts';
import type { Message } from '../../domain/message.ts';
import { MAX_AHEAD_MS, parseMessage, type RecordProblem } from '../../domain/records/message-parser.ts';
import type { MirrorUpdate, PendingMessage } from '../../store/ledger/mirror-ledger.ts';
import type { Store } from '../../store/store.ts';
import { createWarningCounter, snapshotOf } from '../import/import.ts';
import { inParallel } from '../work.ts';
import { type Source, SourceError } from './source.ts';

export interface MirrorOptions {
  readonly source: Source;
  readonly store: Pick<Store, 'apply' | 'mirror' | 'search' | 'simulated'>;
  /** Filters of the search, for the source to apply. */
  readonly filters?: RawParameters;
  /** Only messages sent since then, in milliseconds since 1970; default: all. */
  readonly since?: number;
  /** Ends when everything is up to date, instead of following. */
  readonly once?: boolean;
  readonly signal: AbortSignal;
  /** Called whenever messages were stored. */
  readonly progress?: (counts: Readonly<MirrorCounts>) => void;
  /** Called once for each record that cannot be stored. */
  readonly reject?: (record: RejectedRecord) => void;
  readonly writeLog?: WriteLog;
  readonly timing?: Partial<MirrorTiming>;
}

export type MirrorCounts = ReturnType<typeof newCounts>;

export function newCounts() {
  return {
    created: 0,
    updated: 0,
    unchanged: 0,
    rejected: 0,
    /** Messages that the source listed but did not return; they are fetched again later. */
    missed: 0,
    /** Requests that a 304 answered. */
    notModified: 0,
    /** Messages that could still change and were fetched again before `once` ends. */
    rechecked: 0,
    bytes: 0,
    /** The send time that the backfill has reached, in milliseconds since 1970. */
    reached: null as number | null,
    isBackfilled: false,
  };
}

export interface RejectedRecord {
  readonly messageId: string | null;
  readonly problems: readonly RecordProblem[];
  /** The record as the source sent it. */
  readonly record: unknown;
}

export type MirrorTiming = Readonly<typeof defaultTiming>;

export const defaultTiming = {
  /** Between two rounds over new messages. */
  roundIntervalMs: 10_000,
  /** How far below the high-water mark a sweep reads: a round that now and then reads further down. */
  sweepOverlapMs: 24 * 3_600_000,
  /** A message that can still change is fetched again after a twentieth of its age, within these bounds. */
  minCheckIntervalMs: 15_000,
  maxCheckIntervalMs: 6 * 3_600_000,
  /** After a failure of the source that outlasted all attempts; doubled with each further one, up to twenty times. */
  failurePauseMs: 30_000,
};

export type Intake = ReturnType<typeof createIntake>;

/** Requests that are prepared at once; the source decides how many are under way. */
const PREPARED_REQUESTS = 100;
/** Single records are stored in groups of this size, which is also what is fetched again after a kill. */
const RECORDS_PER_GROUP = 20;
/** Messages that are fetched again in one go. */
export const OWED_PER_ROUND = 200;
const ATTEMPTS_PER_RECORD = 4;
const MAX_REMEMBERED_REJECTS = 10_000;
/** A message that can still change is fetched again after this share of its age. */
const CHECK_INTERVAL_SHARE = 1 / 20;

/** An item of a page with a valid id and time. */
interface Item {
  readonly id: string;
  readonly sentAt: number;
  readonly status: unknown;
  readonly value: Readonly<Record<string, unknown>>;
}

/** A full record of a message that was listed or requested. */
interface FetchedRecord {
  readonly item: Item;
  readonly value: unknown;
  readonly etag: string | null;
}

/** @param options with `record`, which records messages in the mirror's ledger */
export function createIntake(
  options: Pick<MirrorOptions, 'source' | 'store' | 'since' | 'progress' | 'reject' | 'writeLog'> & {
    readonly timing: MirrorTiming;
    readonly counts: MirrorCounts;
    readonly record: (update: Omit<MirrorUpdate, 'progress'>) => Promise<void>;
  },
) {
  const { source, store, since = 0, timing, counts, record } = options;
  const rejected = new Set<string>();
  const reportProgress = () => options.progress?.(counts);
  const { add: addWarnings } = createWarningCounter((value) =>
    options.writeLog?.(`${source.name} has records with an unknown ${value}`, { level: 'warn' }),
  );

  const reject = (messageId: string | null, problems: readonly RecordProblem[], record: unknown) => {
    const key = messageId ?? JSON.stringify(problems);
    if (rejected.has(key)) return;
    if (rejected.size < MAX_REMEMBERED_REJECTS) rejected.add(key);
    counts.rejected++;
    options.reject?.({ messageId, problems, record });
  };

  const pendingMessage = ({ id, sentAt }: Item, etag: string | null, checkedAt = Date.now()) => {
    const { minCheckIntervalMs, maxCheckIntervalMs } = timing;
    const ageMs = checkedAt - sentAt;
    const pauseMs = Math.min(Math.max(ageMs * CHECK_INTERVAL_SHARE, minCheckIntervalMs), maxCheckIntervalMs);
    return { messageId: id, sentAt, checkedAt, dueAt: Math.round(checkedAt + pauseMs), etag };
  };

  const parseItem = (value: unknown): Item | undefined => {
    const item = (typeof value === 'object' && value !== null ? value : {}) as Item['value'];
    const id =
      typeof item.messageId === 'string' && /^0x([0-9a-f]{64})$/i.exec(item.messageId)?.[1]?.toLowerCase();
    const sentAt = typeof item.sendTimestamp === 'string' ? parseTime(item.sendTimestamp) : Number.NaN;
    const isFuture = sentAt > Date.now() + MAX_AHEAD_MS;
    if (id && !Number.isNaN(sentAt) && !isFuture) return { id, sentAt, status: item.status, value: item };
    const problems: RecordProblem[] = [];
    if (isFuture)
      problems.push({ path: '$.sendTimestamp', problem: 'is a day later than the clock of this computer' });
    if (!id) problems.push({ path: '$.messageId', problem: 'is not 0x and 64 hexadecimal digits' });
    if (Number.isNaN(sentAt)) problems.push({ path: '$.sendTimestamp', problem: 'is not an ISO 8601 time' });
    reject(id ? `0x${id}` : null, problems, value);
    return undefined;
  };

  const storeRecords = async (fetched: readonly FetchedRecord[]): Promise<void> => {
    const snapshots: Snapshot[] = [];
    const pending: PendingMessage[] = [];
    const settled: string[] = [];
    const rejectedItems: { readonly item: Item; readonly etag: string | null }[] = [];
    for (const { item, value, etag } of fetched) {
      const parsed = parseMessage(value, Date.now());
      const isOther = parsed.ok && parsed.message.messageId.slice(2) !== item.id;
      if (!parsed.ok || isOther) {
        const problems = parsed.ok
          ? [{ path: '$.messageId', problem: 'is not the message that was requested' }]
          : parsed.problems;
        reject(`0x${item.id}`, problems, value);
        rejectedItems.push({ item, etag });
        continue;
      }
      const { message } = parsed;
      addWarnings(parsed);
      snapshots.push(snapshotOf(parsed));
      if (message.status === 'SUCCESS') settled.push(item.id);
      else pending.push(pendingMessage({ ...item, sentAt: parseTime(message.sendTimestamp) }, etag));
    }
    if (snapshots.length > 0) {
      const report = await store.apply(snapshots);
      counts.created += report.created;
      counts.updated += report.updated;
      counts.unchanged += snapshots.length - report.created - report.updated;
    }
    // A rejected record stays pending until the server or an index completes it.
    const stored = await storedStatuses(rejectedItems.map(({ item }) => item.id));
    for (const { item, etag } of rejectedItems) {
      if (stored.get(item.id) === 'SUCCESS') settled.push(item.id);
      else pending.push(pendingMessage(item, etag));
    }
    await record({ pending, settled });
    await takeExecutionInputs(snapshots.map(({ message }) => message));
  };

  /** What a manual execution needs, for messages that wait for one. */
  const takeExecutionInputs = async (messages: readonly Message[]): Promise<void> => {
    const ready = messages.filter(({ readyForManualExecution }) => readyForManualExecution);
    const found: { messageId: string; body: string }[] = [];
    await inParallel(ready, PREPARED_REQUESTS, async ({ messageId }) => {
      const response = await fetch(`/v2/messages/${messageId}/execution-inputs`);
      const body = response?.status === 200 && isExecutionInput(response.body) && jsonText(response.body);
      if (body) found.push({ messageId: messageId.slice(2), body });
    });
    if (found.length > 0) await store.mirror.recordExecutionInputs(found);
  };

  /** Null where the source failed: one message must not stop the others. What it does not have is no failure. */
  const fetch = async (
    path: string,
    { etag = null, onTooLong }: { etag?: string | null; onTooLong?: (problem: string) => void } = {},
  ): Promise<ApiResponse | null> => {
    try {
      const response = await source.get(path, { etag, attempts: ATTEMPTS_PER_RECORD });
      counts.bytes += response.bytes;
      return response;
    } catch (error) {
      if (error instanceof ResponseTooLongError) onTooLong?.(error.message);
      else if (!(error instanceof SourceError)) throw error;
      return null;
    }
  };

  /** Fetches messages one by one and stores their current state. */
  const refresh = async (messages: readonly PendingMessage[]): Promise<void> => {
    const unchanged: PendingMessage[] = [];
    let fetched: FetchedRecord[] = [];
    /** Groups are stored one after the other, while the next ones are fetched. */
    let storing = Promise.resolve();
    const storeGroup = () => {
      const group = fetched;
      fetched = [];
      storing = storing.then(() => storeRecords(group)).then(reportProgress);
      return storing;
    };
    await inParallel(messages, PREPARED_REQUESTS, async (message) => {
      const item = { id: message.messageId, sentAt: message.sentAt, status: null, value: {} };
      const response = await fetch(`/v2/messages/0x${message.messageId}`, {
        etag: message.etag,
        onTooLong: (problem) =>
          reject(`0x${message.messageId}`, [{ path: '$', problem: `is ${problem}` }], null),
      });
      // Simulated and real records are never mixed.
      if (response?.status === 200 && response.isSimulated === store.simulated) {
        fetched.push({ item, value: response.body, etag: response.headers.get('etag') });
        if (fetched.length >= RECORDS_PER_GROUP) await storeGroup();
        return;
      }
      if (response?.status === 304) counts.notModified++;
      else counts.missed++;
      unchanged.push(pendingMessage(item, message.etag));
    });
    await storeGroup();
    await record({ pending: unchanged });
    reportProgress();
  };

  const storedStatuses = async (ids: readonly string[]): Promise<ReadonlyMap<string, unknown>> => {
    if (ids.length === 0) return new Map();
    const { records } = await store.search({
      filters: { messageId: ids },
      view: 'summary',
      limit: ids.length,
      after: null,
    });
    return new Map(
      records.map((stored) => {
        const { messageId, status } = JSON.parse(stored) as Message;
        return [messageId.slice(2), status];
      }),
    );
  };

  /** Fetches the full records of summaries, except for those that are stored with the same status. */
  const takeSummaries = async (items: readonly Item[]): Promise<void> => {
    const changed: Item[] = [];
    for (let start = 0; start < items.length; start += MAX_MESSAGE_IDS) {
      const group = items.slice(start, start + MAX_MESSAGE_IDS);
      const stored = await storedStatuses(group.map(({ id }) => id));
      const known = group.filter(({ id, status }) => stored.get(id) === status);
      counts.unchanged += known.length;
      await record({
        // A kill may have come between storing them and recording that they can still change.
        noted: known
          .filter(({ status }) => status !== 'SUCCESS')
          .map((item) => pendingMessage(item, null, 0)),
      });
      changed.push(...group.filter((item) => !known.includes(item)));
    }
    await refresh(changed.map((item) => pendingMessage(item, null)));
  };

  /** Throws where a response is simulated and the store is not, or the other way round. */
  const rejectMixture = (isSimulated: boolean): void => {
    if (isSimulated === store.simulated) return;
    const { name } = source;
    throw isSimulated
      ? new SourceError(
          `${name} serves a simulated network; its records are never mixed into a store of real ones`,
          'Mirror a server with real data, or use the store of a demo.',
        )
      : new SourceError(
          `This store holds the demo’s simulated network; the real records of ${name} are never mixed into it`,
          'Choose another folder with --data, or another database with DATABASE_URL.',
        );
  };

  return {
    /** Stores the messages of a page and returns the send times that it spans. */
    async takeItems(values: readonly unknown[]): Promise<{ newest: number | null; oldest: number | null }> {
      const items = values.flatMap((value) => parseItem(value) ?? []);
      const times = items.map(({ sentAt }) => sentAt).sort((a, b) => a - b);
      const inRange = items.filter(({ sentAt }) => sentAt >= since);
      const summaries = inRange.filter(({ value }) => isSummary(value));
      const records = inRange.filter(({ value }) => !isSummary(value));
      await storeRecords(records.map((item) => ({ item, value: item.value, etag: null })));
      await takeSummaries(summaries);
      return { newest: times.at(-1) ?? null, oldest: times[0] ?? null };
    },
    refresh,
    rejectMixture,
  };
}

/** The list of the hosted service has only nine fields of each message. */
function isSummary(value: Item['value']): boolean {
  return value.sequenceNumber === undefined && value.onramp === undefined && value.fees === undefined;
}

/** One of the two forms that the SDK reads. */
function isExecutionInput(body: unknown): boolean {
  const { offramp, encodedMessage, messageBatch } = (body ?? {}) as Record<string, unknown>;
  return typeof offramp === 'string' && (typeof encodedMessage === 'string' || Array.isArray(messageBatch));
}

/** Undefined for a value that is nested too deep for JavaScript. */
export function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
