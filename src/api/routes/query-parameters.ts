/** The query parameters of a search, as the OpenAPI document declares them. */
import { DEFAULT_LIMIT, MAX_LIMIT } from '../../domain/filters/query.ts';
import { type FilterName, filterNames, filterParameters } from '../../domain/filters/search-parameters.ts';
import type { RouteParameter } from '../server/route.ts';

const text = { type: 'string' };
const dateTime = { type: 'string', format: 'date-time' };
const chainSelector = { type: 'string', pattern: '^[0-9]+$' };

/** The schema of each filter. The type makes the table complete: a new filter needs its schema. */
const filterSchemas: Readonly<Record<FilterName, Readonly<Record<string, unknown>>>> = {
  sender: text,
  receiver: text,
  sourceChainSelector: chainSelector,
  destChainSelector: chainSelector,
  chainSelector,
  readyForManualExecOnly: { type: 'boolean' },
  sourceTransactionHash: text,
  status: text,
  sentAfter: dateTime,
  sentBefore: dateTime,
  address: text,
  sourceTokenAddress: text,
  destTransactionHash: text,
  messageId: text,
  q: text,
};

/** The filters, with the descriptions of the domain. */
export const filterQueryParameters: readonly RouteParameter[] = filterNames.map((name) => ({
  name,
  description: filterParameters[name].description,
  schema: filterSchemas[name],
  example: filterSchemas[name].type === 'boolean' ? true : filterParameters[name].example,
}));

/** The parameters of the search. */
export const searchQueryParameters: readonly RouteParameter[] = [
  ...filterQueryParameters,
  {
    name: 'cursor',
    description:
      '`pagination.cursor` of the previous page. It contains the filters and cannot be combined with others. ' +
      'It is signed, and valid on every server with the same database.',
    schema: { type: 'string' },
  },
  {
    name: 'limit',
    description: 'Page size; allowed with filters and with a cursor.',
    schema: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
  },
  {
    name: 'view',
    description: '`full` returns whole records, `summary` their nine leading fields. A cursor keeps it.',
    schema: { type: 'string', enum: ['full', 'summary'], default: 'full' },
  },
];
