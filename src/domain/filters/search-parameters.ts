/**
 * The parameters of `GET /messages`, each declared once.
 *
 * The parser, the flags of the command line, the OpenAPI document and the "did you mean" hint derive from
 * `filterParameters`.
 */

import { parseTimeUp } from '../../base/iso-time.ts';
import { nearestName } from '../../base/nearest-name.ts';
import { addressBytes, type BytesHex, transactionHashBytes } from '../addresses.ts';
import { ApiError, type ParameterProblem } from '../errors.ts';
import { type Status, statuses } from '../lifecycle.ts';
import type { CursorCodec } from './cursor.ts';
import { isMeaningful, isSelector, isTimeRange } from './filter-bounds.ts';
import {
  DEFAULT_LIMIT,
  type Filters,
  MAX_LIMIT,
  MAX_MESSAGE_IDS,
  MAX_Q_TERMS,
  type QTerm,
  type SearchQuery,
  type View,
} from './query.ts';

/** An error lists at most this many problems. */
const MAX_PROBLEMS = 20;
const MAX_QUOTED_LENGTH = 80;

/** An invalid value; the message says what the parameter takes. */
class InvalidValueError extends Error {}

/** Correct for both bounds: a whole millisecond is at or after a finer time exactly if it is at or after the next one. */
const ROUNDING = 'Messages have times of whole milliseconds; a finer time is rounded up to the next one.';

export interface FilterParameter<Name extends keyof Filters> {
  readonly description: string;
  readonly example: string;
  /** Parses the filter; throws an InvalidValueError that says what the parameter takes. */
  readonly parse: (text: string) => Pick<Filters, Name>;
}

export const filterParameters = {
  sender: {
    description: 'Sender on the source chain, in any notation of its family.',
    example: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    parse: (text) => ({ sender: address(text) }),
  },
  receiver: {
    description: 'Receiver on the destination chain, in any notation of its family.',
    example: '7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV',
    parse: (text) => ({ receiver: address(text) }),
  },
  sourceChainSelector: {
    description: 'Chain selector of the source network.',
    example: '16015286601757825753',
    parse: (text) => ({ sourceChainSelector: selector(text) }),
  },
  destChainSelector: {
    description: 'Chain selector of the destination network.',
    example: '14767482510784806043',
    parse: (text) => ({ destChainSelector: selector(text) }),
  },
  readyForManualExecOnly: {
    description: '`true` keeps only messages that are ready for manual execution; `false` keeps all.',
    example: 'true',
    parse: (text) => {
      if (text !== 'true' && text !== 'false') throw new InvalidValueError('takes true or false');
      return text === 'true' ? { readyForManualExecOnly: true } : {};
    },
  },
  sourceTransactionHash: {
    description: 'Transaction that sent the message.',
    example: '0x3cbe9b32e0a1c5a1e0a6e0e3a2f3c5d17d8f9a0b1c2d3e4f5061728394a5b6c7',
    parse: (text) => ({ sourceTransactionHash: transactionHash(text) }),
  },
  status: {
    description: `One status or several, separated by commas: ${statuses.join(', ')}.`,
    example: 'COMMITTED,BLESSED',
    parse: (text) => ({ status: statusList(text) }),
  },
  sentAfter: {
    description: `Sent at this time or later (ISO 8601 with a time zone). ${ROUNDING}`,
    example: '2026-01-01T00:00:00Z',
    parse: (text) => ({ sentAfter: time(text) }),
  },
  sentBefore: {
    description: `Sent before this time (ISO 8601 with a time zone). ${ROUNDING}`,
    example: '2026-02-01T00:00:00Z',
    parse: (text) => ({ sentBefore: time(text) }),
  },
  address: {
    description: 'Sender, receiver or origin, in any notation of its family.',
    example: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    parse: (text) => ({ address: address(text) }),
  },
  sourceTokenAddress: {
    description: 'A token that the message transfers, by its address on the source chain.',
    example: '0x779877A7B0D9E8603169DdbD7836e478b4624789',
    parse: (text) => ({ sourceTokenAddress: address(text) }),
  },
  destTransactionHash: {
    description:
      'Transaction on the destination chain: the execution, an earlier attempt, the commit, or the blessing. A stream ' +
      'matches the execution alone.',
    example: '0x8d1f0a6f5a1ce3f2b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b',
    parse: (text) => ({ destTransactionHash: transactionHash(text) }),
  },
  messageId: {
    description: `One message id or several, separated by commas, at most ${MAX_MESSAGE_IDS}.`,
    example: '0x9f1b0f2f3a4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6',
    parse: (text) => ({ messageId: messageIdList(text) }),
  },
  q: {
    description:
      'Terms separated by commas, all of which must match: a source or destination token, a source pool, ' +
      'a transaction hash of either side (any transaction of the message), a message id, a sender or a receiver.',
    example: '0x779877A7B0D9E8603169DdbD7836e478b4624789',
    parse: (text) => ({ q: terms(text) }),
  },
  chainSelector: {
    description: 'Chain selector of the source or the destination network.',
    example: '16015286601757825753',
    parse: (text) => ({ chainSelector: selector(text) }),
  },
} satisfies { readonly [Name in keyof Filters]-?: FilterParameter<Name> };

