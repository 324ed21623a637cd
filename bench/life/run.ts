/**
 * A run: lives that are written into a store, and measured at the end of each month. It stops between two ticks and goes on
 * from a file in the data folder. The store is empty before, or has messages that were settled in bulk (`settled.ts`); then a
 * month has as many of the lives as without these, and less time.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { openStore, type Store } from '../../src/store/store.ts';
import { type Cluster, createEmpty, withClient } from '../data/database.ts';
import { readDiskUse } from '../measurements/disk.ts';
import {
  attemptsOf,
  createLives,
  isAbandoned,
  type Lives,
  type Member,
  type ProtocolVersion,
  START_MS,
} from './lives.ts';
import {
  type Counters,
  type Measurement,
  prepareInspection,
  readBloat,
  readCounters,
  summarise,
} from './measurement.ts';
import { measureSearches, type SearchTimes } from './searches.ts';
import { messagesBefore, numberMessages, openSettled } from './settled.ts';
import { beginning, createTimeline, stateAt, type TimelineState } from './timeline.ts';
import { checkStore, type Verdict } from './verdict.ts';
import { createWriter } from './writer.ts';

export const DATABASE = 'bench_life';
const MONTH_MS = 30 * 86_400_000;
/** About so many of all messages, and more often the few that fail or are in an abandoned block. */
const SAMPLES = 500;
const SAMPLES_MULTIPLE = 20;
const SAVE_INTERVAL_MS = 5_000;

export interface LifeSettings {
  /** How many of them live. */
  readonly messages: number;
  /** How many are there before. */
  readonly settled: number;
  /** The version of all lanes; a mixture where it is left out. */
  readonly version?: ProtocolVersion | undefined;
}

export interface LifeOptions extends LifeSettings {
  readonly dataFolder: string;
  /** The most messages a second; as fast as it goes where it is left out. */
  readonly messagesPerSecond?: number | undefined;
  readonly isStopping?: () => boolean;
  /** Called with the number of settled messages that are written. */
  readonly onSettled?: (messages: number) => void;
  /** Called with the number of lives that have begun, and with each measurement. */
  readonly onProgress?: (messages: number, measurement: Measurement | undefined) => void;
}

export interface LifeResult {
  readonly measurements: readonly Measurement[];
  readonly verdict: Verdict;
}

/** What the file in the data folder has. */
interface Progress {
  readonly settings: LifeSettings;
  readonly timeline: TimelineState;
  readonly sample: readonly Member[];
  readonly measurements: readonly Measurement[];
  /** Of all runs, without the time between them, and with the time in which messages were settled. */
  readonly seconds: number;
  /** Counters of the empty store, and at the latest measurement. */
  readonly first: Counters;
  readonly latest: Counters;
}

/** Runs to the end; undefined where it was stopped before. */
export async function runLife(cluster: Cluster, options: LifeOptions): Promise<LifeResult | undefined> {
  const file = path.join(options.dataFolder, 'life.json');
  const lives = createLives(options.settled + options.messages, options.version);
  const progress = readProgress(file, options) ?? (await begin(cluster, lives, options));
  if (!progress) return undefined;
  const url = cluster.url(DATABASE);
  const store = await openStore({ place: { url }, access: 'write' });
  try {
    return await withClient(url, async (client) => {
      const end = await writeLives(store, client, { lives, progress, file }, options);
      if (!end) return undefined;
      return { measurements: end.measurements, verdict: await checkStore(store, lives, end.sample) };
    });
  } finally {
    await store.close();
  }
}

function readProgress(file: string, { messages, settled, version }: LifeSettings): Progress | undefined {
  if (!existsSync(file)) return undefined;
  const progress = JSON.parse(readFileSync(file, 'utf8')) as Progress;
  const { settings } = progress;
  if (settings.messages !== messages || settings.settled !== settled || settings.version !== version)
    throw new Error(
      `${path.dirname(file)} has a run of ${settings.messages} messages of ${settings.version ?? 'all versions'} after ` +
        `${settings.settled} settled ones. Choose another --data, or the same --messages, --settled and --protocol.`,
    );
  return progress;
}

/** Undefined where the run is stopped before its lives begin. */
async function begin(cluster: Cluster, lives: Lives, options: LifeOptions): Promise<Progress | undefined> {
  const { messages, settled, version } = options;
  const settings = { messages, settled, version };
  if (settled === 0) {
    await createEmpty(cluster, DATABASE);
    const first = await withClient(cluster.url(DATABASE), readCounters);
    return { settings, timeline: beginning, sample: [], measurements: [], seconds: 0, first, latest: first };
  }
  const world = { settled, messages: lives.world.size, version };
  const store = await openSettled(cluster, DATABASE, { ...options, ...world });
  if (!store) return undefined;
  const { first, seconds } = store;
  const sample: Member[] = [];
  const sequences = numberMessages(lives, messagesBefore(settled), (member) => {
    if (isSampled(member.n, settled)) sample.push(member);
  });
  const timeline = stateAt(settled, sequences);
  return { settings, timeline, sample, measurements: [], seconds, first, latest: first };
}

