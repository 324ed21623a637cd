/**
 * The configuration, and the one place that reads the environment.
 *
 * Precedence: flags, environment, lanescan.yaml, defaults. An unknown key or LANESCAN_ variable is an error at start;
 * variables that Kubernetes sets for a Service named lanescan are ignored. Secrets come from the environment only.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { DEFAULT_CALLS_PER_DAY } from '../../api/execution/call-budget.ts';
import type { LiveLimits } from '../../api/live/live.ts';
import type { TrustProxy } from '../../api/server/client-address.ts';
import { defaultRateLimit, type RateLimitOptions } from '../../api/server/rate-limit.ts';
import { nearestName } from '../../base/nearest-name.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Label } from '../../domain/names/labels.ts';
import { parseBlockExplorers, parseLabels } from '../../domain/names/name-definitions.ts';
import { parseTokenDefinitions } from '../../domain/names/token-definitions.ts';
import type { TokenDefinition } from '../../domain/names/tokens.ts';
import { parseNetworkDefinitions } from '../../domain/networks/network-definitions.ts';
import type { Network } from '../../domain/networks/networks.ts';
import type { NetworkSource } from '../../ingest/engine/family.ts';
import { parseNetworkSources } from '../../ingest/families.ts';
import type { DatabasePlace } from '../../store/store.ts';
import { parseSubscriptions, type Subscription } from '../../webhooks/subscription.ts';
import {
  API_KEYS_FORMAT,
  BASE_PATH_FORMAT,
  LIVE_FORMAT,
  RATE_LIMIT_FORMAT,
  readApiKeys,
  readBasePath,
  readLive,
  readRateLimit,
  readTrustProxy,
  TRUST_PROXY_FORMAT,
} from './http-settings.ts';
import { isKubernetesVariable } from './kubernetes-variables.ts';

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

export interface Config extends RateLimitOptions {
  readonly host: string;
  readonly port: number;
  /** The prefix of all URLs where a proxy hosts this server below a path; empty without one. */
  readonly basePath: string;
  readonly dataFolder: string;
  /** The folder of ABIs whose errors name reasons; null without one. */
  readonly abisFolder: string | null;
  readonly databaseUrl: string | null;
  /** The key for servers that commands read from with `--url`. */
  readonly apiKey: string | null;
  /** Replicas of that database, to read from. */
  readonly replicaUrls: readonly string[];
  readonly logLevel: LogLevel;
  /** Whether the log has a line for each request. */
  readonly accessLog: boolean;
  readonly trustProxy: TrustProxy;
  /** Limits of streams and waiting requests that differ from the defaults. */
  readonly live: Partial<LiveLimits>;
  /** Drain time: how long a server answers after the stop signal, so that load balancers notice that it is not ready. */
  readonly drainSeconds: number;
  /** Whether commands other than `migrate` may migrate the schema. */
  readonly autoMigrate: boolean;
  /** Number of worker processes. */
  readonly processes: number;
  /** Whether visitors may have executions simulated on the endpoints of `networks`. */
  readonly diagnosis: boolean;
  /** Calls to the endpoints of each network for simulations. */
  readonly diagnosisCallsPerDay: number;
  /** Networks beside those of the built-in table. */
  readonly chains: readonly Network[];
  /** As the file has it; `namesOf` reads it, when the defined networks are known. */
  readonly tokens: unknown;
  readonly labels: unknown;
  readonly explorers: unknown;
  /** As the file has it; `webhooksOf` reads it for the commands that need it. */
  readonly webhooks: unknown;
  /** As the file has it; `networkSourcesOf` reads it for the commands that need it. */
  readonly networks: unknown;
  /** The file that was read; null without one. */
  readonly file: string | null;
  /** Where the value of each key came from: a flag, a variable, the file, or `default`. */
  readonly origins: Readonly<Record<string, string>>;
  /** Log lines about how the configuration was read. */
  readonly notices: readonly string[];
}

/** An invalid value of a flag: wrong usage (exit status 2), unlike an invalid value in a file. */
export class UsageError extends OperatorError {}

/** Settings as flags give them; undefined where a flag was not given. */
export interface ConfigFlags {
  readonly config?: string;
  readonly data?: string;
  readonly host?: string;
  readonly port?: string;
  readonly basePath?: string;
  readonly logLevel?: string;
  readonly processes?: string;
}

interface Setting<T> {
  /** The key in lanescan.yaml. */
  readonly key: string;
  readonly variables: readonly string[];
  readonly fallback: T;
  readonly takes: string;
  /** The error does not repeat an invalid value: it may be a secret in the wrong place. */
  readonly isHidden?: boolean;
  readonly read: (value: unknown) => T | undefined;
}

