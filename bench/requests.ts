/** From workloads, which are data, to requests with parameters drawn from the world: the same ones every time. */
import { readFileSync } from 'node:fs';
import type { SearchQuery, View } from '../src/domain/filters/query.ts';
import { parseSearch, type RawParameters } from '../src/domain/filters/search-parameters.ts';
import type { BenchDatabase } from './data/database.ts';
import {
  BUSY_SENDERS,
  END_MS,
  lanes,
  SPAN_MS,
  TOKENS_PER_LANE,
  unknownAccount,
  type World,
} from './data/world.ts';
import type { PlainRequest } from './load/client.ts';

export type Goal = 'limit' | 'peers' | 'depth' | 'deep peers' | 'repeated';

export interface Workload {
  readonly name: string;
  /** Parameters, each with the kind of value to draw. */
  readonly filters?: Readonly<Record<string, string>>;
  /** `message`: one message by its id instead of a search. */
  readonly path?: 'message';
  /** `anywhere`: behind a cursor at a random moment, which makes every request another one. */
  readonly start?: 'anywhere';
  /** Behind so many pages of a walk. */
  readonly page?: number;
  readonly limit?: number;
  readonly view?: View;
  readonly rows?: number;
  /** The same request again and again. */
  readonly repeats?: boolean;
  readonly growth?: boolean;
  readonly goals?: readonly Goal[];
}

export interface Combinations {
  readonly filters: readonly string[];
  readonly casts: readonly Cast[];
  readonly beyond: readonly Readonly<Record<string, string>>[];
}

export type Cast = 'together' | 'strangers' | 'pairs';

/** A request, and what it asks for. */
export interface SearchRequest extends PlainRequest {
  readonly search: SearchQuery;
}

/** What the load generator needs of it: little goes to the other process. */
export function plainRequest({ path, rows }: SearchRequest): PlainRequest {
  return { path, ...(rows !== undefined && { rows }) };
}

export function readWorkloads<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`./workloads/${name}.json`, import.meta.url), 'utf8')) as T;
}

const DAY_MS = 86_400_000;
const DEFAULT_LIMIT = 20;

/** Numbers that look random, the same for the same seed. */
function createDice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The parameters of one request. */
function draw(
  filters: Readonly<Record<string, string>>,
  world: World,
  dice: () => number,
): readonly (readonly [string, string])[] {
  const n = Math.floor(dice() * world.size);
  const message = world.envelope(n);
  // A lane is drawn from the messages, so that lanes come as often as they are used.
  const lane = lanes[message.lane] ?? lanes[0];
  const day = END_MS - Math.ceil(dice() * 390 * DAY_MS);
  // Ten different messages.
  const step = 1 + Math.floor(dice() * (world.size / 10 - 1));
  const values: Record<string, string | undefined> = {
    'sender ordinary': world.ordinarySender(Math.floor(dice() * world.ordinarySenders)),
    'sender busy': world.busySender(Math.floor(dice() * (BUSY_SENDERS / 2))),
    'sender unknown': unknownAccount(Math.floor(dice() * 1e9)),
    'sender repeated': world.ordinarySender(7),
    'receiver any': message.receiver,
    'sourceChainSelector lane': lane?.source.chainSelector,
    'destChainSelector lane': lane?.dest.chainSelector,
    'sourceTransactionHash any': message.sendTransaction,
    'destTransactionHash any': message.receiptTransaction ?? message.sendTransaction,
    'sentAfter day': new Date(day).toISOString(),
    'sentBefore day': new Date(day + DAY_MS).toISOString(),
    'sentAfter month': new Date(END_MS - 30 * DAY_MS).toISOString(),
    'sentBefore beginning': new Date(END_MS - SPAN_MS + DAY_MS).toISOString(),
    'address ordinary': world.ordinarySender(Math.floor(dice() * world.ordinarySenders)),
    'address strangers': world.casts.strangers.sender,
    'q ordinary': world.ordinarySender(Math.floor(dice() * world.ordinarySenders)),
    'q transaction': message.sendTransaction,
    'q strangers': world.casts.strangers.sender,
    'sourceTokenAddress any': world.token(message.lane, Math.floor(dice() * TOKENS_PER_LANE)).source,
    'messageId ten': Array.from(
      { length: 10 },
      (_, index) => world.envelope((n + index * step) % world.size).messageId,
    ).join(','),
  };
  return Object.entries(filters).map(([name, kind]) => {
    const cast = kind === 'strangers' || kind === 'pairs' ? world.casts[kind][name] : undefined;
    return [name, values[`${name} ${kind}`] ?? cast ?? kind] as const;
  });
}

/** What requests are drawn from. */
export type DrawnDatabase = Pick<BenchDatabase, 'size' | 'world' | 'cursors'>;

/** Requests of a workload, drawn on demand: it never runs out. */
export interface RequestSource {
  /** The next `count` requests; a workload that repeats has one, the same every time. */
  take(count: number): SearchRequest[];
}

