/**
 * The settings of lanescan.yaml: one entry for each key. From it come the checks and their errors, the defaults, the type of
 * the configuration, `lanescan config`, the JSON Schema for editors and the tables of the documents.
 */
import { isIP } from 'node:net';
import Type, { type Static } from 'typebox';
import { DEFAULT_CALLS_PER_DAY } from '../../api/execution/call-budget.ts';
import { type ApiKey, defaultRateLimit } from '../../api/server/rate-limit.ts';
import { distinct, refined } from '../../base/settings.ts';
import { explorersSetting, labelsSetting, tokensSetting } from '../../domain/names/name-definitions.ts';
import { chainsSetting } from '../../domain/networks/network-definitions.ts';
import { networksSetting } from '../../ingest/families.ts';
import { webhooksSetting } from '../../webhooks/subscription.ts';

/** What an entry may have beside JSON Schema and `SettingOptions`. */
export interface TopLevelOptions {
  /** The flag that overrides it. The commands that have it declare it. */
  readonly flag?: string;
  /** Environment variables that override it, the first that is set. */
  readonly variables?: readonly string[];
  /** The document that explains it. */
  readonly see?: string;
}

const MAX_RATE = 1_000_000;

const allowance = {
  perSecond: Type.Number({ exclusiveMinimum: 0, maximum: MAX_RATE, description: 'Requests a second.' }),
  burst: Type.Integer({ minimum: 1, maximum: MAX_RATE, description: 'Requests at once after a pause.' }),
};

const apiKey = Type.Object(
  {
    name: Type.String({ description: 'A name for the operator; no response shows it.', takes: 'a name' }),
    sha256: refined(
      Type.String({
        pattern: '^[0-9a-fA-F]{64}$',
        writeOnly: true,
        description: 'What `printf %s KEY | sha256sum` prints.',
        takes: 'the 64 hexadecimal digits that `printf %s KEY | sha256sum` prints, never the key itself',
      }),
      (digits) => digits.toLowerCase(),
    ),
    ...allowance,
  },
  { additionalProperties: false, writeOnly: true },
);

const proxy = refined(Type.String({ takes: 'an address or a network such as 10.0.0.0/8' }), (place) => {
  const [address = '', bits, ...rest] = place.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return undefined;
  const isNetwork =
    bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
  return isNetwork ? place : undefined;
});

const cap = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, description }));