const settings = {
  host: {
    key: 'host',
    variables: ['LANESCAN_HOST'],
    fallback: '127.0.0.1',
    takes: 'an address to listen on, such as 127.0.0.1 or 0.0.0.0',
    read: nonEmptyText,
  },
  port: {
    key: 'port',
    variables: ['LANESCAN_PORT', 'PORT'],
    fallback: 8080,
    takes: 'a port from 0 to 65535 (0: any free one)',
    read: (value) => {
      const port = typeof value === 'string' && /^\d{1,5}$/.test(value) ? Number(value) : value;
      return typeof port === 'number' && Number.isInteger(port) && port >= 0 && port <= 65_535
        ? port
        : undefined;
    },
  } as Setting<number>,
  basePath: {
    key: 'basePath',
    variables: ['LANESCAN_BASE_PATH'],
    fallback: '',
    takes: BASE_PATH_FORMAT,
    read: readBasePath,
  } as Setting<string>,
  dataFolder: {
    key: 'data',
    variables: ['LANESCAN_DATA'],
    fallback: './data',
    takes: 'the folder of the embedded database',
    read: nonEmptyText,
  },
  abisFolder: {
    key: 'abis',
    variables: ['LANESCAN_ABIS'],
    fallback: null,
    takes: 'a folder of ABIs: JSON files as compilers write them',
    read: nonEmptyText,
  } as Setting<string | null>,
  logLevel: {
    key: 'logLevel',
    variables: ['LANESCAN_LOG_LEVEL'],
    fallback: 'info',
    takes: `one of ${logLevels.join(', ')}`,
    read: (value) => logLevels.find((level) => level === value),
  } as Setting<LogLevel>,
  accessLog: {
    key: 'accessLog',
    variables: ['LANESCAN_ACCESS_LOG'],
    fallback: true,
    takes: 'true or false: whether the log has a line for each request',
    read: trueOrFalse,
  } as Setting<boolean>,
  rateLimit: {
    key: 'rateLimit',
    variables: [],
    fallback: defaultRateLimit,
    takes: RATE_LIMIT_FORMAT,
    read: readRateLimit,
  } as Setting<RateLimitOptions['rateLimit']>,
  apiKeys: {
    key: 'apiKeys',
    variables: [],
    fallback: [],
    takes: API_KEYS_FORMAT,
    isHidden: true,
    read: readApiKeys,
  } as Setting<RateLimitOptions['apiKeys']>,
  trustProxy: {
    key: 'trustProxy',
    variables: ['LANESCAN_TRUST_PROXY'],
    fallback: false,
    takes: TRUST_PROXY_FORMAT,
    read: readTrustProxy,
  } as Setting<TrustProxy>,
  live: {
    key: 'live',
    variables: [],
    fallback: {},
    takes: LIVE_FORMAT,
    read: readLive,
  } as Setting<Partial<LiveLimits>>,
  drainSeconds: {
    key: 'drainSeconds',
    variables: ['LANESCAN_DRAIN_SECONDS'],
    fallback: 0,
    takes: 'a number of seconds from 0 to 300',
    read: (value) => {
      const seconds = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
      return typeof seconds === 'number' && seconds >= 0 && seconds <= 300 ? seconds : undefined;
    },
  } as Setting<number>,
  autoMigrate: {
    key: 'autoMigrate',
    variables: ['LANESCAN_AUTO_MIGRATE'],
    fallback: true,
    takes: 'true, or false: then only `lanescan migrate` changes the schema',
    read: trueOrFalse,
  } as Setting<boolean>,
  processes: {
    key: 'processes',
    variables: ['LANESCAN_PROCESSES'],
    fallback: 1,
    takes: 'a whole number from 1 to 64: number of worker processes, best one for each core',
    read: (value) => {
      const count = typeof value === 'string' && /^\d{1,2}$/.test(value) ? Number(value) : value;
      return typeof count === 'number' && Number.isInteger(count) && count >= 1 && count <= 64
        ? count
        : undefined;
    },
  } as Setting<number>,
  diagnosis: {
    key: 'diagnosis',
    variables: ['LANESCAN_DIAGNOSIS'],
    fallback: true,
    takes: 'true, or false: then no execution is simulated on the endpoints of `networks` for visitors',
    read: trueOrFalse,
  } as Setting<boolean>,
  diagnosisCallsPerDay: {
    key: 'diagnosisCallsPerDay',
    variables: ['LANESCAN_DIAGNOSIS_CALLS_PER_DAY'],
    fallback: DEFAULT_CALLS_PER_DAY,
    takes:
      'a whole number from 1 to 1000000000: calls a day to the endpoints of each network for simulated executions',
    read: (value) => {
      const calls = typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value;
      return typeof calls === 'number' && Number.isInteger(calls) && calls >= 1 && calls <= 1_000_000_000
        ? calls
        : undefined;
    },
  } as Setting<number>,
} as const;