interface Run {
  readonly lives: Lives;
  readonly progress: Progress;
  readonly file: string;
}

/** The progress at the end; undefined where the run was stopped. */
async function writeLives(
  store: Store,
  client: pg.ClientBase,
  { lives, progress: from, file }: Run,
  { settled, messagesPerSecond, isStopping = () => false, onProgress = () => undefined }: LifeOptions,
): Promise<Progress | undefined> {
  if (from.measurements.at(-1)?.month === null) return from;
  const isInspectable = await prepareInspection(client);
  const sample = new Map(from.sample.map((member) => [member.n, member]));
  const { size } = lives.world;
  const timeline = createTimeline(lives, from.timeline, {
    onSent(member) {
      if (isSampled(member.n, size - settled)) sample.set(member.n, member);
    },
  });
  const writer = createWriter(store);
  const { world } = lives;
  const database = { size, world, cursors: store.cursors };
  const began = performance.now();
  const measurements = [...from.measurements];
  let { latest } = from;
  let savedAt = began;

  const seconds = () => from.seconds + (performance.now() - began) / 1000;
  const progress = (): Progress => ({
    ...from,
    ...{ timeline: timeline.state(), sample: [...sample.values()], measurements, latest },
    seconds: seconds(),
  });
  const save = (): void => {
    // A crash in the middle of a write leaves the former file.
    writeFileSync(`${file}.new`, JSON.stringify(progress()));
    renameSync(`${file}.new`, file);
    savedAt = performance.now();
  };
  const livesBeganAt = settled === 0 ? START_MS : world.envelope(settled).sentAtMs;
  const monthMs = MONTH_MS * ((size - settled) / size);
  const monthOf = (at: number) => Math.max(0, Math.floor((at - livesBeganAt) / monthMs));

  /** Writes a tick; false after the last. */
  const writeTick = async (): Promise<boolean> => {
    const steps = timeline.next();
    if (!steps) return false;
    for (const step of steps) await writer.write(step, timeline.at);
    onProgress(timeline.sent - settled, undefined);
    if (messagesPerSecond !== undefined) {
      const dueMs = ((timeline.sent - from.timeline.sent) * 1000) / messagesPerSecond;
      await delay(Math.max(0, began + dueMs - performance.now()));
    }
    return true;
  };

  const measure = async (month: number | null, searches: SearchTimes): Promise<void> => {
    const to = await readCounters(client);
    const before = measurements.at(-1);
    const stretch = {
      messages: timeline.sent - (before?.messages ?? 0),
      seconds: seconds() - (before?.seconds ?? 0),
      from: latest,
      to,
    };
    const measurement: Measurement = {
      month,
      messages: timeline.sent,
      seconds: Math.round(seconds()),
      // What settled messages took to write is no part of a life.
      disk: await readDiskUse(client, timeline.sent, settled === 0 ? from.first.walBytes : null),
      ...(await readBloat(client, isInspectable)),
      since: summarise(stretch),
      whileWriting: month !== null && month > 0,
      searches,
      residentMebibytes: Math.round(process.memoryUsage.rss() / 2 ** 20),
    };
    measurements.push(measurement);
    latest = to;
    onProgress(timeline.sent - settled, measurement);
  };

  if (settled > 0 && measurements.length === 0)
    await measure(0, await measureSearches(store, database, timeline.sent));
  for (let isGoingOn = true; isGoingOn && !isStopping(); ) {
    const month = monthOf(timeline.at);
    isGoingOn = await writeTick();
    if (isGoingOn && monthOf(timeline.at) > month) {
      let isSearching = true;
      const searching = measureSearches(store, database, timeline.sent).finally(() => {
        isSearching = false;
      });
      while (isSearching && isGoingOn) isGoingOn = await writeTick();
      const searches = await searching;
      // What is left of a short run is measured at its end.
      if (timeline.sent < size) await measure(month + 1, searches);
    }
    if (performance.now() - savedAt > SAVE_INTERVAL_MS) save();
    if (isGoingOn) continue;
    await measure(null, await measureSearches(store, database, timeline.sent));
    save();
    return progress();
  }
  save();
  return undefined;
}

function isSampled(n: number, messages: number): boolean {
  const isEventful = attemptsOf(n).length > 1 || isAbandoned('sent', n) || isAbandoned('executed', n);
  const samples = isEventful ? SAMPLES * SAMPLES_MULTIPLE : SAMPLES;
  return n % Math.max(1, Math.floor(messages / samples)) === 0;
}
