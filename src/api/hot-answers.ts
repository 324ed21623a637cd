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
/** Questions that were asked once lately. */
const REMEMBERED_QUESTIONS = 4_096;
/** A longer question is nobody's favourite, and remembering it is not free. */
const MAX_QUESTION_LENGTH = 1_000;

interface Kept {
  readonly version: string;
  readonly answer: Promise<HotAnswer>;
  bytes: number;
}

export function createHotAnswers({ version, capacity = DEFAULT_CAPACITY }: HotAnswersOptions): HotAnswers {
  /** Both in the order of their latest use, the longest ago first. */
  const askedOnce = new Map<string, true>();
  const kept = new Map<string, Kept>();
  let bytes = 0;

  const drop = (question: string) => {
    bytes -= kept.get(question)?.bytes ?? 0;
    kept.delete(question);
  };

  const keep = (question: string, entry: Kept) => {
    drop(question);
    kept.set(question, entry);
    entry.answer.then(
      ({ body }) => {
        if (kept.get(question) !== entry) return;
        entry.bytes = body.length;
        bytes += body.length;
        for (const oldest of kept.keys()) {
          if (bytes <= capacity) break;
          drop(oldest);
        }
      },
      () => {
        if (kept.get(question) === entry) drop(question);
      },
    );
  };

  return {
    async answer(question, make) {
      if (question.length > MAX_QUESTION_LENGTH) return make();
      if (!kept.has(question) && !askedOnce.has(question)) {
        askedOnce.set(question, true);
        if (askedOnce.size > REMEMBERED_QUESTIONS) askedOnce.delete(askedOnce.keys().next().value ?? '');
        return make();
      }
      // While nobody tells, nothing that is kept can be trusted.
      const current = await version();
      if (current === undefined) return make();
      const found = kept.get(question);
      if (found?.version === current) {
        kept.delete(question);
        kept.set(question, found);
        return found.answer;
      }
      const answer = make();
      askedOnce.delete(question);
      keep(question, { version: current, answer, bytes: 0 });
      return answer;
    },
  };
}
