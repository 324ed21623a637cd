/** The options of a mirror, its timing, and what it counts. */
import type { WriteLog } from '../../base/log.ts';
import type { RawParameters } from '../../domain/filters/search-parameters.ts';
import type { RecordProblem } from '../../domain/records/message-parser.ts';
import type { Store } from '../../store/store.ts';
import type { Source } from './source.ts';

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

export interface MirrorCounts {
  created: number;
  updated: number;
  unchanged: number;
  rejected: number;
  /** Messages that the source listed but did not return; they are fetched again later. */
  missed: number;
  /** Requests that a 304 answered. */
  notModified: number;
  /** Messages that could still change and were fetched again before `once` ends. */
  rechecked: number;
  /** Bytes of responses. */
  bytes: number;
  /** The send time that the backfill has reached, in milliseconds since 1970. */
  reached: number | null;
  isBackfilled: boolean;
}

export interface RejectedRecord {
  readonly messageId: string | null;
  readonly problems: readonly RecordProblem[];
  /** The record as the source sent it. */
  readonly record: unknown;
}

export interface MirrorTiming {
  /** Between two rounds over new messages. */
  readonly roundIntervalMs: number;
  /** How far below the high-water mark a sweep reads: a round that now and then reads further down. */
  readonly sweepOverlapMs: number;
  /** A message that can still change is fetched again after a twentieth of its age, within these bounds. */
  readonly minCheckIntervalMs: number;
  readonly maxCheckIntervalMs: number;
  /** After a failure of the source that outlasted all attempts; doubled with each further one, up to twenty times. */
  readonly failurePauseMs: number;
}

export const defaultTiming: MirrorTiming = {
  roundIntervalMs: 10_000,
  sweepOverlapMs: 24 * 3_600_000,
  minCheckIntervalMs: 15_000,
  maxCheckIntervalMs: 6 * 3_600_000,
  failurePauseMs: 30_000,
};
