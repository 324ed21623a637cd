/**
 * The configuration, and the one place that reads the environment.
 *
 * Precedence: flags, environment, lanescan.yaml, defaults. An unknown key or LANESCAN_ variable is an error at start;
 * variables that Kubernetes sets for a Service named lanescan are ignored. Secrets come from the environment only.
 */
import { readFileSync } from 'node:fs';
import type { TSchema } from 'typebox';
import { explained, OperatorError } from '../../base/operator-error.ts';
import { nearestOf, readSetting, rejectUnknownKey, SettingError } from '../../base/settings.ts';
import type { DatabasePlace } from '../../store/store.ts';
import { isKubernetesVariable } from './kubernetes-variables.ts';
import { type SettingKey, type Settings, settings, type TopLevelOptions } from './settings.ts';
import { openSettingsFile, type SettingsFile } from './settings-file.ts';

export type LogLevel = Settings['logLevel'];

/** Their entries name networks, so `chains` must be defined before. */
type NameKey = 'tokens' | 'labels' | 'explorers';
/** They need the keys of endpoints or the secrets of webhooks, so only commands that use them read them. */
type SecretKey = 'networks' | 'webhooks';

export interface Config extends Omit<Settings, 'data' | 'abis' | NameKey | SecretKey> {
  readonly dataFolder: string;
  /** `abis`; null without one. */
  readonly abisFolder: string | null;
  readonly databaseUrl: string | null;
  readonly replicaUrls: readonly string[];
  /** The key for servers that commands read from with `--url`. */
  readonly apiKey: string | null;
  /** The file that was read; null without one. */
  readonly file: string | null;
  /** Reads one of the settings that are not read at start; the variables have keys of endpoints and secrets of webhooks. */
  readonly read: <K extends NameKey | SecretKey>(key: K, variables?: NodeJS.ProcessEnv) => Settings[K];
  /** Where the value of each key came from: a flag, a variable, the file, or `default`. */
  readonly origins: Readonly<Record<string, string>>;
  /** Log lines about how the configuration was read. */
  readonly warnings: readonly string[];
}

/** An invalid value of a flag: wrong usage (exit status 2), unlike an invalid value in a file. */
export class UsageError extends OperatorError {}

export interface ConfigFlags {
  readonly config?: string;
  readonly data?: string;
  readonly host?: string;
  readonly port?: string;
  readonly basePath?: string;
  readonly logLevel?: string;
  readonly processes?: string;
}

const CONFIG_VARIABLE = 'LANESCAN_CONFIG';
const API_KEY_VARIABLE = 'LANESCAN_API_KEY';
const readLater: readonly SettingKey[] = ['tokens', 'labels', 'explorers', 'networks', 'webhooks'];
export const settingKeys = Object.keys(settings) as readonly SettingKey[];

/** @example readConfig({ port: '9000' }, process.env) */
export function readConfig(flags: ConfigFlags, processEnvironment: NodeJS.ProcessEnv): Config {
  const isIgnored = ([name, value = '']: readonly [string, string | undefined]) =>
    isKubernetesVariable(name, value);
  const variables = Object.entries(processEnvironment);
  const ignored = variables.filter(isIgnored).map(([name]) => name);
  const environment = Object.fromEntries(variables.filter((variable) => !isIgnored(variable)));
  rejectUnknownVariables(environment);
  const file = openSettingsFile(flags.config ?? environment[CONFIG_VARIABLE]);
  file.locate(() => {
    for (const key of Object.keys(file.values)) rejectUnknownKey(key, settingKeys, []);
  });
  const origins: Record<string, string> = {};
  const read = (key: SettingKey): unknown => {
    const { flag, variables = [] } = settings[key] as TopLevelOptions;
    const ofFlag = (flags as Readonly<Record<string, string | undefined>>)[key];
    const variable = variables.find((name) => (environment[name] ?? '') !== '');
    const origin = ofFlag === undefined ? variable : flag;
    if (origin === undefined) {
      origins[key] = Object.hasOwn(file.values, key) ? `${key} in ${file.name}` : 'default';
      return readLater.includes(key) ? undefined : readFrom(file, key);
    }
    origins[key] = origin;
    try {
      return readSetting(settings[key], fromText(settings[key], ofFlag ?? environment[origin]), [origin]);
    } catch (error) {
      if (error instanceof SettingError && ofFlag !== undefined)
        throw new UsageError(error.message, error.remedy);
      throw error;
    }
  };
  const values = Object.fromEntries(settingKeys.map((key) => [key, read(key)])) as unknown as Settings;
  const database = readSecret('DATABASE_URL', environment);
  const replicas = readSecret('DATABASE_REPLICA_URL', environment);
  const warning = `Ignored as variables that Kubernetes sets for a Service: ${ignored.sort().join(', ')} (enableServiceLinks: false turns them off)`;
  origins.database = database?.where ?? 'default';
  origins.replicas = replicas?.where ?? 'default';
  return {
    ...values,
    dataFolder: values.data,
    abisFolder: values.abis ?? null,
    databaseUrl: database?.value ?? null,
    replicaUrls: readReplicaUrls(replicas?.value ?? '', database !== undefined),
    apiKey: environment[API_KEY_VARIABLE] || null,
    file: file.isFound ? file.name : null,
    read: (key, variables) => readFrom(file, key, variables),
    origins,
    warnings: ignored.length === 0 ? [] : [warning],
  };
}

