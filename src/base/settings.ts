/**
 * Reads values of lanescan.yaml by their schemas: checks them, fills in defaults, and says what is wrong where.
 *
 * A schema is JSON Schema built with TypeBox; the reader knows the keywords that the settings use (a test compares it with
 * a complete validator). TypeBox's own validator is not used: loading it takes a tenth of the start of every command, and
 * its errors do not say what to do.
 */
import type { Static, TSchema, TUnsafe } from 'typebox';
import { nearestName } from './nearest-name.ts';
import { OperatorError } from './operator-error.ts';

/** Keys and indexes from the top of the file. @example ['networks', 0, 'rpc'] */
export type Path = readonly (string | number)[];

/** Environment variables, the values of `${NAME}`. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** An invalid value. Whoever has read the file adds its name and the line. */
export class SettingError extends OperatorError {
  readonly path: Path;
  /** What is wrong, without the place. */
  readonly problem: string;

  constructor(path: Path, problem: string, remedy: string) {
    super(`${pathText(path)} ${problem}.`, remedy);
    this.path = path;
    this.problem = problem;
  }
}

/** @example pathText(['networks', 0, 'rpc']) // 'networks[0].rpc' */
export function pathText(path: Path): string {
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .slice(1);
}

export interface SettingContext {
  readonly path: Path;
  readonly variables: Variables;
  /** Throws a SettingError for this value, or for the one at `at` below it. */
  reject(problem: string, remedy: string, ...at: Path): never;
  read<T extends TSchema>(schema: T, value: unknown): Static<T>;
}

/** What a schema of settings may have beside JSON Schema. */
export interface SettingOptions {
  /** What values are accepted, in words, for errors: "It takes …". Default: derived from the schema. */
  readonly takes?: string;
  /** Whether the value may be a secret: errors do not show it (a keyword of JSON Schema). */
  readonly writeOnly?: boolean;
}

/** The keywords that the reader knows. */
interface Schema extends SettingOptions {
  readonly type?: 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean';
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  /** False: no other keys than `properties`. A schema: of the values of a mapping with any keys. */
  readonly additionalProperties?: false | Schema;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly parse?: (value: unknown, context: SettingContext) => unknown;
}

/** A setting that `parse` reads; the schema describes it to editors. */
export function custom<T>(
  schema: TSchema,
  parse: (value: unknown, context: SettingContext) => T,
): TUnsafe<T> {
  return { ...schema, parse } as unknown as TUnsafe<T>;
}

/** A setting that the schema checks and `refine` turns into what the program uses; undefined where that is not possible. */
export function refined<S extends TSchema, T>(
  schema: S,
  refine: (value: Static<S>, context: SettingContext) => T | undefined,
): TUnsafe<T> {
  return custom(schema, (value, context) => {
    const read = context.read(schema, value);
    const result = refine(read, context);
    return result === undefined ? context.reject(...mismatch(schema as Schema, value)) : result;
  });
}

/** A list whose entries differ in what `keyOf` says of them. */
export function distinct<S extends TSchema>(
  schema: S,
  keyOf: (entry: Static<S> extends readonly (infer E)[] ? E : never) => unknown,
  remedy = 'Remove one of them.',
): TUnsafe<Static<S>> {
  return refined(schema, (list, { path, reject }) => {
    const keys = (list as Parameters<typeof keyOf>[0][]).map(keyOf);
    const index = keys.findIndex((key, at) => keys.indexOf(key) !== at);
    if (index === -1) return list;
    return reject(`is the same as ${pathText([...path, keys.indexOf(keys[index])])}`, remedy, index);
  });
}

/** The value as the program uses it, or a SettingError. */
export function readSetting<T extends TSchema>(
  schema: T,
  value: unknown,
  path: Path,
  variables: Variables = {},
): Static<T> {
  return read(schema as Schema, value, path, variables) as Static<T>;
}

function read(schema: Schema, given: unknown, path: Path, variables: Variables): unknown {
  const value = typeof given === 'string' ? given.trim() : given;
  const reject = (problem: string, remedy: string, ...at: Path): never => {
    throw new SettingError([...path, ...at], problem, remedy);
  };
  if (schema.parse) {
    return schema.parse(value, {
      path,
      variables,
      reject,
      read: (inner, from) => readSetting(inner, from, path, variables),
    });
  }
  const kind = Array.isArray(value) ? 'array' : isMapping(value) ? 'object' : undefined;
  const alternative = schema.anyOf?.find(({ type }) => type === kind) ?? schema;
  if (alternative.type === 'object' && isMapping(value))
    return readMapping(alternative, value, path, variables);
  if (alternative.type === 'array' && Array.isArray(value)) {
    const { items = {}, minItems = 0, maxItems = Number.POSITIVE_INFINITY } = alternative;
    if (value.length < minItems || value.length > maxItems)
      reject(`has ${value.length} entries`, `It takes ${takes(schema)}.`);
    return value.map((item, index) => read(items, item, [...path, index], variables));
  }
  return fits(schema, value) ? value : reject(...mismatch(schema, value));
}