const CONFIG_VARIABLE = 'LANESCAN_CONFIG';
const API_KEY_VARIABLE = 'LANESCAN_API_KEY';
const DEFAULT_FILE = 'lanescan.yaml';
const WEBHOOKS_KEY = 'webhooks';
const NETWORKS_KEY = 'networks';
const CHAINS_KEY = 'chains';
const TOKENS_KEY = 'tokens';
const LABELS_KEY = 'labels';
const EXPLORERS_KEY = 'explorers';

function trueOrFalse(value: unknown): boolean | undefined {
  return value === true || value === 'true' ? true : value === false || value === 'false' ? false : undefined;
}

function nonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

/**
 * @example readConfig({ port: '9000' }, process.env)
 */
export function readConfig(flags: ConfigFlags, processEnvironment: NodeJS.ProcessEnv): Config {
  const [foreign, own] = partition(Object.entries(processEnvironment), ([name, value = '']) =>
    isKubernetesVariable(name, value),
  );
  const environment: NodeJS.ProcessEnv = Object.fromEntries(own);
  refuseUnknownVariables(environment);
  const { file, values } = readFile(flags.config ?? environment[CONFIG_VARIABLE]);
  const origins: Record<string, string> = {};
  const given = ({ key, variables }: Setting<unknown>, flag: string | undefined, flagName: string) => {
    if (flag !== undefined) return { value: flag, where: `--${flagName}` };
    const variable = variables.find((name) => (environment[name] ?? '') !== '');
    if (variable !== undefined) return { value: environment[variable], where: variable };
    return Object.hasOwn(values, key) ? { value: values[key], where: `${key} in ${file}` } : undefined;
  };
  const pick = <T>(setting: Setting<T>, flag?: string, flagName = ''): T => {
    const found = given(setting, flag, flagName);
    origins[setting.key] = found?.where ?? 'default';
    if (found === undefined) return setting.fallback;
    const { value, where } = found;
    const read = setting.read(value);
    if (read === undefined) {
      const Refusal = flag === undefined ? OperatorError : UsageError;
      const shown = setting.isHidden ? 'not valid' : JSON.stringify(value);
      throw new Refusal(`${where} is ${shown}.`, `It takes ${setting.takes}.`);
    }
    return read;
  };
  const database = readSecret('DATABASE_URL', environment);
  const replicas = readSecret('DATABASE_REPLICA_URL', environment);
  origins.database = database?.where ?? 'default';
  origins.replicas = replicas?.where ?? 'default';
  return {
    host: pick(settings.host, flags.host, 'host'),
    port: pick(settings.port, flags.port, 'port'),
    basePath: pick(settings.basePath, flags.basePath, 'base-path'),
    dataFolder: pick(settings.dataFolder, flags.data, 'data'),
    abisFolder: pick(settings.abisFolder),
    logLevel: pick(settings.logLevel, flags.logLevel, 'log-level'),
    accessLog: pick(settings.accessLog),
    rateLimit: pick(settings.rateLimit),
    apiKeys: pick(settings.apiKeys),
    trustProxy: pick(settings.trustProxy),
    live: pick(settings.live),
    drainSeconds: pick(settings.drainSeconds),
    autoMigrate: pick(settings.autoMigrate),
    processes: pick(settings.processes, flags.processes, 'processes'),
    diagnosis: pick(settings.diagnosis),
    diagnosisCallsPerDay: pick(settings.diagnosisCallsPerDay),
    databaseUrl: database?.value ?? null,
    apiKey: environment[API_KEY_VARIABLE] || null,
    replicaUrls: readReplicaUrls(replicas?.value ?? '', database !== undefined),
    chains: parseNetworkDefinitions(values[CHAINS_KEY], file ?? DEFAULT_FILE),
    tokens: values[TOKENS_KEY],
    labels: values[LABELS_KEY],
    explorers: values[EXPLORERS_KEY],
    webhooks: values[WEBHOOKS_KEY],
    networks: values[NETWORKS_KEY],
    file,
    origins,
    notices: foreign.length === 0 ? [] : [ignoredVariables(foreign.map(([name]) => name))],
  };
}

function partition<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