export function createRequestSource(workload: Workload, database: DrawnDatabase): RequestSource {
  const { filters = {}, page, limit = DEFAULT_LIMIT, repeats = false } = workload;
  const dice = createDice(hashOf(workload.name));
  // Neighbours of a deep page are as many as there are older messages; then the first come again, asked long ago.
  const neighbours = page === undefined ? Number.POSITIVE_INFINITY : database.size - (page + 1) * limit;
  let drawn = 0;
  const known = new Set<string>();
  const next = () => {
    const raw = draw(filters, database.world, dice);
    const key = raw.join();
    // A sender that was drawn before has another page, so that no answer comes from the response cache.
    const isAgain = raw.length > 0 && known.has(key);
    known.add(key);
    return requestOf(
      isAgain ? { ...workload, start: 'anywhere' } : workload,
      raw,
      database,
      drawn++ % neighbours,
      dice,
    );
  };
  let only: SearchRequest | undefined;
  return {
    take(count) {
      if (!repeats) return Array.from({ length: count }, next);
      only ??= next();
      return [only];
    },
  };
}

/** `count` requests of a workload; a workload that repeats has one. */
export function drawRequests(workload: Workload, database: DrawnDatabase, count: number): SearchRequest[] {
  return createRequestSource(workload, database).take(count);
}

/** Whether so many messages have the pages that so many requests of a workload ask for. */
export function hasPages(
  { page = 0, limit = DEFAULT_LIMIT }: Workload,
  size: number,
  count: number,
): boolean {
  return page === 0 || (page + 1) * limit + count < size;
}

function requestOf(
  workload: Workload,
  raw: RawParameters,
  { world, cursors }: DrawnDatabase,
  index: number,
  dice: () => number,
): SearchRequest {
  const { limit = DEFAULT_LIMIT, view } = workload;
  if (workload.path === 'message') {
    const { messageId } = world.envelope(Math.floor(dice() * world.size));
    return { path: `/v2/messages/${messageId}`, search: parseSearch([['messageId', messageId]]) };
  }
  const shape: RawParameters = [
    ['limit', String(limit)],
    ...(view === undefined ? [] : [['view', view] as const]),
  ];
  const { filters } = parseSearch(raw);
  const after = afterOf(workload, world, limit, index, dice);
  const parameters: RawParameters =
    after === null
      ? [...raw, ...shape]
      : [['cursor', cursors.encode({ filters, view: view ?? 'full', after })], ...shape];
  const rows = workload.rows ?? (Object.keys(workload.filters ?? {}).length === 0 ? limit : undefined);
  return {
    path: `/v2/messages?${new URLSearchParams(parameters.map(([name, value]) => [name, value] as [string, string]))}`,
    search: parseSearch(parameters, cursors),
    ...(rows !== undefined && { rows }),
  };
}

function afterOf(workload: Workload, world: World, limit: number, index: number, dice: () => number) {
  if (workload.start === 'anywhere') {
    // Not among the oldest, where a page would be short.
    const n = Math.floor(world.size * (0.3 + 0.7 * dice()));
    const { sentAtMs, messageId } = world.envelope(n);
    return { sentAt: sentAtMs, messageId: messageId.slice(2) };
  }
  if (workload.page === undefined) return null;
  // Neighbours of that page, each once: the walk goes from the newest to the older.
  const n = world.size - 1 - (workload.page - 1) * limit - index;
  const { sentAtMs, messageId } = world.envelope(n);
  return { sentAt: sentAtMs, messageId: messageId.slice(2) };
}

export interface Combination {
  readonly name: string;
  readonly cast: Cast | 'beyond';
  readonly raw: RawParameters;
}

/** All combinations of the filters of the specification, as each cast gives them, and some beyond. */
export function drawCombinations({ filters, casts, beyond }: Combinations, world: World): Combination[] {
  const all: Combination[] = [];
  for (const cast of casts) {
    const values = valuesOf(cast, world);
    for (let set = 0; set < 2 ** filters.length; set++) {
      const names = filters.filter((_, bit) => set & (1 << bit));
      all.push({
        name: names.join(' + ') || 'nothing',
        cast,
        raw: names.map((name) => [name, values[name] ?? ''] as const),
      });
    }
  }
  const dice = createDice(64);
  for (const kinds of beyond) {
    const name = Object.entries(kinds)
      .map(([filter, kind]) => `${filter} ${kind}`)
      .join(' + ');
    all.push({ name, cast: 'beyond', raw: draw(kinds, world, dice) });
  }
  return all;
}

function valuesOf(cast: Cast, world: World): Readonly<Record<string, string>> {
  if (cast !== 'together') return world.casts[cast];
  // A message that all six filters find, ready for manual execution, in the middle of the time span.
  for (let n = Math.floor(world.size / 3); n < world.size; n++) {
    const { isReady, sender, receiver, sendTransaction, lane: number } = world.envelope(n);
    const lane = lanes[number];
    if (!isReady || !sender.startsWith('0x2') || !lane) continue;
    return {
      sender,
      receiver,
      sourceChainSelector: lane.source.chainSelector,
      destChainSelector: lane.dest.chainSelector,
      readyForManualExecOnly: 'true',
      sourceTransactionHash: sendTransaction,
    };
  }
  throw new Error('No message is ready');
}

function hashOf(text: string): number {
  let hash = 7;
  for (const character of text) hash = (Math.imul(hash, 31) + (character.codePointAt(0) ?? 0)) | 0;
  return hash;
}
