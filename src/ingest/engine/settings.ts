/** The setting `networks`. The keys that every family has are described here, the others by the family. */
import Type, { type Static, type TSchema, type TUnsafe } from 'typebox';
import { parseTime } from '../../base/iso-time.ts';
import { custom, distinct, parseHttpUrl, refined } from '../../base/settings.ts';
import { similarNetworks } from '../../domain/networks/network-names.ts';
import { findNetwork, type Network } from '../../domain/networks/networks.ts';
import type { NetworkSource } from './family.ts';

/** Each has its own worker. */
const MAX_NETWORKS = 100;
const MAX_ENDPOINTS = 10;

/** An endpoint's URL often holds a key, so errors do not repeat it. */
export const endpointUrl = refined(
  Type.String({ writeOnly: true, takes: 'a URL such as https://rpc.example/key' }),
  parseHttpUrl,
);

const networkName = Type.Union([Type.String(), Type.Integer()], {
  description: 'Name, chain id or chain selector (selectors in quotes: YAML would round them).',
  takes: 'a name such as ethereum-testnet-sepolia, a chain id or a chain selector',
});

const start = refined(
  Type.Union([Type.String(), Type.Integer({ minimum: 0 })], {
    description:
      'Block number, date (`2025-01-01`) or time with its zone. Default: the first router’s deployment.',
    takes: 'a block number, a date such as 2024-01-31, or a time with its zone such as 2024-01-31T12:00:00Z',
  }),
  (value): NetworkSource['start'] | undefined => {
    if (typeof value === 'number') return { block: value };
    const time = parseTime(/^\d{4}-\d\d-\d\d$/.test(value) ? `${value}T00:00:00Z` : value);
    return Number.isNaN(time) ? undefined : { time };
  },
);

/** The keys that every family has. */
export const commonKeys = {
  network: refined(networkName, (text) => findNetwork(String(text))),
  rpc: distinct(
    Type.Array(endpointUrl, {
      minItems: 1,
      maxItems: MAX_ENDPOINTS,
      description: `1 to ${MAX_ENDPOINTS} endpoints, http or https, the preferred one first; \`\${NAME}\` takes its value from the environment.`,
      takes: `a list of 1 to ${MAX_ENDPOINTS} URLs, such as ["https://rpc.example/key"]`,
    }),
    // Twice the same one would be taken for a second opinion.
    ({ href }) => href,
  ),
  start: Type.Optional(start),
  requestsPerSecond: Type.Number({
    minimum: 0.1,
    maximum: 10_000,
    default: 20,
    description: 'Calls a second to each endpoint; every call in a batch counts.',
  }),
  batchSize: Type.Integer({
    minimum: 1,
    maximum: 1_000,
    default: 50,
    description: 'Calls in one request, at most.',
  }),
  pollSeconds: Type.Number({
    minimum: 0.05,
    maximum: 3_600,
    default: 2,
    description: 'Seconds between polls of the head.',
  }),
};

/** What all families make of these keys. */
export function sourceOf<T extends Static<Type.TObject<typeof commonKeys>>>({
  pollSeconds,
  start = null,
  ...given
}: T) {
  return { ...given, start, pollEvery: Math.round(pollSeconds * 1000) };
}

/** The families that can be indexed, by their names in the table of networks. `settings` reads an entry. */
export type FamilyTable = Readonly<
  Partial<Record<Network['family'], { readonly settings: TUnsafe<NetworkSource> }>>
>;

export function networksSettingOf(families: FamilyTable): TUnsafe<NetworkSource[]> {
  const entries = Object.values(families).map(({ settings }) => settings);
  const keys = Object.assign({}, ...entries.map((entry) => (entry as TSchema as Type.TObject).properties));
  const anyKeys = Type.Object(
    {
      ...Object.fromEntries(Object.keys(keys).map((key) => [key, Type.Optional(Type.Unknown())])),
      network: networkOf(families),
    },
    { additionalProperties: false },
  );
  // The network decides which keys there are, so it is read first.
  const entry = custom(Type.Union(entries), (value, context): NetworkSource => {
    const { network } = context.read(anyKeys, value);
    const family = families[network.family];
    return family
      ? context.read(family.settings, value)
      : context.reject(
          `is ${network.name}, which is of the family ${network.family}`,
          `Only ${Object.keys(families).join(' and ')} networks can be indexed.`,
          'network',
        );
  });
  return distinct(
    Type.Array(entry, {
      maxItems: MAX_NETWORKS,
      default: [],
      description: 'The networks to index, and their endpoints.',
      takes: `a list of at most ${MAX_NETWORKS} networks, each beginning with \`- network: …\``,
      see: 'docs/operations/indexing.md',
    }),
    ({ network }) => network,
    'Put all endpoints and routers of a network into one entry.',
  );
}

function networkOf(families: FamilyTable): TUnsafe<Network> {
  return refined(networkName, (value, { reject }) => {
    const text = String(value);
    const [nearest] = similarNetworks(text, ({ family }) => families[family] !== undefined);
    return (
      findNetwork(text) ??
      reject(
        `is ${JSON.stringify(text)}, which is not a known network`,
        nearest
          ? `Did you mean ${nearest.name}?`
          : 'It takes a name, a chain id or a chain selector. Define a chain that is not built in under `chains`.',
      )
    );
  });
}