export const settings = {
  data: Type.String({
    minLength: 1,
    default: './data',
    flag: '--data',
    variables: ['LANESCAN_DATA'],
    description: 'The folder of the embedded PostgreSQL.',
    takes: 'the folder of the embedded database',
  }),
  abis: Type.Optional(
    Type.String({
      minLength: 1,
      variables: ['LANESCAN_ABIS'],
      description: 'A folder of ABIs whose errors name reasons of failures.',
      takes: 'a folder of ABIs: JSON files as compilers write them',
      see: 'docs/api/attempts.md#errors-of-your-own-contracts',
    }),
  ),
  host: Type.String({
    minLength: 1,
    default: '127.0.0.1',
    flag: '--host',
    variables: ['LANESCAN_HOST'],
    description: 'The address to listen on. `127.0.0.1`: this machine only.',
    takes: 'an address to listen on, such as 127.0.0.1 or 0.0.0.0',
  }),
  port: Type.Integer({
    minimum: 0,
    maximum: 65_535,
    default: 8080,
    flag: '--port',
    variables: ['LANESCAN_PORT', 'PORT'],
    description: 'The port to listen on.',
    takes: 'a port from 0 to 65535 (0: any free one)',
  }),
  basePath: refined(
    Type.String({
      maxLength: 200,
      // Browsers and proxies resolve segments of dots.
      pattern: '^(/[\\w.-]*[\\w-][\\w.-]*)*/?$',
      default: '',
      flag: '--base-path',
      variables: ['LANESCAN_BASE_PATH'],
      description: 'The prefix of all URLs, such as `/lanescan`, where a proxy serves it below a path.',
      takes: 'a path such as /lanescan: a slash and letters, digits, `-`, `_` or `.`, up to 200 characters',
      see: 'docs/operations.md#below-a-path',
    }),
    (path) => path.replace(/\/$/, ''),
  ),
  logLevel: Type.Enum(['debug', 'info', 'warn', 'error', 'silent'], {
    default: 'info',
    flag: '--log-level',
    variables: ['LANESCAN_LOG_LEVEL'],
    description: 'The least level that is logged: `debug`, `info`, `warn`, `error` or `silent`.',
  }),
  accessLog: Type.Boolean({
    default: true,
    variables: ['LANESCAN_ACCESS_LOG'],
    description: 'Whether the log has a line for each request.',
  }),
  processes: Type.Integer({
    minimum: 1,
    maximum: 64,
    default: 1,
    flag: '--processes',
    variables: ['LANESCAN_PROCESSES'],
    description: 'Worker processes that answer on the port, about one for each core.',
    see: 'docs/operations.md#more-than-one-core',
  }),
  trustProxy: Type.Union(
    [Type.Literal(false), Type.Integer({ minimum: 1, maximum: 10 }), Type.Array(proxy, { minItems: 1 })],
    {
      default: false,
      variables: ['LANESCAN_TRUST_PROXY'],
      description: 'The number of proxies in front, or a list of their addresses or networks.',
      takes:
        'false, the number of proxies in front (1 to 10), or a list of their addresses or networks, such as ["10.0.0.0/8", "::1"]',
      see: 'docs/operations.md#run-behind-nginx-haproxy-or-caddy',
    },
  ),
  rateLimit: Type.Union(
    [
      Type.Literal(false),
      Type.Object(
        {
          perSecond: { ...allowance.perSecond, default: defaultRateLimit.perSecond },
          burst: { ...allowance.burst, default: defaultRateLimit.burst },
          loopback: Type.Boolean({
            default: defaultRateLimit.loopback,
            description: 'Whether clients on this machine are limited too.',
          }),
        },
        { additionalProperties: false },
      ),
    ],
    {
      default: defaultRateLimit,
      description: 'Requests of each client address, or `false` for no limit.',
      takes: 'false, or a mapping such as {perSecond: 50, burst: 200, loopback: false}',
      see: 'docs/operations.md#rate-limits-and-keys',
    },
  ),
  apiKeys: refined(
    distinct(
      Type.Array(apiKey, {
        default: [],
        writeOnly: true,
        description:
          'Clients with a rate limit of their own: `name`, `sha256` of the key, `perSecond`, `burst`.',
        takes: 'a list of {name, sha256, perSecond, burst}',
        see: 'docs/operations.md#rate-limits-and-keys',
      }),
      ({ name }) => name,
    ),
    (keys, { reject }): readonly ApiKey[] => {
      const hashes = new Set(keys.map(({ sha256 }) => sha256));
      return hashes.size === keys.length ? keys : reject('has a hash twice', 'Give each client its own key.');
    },
  ),
  live: Type.Object(
    {
      streams: cap('Open streams.'),
      streamsPerAddress: cap('Open streams of one address.'),
      waiters: cap('Requests that wait for a status.'),
      waitersPerAddress: cap('Requests of one address that wait for a status.'),
      exportsPerAddress: cap('Exports of one address at a time.'),
    },
    {
      additionalProperties: false,
      default: {},
      description: 'Caps on streams, waiting requests and exports.',
      see: 'docs/operations.md#rate-limits-and-keys',
    },
  ),
  drainSeconds: Type.Number({
    minimum: 0,
    maximum: 300,
    default: 0,
    variables: ['LANESCAN_DRAIN_SECONDS'],
    description:
      'How long a stopping server still answers, so that load balancers notice that it is not ready.',
    see: 'docs/operations.md#stopping',
  }),
  autoMigrate: Type.Boolean({
    default: true,
    variables: ['LANESCAN_AUTO_MIGRATE'],
    description: 'With `false` only `lanescan migrate` changes the schema.',
  }),
  diagnosis: Type.Boolean({
    default: true,
    variables: ['LANESCAN_DIAGNOSIS'],
    description: 'With `false` no execution is simulated on the endpoints of `networks` for visitors.',
    see: 'docs/operations.md#diagnoses',
  }),
  diagnosisCallsPerDay: Type.Integer({
    minimum: 1,
    maximum: 1_000_000_000,
    default: DEFAULT_CALLS_PER_DAY,
    variables: ['LANESCAN_DIAGNOSIS_CALLS_PER_DAY'],
    description: 'Calls a day to the endpoints of each network for simulations.',
    see: 'docs/operations.md#diagnoses',
  }),
  chains: chainsSetting,
  tokens: tokensSetting,
  labels: labelsSetting,
  explorers: explorersSetting,
  networks: networksSetting,
  webhooks: webhooksSetting,
} as const;

export type Settings = Static<Type.TObject<typeof settings>>;
export type SettingKey = keyof typeof settings;
