/**
 * The composition root of the command line: one file for each command.
 *
 * Exit status: 0 done, 1 failure or an audit found gaps, 2 wrong usage, 3 incomplete (for example an import rejected
 * lines) or an audit had nothing to check, 130 interrupted. SIGINT, SIGTERM and SIGHUP (the terminal was closed) all
 * interrupt: commands that run until they are stopped exit with 0, others with 130.
 */
import { type Command as AnyCommand, CommanderError } from 'commander';
import { OperatorError } from '../base/operator-error.ts';
import { ApiError } from '../domain/errors.ts';
import { isDatabaseUnavailable } from '../store/store.ts';
import { Command } from './command.ts';
import { addAudit } from './commands/audit-command.ts';
import { addBackup } from './commands/backup-command.ts';
import { addCompletion } from './commands/completion-command.ts';
import { addConfig } from './commands/config-command.ts';
import { addDemo } from './commands/demo-command.ts';
import { addDiagnose } from './commands/diagnose-command.ts';
import { addExport } from './commands/export-command.ts';
import { addImport } from './commands/import-command.ts';
import { addIndex } from './commands/index-command.ts';
import { addLanes } from './commands/lanes-command.ts';
import { addMigrate } from './commands/migrate-command.ts';
import { addMirror } from './commands/mirror-command.ts';
import { addRepair } from './commands/repair-command.ts';
import { addSearch } from './commands/search-command.ts';
import { addServe } from './commands/serve-command.ts';
import { addShow } from './commands/show-command.ts';
import { addWebhooks } from './commands/webhooks-command.ts';
import { UsageError } from './config/config.ts';
import { type CliContext, STOP_TIMEOUT_MS } from './context.ts';
import { addDoctor } from './doctor/doctor-command.ts';
import { isClosedPipe, OutputClosedError } from './output/output.ts';
import { createStopSignal } from './stop-signal.ts';
import { lanescanVersion } from './version.ts';

const USAGE_STATUS = 2;

export async function runCommandLine(process: NodeJS.Process): Promise<number> {
  const context: CliContext = {
    environment: process.env,
    input: process.stdin,
    out: process.stdout,
    err: process.stderr,
    now: Date.now,
    signal: createStopSignal(process),
    exitCode: 0,
  };
  // Every wait has its own timeout; this one is the last resort.
  context.signal.addEventListener('abort', () => {
    const timeoutMs = STOP_TIMEOUT_MS + (context.drainMs ?? 0);
    setTimeout(() => {
      context.err.write(
        `lanescan: not stopped ${timeoutMs / 1_000} s after the signal; exiting with unfinished work\n`,
      );
      process.exit(1);
    }, timeoutMs).unref();
  });
  // writeOut reports a closed pipe to the command, which then stops. Without these listeners the error would end the
  // process before its store is closed.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (!isClosedPipe(error)) context.exitCode ||= 1;
    });
  }
  try {
    await createProgram(context).parseAsync(process.argv);
    return context.exitCode;
  } catch (error) {
    return report(error, context);
  }
}

export function createProgram(context: CliContext): Command {
  const program = new Command('lanescan')
    .description('Search for cross-chain messages, self-hosted.')
    .version(lanescanVersion, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show help for a command')
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: (text) => context.out.write(text),
      writeErr: (text) => context.err.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'lanescan: ')),
    })
    .notes(`
Examples:
  $ lanescan demo                              a simulated network, to try everything out
  $ lanescan import records.ndjson.gz          load records
  $ lanescan index                             read the networks of lanescan.yaml from their chains
  $ lanescan serve --port 8080                 answer the API
  $ lanescan search --sender 0x… --status FAILED
  $ lanescan show 0x…                          one message, in full
  $ lanescan diagnose 0x…                      would a manual execution work now?
  $ lanescan audit                             is any message missing?

Settings come from flags, then the environment (DATABASE_URL, PORT, LANESCAN_…), then ./lanescan.yaml.`);
  addServe(program, context);
  addIndex(program, context);
  addImport(program, context);
  addExport(program, context);
  addMirror(program, context);
  addSearch(program, context);
  addShow(program, context);
  addDiagnose(program, context);
  addLanes(program, context);
  addAudit(program, context);
  addMigrate(program, context);
  addRepair(program, context);
  addBackup(program, context);
  addDoctor(program, context);
  addConfig(program, context);
  addWebhooks(program, context);
  addDemo(program, context);
  addCompletion(program, context);
  const commands = program.commands.flatMap((command) => [command, ...command.commands]);
  for (const command of [program, ...commands]) {
    command.exitOverride();
    if (command !== program) command.copyInheritedSettings(program);
    command.showHelpAfterError(`Try: ${fullName(command)} --help`);
  }
  return program;
}

function fullName(command: AnyCommand): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

function report(error: unknown, { err, signal, exitCode }: CliContext): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode : USAGE_STATUS;
  if (error instanceof OutputClosedError) return exitCode;
  if (error instanceof OperatorError) {
    err.write(`lanescan: ${error.message} ${error.remedy}\n`);
    return error instanceof UsageError ? USAGE_STATUS : 1;
  }
  if (error instanceof ApiError) {
    err.write(`lanescan: ${error.message}\n`);
    return error.status < 500 ? USAGE_STATUS : 1;
  }
  if (signal.aborted) return 130;
  if (isDatabaseUnavailable(error)) {
    err.write(
      `lanescan: The database stopped answering: ${(error as Error).message}. Check it and run this again.\n`,
    );
    return 1;
  }
  err.write(
    `lanescan: ${(error as Error).stack ?? String(error)}\nThis is a bug in Lanescan; please report it.\n`,
  );
  return 1;
}
