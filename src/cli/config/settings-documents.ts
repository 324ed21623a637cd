/** Documents made from the settings: the JSON Schema of lanescan.yaml, and the tables of README.md and docs/. */
import { settings } from './settings.ts';

interface Schema {
  readonly description?: string;
  readonly default?: unknown;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly takes?: string;
  readonly flag?: string;
  readonly variables?: readonly string[];
  readonly see?: string;
}

const schemas = settings as unknown as Readonly<Record<string, Schema>>;

export function settingsJsonSchema(): string {
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'lanescan.yaml',
    type: 'object',
    properties: schemas,
    additionalProperties: false,
  };
  return `${JSON.stringify(schema, forEditors, 2)}\n`;
}

function forEditors(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const { takes, flag: _flag, variables: _variables, see: _see, ...schema } = value as Schema;
  const required = schema.required?.filter((key) => schema.properties?.[key]?.default === undefined);
  return {
    ...schema,
    ...(takes !== undefined && schema.description === undefined && { description: `Takes ${takes}.` }),
    ...(required && { required }),
  };
}

/** Settings that lanescan.yaml cannot have. */
const others: readonly (Schema & { readonly fallback: string })[] = [
  {
    variables: ['DATABASE_URL', 'DATABASE_URL_FILE'],
    fallback: 'the embedded PostgreSQL',
    description: 'Any PostgreSQL 15 or later. With `_FILE`, the file that holds the URL.',
    see: 'docs/operations.md#a-postgresql-server-of-your-own',
  },
  {
    variables: ['DATABASE_REPLICA_URL', 'DATABASE_REPLICA_URL_FILE'],
    fallback: 'none',
    description: 'Replicas of it to read from, separated by commas.',
  },
  {
    flag: '--config',
    variables: ['LANESCAN_CONFIG'],
    fallback: '`./lanescan.yaml`, where there is one',
    description: 'The configuration file.',
  },
  {
    variables: ['LANESCAN_API_KEY'],
    fallback: 'none',
    description: 'The key for servers that commands read with `--url`.',
  },
];

/** Where each table is, between a comment with its name and `<!-- end -->`. */
const tables: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  'README.md': { settings: settingsTable },
  'docs/operations/indexing.md': {
    'EVM network': () => entryTable('networks', 'EVM network'),
    chains: () => entryTable('chains'),
  },
  'docs/operations/solana.md': { 'Solana network': () => entryTable('networks', 'Solana network') },
  'docs/api/webhooks.md': { webhooks: () => entryTable('webhooks') },
};

/** The documents by name, with their tables as the settings are now. */
export function settingsDocuments(read: (name: string) => string): Readonly<Record<string, string>> {
  const documents = Object.entries(tables).map(([name, parts]) => {
    const text = Object.entries(parts).reduce(
      (document, [part, table]) =>
        document.replace(
          new RegExp(`(<!-- npm run settings: ${part} -->\\n)[^]*?(\\n<!-- end -->)`),
          (_, begin: string, end: string) => `${begin}\n${table()}\n${end}`,
        ),
      read(name),
    );
    return [name, text];
  });
  return { 'lanescan.schema.json': settingsJsonSchema(), ...Object.fromEntries(documents) };
}

function settingsTable(): string {
  const entries = Object.entries(schemas).map(([key, schema]) => ({
    ...schema,
    key,
    fallback: shownDefault(schema),
  }));
  const rows = [...entries, ...others.map((other) => ({ ...other, key: undefined }))].map(
    ({ key, flag, variables = [], fallback, description, see }) => [
      flag ? `\`${flag}\`` : '',
      variables.map((name) => `\`${name}\``).join(', '),
      key ? `\`${key}\`` : '',
      fallback,
      `${description}${see ? ` [More](${see})` : ''}`,
    ],
  );
  return markdownTable([['flag', 'environment', 'lanescan.yaml', 'default', ''], ...rows]);
}

/** The keys of an entry of a list. @param title of the alternative, where there are several */
function entryTable(key: string, title?: string): string {
  const items = schemas[key]?.items;
  const entry = items?.anyOf?.find((one) => (one as { title?: string }).title === title) ?? items;
  const rows = Object.entries(entry?.properties ?? {}).map(([name, schema]) => {
    const isRequired = entry?.required?.includes(name) && schema.default === undefined;
    // A default that is not a value is described.
    const [text = '', described] = schema.description?.split(' Default: ') ?? [];
    const fallback = described?.replace(/\.$/, '') ?? shownDefault(schema);
    return [`\`${name}\``, isRequired ? 'required' : fallback, text];
  });
  return markdownTable([['key', 'default', ''], ...rows]);
}

function shownDefault({ default: value }: Schema): string {
  if (value === undefined || value === '') return 'none';
  if (typeof value !== 'object' || value === null) return `\`${value}\``;
  return Object.keys(value).length === 0 ? 'none' : `\`${JSON.stringify(value).replaceAll('"', '')}\``;
}

function markdownTable([head = [], ...rows]: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`.replaceAll(/ {2,}/g, ' ')).join('\n');
}
