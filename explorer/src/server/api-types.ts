// biome-ignore-all lint/style/noRestrictedImports: types only, so nothing of src/api is bundled; vite.config.ts checks it.
/**
 * The types of the API's responses, derived from its schemas: code that does not fit a changed response does not compile.
 *
 * The only file of the explorer that may import from src/api.
 */
import type { ChangeEvent } from '../../../src/api/routes/history-schema.ts';
import type { SearchResult } from '../../../src/api/routes/response-schema.ts';
import type { Message } from '../../../src/domain/message.ts';

export type { Diagnosis, ManualExecution } from '../../../src/api/execution/execution-schema.ts';
export type { FailureGroup, Failures, MessageReasons } from '../../../src/api/routes/failures-schema.ts';
export type {
  Attempt,
  Attempts,
  History as MessageHistory,
  Reason as FailureReason,
  Stage,
} from '../../../src/api/routes/history-schema.ts';
export type {
  Completeness,
  Delivery,
  Lane,
  LaneList,
  Stats,
  StatusCounts,
} from '../../../src/api/routes/lanes-schema.ts';
export type { Label, LabelList, Lookup, LookupMatch } from '../../../src/api/routes/lookup-schema.ts';
export type { Indexing, Network, NetworkList } from '../../../src/api/routes/networks-schema.ts';
export type { Readiness } from '../../../src/api/routes/operations-schema.ts';
export type { ErrorBody, SearchResult } from '../../../src/api/routes/response-schema.ts';
export type { Token, TokenList } from '../../../src/api/routes/tokens-schema.ts';

/** A page of full records: the response to a search without `view=summary`. */
export interface MessagePage extends Omit<SearchResult, 'data'> {
  readonly data: readonly Message[];
}

/** A change of a message, from the stream or found by a search after a gap. */
export interface LiveChange extends Pick<ChangeEvent, 'change' | 'status'> {
  readonly message: Message;
}
