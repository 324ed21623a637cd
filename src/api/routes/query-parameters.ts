/** The query parameters of a search, as the OpenAPI document declares them. */
import { filterNames, filterTable } from '../../domain/filters/filter-table.ts';
import { DEFAULT_LIMIT, MAX_LIMIT } from '../../domain/filters/query.ts';
import type { RouteParameter } from '../server/route.ts';

/** The filters, as the table of the domain describes them. */
export const filterQueryParameters: readonly RouteParameter[] = filterNames.map((name) => {
  const { kind, description, example } = filterTable[name];
  return { name, description, schema: kind.schema, example: kind.schema.type === 'boolean' ? true : example };
});

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
