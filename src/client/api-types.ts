// biome-ignore-all lint/style/noRestrictedImports: types only, so nothing of src/api is loaded or bundled; vite.config.ts checks it.
/**
 * The types of the API's responses, derived from its schemas: code that does not fit a changed response does not compile.
 */
import type { Verified } from '../api/schemas/execution-inputs-schema.ts';
import type { ChangeEvent } from '../api/schemas/history-schema.ts';
import type { SearchResult } from '../api/schemas/messages-schema.ts';
import type { Message } from '../domain/message.ts';

export type { Attempt, Attempts, Reason as FailureReason } from '../api/schemas/attempts-schema.ts';
export type { Diagnosis } from '../api/schemas/diagnosis-schema.ts';
export type { FailureGroup, Failures, MessageReasons } from '../api/schemas/failures-schema.ts';
export type { History as MessageHistory, Stage } from '../api/schemas/history-schema.ts';
export type {
  Completeness,
  Delivery,
  Lane,
  LaneList,
  StatusCounts,
} from '../api/schemas/lanes-schema.ts';
export type { Label, LabelList, Lookup, LookupMatch } from '../api/schemas/lookup-schema.ts';
export type { ManualExecution } from '../api/schemas/manual-execution-schema.ts';
export type { SearchResult } from '../api/schemas/messages-schema.ts';
export type { ErrorBody } from '../api/schemas/named.ts';
export type { Indexing, Network, NetworkList } from '../api/schemas/networks-schema.ts';
export type { Readiness } from '../api/schemas/operations-schema.ts';
export type { Stats } from '../api/schemas/stats-schema.ts';
export type { Token, TokenList } from '../api/schemas/tokens-schema.ts';
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
