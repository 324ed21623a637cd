/** Query parameters: as the OpenAPI document declares them, and how they are read. */
import { filterNames, filterTable } from '../../domain/filters/filter-table.ts';
import {
  type ParameterParser,
  selector,
  trueOrFalse,
  wholeNumber,
} from '../../domain/filters/parameter-values.ts';
import { DEFAULT_LIMIT, MAX_LIMIT } from '../../domain/filters/query.ts';
import { parseParameters, type RawParameters } from '../../domain/filters/search-parameters.ts';
import type { RouteParameter } from '../server/route.ts';

/** @param T what its values are read as */
interface Parameter<T> extends Omit<RouteParameter, 'name'> {
  readonly parse: ParameterParser<T>;
}

/** The parameters of a path, by name: `declared` for the document, `parse` for the handler. */
export function parametersOf<T extends object>(table: { readonly [name in keyof T]: Parameter<T[name]> }) {
  const entries = Object.entries(table) as [keyof T & string, Parameter<T[keyof T]>][];
  const parsers = Object.fromEntries(entries.map(([name, { parse }]) => [name, parse]));
  const required = entries.filter(([, { isRequired }]) => isRequired).map(([name]) => name);
  return {
    declared: entries.map(([name, { parse: _, ...parameter }]): RouteParameter => ({ name, ...parameter })),
    parse: (query: RawParameters) => parseParameters(query, parsers as Parsers<T>, required),
  };
}

type Parsers<T> = { readonly [name in keyof T]-?: ParameterParser<T[name]> };

/** @param standard what a request without it means */
export const integer = (description: string, minimum: number, maximum: number, standard?: number) => ({
  description,
  schema: { type: 'integer', minimum, maximum, ...(standard !== undefined && { default: standard }) },
  parse: wholeNumber(minimum, maximum),
});

/** False by default. */
export const flag = (description: string) => ({
  description,
  schema: { type: 'boolean', default: false },
  parse: trueOrFalse,
});

export const chainSelector = (description: string, example: string) => ({
  description,
  schema: { type: 'string', pattern: '^[0-9]+$' },
  example,
  parse: selector,
});

/** The filters, as the table of the domain describes them. */
export const filterQueryParameters: readonly RouteParameter[] = filterNames.map((name) => {
  const { kind, description, example } = filterTable[name];
  return { name, description, schema: kind.schema, example: kind.schema.type === 'boolean' ? true : example };
});

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
