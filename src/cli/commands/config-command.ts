/** `lanescan config`: the effective settings, and where each comes from. Secrets are not shown. */
import type { Command } from 'commander';
import { printable } from '../../text/format.ts';
import { type Config, type ConfigFlags, namesOf, networkSourcesOf, webhooksOf } from '../config/config.ts';
import { type CliContext, configOf, withStoreOptions } from '../context.ts';
import { writeOut } from '../output/output.ts';
import { cellsOf, createPaint } from '../output/terminal-text.ts';
import { withServerOptions } from './serve-command.ts';

interface ShowConfigFlags extends ConfigFlags {
  readonly json?: boolean;
}

interface ShownSetting {
  readonly key: string;
  readonly value: unknown;
  readonly origin: string;
}

export function addConfig(program: Command, context: CliContext): void {
  withServerOptions(withStoreOptions(program.command('config')))
    .option('--json', 'one setting a line, as JSON')
    .description('print the effective settings, and where each comes from')
    .addHelpText(
      'after',
      `
Flags override the environment, the environment overrides the configuration file, and the file overrides the defaults.
Passwords, keys and the paths of endpoints are not shown. \`lanescan doctor\` tests the settings.

Examples:
  $ lanescan config
  $ LANESCAN_PORT=9000 lanescan config --json`,
    )
    .action(async (flags: ShowConfigFlags) => {
      const settings = shownSettings(configOf(flags, context), context.environment);
      const text = flags.json ? jsonLines(settings) : table(settings, context);
      await writeOut(context.out, text);
    });
}

function shownSettings(config: Config, environment: NodeJS.ProcessEnv): readonly ShownSetting[] {
  const { origins, file } = config;
  const fromFile = (key: string, isThere: boolean) => (isThere ? `${key} in ${file}` : 'default');
  const values: Readonly<Record<string, unknown>> = {
    database: config.databaseUrl === null ? 'embedded' : withoutSecrets(config.databaseUrl),
    replicas: config.replicaUrls.map(withoutSecrets),
    data: config.dataFolder,
    abis: config.abisFolder,
    host: config.host,
    port: config.port,
    basePath: config.basePath,
    logLevel: config.logLevel,
    accessLog: config.accessLog,
    processes: config.processes,
    trustProxy: config.trustProxy,
    rateLimit: config.rateLimit,
    apiKeys: config.apiKeys.map(({ sha256, ...key }) => ({ ...key, sha256: `${sha256.slice(0, 8)}…` })),
    live: config.live,
    drainSeconds: config.drainSeconds,
    autoMigrate: config.autoMigrate,
    diagnosis: config.diagnosis,
    diagnosisCallsPerDay: config.diagnosisCallsPerDay,
  };
  const networks = networkSourcesOf(config, environment).map(({ network, rpc }) => ({
    network: network.name,
    rpc: rpc.map(({ host }) => host),
  }));
  const webhooks = webhooksOf(config, environment).map(({ name }) => name);
  const names = namesOf(config);
  const tokens = names.tokens.map(({ symbol, address }) => symbol ?? address);
  const labels = names.labels.map(({ name }) => name);
  const explorers = [...names.explorers.values()].map((website) => website ?? 'none');
  return [
    ...Object.entries(values).map(([key, value]) => ({ key, value, origin: origins[key] ?? 'default' })),
    {
      key: 'chains',
      value: config.chains.map(({ name }) => name),
      origin: fromFile('chains', config.chains.length > 0),
    },
    { key: 'tokens', value: tokens, origin: fromFile('tokens', tokens.length > 0) },
    { key: 'labels', value: labels, origin: fromFile('labels', labels.length > 0) },
    { key: 'explorers', value: explorers, origin: fromFile('explorers', explorers.length > 0) },
    { key: 'networks', value: networks, origin: fromFile('networks', networks.length > 0) },
    { key: 'webhooks', value: webhooks, origin: fromFile('webhooks', webhooks.length > 0) },
  ];
}

/** Host, port and database of a URL: user, password and parameters are left out. */
function withoutSecrets(url: string): string {
  if (!URL.canParse(url)) return 'not a valid URL';
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

function jsonLines(settings: readonly ShownSetting[]): string {
  return settings.map((setting) => `${JSON.stringify(setting)}\n`).join('');
}

function table(settings: readonly ShownSetting[], { out, environment }: CliContext): string {
  const paint = createPaint(out, environment);
  const rows = settings.map(({ key, value, origin }) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return { key, text: printable(text), origin: printable(origin) };
  });
  const widthOf = (column: 'key' | 'text') => Math.max(...rows.map((row) => cellsOf(row[column])));
  const [keyWidth, textWidth] = [widthOf('key'), Math.min(widthOf('text'), MAX_VALUE_WIDTH)];
  return rows
    .map(({ key, text, origin }) => {
      const gap = ' '.repeat(Math.max(0, textWidth - cellsOf(text)));
      return `${key.padEnd(keyWidth)}  ${text}${gap}  ${paint(origin, 'dim')}\n`;
    })
    .join('');
}

/** A longer value pushes its origin to the right. */
const MAX_VALUE_WIDTH = 40;