function ignoredVariables(names: readonly string[]): string {
  return `Ignored as variables that Kubernetes sets for a Service: ${[...names].sort().join(', ')} (enableServiceLinks: false turns them off)`;
}

/** The value of a variable, or the content of the file that the variable with `_FILE` at its end names. */
function readSecret(
  name: string,
  environment: NodeJS.ProcessEnv,
): { readonly value: string; readonly where: string } | undefined {
  const fileVariable = `${name}_FILE`;
  const [value = '', file = ''] = [environment[name], environment[fileVariable]];
  if (file === '') return value === '' ? undefined : { value, where: name };
  if (value !== '') {
    throw new OperatorError(`${name} and ${fileVariable} are both set.`, 'Unset one of them.');
  }
  let content: string;
  try {
    content = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new OperatorError(
      `Cannot read ${file}, which ${fileVariable} names: ${(error as Error).message}.`,
      'Check the path, and that this user may read it.',
      { cause: error },
    );
  }
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

/** Where the configured data is: the server of DATABASE_URL, otherwise the embedded one. */
export function databasePlace(config: Config): DatabasePlace {
  return config.databaseUrl === null ? { dataFolder: config.dataFolder } : { url: config.databaseUrl };
}

/** What lanescan.yaml says of tokens, addresses and block explorers. */
export interface Names {
  readonly tokens: readonly TokenDefinition[];
  readonly labels: readonly Label[];
  /** By chain selector; null where there are to be no links. */
  readonly explorers: ReadonlyMap<string, string | null>;
}

/** Its entries name networks, so that the defined ones have to be known before. */
export function namesOf(config: Config): Names {
  const file = config.file ?? DEFAULT_FILE;
  return {
    tokens: parseTokenDefinitions(config.tokens, file),
    labels: parseLabels(config.labels, file),
    explorers: parseBlockExplorers(config.explorers, file),
  };
}

/**
 * The configured webhooks. Parsed only by commands that need them, because it requires their secrets.
 */
export function webhooksOf(config: Config, environment: NodeJS.ProcessEnv): readonly Subscription[] {
  return parseSubscriptions(config.webhooks, config.file ?? DEFAULT_FILE, environment);
}

/** The networks to index. Parsed only by commands that need them, because it requires the keys of their endpoints. */
export function networkSourcesOf(config: Config, environment: NodeJS.ProcessEnv): readonly NetworkSource[] {
  return parseNetworkSources(config.networks, config.file ?? DEFAULT_FILE, environment);
}

function readFile(named: string | undefined): { file: string | null; values: Record<string, unknown> } {
  const file = named ?? DEFAULT_FILE;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (named === undefined && (error as NodeJS.ErrnoException).code === 'ENOENT')
      return { file: null, values: {} };
    throw new OperatorError(
      `Cannot read the configuration ${file}: ${(error as Error).message}`,
      'Check the path given with --config or LANESCAN_CONFIG.',
      { cause: error },
    );
  }
  let values: unknown;
  try {
    values = parse(text) ?? {};
  } catch (error) {
    throw new OperatorError(
      `${file} is not valid YAML: ${(error as Error).message.split('\n')[0]}`,
      'Fix the file.',
      {
        cause: error,
      },
    );
  }
  if (typeof values !== 'object' || values === null || Array.isArray(values)) {
    throw new OperatorError(
      `${file} is not a mapping of keys to values.`,
      'Write it as `port: 8080`, one key a line.',
    );
  }
  const keys = [
    ...Object.values(settings).map(({ key }) => key),
    WEBHOOKS_KEY,
    NETWORKS_KEY,
    CHAINS_KEY,
    TOKENS_KEY,
    LABELS_KEY,
    EXPLORERS_KEY,
  ];
  for (const key of Object.keys(values)) {
    if ((keys as readonly string[]).includes(key)) continue;
    const nearest = nearestName(key, keys);
    throw new OperatorError(
      `${file} has an unknown key ${JSON.stringify(key)}.`,
      nearest ? `Did you mean ${nearest}?` : `The keys are ${keys.join(', ')}.`,
    );
  }
  return { file, values: values as Record<string, unknown> };
}

function refuseUnknownVariables(environment: NodeJS.ProcessEnv): void {
  const known = [
    CONFIG_VARIABLE,
    API_KEY_VARIABLE,
    ...Object.values(settings).flatMap(({ variables }) => variables),
  ];
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('LANESCAN_') || known.includes(name)) continue;
    const nearest = nearestName(name, known);
    throw new OperatorError(
      `The environment has an unknown variable ${name}.`,
      nearest ? `Did you mean ${nearest}?` : `Those of Lanescan are ${known.join(', ')}.`,
    );
  }
}