function readMapping(schema: Schema, value: Mapping, path: Path, variables: Variables): Mapping {
  const { properties = {}, required = [], additionalProperties: others } = schema;
  // A misspelt key is reported before anything that may follow from it.
  if (others === false)
    for (const key of Object.keys(value)) rejectUnknownKey(key, Object.keys(properties), path);
  const names = [...Object.keys(properties), ...(others ? Object.keys(value) : [])];
  const members = names.flatMap((key) => {
    const member = properties[key] ?? (others || {});
    // A key without a value is as good as none.
    const given = (Object.hasOwn(value, key) ? value[key] : undefined) ?? member.default;
    if (given !== undefined) return [[key, read(member, given, [...path, key], variables)]];
    if (required.includes(key)) {
      throw new SettingError([...path, key], 'is missing', `It takes ${takes(member)}.`);
    }
    return [];
  });
  return Object.fromEntries(members);
}

export function rejectUnknownKey(key: string, known: readonly string[], path: Path): void {
  if (known.includes(key)) return;
  throw new SettingError([...path, key], 'is an unknown key', nearestOf(key, known));
}

/** What to do about a name that is not known. */
export function nearestOf(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest ? `Did you mean ${nearest}?` : `Known are ${known.join(', ')}.`;
}

/** Problem and remedy. */
function mismatch(schema: Schema, value: unknown): [string, string] {
  const types = (schema.anyOf ?? [schema]).map(({ type }) => type);
  const isNumber = types.includes('integer') || types.includes('number');
  if (typeof value === 'number' && types.includes('string') && !(isNumber && Number.isSafeInteger(value)))
    return ['is a number', 'Put it in quotes: YAML rounds long numbers.'];
  const problem = schema.writeOnly ? 'is not valid' : `is ${JSON.stringify(value)}`;
  const [only] = types.length === 1 ? types : [];
  const noun = only === 'array' ? 'list' : only === 'object' ? 'mapping of keys to values' : undefined;
  return [noun === undefined ? problem : `is not a ${noun}`, `It takes ${takes(schema)}.`];
}

function takes(schema: Schema): string {
  const { type, minimum, exclusiveMinimum, maximum } = schema;
  if (schema.takes !== undefined) return schema.takes;
  if (schema.enum) return `one of ${schema.enum.join(', ')}`;
  if (type === 'boolean') return 'true or false';
  if (type === 'object') return `the keys ${Object.keys(schema.properties ?? {}).join(', ')}`;
  if (type === 'array') {
    const { minItems, maxItems, items = {} } = schema;
    return `a list of ${minItems ? `${minItems} to` : 'at most'} ${maxItems} entries; each takes ${takes(items)}`;
  }
  if (type === 'string') return 'text';
  const from = exclusiveMinimum === undefined ? `from ${minimum}` : `above ${exclusiveMinimum} and up`;
  return `a ${type === 'integer' ? 'whole ' : ''}number ${from} to ${maximum}`;
}

function fits(schema: Schema, value: unknown): boolean {
  if (schema.anyOf) return schema.anyOf.some((one) => fits(one, value));
  if (schema.enum) return schema.enum.includes(value);
  if (schema.const !== undefined) return value === schema.const;
  if (schema.type === undefined) return true;
  if (typeof value === 'string')
    return (
      schema.type === 'string' &&
      value.length >= (schema.minLength ?? 0) &&
      value.length <= (schema.maxLength ?? Number.POSITIVE_INFINITY) &&
      new RegExp(schema.pattern ?? '').test(value)
    );
  if (typeof value === 'number')
    return (
      // A larger integer was rounded when the YAML was read.
      (schema.type === 'number' || (schema.type === 'integer' && Number.isSafeInteger(value))) &&
      value >= (schema.minimum ?? Number.NEGATIVE_INFINITY) &&
      value > (schema.exclusiveMinimum ?? Number.NEGATIVE_INFINITY) &&
      value <= (schema.maximum ?? Number.POSITIVE_INFINITY)
    );
  return schema.type === 'boolean' && typeof value === 'boolean';
}

type Mapping = Readonly<Record<string, unknown>>;

function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The URL that the text is once each `${NAME}` has the value of that variable. It may hold a key: errors do not repeat it. */
export function parseHttpUrl(text: string, context: SettingContext): URL {
  const filled = text.replace(/\$\{(\w+)\}/g, (_, name: string) => variableOf(name, context)).trim();
  if (!URL.canParse(filled)) return context.reject('is not a URL', 'Write it as https://host.example/path.');
  const url = new URL(filled);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    context.reject(`begins with ${url.protocol}`, 'It takes https:// or http://.');
  url.hash = '';
  return url;
}

export function variableOf(name: string, { variables, reject }: SettingContext): string {
  const text = variables[name]?.trim() ?? '';
  return text === ''
    ? reject(`needs the variable ${name}, which is not set`, 'Set it in the environment.')
    : text;
}
