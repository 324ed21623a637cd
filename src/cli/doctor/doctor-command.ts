import { createServer } from 'node:net';
import { OperatorError } from '../../base/operator-error.ts';
import type { Message } from '../../domain/message.ts';
import { NotInitialisedError, OlderSchemaError } from '../../store/schema/migrate.ts';
import { connectionsNeeded } from '../../store/server/connection-budget.ts';
import type { Store } from '../../store/store.ts';
import { age, counted, printable } from '../../text/format.ts';
import type { Command } from '../command.ts';
import { walkDerivedRows } from '../commands/repair-command.ts';
import { withServerOptions } from '../commands/serve-command.ts';
import { serverUrl } from '../commands/show-command.ts';
import { describeAbis, loadAbis } from '../config/abi-folder.ts';
import { type Config, type ConfigFlags, UsageError } from '../config/config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from '../context.ts';
import { writeOut } from '../output/output.ts';
import { type Colour, createPaint, databaseName } from '../output/terminal-text.ts';
import { lanescanVersion, oldestNode } from '../version.ts';
import { clusterFindings, replicaFindings, settingsFindings } from './database-findings.ts';
import { diskFinding, growthFindings } from './disk-findings.ts';
import { type Finding, failure, ok, problemFinding, warning } from './finding.ts';
import { networkFindings, sourceFindings } from './source-findings.ts';

const CLOCK_TOLERANCE_MS = 5 * 60_000;
const HEALTH_TIMEOUT_MS = 2_000;
const UNHEALTHY_STATUS = 1;

const signs: Record<Finding['severity'], { readonly glyph: string; readonly colour: Colour }> = {
  ok: { glyph: '✓', colour: 'green' },
  warning: { glyph: '!', colour: 'yellow' },
  error: { glyph: '✗', colour: 'red' },
};

interface DoctorFlags extends ConfigFlags {
  readonly deep?: boolean;
}

export function addDoctor(program: Command, context: CliContext): void {
  withServerOptions(withStoreOptions(program.command('doctor')))
    .option('--deep', 'also compare every record with the rows derived from it (reads the whole store)')
    .description('find problems with the configuration, endpoints, database and port, and how to fix them')
    .notes(`
Checks the configuration, Node, the networks to index and whether an indexer is alive, the database and its replicas,
the disk and how long it lasts at the present pace, and the port, and says how to fix each problem. For every endpoint it
tests the chain, how much history there is and which requests are accepted; for every replica, the database it belongs to
and how far it is behind. No password and no key is shown.

Nothing is changed: an older schema stays as it is, and a missing database is not created. An embedded database that is
not running is started for the check and stopped again.

Exit status: 0 no problems, 1 problems that must be fixed.

Examples:
  $ lanescan doctor
  $ DATABASE_URL=postgresql://… lanescan doctor --port 80`)
    .action(async (flags: DoctorFlags) => {
      const paint = createPaint(context.out, context.environment);
      const counts = { ok: 0, warning: 0, error: 0 };
      for await (const { severity, what, remedy } of findings(flags, context)) {
        counts[severity]++;
        const { glyph, colour } = signs[severity];
        const advice = remedy === undefined ? '' : `\n  ${paint('→', 'dim')} ${remedy}`;
        await writeOut(context.out, `${paint(glyph, colour)} ${what}${advice}\n`);
      }
      const warnings = counts.warning === 0 ? '' : `, ${counted(counts.warning, 'warning')}`;
      if (counts.error > 0) context.exitCode = UNHEALTHY_STATUS;
      const summary = counts.error > 0 ? `${counted(counts.error, 'problem')} to fix` : 'No problems';
      await writeOut(context.out, `\n${paint(`${summary}${warnings}`, 'bold')}\n`);
    });
}

/** All checks, in the order in which they depend on each other. */
async function* findings({ deep = false, ...flags }: DoctorFlags, context: CliContext) {
  yield nodeFinding();
  let config: Config;
  try {
    config = configOf(flags, context);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    yield problemFinding('Configuration', error);
    yield warning('Database, disk and port were not checked: they depend on the configuration');
    return;
  }
  yield configFinding(config);
  yield* checked('ABIs', () => {
    const abis = loadAbis(config);
    return abis && ok(`ABIs: ${printable(describeAbis(abis))}`);
  });
  yield* checked('Webhooks', () => {
    const names = config.read('webhooks', context.environment).map(({ name }) => printable(name));
    return names.length > 0 ? ok(`Webhooks: ${names.join(', ')}`) : undefined;
  });
  yield* networkFindings(config, context);
  if (config.databaseUrl === null) yield await diskFinding(config.dataFolder);
  yield* databaseFindings(config, deep, context);
  yield* replicaFindings(config, context);
  yield await portFinding(config);
}

function nodeFinding(): Finding {
  const running = process.versions.node;
  const what = `Lanescan ${lanescanVersion} on Node ${running}`;
  const isRecent = running.localeCompare(oldestNode, 'en', { numeric: true }) >= 0;
  return isRecent ? ok(what) : failure(what, `Install Node ${oldestNode} or later.`);
}

/** The finding of a check, where it has one, or its failure. */
function* checked(subject: string, check: () => Finding | undefined): Generator<Finding> {
  try {
    const found = check();
    if (found) yield found;
  } catch (error) {
    yield problemFinding(subject, error);
  }
}

