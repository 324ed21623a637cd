// biome-ignore-all lint/style/noRestrictedImports: types only, so nothing of src/api is loaded or bundled; vite.config.ts checks it.
/**
 * The types of the API's responses, derived from its schemas: code that does not fit a changed response does not compile.
 */
import type { Verified } from '../api/execution/execution-schema.ts';
import type { ChangeEvent } from '../api/routes/history-schema.ts';
import type { SearchResult } from '../api/routes/response-schema.ts';
import type { Message } from '../domain/message.ts';

export type { Diagnosis, ManualExecution } from '../api/execution/execution-schema.ts';
export type {
  Attempt,
  Attempts,
  FailureGroup,
  Failures,
  History as MessageHistory,
  MessageReasons,
  Reason as FailureReason,
  Stage,
} from '../api/routes/history-schema.ts';
export type { Label, LabelList, Lookup, LookupMatch, Token, TokenList } from '../api/routes/names-schema.ts';
export type {
  Completeness,
  Delivery,
  Indexing,
  Lane,
  LaneList,
  Network,
  NetworkList,
  Readiness,
  Stats,
  StatusCounts,
} from '../api/routes/networks-schema.ts';
export type { ErrorBody, SearchResult } from '../api/routes/response-schema.ts';
export type { Message } from '../domain/message.ts';

/** A page of full records: the response to a search without `view=summary`. */
export interface MessagePage extends Omit<SearchResult, 'data'> {
  readonly data: readonly Message[];
}

/** A change of a message, from the stream or found by a search after a gap. */
export interface LiveChange extends Pick<ChangeEvent, 'change' | 'status'> {
  readonly message: Message;
}

/** What a manual execution needs: the batch with its proof up to version 1.6, the verifications from 2.0 on. */
export type ExecutionInputs =
  | Verified
  | { readonly offramp: string; readonly messageBatch: readonly object[] };
