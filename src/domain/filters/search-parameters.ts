/** Parses the parameters of requests: of `GET /messages`, of paths that take its filters, and of paths with their own. */

import { nearestName } from '../../base/nearest-name.ts';
import { ApiError, type ParameterProblem } from '../errors.ts';
import type { CursorCodec } from './cursor.ts';
import { filterNames, filterTable } from './filter-table.ts';
import { InvalidValueError, type ParameterParser, shortened, wholeNumber } from './parameter-values.ts';
import { DEFAULT_LIMIT, type Filters, isTimeRange, MAX_LIMIT, type SearchQuery, type View } from './query.ts';

const MAX_PROBLEMS = 20;

export const searchParameterNames = [...filterNames, 'cursor', 'limit', 'view'] as const;

/** Parameters as they came, in order and with repetitions. */
export type RawParameters = readonly (readonly [name: string, value: string])[];

/** For searches that have no further pages. */
const noCursors: Pick<CursorCodec, 'decode'> = {
  decode: () => {
    const problem = 'is not allowed here';
    throw new ApiError('INVALID_CURSOR', `cursor ${problem}`, [{ parameter: 'cursor', problem }]);
  },
};

/**
 * Parses the parameters of a search. Throws an ApiError that names every invalid parameter and what it takes. `cursors` is
 * the codec of the store; without it cursors are rejected.
 */
export function parseSearch(raw: RawParameters, cursors = noCursors): SearchQuery {
  if (raw.some(([name]) => name === 'cursor')) rejectFiltersBesideCursor(raw);
  const { filters, cursor: text, limit = DEFAULT_LIMIT, view } = parseFilters(raw, pageParsers);
  if (text === undefined) return { filters, view: view ?? 'full', limit, after: null };
  const cursor = cursors.decode(text);
  return { filters: cursor.filters, view: view ?? cursor.view, limit, after: cursor.after };
}

/** Parses the filters and the other parameters of a path. Throws an ApiError that names every invalid one. */
export function parseFilters<T extends object>(raw: RawParameters, parsers: Parsers<T>) {
  const problems: ParameterProblem[] = [];
  const values = singleValues(raw, [filterParsers, parsers], problems);
  const filters: Filters = parseEach(values, filterParsers, problems);
  if (!isTimeRange(filters)) {
    const problem = 'must be later than sentAfter, by a millisecond at least';
    problems.push({ parameter: 'sentBefore', problem });
  }
  const others = parseEach(values, parsers, problems);
  throwProblems(problems);
  // Every search comes through here, and a spread takes 2 µs longer.
  return Object.assign(others, { filters });
}

type Parsers<T> = { readonly [name in keyof T]-?: ParameterParser<T[name] | undefined> };

const filterParsers = Object.fromEntries(
  filterNames.map((name) => [name, filterTable[name].kind.parse]),
) as Parsers<Filters>;

export function view(text: string): View {
  if (text === 'full' || text === 'summary') return text;
  throw new InvalidValueError('takes full or summary');
}

const pageParsers: Parsers<{ cursor: string; limit: number; view: View }> = {
  cursor: (text) => text,
  limit: (text) => wholeNumber(1, MAX_LIMIT)(text.length > 6 ? '' : text),
  view,
};

/** Parses the values that were sent, in their order. */
function parseEach<T extends object>(
  values: ReadonlyMap<string, string>,
  parsers: Parsers<T>,
  problems: ParameterProblem[],
  missing: readonly string[] = [],
): Partial<T> {
  const parsed: Partial<T> = {};
  for (const name of missing) problems.push({ parameter: name, problem: 'is required' });
  for (const [name, text] of values) {
    if (!Object.hasOwn(parsers, name)) continue;
    try {
      const value = parsers[name as keyof T](text);
      if (value !== undefined) parsed[name as keyof T] = value;
    } catch (error) {
      if (!(error instanceof InvalidValueError)) throw error;
      problems.push({ parameter: name, problem: error.message });
    }
  }
  return parsed;
}

export function rejectParameters(raw: RawParameters): void {
  parseParameters(raw, {});
}

/** For a path with its own parameters: parses those that were sent. The error names every invalid one. */
export function parseParameters<T extends object>(
  raw: RawParameters,
  parsers: { readonly [name in keyof T]-?: ParameterParser<T[name]> },
  required: readonly (keyof T & string)[] = [],
): Partial<T> {
  const problems: ParameterProblem[] = [];
  const values = singleValues(raw, [parsers], problems);
  const missing = required.filter((name) => !raw.some(([given]) => given === name));
  const parsed = parseEach<T>(values, parsers, problems, missing);
  throwProblems(problems);
  return parsed;
}

/** A rule of the API: a cursor contains its filters, so any filter beside it is an error. */
function rejectFiltersBesideCursor(raw: RawParameters): void {
  const filters = [...new Set(raw.map(([name]) => name))].filter((name) => Object.hasOwn(filterTable, name));
  if (filters.length === 0) return;
  throw new ApiError(
    'INVALID_PARAMETER_COMBINATION',
    `cursor cannot be combined with ${filters.join(', ')}: the cursor already contains the filters of its search. ` +
      'Send the cursor without filters (limit and view are allowed), or the filters without a cursor.',
    filters.map((parameter) => ({ parameter, problem: 'cannot be combined with cursor' })),
  );
}

/** @param known has the parameters of the path as members */
function singleValues(raw: RawParameters, known: readonly object[], problems: ParameterProblem[]) {
  const values = new Map<string, string>();
  for (const [name, value] of raw) {
    if (!known.some((parsers) => Object.hasOwn(parsers, name))) {
      // The search for a similar name takes time, and a URL has room for thousands of parameters.
      if (problems.length < MAX_PROBLEMS)
        problems.push({
          parameter: shortened(name),
          problem: unknownProblem(name, known.flatMap(Object.keys)),
        });
    } else if (values.has(name)) problems.push({ parameter: name, problem: 'is given more than once' });
    else values.set(name, value);
  }
  for (const [name, value] of values) {
    if (value !== '') continue;
    problems.push({ parameter: name, problem: 'is empty; leave it out or give it a value' });
    values.delete(name);
  }
  return values;
}

function unknownProblem(name: string, known: readonly string[]): string {
  if (known.length === 0) return 'is unknown; this path takes no parameters';
  const nearest = nearestName(name, known);
  return nearest
    ? `is not a parameter of this path; did you mean ${nearest}?`
    : `is not a parameter of this path; it takes ${known.join(', ')}`;
}

function throwProblems(problems: readonly ParameterProblem[]): void {
  if (problems.length === 0) return;
  const shown = problems.slice(0, MAX_PROBLEMS);
  throw new ApiError(
    'INVALID_PARAMETERS',
    shown.map(({ parameter, problem }) => `${parameter} ${problem}`).join('; '),
    shown,
  );
}
