/**
 * The state of a search: the query parameters of the page's URL, with the names of the API's parameters.
 *
 * So a link to a search can be shared, and the API request for it has the same parameters.
 */
import type { FilterName } from '../../../src/domain/filters/filter-table.ts';

/** What filters are called, in the order of their chips. */
export const filterLabels: Readonly<Record<FilterName, string>> = {
  sender: 'Sender',
  receiver: 'Receiver',
  sourceChainSelector: 'Source',
  destChainSelector: 'Destination',
  readyForManualExecOnly: 'Needs action',
  sourceTransactionHash: 'Send transaction',
  status: 'Status',
  sentAfter: 'Sent after',
  sentBefore: 'Sent before',
  address: 'Account',
  sourceTokenAddress: 'Token',
  destTransactionHash: 'Execution',
  messageId: 'Message id',
  q: 'Anything',
  chainSelector: 'Network',
};
export const filterNames = Object.keys(filterLabels) as readonly FilterName[];

export type Filters = Partial<Record<FilterName, string>>;

export interface SearchView extends Filters {
  /** Where the page begins; undefined for the newest page. */
  cursor?: string;
  limit?: string;
}

export const PAGE_SIZES = ['25', '100', '500', '1000'] as const;
const DEFAULT_PAGE_SIZE = PAGE_SIZES[0];

const viewNames: readonly string[] = [...filterNames, 'cursor', 'limit'];

/** The parameters of a URL that belong to a search; all others are ignored. */
export function viewOf(parameters: Readonly<Record<string, unknown>>): SearchView {
  return Object.fromEntries(
    Object.entries(parameters).filter(
      ([name, value]) => viewNames.includes(name) && typeof value === 'string' && value.trim() !== '',
    ),
  );
}

export function filtersOf({ cursor: _cursor, limit: _limit, ...filters }: SearchView): Filters {
  return filters;
}

export function hasFilters(view: SearchView): boolean {
  return Object.keys(filtersOf(view)).length > 0;
}

/** Other filters drop the cursor: it belongs to the search that it came from. */
export function withFilters(
  { cursor: _cursor, ...view }: SearchView,
  changes: Readonly<Record<string, string | undefined>>,
): SearchView {
  return viewOf({ ...view, ...changes });
}

/** A cursor contains its filters, and the API rejects both together. */
export function apiParameters(view: SearchView): Record<string, string> {
  const limit = view.limit ?? DEFAULT_PAGE_SIZE;
  return view.cursor === undefined ? { ...filtersOf(view), limit } : { cursor: view.cursor, limit };
}

/** Parameters in the order of the URL, as text: a chain selector has more digits than a number keeps. */
export function parseParameters(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text));
}

export function writeParameters(parameters: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  // Commas and colons are allowed in a query, and a shared link should be readable.
  return text === '' ? '' : `?${text.replaceAll('%2C', ',').replaceAll('%3A', ':')}`;
}

/** How many days the statistics show, in the URL as `days`. */
export const dayWindows = { '7': '7 days', '30': '30 days', '90': '90 days' } as const;
export type DayWindow = keyof typeof dayWindows;

export function dayWindowOf({ days }: Readonly<Record<string, unknown>>): { days?: DayWindow } {
  const text = String(days);
  return Object.hasOwn(dayWindows, text) ? { days: text as DayWindow } : {};
}
