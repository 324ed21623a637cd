import { statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import type { Command } from 'commander';
import { OperatorError } from '../base/operator-error.ts';
import type { Message } from '../domain/message.ts';
import { connectionsNeeded } from '../store/connection-budget.ts';
import { NotInitialisedError, OlderSchemaError } from '../store/schema-errors.ts';
import type { Store } from '../store/store.ts';
import { type Config, type ConfigFlags, UsageError, webhooksOf } from './config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from './context.ts';
import { networkFindings } from './network-findings.ts';
import { writeOut } from './output.ts';
import { walkDerivedRows } from './repair.ts';
import { replicaFindings } from './replica-findings.ts';
import { withServerOptions } from './serve.ts';
import { settingsFindings } from './server-settings-findings.ts';
import { sourceFindings } from './source-findings.ts';
import { age, type Colour, counted, createPaint, databaseName, printable } from './terminal-text.ts';
import { lanescanVersion, oldestNode } from './version.ts';

const LITTLE_SPACE_BYTES = 1e9;
const CLOCK_TOLERANCE_MS = 5 * 60_000;
const ASK_TIMEOUT_MS = 2_000;
const UNHEALTHY_STATUS = 1;

export interface Finding {
  /** `worry` is worth knowing; `fault` must be mended. */
  readonly verdict: 'fine' | 'worry' | 'fault';
  readonly what: string;
  /** What to do about it. */
  readonly remedy?: string;
}

const signs: Record<Finding['verdict'], { readonly glyph: string; readonly colour: Colour }> = {
  fine: { glyph: '✓', colour: 'green' },
  worry: { glyph: '!', colour: 'yellow' },
  fault: { glyph: '✗', colour: 'red' },
};

interface DoctorFlags extends ConfigFlags {
  readonly deep?: boolean;
}

export function addDoctor(program: Command, context: CliContext): void {
  withServerOptions(withStoreOptions(program.command('doctor')))
    .option('--deep', 'also compare every record with what is derived from it (reads the whole store)')
    .description('check that everything Lanescan needs is in order')
    .addHelpText(
      'after',
      `
Looks at the configuration, Node, the networks to index and whether an indexer is alive, the database and its
replicas, the disk and the port, and says what to do about what is wrong. Every endpoint of a network is asked who
it is, how far back it goes and what it takes; every replica, whose it is and how far behind. It shows no password
and no key.

It changes nothing: an older schema stays as it is, and a database that is not there is not created. An embedded
database that does not run is started for the check and stopped again.

Exit status: 0 all in order, 1 something must be mended.

Examples:
  $ lanescan doctor
  $ DATABASE_URL=postgresql://… lanescan doctor --port 80`,
    )
    .action(async (flags: DoctorFlags) => {
      const paint = createPaint(context.out, context.environment);
      const counts = { fine: 0, worry: 0, fault: 0 };
      for await (const { verdict, what, remedy } of findings(flags, context)) {
        counts[verdict]++;
        const { glyph, colour } = signs[verdict];
        const advice = remedy === undefined ? '' : `\n  ${paint('→', 'dim')} ${remedy}`;
        await writeOut(context.out, `${paint(glyph, colour)} ${what}${advice}\n`);
      }
      const worries = counts.worry === 0 ? '' : `, ${counted(counts.worry, 'warning')}`;
      if (counts.fault > 0) context.exitCode = UNHEALTHY_STATUS;
      const sum = counts.fault > 0 ? `${counted(counts.fault, 'fault')} to mend` : 'All in order';
      await writeOut(context.out, `\n${paint(`${sum}${worries}`, 'bold')}\n`);
    });
}

/** Everything there is to say, in the order in which one thing depends on another. */
async function* findings(
  { deep = false, ...flags }: DoctorFlags,
  context: CliContext,
): AsyncGenerator<Finding> {
  yield nodeFinding();
  let config: Config;
  try {
    config = configOf(flags, context);
  } catch (error) {
    if (!(error instanceof OperatorError) || error instanceof UsageError) throw error;
    yield {
      verdict: 'fault',
      what: `Configuration: ${printable(error.message)}`,
      remedy: printable(error.remedy),
    };
    yield {
      verdict: 'worry',
      what: 'Database, disk and port were not checked: they follow from the configuration',
    };
    return;
  }
  yield configFinding(config);
  yield* webhookFindings(config, context);
  yield* networkFindings(config, context);
  if (config.databaseUrl === null) yield await diskFinding(config.dataFolder);
  yield* databaseFindings(config, deep, context);
  yield* replicaFindings(config, context);
  yield await portFinding(config);
}

function nodeFinding(): Finding {
  const running = process.versions.node;
  const what = `Lanescan ${lanescanVersion} on Node ${running}`;
  if (running.localeCompare(oldestNode, 'en', { numeric: true }) >= 0) return { verdict: 'fine', what };
  return { verdict: 'fault', what, remedy: `Install Node ${oldestNode} or later.` };
}

function configFinding({ file, origins, host, port, dataFolder, logLevel, databaseUrl }: Config): Finding {
  const shown = (key: string, value: string | number) => {
    const origin = origins[key] ?? 'default';
    return `${key} ${printable(String(value))}${origin === 'default' ? '' : ` (${printable(origin)})`}`;
  };
  const database =
    databaseUrl === null ? shown('data', dataFolder) : `database ${databaseName(databaseUrl)} (DATABASE_URL)`;
  const settings = [shown('host', host), shown('port', port), database, shown('logLevel', logLevel)];
  return {
    verdict: 'fine',
    what: `Configuration from ${file === null ? 'no file' : printable(file)}: ${settings.join(', ')}`,
  };
}

/** Says nothing where none are configured. */
function* webhookFindings(config: Config, { environment }: CliContext): Generator<Finding> {
  try {
    const names = webhooksOf(config, environment).map(({ name }) => name);
    if (names.length > 0) yield { verdict: 'fine', what: `Webhooks: ${names.map(printable).join(', ')}` };
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    yield {
      verdict: 'fault',
      what: `Webhooks: ${printable(error.message)}`,
      remedy: printable(error.remedy),
    };
  }
}

async function diskFinding(dataFolder: string): Promise<Finding> {
  const folder = path.resolve(dataFolder);
  for (let existing = folder; ; existing = path.dirname(existing)) {
    try {
      const { bavail, bsize } = await statfs(existing);
      const free = bavail * bsize;
      const what = `Disk of ${printable(dataFolder)}: ${gigabytes(free)} free`;
      if (free >= LITTLE_SPACE_BYTES) return { verdict: 'fine', what };
      return { verdict: 'worry', what, remedy: 'Free some space, or choose another folder with --data.' };
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const isMissing = code === 'ENOENT' || code === 'ENOTDIR';
      if (isMissing && existing !== path.dirname(existing)) continue;
      return {
        verdict: 'worry',
        what: `Disk of ${printable(dataFolder)}: ${printable(message)}`,
        remedy: 'Check the path, or choose another folder with --data.',
      };
    }
  }
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

async function* databaseFindings(
  config: Config,
  deep: boolean,
  context: CliContext,
): AsyncGenerator<Finding> {
  const kind = config.databaseUrl === null ? 'embedded' : 'server';
  let found: readonly Finding[];
  try {
    found = await withStore(config, context, { connections: 1 }, async (store) => [
      { verdict: 'fine' as const, what: `Database: ${kind} PostgreSQL ${printable(store.serverVersion)}` },
      {
        verdict: 'fine' as const,
        what: `Schema: up to date, ${counted(store.migrations.total, 'migration')}`,
      },
      // The embedded server has settings of our own.
      ...(kind === 'server'
        ? settingsFindings(await store.serverSettings(), connectionsNeeded(config.processes))
        : []),
      ...(await contentFindings(store, context.now())),
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
  // What the next start of a server or an import sees to by itself is no fault.
  const willPass = error instanceof NotInitialisedError || (error instanceof OlderSchemaError && autoMigrate);
  return {
    verdict: willPass ? 'worry' : 'fault',
    what: `Database: ${printable((error as Error).message)}`,
    remedy: printable(remedy),
  };
}

async function contentFindings(store: Store, now: number): Promise<readonly Finding[]> {
  const { count, isExact } = await store.countMessages();
  const { records } = await store.search({ filters: {}, view: 'summary', limit: 1, after: null });
  const [newest] = records.map((record) => now - Date.parse((JSON.parse(record) as Message).sendTimestamp));
  const kind = store.simulated ? 'SIMULATED' : 'real';
  const amount = `${isExact ? '' : 'about '}${counted(count, `${kind} message`)}`;
  if (newest === undefined) return [{ verdict: 'fine', what: `Content: ${amount}` }];
  const isFromFuture = newest < -CLOCK_TOLERANCE_MS;
  const since = newest < 0 ? age(-newest) : age(newest);
  const content: Finding = {
    verdict: 'fine',
    what: `Content: ${amount}, the newest sent ${newest < 0 ? `${since} from now` : `${since} ago`}`,
  };
  if (!isFromFuture) return [content];
  return [
    content,
    {
      verdict: 'worry',
      what: `Clock: it is ${new Date(now).toISOString()} here, and the newest message was sent ${since} later`,
      remedy: 'Set the clock of this machine, or check where the records come from.',
    },
  ];
}

/** Whether what is kept beside the records agrees with them; and how much of it was looked at. */
async function derivedFindings(
  store: Store,
  deep: boolean,
  context: CliContext,
): Promise<readonly Finding[]> {
  const report = deep ? await walkDerivedRows(store, 'compare', context) : await store.derived.sample();
  if (report === undefined) return [{ verdict: 'worry', what: 'Derived rows: not compared, interrupted' }];
  const found = report.disagreements.map(
    ({ what, count, isRepairable }): Finding => ({
      verdict: isRepairable ? 'fault' : 'worry',
      what: `Derived rows: ${count.toLocaleString('en')} ${what}${deep ? '' : ' (in a sample)'}`,
      remedy: isRepairable
        ? 'Run `lanescan repair`: it makes them anew from the records.'
        : 'It cannot be repaired; who follows the history passes over it.',
    }),
  );
  const unchecked =
    report.unchecked.length === 0 ? '' : `; ${report.unchecked.join(', ')} not checked: it took too long`;
  const looked = `${counted(report.messages, 'message')} compared with ${report.messages === 1 ? 'its' : 'their'} records`;
  const summary: Finding = deep
    ? { verdict: 'fine', what: `Derived rows: all ${looked}, statistics and history too` }
    : {
        verdict: 'fine',
        what: `Derived rows: a sample of ${looked}, sums compared${unchecked} (--deep compares everything)`,
      };
  return [...found, summary];
}

async function portFinding({ host, port }: Config): Promise<Finding> {
  const place = `${printable(host)}:${port}`;
  if (port === 0) return { verdict: 'fine', what: `Port: any free one on ${printable(host)}` };
  const failure = await tryToListen(host, port);
  if (failure === undefined) return { verdict: 'fine', what: `Port: ${place} is free` };
  if (failure.code !== 'EADDRINUSE') {
    return {
      verdict: 'fault',
      what: `Port: cannot listen on ${place}: ${printable(failure.message)}`,
      remedy: 'Choose others with --host and --port.',
    };
  }
  if (await isLanescan(host, port))
    return { verdict: 'fine', what: `Port: Lanescan already answers on ${place}` };
  return {
    verdict: 'fault',
    what: `Port: ${place} is taken by another program`,
    remedy: 'Stop that one, or choose another port with --port.',
  };
}

function tryToListen(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen({ host, port }, () => server.close(() => resolve(undefined)));
  });
}

async function isLanescan(host: string, port: number): Promise<boolean> {
  // A server that listens everywhere is asked on this machine.
  const everywhere: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };
  const address = everywhere[host] ?? (host.includes(':') ? `[${host}]` : host);
  try {
    const answer = await fetch(`http://${address}:${port}/healthz`, {
      signal: AbortSignal.timeout(ASK_TIMEOUT_MS),
    });
    const { status } = (await answer.json()) as { status?: unknown };
    return status === 'ok' && answer.headers.has('x-request-id');
  } catch {
    return false;
  }
}