export type FilterName = keyof Filters;
export const filterNames = Object.keys(filterParameters) as readonly FilterName[];
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
 * the codec of the store; without it cursors are refused.
 */
export function parseSearch(raw: RawParameters, cursors = noCursors): SearchQuery {
  const cursorText = raw.find(([name]) => name === 'cursor')?.[1];
  if (cursorText !== undefined) refuseFiltersBesideCursor(raw);

  const problems: ParameterProblem[] = [];
  const values = singleValues(raw, searchParameterNames, problems);
  const filters = filtersOf(values, problems);
  const limit = parseLimit(values.get('limit'), problems);
  const view = parseView(values.get('view'), problems);
  throwProblems(problems);

  if (cursorText === undefined) return { filters, view: view ?? 'full', limit, after: null };
  const cursor = cursors.decode(cursorText);
  return { filters: cursor.filters, view: view ?? cursor.view, limit, after: cursor.after };
}

/**
 * Parses the filters of a path without pages, and returns the values of its other parameters. Throws an ApiError that names
 * every invalid parameter; `check` adds the problems of the others.
 */
export function parseFilters(
  raw: RawParameters,
  otherNames: readonly string[] = [],
  check: (values: ReadonlyMap<string, string>) => readonly ParameterProblem[] = () => [],
): { readonly filters: Filters; readonly values: ReadonlyMap<string, string> } {
  const problems: ParameterProblem[] = [];
  const values = singleValues(raw, [...filterNames, ...otherNames], problems);
  const filters = filtersOf(values, problems);
  problems.push(...check(values));
  throwProblems(problems);
  return { filters, values };
}

function filtersOf(values: ReadonlyMap<string, string>, problems: ParameterProblem[]): Filters {
  let filters: Filters = {};
  for (const name of filterNames) {
    const text = values.get(name);
    if (text === undefined) continue;
    try {
      filters = { ...filters, ...filterParameters[name].parse(text) };
    } catch (error) {
      if (!(error instanceof InvalidValueError)) throw error;
      problems.push({ parameter: name, problem: error.message });
    }
  }
  if (!isTimeRange(filters)) {
    problems.push({
      parameter: 'sentBefore',
      problem: 'must be later than sentAfter, by a millisecond at least',
    });
  }
  return filters;
}

/** For a path without parameters: refuses any parameter. */
export function rejectParameters(raw: RawParameters): void {
  const problems: ParameterProblem[] = [];
  singleValues(raw, [], problems);
  throwProblems(problems);
}

/** Reads one value; throws an InvalidValueError that says what the parameter takes. */
export type ParameterParser<T> = (text: string) => T;

/** For a path with its own parameters: parses those that were sent. The error names every invalid one. */
export function parseParameters<T extends object>(
  raw: RawParameters,
  parsers: { readonly [name in keyof T]-?: ParameterParser<T[name]> },
  required: readonly (keyof T & string)[] = [],
): Partial<T> {
  const problems: ParameterProblem[] = [];
  const values = singleValues(raw, Object.keys(parsers), problems);
  const parsed: Partial<T> = {};
  for (const name of Object.keys(parsers) as (keyof T & string)[]) {
    const text = values.get(name);
    if (text === undefined) {
      const isMissing = required.includes(name) && !raw.some(([given]) => given === name);
      if (isMissing) problems.push({ parameter: name, problem: 'is required' });
      continue;
    }
    try {
      parsed[name] = parsers[name](text);
    } catch (error) {
      if (!(error instanceof InvalidValueError)) throw error;
      problems.push({ parameter: name, problem: error.message });
    }
  }
  throwProblems(problems);
  return parsed;
}

/** @example parseParameters(raw, { windowDays: wholeNumber(1, 365) }) */
export function wholeNumber(min: number, max: number): ParameterParser<number> {
  return (text) => {
    const number = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw new InvalidValueError(`takes a whole number from ${min} to ${max}`);
  };
}

export function trueOrFalse(text: string): boolean {
  if (text !== 'true' && text !== 'false') throw new InvalidValueError('takes true or false');
  return text === 'true';
}

/** A rule of the API: a cursor contains its filters, so any filter beside it is an error. */
function refuseFiltersBesideCursor(raw: RawParameters): void {
  const filters = [...new Set(raw.map(([name]) => name))].filter((name) =>
    Object.hasOwn(filterParameters, name),
  );
  if (filters.length === 0) return;
  throw new ApiError(
    'INVALID_PARAMETER_COMBINATION',
    `cursor cannot be combined with ${filters.join(', ')}: the cursor already contains the filters of its search. ` +
      'Send the cursor without filters (limit and view are allowed), or the filters without a cursor.',
    filters.map((parameter) => ({ parameter, problem: 'cannot be combined with cursor' })),
  );
}

