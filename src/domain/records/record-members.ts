/**
 * Reads the members of a JSON object of a record: checks them, converts them to their canonical notation, and reports each
 * problem by its JSON path.
 *
 * Members that the record does not define are kept behind the defined ones (see the end of this file). Members that a source
 * left out and that could be derived are listed, so that the history can say that the record came incomplete.
 */
import { LATEST_TIME, parseTime } from '../../base/iso-time.ts';
import { type ChainFamily, parseAddress, parseTransactionHash } from '../addresses.ts';
import { extensionKeys } from '../message.ts';

export interface RecordProblem {
  /** JSON path, such as `$.tokenAmounts[0].amount`. */
  readonly path: string;
  readonly problem: string;
}

export interface Report {
  readonly problems: RecordProblem[];
  /** Paths of undefined members that were kept. */
  readonly kept: string[];
  /** Paths of undefined members that were dropped: too large, or with a name that no record can have. */
  readonly ignored: string[];
  /** Paths of members that the source left out and that were derived. */
  readonly derived: string[];
  /** Values that are unknown here, each with what is shown instead. */
  readonly unknown: string[];
  readonly unknownMembers: ReturnType<typeof createUnknownMembers>;
  /** The latest time that the record may name, in milliseconds since 1970 and in the format of `toISOString`. */
  readonly latestMs: number;
  readonly latestTime: string;
}

/**
 * How far the times of a record may be ahead of the reader's clock. Clocks of chains differ by much less than a day; a time
 * beyond it is false, and would head every list until it comes.
 */
export const MAX_AHEAD_MS = 86_400_000;

/** `now` is the reader's clock, in milliseconds since 1970. */
export function createReport(now: number): Report {
  const latestMs = Math.min(now + MAX_AHEAD_MS, LATEST_TIME);
  return {
    latestMs,
    latestTime: new Date(latestMs).toISOString(),
    problems: [],
    kept: [],
    ignored: [],
    derived: [],
    unknown: [],
    unknownMembers: createUnknownMembers(),
  };
}

export const UINT64_MAX = 2n ** 64n - 1n;
export const UINT256_MAX = 2n ** 256n - 1n;
const MAX_TEXT_LENGTH = 1_000;
export const MAX_BLOB_LENGTH = 2_000_000;
/** Far more than any protocol allows; longer lists are an attack on the store. */
const MAX_ELEMENTS = 1_000;

/**
 * The members of one JSON object, read one at a time. An invalid member is reported once and replaced by a placeholder, so
 * that the parser finds the other problems too; the record is then discarded.
 *
 * Nearly every value is valid, so error texts are only made for invalid ones.
 */
export class Members {
  readonly path: string;
  readonly report: Report;
  readonly #members: Readonly<Record<string, unknown>>;

  constructor(members: Readonly<Record<string, unknown>>, path: string, report: Report) {
    this.#members = members;
    this.path = path;
    this.report = report;
  }

  at(key: string): string {
    return `${this.path}.${key}`;
  }

  problem(key: string, problem: string): void {
    this.report.problems.push({ path: this.at(key), problem });
  }

  /** Whether the member is there and not null. */
  has(key: string): boolean {
    const value = this.raw(key);
    return value !== undefined && value !== null;
  }

  /** Safe without `hasOwn`: no member of a record has the name of an inherited property. */
  raw(key: string): unknown {
    return this.#members[key];
  }