function configFinding({ file, origins, host, port, dataFolder, logLevel, databaseUrl }: Config): Finding {
  const shown = (key: string, value: string | number) => {
    const origin = origins[key] ?? 'default';
    return `${key} ${printable(String(value))}${origin === 'default' ? '' : ` (${printable(origin)})`}`;
  };
  const database =
    databaseUrl === null
      ? shown('data', dataFolder)
      : `database ${databaseName(databaseUrl)} (${origins.database})`;
  const settings = [shown('host', host), shown('port', port), database, shown('logLevel', logLevel)];
  return ok(`Configuration from ${file === null ? 'no file' : printable(file)}: ${settings.join(', ')}`);
}

async function* databaseFindings(config: Config, deep: boolean, context: CliContext) {
  const kind = config.databaseUrl === null ? 'embedded' : 'server';
  let found: readonly Finding[];
  try {
    found = await withStore(config, context, { connections: 1 }, async (store) => [
      ok(`Database: ${kind} PostgreSQL ${printable(store.serverVersion)}`),
      ok(`Schema: up to date, ${counted(store.migrations.total, 'migration')}`),
      // The embedded server has our settings.
      ...(kind === 'server'
        ? settingsFindings(await store.serverSettings(), connectionsNeeded(config.processes))
        : []),
      ...clusterFindings(await store.cluster()),
      ...(await contentFindings(store, context.now())),
      ...growthFindings(await store.diskUsage()),
      ...(await derivedFindings(store, deep, context)),
      ...(await sourceFindings(store, config, context)),
    ]);
  } catch (error) {
    if (context.signal.aborted) throw error;
    found = [databaseProblem(error, config)];
  }
  yield* found;
}

function databaseProblem(error: unknown, { autoMigrate }: Config): Finding {
  const remedy = error instanceof OperatorError ? error.remedy : 'Check the database and its log.';
  // The next start of a server or an import migrates the schema.
  const isFixedAtNextStart =
    error instanceof NotInitialisedError || (error instanceof OlderSchemaError && autoMigrate);
  const found = isFixedAtNextStart ? warning : failure;
  return found(`Database: ${printable((error as Error).message)}`, printable(remedy));
}

async function contentFindings(store: Store, now: number): Promise<readonly Finding[]> {
  const { count, isExact } = await store.countMessages();
  const { records } = await store.search({ filters: {}, view: 'summary', limit: 1, after: null });
  const [newest] = records.map((record) => now - Date.parse((JSON.parse(record) as Message).sendTimestamp));
  const kind = store.simulated ? 'SIMULATED' : 'real';
  const amount = `${isExact ? '' : 'about '}${counted(count, `${kind} message`)}`;
  if (newest === undefined) return [ok(`Content: ${amount}`)];
  const since = age(Math.abs(newest));
  const content = ok(`Content: ${amount}, the newest sent ${since} ${newest < 0 ? 'from now' : 'ago'}`);
  if (newest >= -CLOCK_TOLERANCE_MS) return [content];
  return [
    content,
    warning(
      `Clock: it is ${new Date(now).toISOString()} here, and the newest message was sent ${since} later`,
      'Set the clock of this machine, or check where the records come from.',
    ),
  ];
}

async function derivedFindings(store: Store, deep: boolean, context: CliContext) {
  const report = deep ? await walkDerivedRows(store, 'compare', context) : await store.derived.sample();
  if (report === undefined) return [warning('Derived rows: not compared, interrupted')];
  const found = report.disagreements.map(({ what, count, isRepairable }) => {
    const text = `Derived rows: ${count.toLocaleString('en')} ${what}${deep ? '' : ' (in a sample)'}`;
    return isRepairable
      ? failure(text, 'Run `lanescan repair`: it rebuilds them from the records.')
      : warning(text, 'It cannot be repaired; readers of the history skip it.');
  });
  const unchecked =
    report.unchecked.length === 0 ? '' : `; ${report.unchecked.join(', ')} not checked (timeout)`;
  const compared = `${counted(report.messages, 'message')} compared with ${report.messages === 1 ? 'its' : 'their'} records`;
  const summary = deep
    ? `all ${compared}, statistics and history too`
    : `a sample of ${compared}, sums compared${unchecked} (--deep compares everything)`;
  return [...found, ok(`Derived rows: ${summary}`)];
}

async function portFinding({ host, port }: Config): Promise<Finding> {
  const place = `${printable(host)}:${port}`;
  if (port === 0) return ok(`Port: any free one on ${printable(host)}`);
  const obstacle = await tryToListen(host, port);
  if (obstacle === undefined) return ok(`Port: ${place} is free`);
  if (obstacle.code !== 'EADDRINUSE')
    return failure(
      `Port: cannot listen on ${place}: ${printable(obstacle.message)}`,
      'Choose another address with --host and --port.',
    );
  if (await isLanescan(host, port)) return ok(`Port: Lanescan already answers on ${place}`);
  return failure(
    `Port: ${place} is taken by another program`,
    'Stop that program, or choose another port with --port.',
  );
}

function tryToListen(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen({ host, port }, () => server.close(() => resolve(undefined)));
  });
}

async function isLanescan(host: string, port: number): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
    const response = await fetch(`${serverUrl({ host, port })}/healthz`, { signal });
    const { status } = (await response.json()) as { status?: unknown };
    return status === 'ok' && response.headers.has('x-request-id');
  } catch {
    return false;
  }
}
