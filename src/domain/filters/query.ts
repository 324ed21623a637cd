/** A search as a value: filters, view, page size, and the key after which the page begins. */
import type { BytesHex } from '../addresses.ts';
import type { FilterName, FilterValue } from './filter-table.ts';

export const DEFAULT_LIMIT = 20;
export const MAX_LIMIT = 1000;
/** The most changes, and the most attempts, in the history of one message. */
export const MAX_HISTORY_ROWS = 1_000;
/** The most attempts with their return data: each can have some kilobytes. */
export const MAX_ATTEMPTS = 100;

/** The filters of a search. An absent filter does not restrict; a message must match all others. */
export type Filters = { readonly [Name in FilterName]?: FilterValue<Name> };

/** Whether any message can be sent within the range; sentAfter is included, sentBefore is not. */
export function isTimeRange({ sentAfter, sentBefore }: Filters): boolean {
  return sentAfter === undefined || sentBefore === undefined || sentAfter < sentBefore;
}

/** The full record, or the nine fields of the summary. */
export type View = 'full' | 'summary';

/** The sort key of the last message of a page: the next page starts exactly after it. */
export interface PageKey {
  /** Milliseconds since 1970. */
  readonly sentAt: number;
  readonly messageId: BytesHex;
}

export interface SearchQuery {
  readonly filters: Filters;
  readonly view: View;
  readonly limit: number;
  readonly after: PageKey | null;
}