  /** Whether the members are exactly these, in the same notation. */
  areExactly(other: object): boolean {
    const others = Object.keys(other);
    return (
      Object.keys(this.#members).length === others.length &&
      others.every((key) => this.#members[key] === (other as Readonly<Record<string, unknown>>)[key])
    );
  }

  reportInvalid(key: string, what: string): void {
    this.problem(key, `is ${describe(this.raw(key))}; it must be ${what}`);
  }

  /** `null` for a member that is null or absent, otherwise the result of `read`. */
  nullable<T>(key: string, read: (key: string) => T): T | null {
    return this.has(key) ? read(key) : null;
  }

  /** The result of `read`, or `derived` for a member that is null or absent. */
  derivable<T>(key: string, derived: T, read: (key: string) => T): T {
    if (this.has(key)) return read(key);
    this.report.derived.push(this.at(key));
    return derived;
  }

  text(key: string, what: string, accepts?: (text: string) => boolean, maxLength = MAX_TEXT_LENGTH): string {
    const value = this.raw(key);
    if (typeof value === 'string' && value.length <= maxLength && (!accepts || accepts(value))) return value;
    this.reportInvalid(key, what);
    return '';
  }

  /** A decimal string without leading zeros. */
  decimal(key: string, max: bigint, what: string, min = 0): string {
    const text = this.raw(key);
    if (typeof text === 'string' && isDecimal(text, min, max)) {
      return text.startsWith('0') && text.length > 1 ? text.replace(/^0+(?=.)/, '') : text;
    }
    this.reportInvalid(key, what);
    return '';
  }

  integer(key: string, what: string, min = 0, max = Number.MAX_SAFE_INTEGER): number {
    const value = this.raw(key) as number;
    if (Number.isSafeInteger(value) && value >= min && value <= max) return value === 0 ? 0 : value;
    this.reportInvalid(key, what);
    return 0;
  }

  boolean(key: string): boolean {
    const value = this.raw(key);
    if (typeof value !== 'boolean') this.reportInvalid(key, 'true or false');
    return value === true;
  }

  enumerated<T extends string>(key: string, values: readonly T[]): T {
    const value = this.raw(key) as T;
    if (values.includes(value)) return value;
    this.reportInvalid(key, `one of ${values.join(', ')}`);
    return '' as T;
  }

  time(key: string): string {
    const text = this.raw(key);
    const time = typeof text === 'string' && text.length <= MAX_TEXT_LENGTH ? canonicalTime(text) : undefined;
    if (time === undefined) this.reportInvalid(key, 'an ISO 8601 date-time with a time zone');
    // In this format the later of two times is the greater text.
    else if (time > this.report.latestTime) {
      this.reportInvalid(
        key,
        `no later than ${this.report.latestTime}, a day after the clock of this computer`,
      );
    }
    return time ?? '';
  }

  hex(key: string): string {
    return this.text(
      key,
      'hexadecimal bytes: 0x and an even number of digits',
      isHex,
      MAX_BLOB_LENGTH,
    ).toLowerCase();
  }

  /** An address of a family, or of either of two. */
  address(key: string, ...families: readonly (ChainFamily | undefined)[]): string {
    return this.#canonical(key, 'address', parseAddress, families);
  }

  transactionHash(key: string, family: ChainFamily | undefined): string {
    return this.#canonical(key, 'transaction hash', parseTransactionHash, [family]);
  }

  #canonical(
    key: string,
    noun: string,
    parse: typeof parseAddress,
    given: readonly (ChainFamily | undefined)[],
  ): string {
    const value = this.raw(key);
    const families = given.filter((family) => family !== undefined);
    if (typeof value === 'string') {
      // Without a family (which is reported elsewhere) the notation cannot be checked.
      if (families.length === 0) return '';
      let found: string | undefined;
      for (const family of families) {
        const text: string | undefined = parse(value, family)?.text;
        // A text that is canonical in one of two families is not converted to the other's notation.
        if (text === value) return text;
        found ??= text;
      }
      if (found !== undefined) return found;
    }
    const article = /^[AEIOU]/.test(families[0] ?? '') ? 'an' : 'a';
    this.reportInvalid(key, `${article} ${[...new Set(families)].join(' or ')} ${noun}`);
    return '';
  }

  object<T extends object>(key: string, read: (members: Members) => T): T | undefined {
    return readObject(this.raw(key), this.at(key), this.report, read);
  }

  array<T>(key: string, read: (element: unknown, path: string) => T | undefined): T[] {
    const value = this.raw(key);
    if (!Array.isArray(value)) {
      this.reportInvalid(key, 'an array');
      return [];
    }
    if (value.length > MAX_ELEMENTS) {
      this.problem(key, `has ${value.length} elements; at most ${MAX_ELEMENTS} are possible`);
      return [];
    }
    return value.flatMap((element, index) => read(element, `${this.at(key)}[${index}]`) ?? []);
  }

  objects<T extends object>(key: string, read: (members: Members) => T): T[] {
    return this.array(key, (element, path) => readObject(element, path, this.report, read));
  }
}

/** Reads an object by `read`, and keeps the members that the result does not define behind those that it does. */
export function readObject<T extends object>(
  value: unknown,
  path: string,
  report: Report,
  read: (members: Members) => T,
): T | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    report.problems.push({ path, problem: `is ${describe(value)}; it must be an object` });
    return undefined;
  }
  const result = read(new Members(value as Record<string, unknown>, path, report));
  const undefinedKeys = Object.keys(value).filter((key) => !Object.hasOwn(result, key));
  if (undefinedKeys.length > 0)
    keepUndefined(undefinedKeys, value as Record<string, unknown>, path, report, result);
  return result;
}

