/** A page of the source's list, whichever server it is and however it words its refusals. */
import { OperatorError } from '../../base/operator-error.ts';
import type { RawParameters } from '../../domain/search-parameters.ts';
import { AnswerTooLong } from '../bounded-exchange.ts';
import { type Source, type SourceAnswer, SourceFailure } from './source.ts';

export type SourcePage = {
  readonly bytes: number;
  /** Null where the answer does not tell. */
  readonly isSimulated: boolean | null;
} & (
  | { readonly kind: 'page'; readonly items: readonly unknown[]; readonly cursor: string | null }
  /** The cursor is no longer taken. */
  | { readonly kind: 'expired' }
  /** The search itself is not taken. */
  | { readonly kind: 'refused'; readonly problem: string }
);

const PAGE_SIZES = [500, 100, 20, 5, 1];
const MAX_CURSOR_LENGTH = 100_000;

/** The page behind a cursor, or the first page of a search; asks for fewer at once where it has to. */
export async function readPage(
  source: Source,
  cursor: string | null,
  parameters: RawParameters,
): Promise<SourcePage> {
  let problem = '';
  for (const size of PAGE_SIZES) {
    const query = new URLSearchParams({ limit: String(size) });
    if (cursor !== null) query.set('cursor', cursor);
    // `set`: where the walk goes on by time, its sentBefore stands for a wider one of the filters.
    else for (const [name, value] of parameters) query.set(name, value);
    try {
      const answer = await source.get('/v2/messages', { query });
      if (answer.status === 400 && speaksOfLimit(answer)) {
        problem = problemOf(answer);
        continue;
      }
      return pageOf(answer, cursor, parameters);
    } catch (error) {
      if (!(error instanceof AnswerTooLong)) throw error;
      problem = error.message;
    }
  }
  throw new SourceFailure(`${source.name} serves no page that can be read: ${problem}`);
}

function pageOf(answer: SourceAnswer, cursor: string | null, parameters: RawParameters): SourcePage {
  const { status, bytes } = answer;
  if (status === 200) return { ...contentOf(answer, cursor), bytes, isSimulated: answer.isSimulated };
  const nothingKnown = { bytes, isSimulated: null };
  if (status === 401 || status === 403) {
    throw new OperatorError(
      `The source answers ${status}: ${problemOf(answer)}.`,
      'Give credentials in the URL, as in https://user:password@host, or ask whoever runs it.',
    );
  }
  if (cursor !== null) return { ...nothingKnown, kind: 'expired' };
  // The hosted service answers so when nothing matches.
  if (status === 404 && parameters.length > 0)
    return { ...nothingKnown, kind: 'page', items: [], cursor: null };
  return { ...nothingKnown, kind: 'refused', problem: `it answers ${status}, ${problemOf(answer)}` };
}

function contentOf({ body }: SourceAnswer, asked: string | null) {
  const { data, pagination } = (body ?? {}) as { data?: unknown; pagination?: { cursor?: unknown } | null };
  const cursor = pagination?.cursor;
  if (!Array.isArray(data)) {
    throw new OperatorError(
      'The source answers, but not with a list of messages.',
      'Check the URL: it is the part in front of /v2.',
    );
  }
  const next = typeof cursor === 'string' && cursor !== '' ? cursor : null;
  if (next !== null && (next === asked || next.length > MAX_CURSOR_LENGTH))
    throw new SourceFailure('The source gives a cursor that leads nowhere');
  return { kind: 'page' as const, items: data as readonly unknown[], cursor: next };
}

function speaksOfLimit({ body }: SourceAnswer): boolean {
  const { details, message } = (body ?? {}) as { details?: unknown; message?: unknown };
  if (Array.isArray(details) && details.length > 0)
    return details.every((detail) => (detail as { parameter?: unknown } | null)?.parameter === 'limit');
  return typeof message === 'string' && /\blimit\b/i.test(message) && !/cursor/i.test(message);
}

function problemOf({ body, status }: SourceAnswer): string {
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown };
  const words = [error, message].filter((word) => typeof word === 'string').join(': ');
  return words === '' ? `status ${status}` : JSON.stringify(words.slice(0, 300));
}
