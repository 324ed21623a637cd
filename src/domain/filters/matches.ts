/** Evaluates filters and the order of a search on single messages: the reference for the SQL, and the filter of live push. */
import type { Message } from '../message.ts';
import { type FilterName, filterTable } from './filter-table.ts';
import type { Filters, PageKey } from './query.ts';

export function matches(filters: Filters, message: Message): boolean {
  return (Object.keys(filters) as FilterName[]).every((name) => {
    const isMatch = filterTable[name].matches as (value: unknown, message: Message) => boolean;
    return filters[name] === undefined || isMatch(filters[name], message);
  });
}

/** Newest first; for the same time, the greater message id first. */
export function compareNewestFirst(a: Message, b: Message): number {
  return (
    Date.parse(b.sendTimestamp) - Date.parse(a.sendTimestamp) ||
    (a.messageId < b.messageId ? 1 : a.messageId > b.messageId ? -1 : 0)
  );
}

export function pageKey(message: Message): PageKey {
  return { sentAt: Date.parse(message.sendTimestamp), messageId: message.messageId.slice(2) };
}
