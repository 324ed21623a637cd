/** A search as a value: filters, view, page size, and the key after which the page begins. */
import type { BytesHex } from '../addresses.ts';
import type { Status } from '../lifecycle.ts';

export const DEFAULT_LIMIT = 20;
export const MAX_LIMIT = 1000;
export const MAX_MESSAGE_IDS = 100;
export const MAX_Q_TERMS = 10;
/** The most changes, and the most attempts, in the history of one message. */
export const MAX_HISTORY_ROWS = 1_000;
/** The most attempts with their return data: each can have some kilobytes. */
export const MAX_ATTEMPTS = 100;

/** One term of `q`: every interpretation of the text. */
export interface QTerm {
  readonly addresses: readonly BytesHex[];
  readonly hashes: readonly BytesHex[];
  readonly messageId: BytesHex | null;
}

/**
 * The filters of a search. An absent filter does not restrict; a message must match all others. Addresses and hashes are
 * lists because a text without a network is, rarely, ambiguous.
 */
export interface Filters {
  readonly sender?: readonly BytesHex[];
  readonly receiver?: readonly BytesHex[];
  readonly sourceChainSelector?: string;
  readonly destChainSelector?: string;
  /** Source or destination. */
  readonly chainSelector?: string;
  readonly readyForManualExecOnly?: true;
  readonly sourceTransactionHash?: readonly BytesHex[];
  readonly status?: readonly Status[];
  /** Milliseconds since 1970, included. */
  readonly sentAfter?: number;
  /** Milliseconds since 1970, excluded. */
  readonly sentBefore?: number;
  readonly address?: readonly BytesHex[];
  readonly sourceTokenAddress?: readonly BytesHex[];
  readonly destTransactionHash?: readonly BytesHex[];
  readonly messageId?: readonly BytesHex[];
  readonly q?: readonly QTerm[];
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
