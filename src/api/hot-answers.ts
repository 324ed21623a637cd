/**
 * Answers that are asked for again and again, kept while nothing changes.
 *
 * Every write raises the version of the store before it is acknowledged. Whoever asks for a kept answer waits for a look
 * at the version that began after the question came: an answer made at that version, or later, is what the database
 * would say now. Many who ask at once share one look, and one making of the answer.
 *
 * Only what is asked for a second time costs that look: a stream of different questions passes by.
 */
import type { RouteAnswer } from './route.ts';

export interface HotAnswers {
  /** The answer to a question, kept or made now. */
  answer(question: string, make: () => Promise<HotAnswer>): Promise<HotAnswer>;
}

/** An answer that can be sent many times. */
export type HotAnswer = RouteAnswer & { readonly body: Buffer; readonly validator: string };

export interface HotAnswersOptions {
  /** What the store is at now, asked of the database after the call; undefined where that cannot be told. */
  readonly version: () => Promise<string | undefined>;
  /** Bytes of all bodies that are kept. */
  readonly capacity?: number;
}

const DEFAULT_CAPACITY = 32 * 1024 * 1024;
/** Questions that were asked lately: so many at least, and twice as many at most. */
const REMEMBERED_QUESTIONS = 4_096;
/** A longer question is nobody's favourite, and remembering it is not free. */
const MAX_QUESTION_LENGTH = 1_000;

interface Kept {
  readonly answer: Promise<HotAnswer>;
  bytes: number;
}

export function createHotAnswers({ version, capacity = DEFAULT_CAPACITY }: HotAnswersOptions): HotAnswers {
  let askedLately = new Set<string>();
  let askedBefore = new Set<string>();
  /** In the order of their latest use, the longest ago first. */
  const kept = new Map<string, Kept>();
  /** Of all that is kept: what was made at another one will never be asked for again. */
  let keptVersion: string | undefined;
  let bytes = 0;

  const isFirst = (question: string): boolean => {
    if (askedLately.has(question)) return false;
    const isKnown = askedBefore.has(question);
    if (askedLately.size >= REMEMBERED_QUESTIONS) {
      // All at once: to forget the oldest one by one is to look for it, behind those that are gone.
      askedBefore = askedLately;
      askedLately = new Set();
    }
    askedLately.add(question);
    return !isKnown;
  };

  const moveTo = (current: string) => {
    if (current === keptVersion) return;
    keptVersion = current;
    kept.clear();
    bytes = 0;
  };

  const keep = (question: string, answer: Promise<HotAnswer>): Promise<HotAnswer> => {
    const entry: Kept = { answer, bytes: 0 };
    kept.set(question, entry);
    answer.then(
      ({ body }) => {
        if (kept.get(question) !== entry) return;
        entry.bytes = body.length;
        bytes += body.length;
        for (const [oldest, { bytes: freed }] of kept) {
          if (bytes <= capacity) break;
          bytes -= freed;
          kept.delete(oldest);
        }
      },
      () => {
        if (kept.get(question) === entry) kept.delete(question);
      },
    );
    return answer;
  };

  return {
    async answer(question, make) {
      if (question.length > MAX_QUESTION_LENGTH || isFirst(question)) return make();
      // While nobody tells, nothing that is kept can be trusted.
      const current = await version();
      if (current === undefined) return make();
      moveTo(current);
      const found = kept.get(question);
      if (!found) return keep(question, make());
      kept.delete(question);
      kept.set(question, found);
      return found.answer;
    },
  };
}
