/** The query parameters of a search, as the OpenAPI document declares them. */
import { DEFAULT_LIMIT, MAX_LIMIT } from '../domain/query.ts';
import { type FilterName, filterNames, filterParameters } from '../domain/search-parameters.ts';
import type { RouteParameter } from './route.ts';

/** The filters, in the words of the domain. */
export const filterQueryParameters: readonly RouteParameter[] = filterNames.map((name) => ({
  name,
  description: filterParameters[name].description,
  schema: filterSchema(name),
  example: name === 'readyForManualExecOnly' ? true : filterParameters[name].example,
}));

/** The parameters of the search. */
export const searchQueryParameters: readonly RouteParameter[] = [
  ...filterQueryParameters,
  {
    name: 'cursor',
    description:
      '`pagination.cursor` of the page before. It carries the filters: sent together with any filter it is refused. ' +
      'It is signed, and valid on every server with the same database.',
    schema: { type: 'string' },
  },
  {
    name: 'limit',
    description: 'Page size; goes with filters, with a cursor, or alone.',
    schema: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
  },
  {
    name: 'view',
    description: '`full` returns whole records, `summary` their nine leading fields. A cursor remembers it.',
    schema: { type: 'string', enum: ['full', 'summary'], default: 'full' },
  },
];

function filterSchema(name: FilterName): Record<string, unknown> {
  switch (name) {
    case 'readyForManualExecOnly':
      return { type: 'boolean' };
    case 'sentAfter':
    case 'sentBefore':
      return { type: 'string', format: 'date-time' };
    case 'sourceChainSelector':
    case 'destChainSelector':
      return { type: 'string', pattern: '^[0-9]+$' };
    default:
      return { type: 'string' };
  }
}
