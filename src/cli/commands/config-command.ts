/** `lanescan config`: the effective settings, and where each comes from. Secrets are not shown. */

import { printable } from '../../text/format.ts';
import type { Command } from '../command.ts';
import { type Config, type ConfigFlags, settingKeys } from '../config/config.ts';
import { settingsJsonSchema } from '../config/settings-documents.ts';
import { type CliContext, configOf, withStoreOptions } from '../context.ts';
import { writeObjects, writeOut } from '../output/output.ts';
import { type Column, columnWidths, tableText } from '../output/table.ts';
import { createPaint } from '../output/terminal-text.ts';
import { withServerOptions } from './serve-command.ts';

type ShownSetting = ReturnType<typeof shownSettings>[number];

export function addConfig(program: Command, context: CliContext): void {
  withServerOptions(withStoreOptions(program.command('config')))
    .option('--json', 'one setting a line, as JSON')
    .option('--schema', 'print the JSON Schema of lanescan.yaml instead, for editors')
    .description('print the effective settings, and where each comes from')
    .notes(`
Flags override the environment, the environment overrides the configuration file, and the file overrides the defaults.
Passwords, keys and the paths of endpoints are not shown. \`lanescan doctor\` tests the settings.

Examples:
  $ lanescan config
  $ LANESCAN_PORT=9000 lanescan config --json
  $ lanescan config --schema > lanescan.schema.json

An editor completes and checks lanescan.yaml if its first line is
# yaml-language-server: $schema=./lanescan.schema.json`)
    .action(async (flags: ConfigFlags & { json?: boolean; schema?: boolean }) => {
      if (flags.schema) return writeOut(context.out, settingsJsonSchema());
      const settings = shownSettings(configOf(flags, context), context.environment);
      return flags.json ? writeObjects(settings, context) : writeOut(context.out, table(settings, context));
    });
}

function shownSettings(config: Config, environment: NodeJS.ProcessEnv) {
  // What may hold secrets, and entries of which the name is enough.
  const shown: Readonly<Record<string, unknown>> = {
    ...config,
    database: config.databaseUrl === null ? 'embedded' : withoutSecrets(config.databaseUrl),
    replicas: config.replicaUrls.map(withoutSecrets),
    apiKeys: config.apiKeys.map(({ sha256, ...key }) => ({ ...key, sha256: `${sha256.slice(0, 8)}…` })),
    chains: config.chains.map(({ name }) => name),
    tokens: config.read('tokens').map(({ symbol, address }) => symbol ?? address),
    labels: config.read('labels').map(({ name }) => name),
    explorers: [...config.read('explorers').values()].map((website) => website ?? 'none'),
    networks: config.read('networks', environment).map(({ network, rpc }) => ({
      network: network.name,
      rpc: rpc.map(({ host }) => host),
    })),
    webhooks: config.read('webhooks', environment).map(({ name }) => name),
  };
  return ['database', 'replicas', ...settingKeys].map((key) => ({
    key,
    value: shown[key] ?? null,
    origin: config.origins[key] ?? 'default',
  }));
}

/** Host, port and database of a URL: user, password and parameters are left out. */
function withoutSecrets(url: string): string {
  if (!URL.canParse(url)) return 'not a valid URL';
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

function table(settings: readonly ShownSetting[], { out, environment }: CliContext): string {
  const columns: readonly Column<ShownSetting>[] = [
    { title: '', cell: ({ key }) => key },
    { title: '', cell: ({ value }) => printable(typeof value === 'string' ? value : JSON.stringify(value)) },
    { title: '', cell: ({ origin }) => printable(origin), colours: () => ['dim'] },
  ];
  const [keys = 0, values = 0, origins = 0] = columnWidths(columns, settings);
  const widths = [keys, Math.min(values, MAX_VALUE_WIDTH), origins];
  const paint = createPaint(out, environment);
  return tableText(settings, { columns, widths, paint, hasTitles: false, isCut: false });
}

/** A longer value pushes its origin to the right. */
const MAX_VALUE_WIDTH = 40;
