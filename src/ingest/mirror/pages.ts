/** Reads pages of the source's message list; tolerates servers with other limits and error formats. */
import { OperatorError } from '../../base/operator-error.ts';
import type { RawParameters } from '../../domain/search-parameters.ts';
import { ResponseTooLongError } from '../bounded-exchange.ts';
import { type Source, SourceError, type SourceResponse } from './source.ts';

export type SourcePage = {
  readonly bytes: number;
  /** Null where the response does not say. */
  readonly isSimulated: boolean | null;
} & (
  | { readonly kind: 'page'; readonly items: readonly unknown[]; readonly cursor: string | null }
  /** The cursor is no longer accepted. */
  | { readonly kind: 'expired' }
  /** The search itself is refused. */
  | { readonly kind: 'refused'; readonly problem: string }
);

const pageSizes = [500, 100, 20, 5, 1];
const MAX_CURSOR_LENGTH = 100_000;
const MAX_PROBLEM_LENGTH = 300;

/** Reads the page after a cursor, or the first page of a search. */
export type ReadPage = (cursor: string | null, parameters: RawParameters) => Promise<SourcePage>;

/** Retries with smaller pages where needed, and remembers the size that the source allows. */
export function createPageReader(source: Source): ReadPage {
  let allowedSizes = pageSizes;
  return async (cursor, parameters) => {
    let problem = '';
    let isTooLong = false;
    for (const size of allowedSizes) {
      const query = new URLSearchParams({ limit: String(size) });
      if (cursor !== null) query.set('cursor', cursor);
      // `set`: a walk that continues by time replaces the `sentBefore` of the filters, which is later.
      else for (const [name, value] of parameters) query.set(name, value);
      try {
        const response = await source.get('/v2/messages', { query });
        if (response.status === 400 && isAboutLimit(response)) {
          problem = problemOf(response);
          continue;
        }
        // After a page of too many bytes the next one may be of full size again.
        if (!isTooLong && response.status === 200) allowedSizes = allowedSizes.filter((one) => one <= size);
        return pageOf(response, cursor, parameters);
      } catch (error) {
        if (!(error instanceof ResponseTooLongError)) throw error;
        problem = error.message;
        isTooLong = true;
      }
    }
    throw new SourceError(`${source.name} serves no readable page: ${problem}`);
  };
}

function pageOf(response: SourceResponse, cursor: string | null, parameters: RawParameters): SourcePage {
  const { status, bytes } = response;
  if (status === 200) return { ...contentOf(response, cursor), bytes, isSimulated: response.isSimulated };
  const unknown = { bytes, isSimulated: null };
  if (status === 401 || status === 403) {
    throw new OperatorError(
      `The source answers ${status}: ${problemOf(response)}.`,
      'Give credentials in the URL, as in https://user:password@host, or ask its operator.',
    );
  }
  if (cursor !== null) return { ...unknown, kind: 'expired' };
  // The hosted service answers 404 when nothing matches.
  if (status === 404 && parameters.length > 0) return { ...unknown, kind: 'page', items: [], cursor: null };
  return { ...unknown, kind: 'refused', problem: `it answers ${status}, ${problemOf(response)}` };
}

function contentOf({ body }: SourceResponse, previous: string | null) {
  const { data, pagination } = (body ?? {}) as { data?: unknown; pagination?: { cursor?: unknown } | null };
  const cursor = pagination?.cursor;
  if (!Array.isArray(data)) {
    throw new OperatorError(
      'The source answers, but not with a list of messages.',
      'Check the URL: it is the part before /v2.',
    );
  }
  const next = typeof cursor === 'string' && cursor !== '' ? cursor : null;
  if (next !== null && (next === previous || next.length > MAX_CURSOR_LENGTH))
    throw new SourceError('The source returned an unusable cursor');
  return { kind: 'page' as const, items: data as readonly unknown[], cursor: next };
}

function isAboutLimit({ body }: SourceResponse): boolean {
  const { details, message } = (body ?? {}) as { details?: unknown; message?: unknown };
  if (Array.isArray(details) && details.length > 0)
    return details.every((detail) => (detail as { parameter?: unknown } | null)?.parameter === 'limit');
  return typeof message === 'string' && /\blimit\b/i.test(message) && !/cursor/i.test(message);
}

function problemOf({ body, status }: SourceResponse): string {
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown };
  const text = [error, message].filter((part) => typeof part === 'string').join(': ');
  return text === '' ? `status ${status}` : JSON.stringify(text.slice(0, MAX_PROBLEM_LENGTH));
}