function readFrom<K extends SettingKey>(file: SettingsFile, key: K, variables?: NodeJS.ProcessEnv) {
  const schema: TSchema & { readonly default?: unknown } = settings[key];
  // A list without entries may be written as a key without a value.
  const isEmptied = file.values[key] === null && typeof schema.default === 'object';
  const isGiven = Object.hasOwn(file.values, key) && !isEmptied;
  const value = isGiven ? file.values[key] : schema.default;
  if (value === undefined) return undefined as Settings[K];
  return file.locate(() => readSetting(schema, fromText(schema, value), [key], variables) as Settings[K]);
}

/** Flags, variables and quoted values in the file are text, whatever the setting takes. */
function fromText(schema: TSchema, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const { anyOf = [schema] } = schema as { readonly anyOf?: readonly TSchema[] };
  const types = anyOf.map((one) => (one as { readonly type?: string }).type);
  if (types.includes('boolean') && /^(true|false)$/.test(value)) return value === 'true';
  if ((types.includes('integer') || types.includes('number')) && /^\d+(\.\d+)?$/.test(value))
    return Number(value);
  return types.length > 1 && types.includes('array') ? value.split(',') : value;
}

/** The value of a variable, or the content of the file that the variable with `_FILE` at its end names. */
function readSecret(name: string, environment: NodeJS.ProcessEnv) {
  const fileVariable = `${name}_FILE`;
  const [value = '', file = ''] = [environment[name], environment[fileVariable]];
  if (file === '') return value === '' ? undefined : { value, where: name };
  if (value !== '') {
    throw new OperatorError(`${name} and ${fileVariable} are both set.`, 'Unset one of them.');
  }
  const content = explained(
    () => readFileSync(file, 'utf8').trim(),
    (message) => `Cannot read ${file}, which ${fileVariable} names: ${message}.`,
    'Check the path, and that this user may read it.',
  );
  if (content === '')
    throw new OperatorError(`${file}, which ${fileVariable} names, is empty.`, 'Put the URL in it.');
  return { value: content, where: fileVariable };
}

function readReplicaUrls(list: string, hasPrimary: boolean): readonly string[] {
  const urls = list.split(',').filter((url) => url.trim() !== '');
  if (urls.length > 0 && !hasPrimary) {
    throw new OperatorError(
      'DATABASE_REPLICA_URL is set, but DATABASE_URL is not: the embedded database has no replicas.',
      'Set DATABASE_URL to the primary of those replicas, or unset DATABASE_REPLICA_URL.',
    );
  }
  return urls.map((url) => url.trim());
}

export function databasePlace(config: Config): DatabasePlace {
  return config.databaseUrl === null ? { dataFolder: config.dataFolder } : { url: config.databaseUrl };
}

function rejectUnknownVariables(environment: NodeJS.ProcessEnv): void {
  const ofSettings = settingKeys.flatMap((key) => (settings[key] as TopLevelOptions).variables ?? []);
  const known = [CONFIG_VARIABLE, API_KEY_VARIABLE, ...ofSettings];
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('LANESCAN_') || known.includes(name)) continue;
    throw new OperatorError(`The environment has an unknown variable ${name}.`, nearestOf(name, known));
  }
}