function singleValues(
  raw: RawParameters,
  known: readonly string[],
  problems: ParameterProblem[],
): Map<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of raw) {
    if (!known.includes(name)) {
      // The search for a similar name takes time, and a URL has room for thousands of parameters.
      if (problems.length < MAX_PROBLEMS)
        problems.push({ parameter: shortened(name), problem: unknownProblem(name, known) });
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

function parseLimit(text: string | undefined, problems: ParameterProblem[]): number {
  if (text === undefined) return DEFAULT_LIMIT;
  const limit = /^[0-9]{1,6}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_LIMIT) return limit;
  problems.push({ parameter: 'limit', problem: `takes a whole number from 1 to ${MAX_LIMIT}` });
  return DEFAULT_LIMIT;
}

function parseView(text: string | undefined, problems: ParameterProblem[]): View | undefined {
  if (text === undefined) return undefined;
  if (text === 'full' || text === 'summary') return text;
  problems.push({ parameter: 'view', problem: 'takes full or summary' });
  return undefined;
}

/** The possible bytes of an address. */
export function address(text: string): readonly BytesHex[] {
  const bytes = addressBytes(text);
  if (bytes.length === 0) {
    throw new InvalidValueError(
      `takes an address (EVM 0x…, SVM base58, Aptos or Sui 0x…, TON raw or friendly, Canton party); ${quoted(text)} is not a valid address`,
    );
  }
  return bytes;
}

/** Several addresses, separated by commas. */
export function addressList(max: number): ParameterParser<readonly BytesHex[]> {
  return (text) => {
    const given = text.split(',');
    if (given.length > max)
      throw new InvalidValueError(`takes at most ${max} addresses, separated by commas`);
    return [...new Set(given.flatMap(address))];
  };
}

/** Text of so many characters at most. */
export function shortText(max: number): ParameterParser<string> {
  return (text) => {
    // PostgreSQL takes no zero byte, and no half of a surrogate pair.
    if (text.length <= max && !/\0|\p{Cs}/u.test(text)) return text;
    throw new InvalidValueError(`takes a text of at most ${max} characters`);
  };
}

function transactionHash(text: string): readonly BytesHex[] {
  const bytes = transactionHashBytes(text);
  if (bytes.length === 0) {
    throw new InvalidValueError(
      `takes a transaction hash (0x and 64 hexadecimal digits, or an SVM or Sui base58 one); ${quoted(text)} is not a valid hash`,
    );
  }
  return bytes;
}

/** A chain selector without leading zeros. */
export function selector(text: string): string {
  const canonical = /^[0-9]{1,20}$/.test(text) ? BigInt(text).toString() : text;
  if (isSelector(canonical)) return canonical;
  throw new InvalidValueError(
    `takes a chain selector, an unsigned 64-bit integer in decimal; ${quoted(text)} is not valid`,
  );
}

function time(text: string): number {
  const parsed = parseTimeUp(text);
  if (Number.isNaN(parsed)) {
    throw new InvalidValueError(
      `takes an ISO 8601 time with a time zone, such as 2026-01-31T12:00:00Z; ${quoted(text)} is not valid`,
    );
  }
  return parsed;
}

function statusList(text: string): readonly Status[] {
  const names = new Set(text.split(','));
  for (const name of names) {
    if ((statuses as readonly string[]).includes(name)) continue;
    const nearest = nearestName(name, statuses);
    throw new InvalidValueError(
      `takes ${statuses.join(', ')}, separated by commas; ${quoted(name)} is not a status${nearest ? `, did you mean ${nearest}?` : ''}`,
    );
  }
  return statuses.filter((status) => names.has(status));
}

export function messageIdList(text: string): readonly BytesHex[] {
  const ids = new Set(text.split(',').map((id) => id.toLowerCase()));
  for (const id of ids) {
    if (!/^0x[0-9a-f]{64}$/.test(id)) {
      throw new InvalidValueError(
        `takes message ids, 0x and 64 hexadecimal digits each, separated by commas; ${quoted(id)} is not a message id`,
      );
    }
  }
  if (ids.size > MAX_MESSAGE_IDS)
    throw new InvalidValueError(`takes at most ${MAX_MESSAGE_IDS} message ids; these are ${ids.size}`);
  return [...ids].map((id) => id.slice(2));
}

function terms(text: string): readonly QTerm[] {
  const texts = [...new Set(text.split(',').map((term) => term.trim()))];
  if (texts.length > MAX_Q_TERMS)
    throw new InvalidValueError(`takes at most ${MAX_Q_TERMS} terms; these are ${texts.length}`);
  return texts.map((term) => {
    const addresses = addressBytes(term);
    const hashes = transactionHashBytes(term);
    const messageId = /^0[xX][0-9a-fA-F]{64}$/.test(term) ? term.slice(2).toLowerCase() : null;
    const meaning: QTerm = { addresses, hashes, messageId };
    if (isMeaningful(meaning)) return meaning;
    throw new InvalidValueError(
      `takes addresses, transaction hashes and message ids, separated by commas; ${quoted(term)} has another form`,
    );
  });
}

/** Input inside an error message: short, on one line, and in quotes. */
function quoted(text: string): string {
  return JSON.stringify(shortened(text));
}

function shortened(text: string): string {
  return text.length > MAX_QUOTED_LENGTH ? `${text.slice(0, MAX_QUOTED_LENGTH - 3)}…` : text;
}