/** Paths of defined members that are absent where they have no usable value; a source may write null for that. */
const optionalMembers: ReadonlySet<string> = new Set([
  ...extensionKeys.map((key) => `$.${key}`),
  '$.fees.bpsFeeDetails',
  '$.fees.fixedFeesDetails.items',
  '$.verifiers.items[].metadata.logoUrl',
]);

/** In the order of their names, so that the same members make the same record. */
function keepUndefined(
  keys: string[],
  value: Readonly<Record<string, unknown>>,
  path: string,
  report: Report,
  result: object,
): void {
  for (const key of keys.sort()) {
    const member = value[key];
    const where = `${path}.${key}`.replace(/\[\d+\]/g, '[]');
    const isDefined = optionalMembers.has(where);
    if (isDefined && member === null) continue;
    if (!isDefined && report.unknownMembers.accepts(key, member)) {
      (result as Record<string, unknown>)[key] = member;
      report.kept.push(where);
    } else {
      report.ignored.push(where);
    }
  }
}

const isHex = (text: string) => text.length % 2 === 0 && /^0x[0-9a-fA-F]*$/.test(text);

function isDecimal(text: string, min: number, max: bigint): boolean {
  if (!/^[0-9]{1,100}$/.test(text)) return false;
  if (text.length <= 15) return Number(text) >= min;
  const number = BigInt(text);
  return number >= min && number <= max;
}

/** Times in the format of `toISOString`, from 1970 to 9999, except for days after the 28th, which not every month has. */
const CANONICAL_TIME =
  /^(?:19[7-9]\d|[2-9]\d{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

/** The time in the format of `toISOString`, which most sources use; undefined for an invalid time. */
function canonicalTime(text: string): string | undefined {
  if (CANONICAL_TIME.test(text)) return text;
  const time = parseTime(text);
  return Number.isNaN(time) ? undefined : new Date(time).toISOString();
}

export function describe(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

// ---- Members that the contract does not define: what sources have added since, and what they may add. They are kept as the
// source wrote them. A bound on their size keeps a source from filling the store with them.

/** The most characters of undefined members in one record. */
const MAX_UNKNOWN_CHARACTERS = 64 * 1024;
const MAX_DEPTH = 16;
/** What exports write beside the record, on request: attempts to execute it. They are not part of the record. */
export const ATTEMPTS_MEMBER = 'executionAttempts';
const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,99}$/;

function createUnknownMembers() {
  let remaining = MAX_UNKNOWN_CHARACTERS;
  return {
    /** Whether the member may be kept. Counts it against the bound of the record. */
    accepts(key: string, value: unknown): boolean {
      // `__proto__` and other inherited names are not plain members in JavaScript.
      if (!NAME.test(key) || key in Object.prototype || key === ATTEMPTS_MEMBER) return false;
      const size = key.length + sizeOf(value, MAX_DEPTH, remaining);
      if (size > remaining) return false;
      remaining -= size;
      return true;
    },
  };
}

/** About how many characters a JSON value has; Infinity for one that is nested too deep or over the limit. */
function sizeOf(value: unknown, depth: number, limit: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 8;
  if (depth === 0) return Number.POSITIVE_INFINITY;
  let size = 2;
  for (const [key, member] of Object.entries(value)) {
    if (key === '__proto__') return Number.POSITIVE_INFINITY;
    size += key.length + 4 + sizeOf(member, depth - 1, limit);
    if (size > limit) return Number.POSITIVE_INFINITY;
  }
  return size;
}
