/** Reads pages of the source's message list; tolerates servers with other limits and error formats. */

import { ResponseTooLongError } from '../../base/bounded-exchange.ts';
import type { ApiResponse } from '../../client/client.ts';
import type { RawParameters } from '../../domain/filters/search-parameters.ts';
import { type Source, SourceError } from './source.ts';

export type SourcePage = {
  readonly bytes: number;
  /** Null where the response does not say. */
  readonly isSimulated: boolean | null;
} & (
  | {
      readonly kind: 'page';
      readonly items: readonly unknown[];
      readonly cursor: string | null;
      /** Why there is no cursor although this is not the last page; null where that is not so. */
      readonly problem: string | null;
    }
  /** The cursor is no longer accepted. */
  | { readonly kind: 'expired' }
  /** The search itself is rejected. */
  | { readonly kind: 'rejected'; readonly problem: string }
);

const pageSizes = [500, 100, 20, 5, 1];
const MAX_CURSOR_LENGTH = 100_000;
/** Some servers return more than was asked for. */
const MAX_ITEMS = 10_000;
/** Many messages may have been sent in one block, and a server that filters may return some empty pages. */
const MAX_PAGES_IN_PLACE = 100;
const MAX_PROBLEM_LENGTH = 300;

/** Reads the page after a cursor, or the first page of a search. */
export type ReadPage = (cursor: string | null, parameters: RawParameters) => Promise<SourcePage>;

/** Retries with smaller pages where needed, and remembers the size that the source allows. */
export function createPageReader(source: Source): ReadPage {
  let allowedSizes = pageSizes;
  return async (cursor, parameters) => {
    /** Undefined where the response is too long. */
    const request = async (size: number | undefined, more: RawParameters = []) => {
      const query = new URLSearchParams({ limit: String(size) });
      if (cursor !== null) query.set('cursor', cursor);
      // `set`: a walk that continues by time replaces the `sentBefore` of the filters, which is later.
      else for (const [name, value] of parameters) query.set(name, value);
      for (const [name, value] of more) query.set(name, value);
      try {
        return await source.get('/v2/messages', { query });
      } catch (error) {
        if (!(error instanceof ResponseTooLongError)) throw error;
        problem = error.message;
        isTooLong = true;
        return undefined;
      }
    };
    let problem = '';
    let isTooLong = false;
    for (const size of allowedSizes) {
      const response = await request(size);
      if (!response) continue;
      if (response.status === 400 && isAboutLimit(response)) {
        problem = problemOf(response);
        continue;
      }
      // After a page of too many bytes the next one may be of full size again.
      if (!isTooLong && response.status === 200) allowedSizes = allowedSizes.filter((one) => one <= size);
      return pageOf(response, cursor, parameters);
    }
    // One record is too long: its summary names it, and leads to the next page.
    const summaries = isTooLong ? await request(allowedSizes.at(-1), [['view', 'summary']]) : undefined;
    if (summaries?.status === 200) return pageOf(summaries, cursor, parameters);
    throw new SourceError(`${source.name} serves no readable page: ${problem}`);
  };
}

/** Statuses with which servers reject a cursor that they issued. */
const expiredStatuses: ReadonlySet<number> = new Set([400, 404, 410, 422]);

function pageOf(response: ApiResponse, cursor: string | null, parameters: RawParameters): SourcePage {
  const { status, bytes } = response;
  if (status === 200) return { ...contentOf(response, cursor), bytes, isSimulated: response.isSimulated };
  const unknown = { bytes, isSimulated: null };
  if (status === 401 || status === 403) {
    throw new SourceError(
      `The source answers ${status}: ${problemOf(response)}`,
      'Give credentials in the URL, as in https://user:password@host, or ask its operator.',
    );
  }
  if (cursor !== null && expiredStatuses.has(status)) return { ...unknown, kind: 'expired' };
  // The hosted service answers 404 when nothing matches.
  if (status === 404 && parameters.length > 0 && response.body instanceof Object)
    return { ...unknown, kind: 'page', items: [], cursor: null, problem: null };
  return { ...unknown, kind: 'rejected', problem: `it answers ${status}, ${problemOf(response)}` };
}

function contentOf({ body }: ApiResponse, previous: string | null) {
  const { data, pagination } = (body ?? {}) as {
    data?: unknown;
    pagination?: { cursor?: unknown; hasNextPage?: unknown } | null;
  };
  if (!Array.isArray(data)) {
    throw new SourceError(
      'The source answers, but not with a list of messages',
      'Check the URL: it is the part before /v2.',
    );
  }
  if (data.length > MAX_ITEMS) throw new SourceError(`The source returned a page of ${data.length} items`);
  const { cursor, hasNextPage } = pagination ?? {};
  const next = typeof cursor === 'string' && cursor !== '' ? cursor : null;
  const isUnusable =
    next === null
      ? hasNextPage === true
      : next === previous || next.length > MAX_CURSOR_LENGTH || next.includes('\0');
  return {
    kind: 'page' as const,
    items: data as readonly unknown[],
    cursor: isUnusable ? null : next,
    problem: isUnusable ? 'The source returned an unusable cursor' : null,
  };
}

/** Notices a walk that leads nowhere: a loop of cursors, the same page again, empty pages without end. */
export function createWalkWatch() {
  let reached = Number.POSITIVE_INFINITY;
  let pages = 0;
  return {
    /** Throws a SourceError after too many pages in a row that go no further into the past; `oldest` is null for an empty one. */
    add(oldest: number | null): void {
      pages = oldest !== null && oldest < reached ? 0 : pages + 1;
      reached = Math.min(reached, oldest ?? reached);
      if (pages < MAX_PAGES_IN_PLACE) return;
      throw new SourceError(
        `The source returned ${pages} pages in a row that go no further into the past: empty ones, or a loop of cursors`,
      );
    },
  };
}

function isAboutLimit({ body }: ApiResponse): boolean {
  const { details, message } = (body ?? {}) as { details?: unknown; message?: unknown };
  if (Array.isArray(details) && details.length > 0)
    return details.every((detail) => (detail as { parameter?: unknown } | null)?.parameter === 'limit');
  return typeof message === 'string' && /\blimit\b/i.test(message) && !/cursor/i.test(message);
}

function problemOf({ body, status }: ApiResponse): string {
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown };
  const text = [error, message].filter((part) => typeof part === 'string').join(': ');
  return text === '' ? `status ${status}` : JSON.stringify(text.slice(0, MAX_PROBLEM_LENGTH));
}
