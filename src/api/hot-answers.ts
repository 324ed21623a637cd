/**
 * Response cache, valid for one version of the store.
 *
 * Every write raises the version of the store before it is acknowledged. A request for a cached answer waits for a read
 * of the version that began after the request came: an answer made at that version, or later, is what the database
 * would say now. Concurrent requests share one read of the version, and one making of the answer.
 *
 * Only what is asked for a second time is cached and costs that read: a stream of different questions passes by.
 *
 * The capacity is of memory, not of bodies: keys, headers, compressed copies and what the objects around them take are
 * counted too.
 */
import type { Coding } from './compression.ts';
import type { RouteAnswer } from './route.ts';

export interface HotAnswers {
  /** The answer to a question, kept or made now. */
  answer(question: string, make: () => Promise<HotAnswer>): Promise<HotAnswer>;
  /** Bytes of memory that all cached answers and remembered questions take, by an estimate on the safe side. */
  readonly bytes: number;
}

/** An answer that can be sent many times. */
export type HotAnswer = RouteAnswer & { readonly body: Buffer; readonly validator: string };

export interface HotAnswersOptions {
  /** What the store is at now, asked of the database after the call; undefined where that cannot be told. */
  readonly version: () => Promise<string | undefined>;
  /** Bytes of memory for all that is cached. */
  readonly capacity?: number;
}

const DEFAULT_CAPACITY = 32 * 1024 * 1024;
const MAX_ENTRIES = 8_192;
/** Questions that were asked lately: two sets, each of at most so many and so many bytes. */
const REMEMBERED_QUESTIONS = 4_096;
const REMEMBERED_BYTES = 1024 * 1024;
/** A longer question is nobody's favourite, and remembering it is not free. */
const MAX_QUESTION_LENGTH = 1_000;
/** What an entry takes beside its key, its headers and its bodies: measured at about 1,200 bytes. */
const ENTRY_BYTES = 1_500;
/** What a buffer takes beside its bytes. */
const BUFFER_BYTES = 300;
/** A place in a set or a map, and the object of a string. */
const KEY_BYTES = 100;

interface Kept {
  readonly answer: Promise<HotAnswer>;
  bytes: number;
}

export function createHotAnswers({ version, capacity = DEFAULT_CAPACITY }: HotAnswersOptions): HotAnswers {
  let askedLately = new Set<string>();
  let askedBefore = new Set<string>();
  let latelyBytes = 0;
  let beforeBytes = 0;
  /** In the order of their latest use, the longest ago first. */
  const kept = new Map<string, Kept>();
  /** Of all that is kept: what was made at another one will never be asked for again. */
  let keptVersion: string | undefined;
  let keptBytes = 0;

  const isFirst = (question: string): boolean => {
    if (askedLately.has(question)) return false;
    const isKnown = askedBefore.has(question);
    if (askedLately.size >= REMEMBERED_QUESTIONS || latelyBytes >= REMEMBERED_BYTES) {
      // All at once: to forget the oldest one by one is to look for it, behind those that are gone.
      askedBefore = askedLately;
      beforeBytes = latelyBytes;
      askedLately = new Set();
      latelyBytes = 0;
    }
    askedLately.add(question);
    latelyBytes += keySize(question);
    return !isKnown;
  };

  const moveTo = (current: string) => {
    if (current === keptVersion) return;
    keptVersion = current;
    kept.clear();
    keptBytes = 0;
  };

  /** Counts what an entry has come to take, and makes room for it; an entry that is gone does not count. */
  const grow = (question: string, entry: Kept, bytes: number) => {
    if (kept.get(question) !== entry) return;
    entry.bytes += bytes;
    keptBytes += bytes;
    for (const [oldest, { bytes: freed }] of kept) {
      if (keptBytes <= capacity && kept.size <= MAX_ENTRIES) break;
      keptBytes -= freed;
      kept.delete(oldest);
    }
  };

  const keep = (question: string, make: () => Promise<HotAnswer>): Promise<HotAnswer> => {
    const compressed: Partial<Record<Coding, Buffer>> = {};
    const made = make();
    const answer = made.then((whole) => ({
      ...whole,
      compressed,
      onCompressed(coding: Coding, coded: Buffer) {
        if (compressed[coding]) return;
        compressed[coding] = ownCopy(coded);
        grow(question, entry, coded.length + BUFFER_BYTES);
      },
    }));
    const entry: Kept = { answer, bytes: 0 };
    kept.set(question, entry);
    grow(question, entry, ENTRY_BYTES + keySize(question));
    answer.then(
      ({ body, headers }) => grow(question, entry, body.length + BUFFER_BYTES + headersSize(headers)),
      () => {
        if (kept.get(question) !== entry) return;
        keptBytes -= entry.bytes;
        kept.delete(question);
      },
    );
    return answer;
  };

  return {
    get bytes() {
      return keptBytes + latelyBytes + beforeBytes;
    },

    async answer(question, make) {
      if (question.length > MAX_QUESTION_LENGTH || isFirst(question)) return make();
      // While nobody tells, nothing that is kept can be trusted.
      const current = await version();
      if (current === undefined) return make();
      moveTo(current);
      const found = kept.get(question);
      if (!found) return keep(question, make);
      kept.delete(question);
      kept.set(question, found);
      return found.answer;
    },
  };
}

/** URLs are of one byte a character, wherever they come from. */
function keySize(question: string): number {
  return question.length + KEY_BYTES;
}

function headersSize(headers: RouteAnswer['headers'] = {}): number {
  return Object.entries(headers).reduce((bytes, [, value]) => bytes + value.length + KEY_BYTES, 0);
}

/** What a compressor returns may be a small part of a large buffer, all of which it would keep alive. */
function ownCopy(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
