import {
  accessSync,
  appendFileSync,
  closeSync,
  constants,
  createReadStream,
  openSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';
import type { WriteLog } from '../../base/log.ts';
import { explained, OperatorError } from '../../base/operator-error.ts';
import { type ImportReport, importRecords, type RejectedLine } from '../../ingest/import/import.ts';
import type { Store } from '../../store/store.ts';
import { printable } from '../../text/format.ts';
import type { Command } from '../command.ts';
import type { ConfigFlags } from '../config/config.ts';
import { type CliContext, configOf, withLogOption, withStoreOptions, withWriter } from '../context.ts';
import { logWriter, openLog } from '../output/command-log.ts';
import { besideBar, createProgress } from '../output/progress-bar.ts';
import { clipped } from '../output/terminal-text.ts';

const REJECTED_STATUS = 3;
const INTERRUPTED_STATUS = 130;

interface ImportFlags extends ConfigFlags {
  readonly rejects?: string;
}

export function addImport(program: Command, context: CliContext): void {
  withLogOption(withStoreOptions(program.command('import')))
    .argument('<file...>', 'NDJSON files, plain or gzip; - reads standard input')
    .option(
      '--rejects <file>',
      'file for rejected lines (default: NAME.rejects.ndjson in the current folder)',
    )
    .description('load message records')
    .notes(`
One record a line. Imports are idempotent: known records are not duplicated, and an older state of a message never
replaces a newer one, so the same file can be imported again at any time.

Exit status: 0 all lines imported, 3 some were rejected, 1 the import failed, 130 interrupted.

Examples:
  $ lanescan import records.ndjson archive/*.ndjson.gz
  $ curl -s https://example.org/records.ndjson.gz | lanescan import -`)
    .action(async (files: readonly string[], flags: ImportFlags) => {
      const inputs = files.map((file) => openInput(file, context));
      const config = configOf(flags, context);
      const log = await openLog(config, context, { stream: besideBar(context.err) });
      await withWriter(config, context, 'real', logWriter(log, 'store'), async (store) => {
        const rejectsFiles = new Set<string>();
        for (const input of inputs) {
          if (context.signal.aborted) context.exitCode = INTERRUPTED_STATUS;
          else await importOne(input, store, flags, rejectsFiles, context, logWriter(log, 'import'));
        }
      });
    });
}

interface Input {
  readonly name: string;
  /** Bytes on disk; null for a pipe. */
  readonly size: number | null;
  readonly open: () => Readable;
}

/** Checks every file before the first is read, so that a typing mistake does not fail the import after an hour. */
function openInput(file: string, context: CliContext): Input {
  if (file === '-') return { name: 'stdin', size: null, open: () => context.input };
  const size = explained(
    () => {
      const stats = statSync(file);
      if (stats.isDirectory()) throw new Error('it is a folder');
      accessSync(file, constants.R_OK);
      return stats.isFile() ? stats.size : null;
    },
    (message) => `Cannot read ${file}: ${message}.`,
    'Check the path.',
  );
  return { name: file, size, open: () => createReadStream(file) };
}

async function importOne(
  input: Input,
  store: Store,
  flags: ImportFlags,
  rejectsFiles: Set<string>,
  context: CliContext,
  writeLog: WriteLog,
): Promise<void> {
  const rejectsFile = flags.rejects ?? `${path.basename(input.name)}.rejects.ndjson`;
  const rejects = createRejects(rejectsFile, input.name, rejectsFiles);
  const progress = createProgress(context.err, `Importing ${input.name}`, input.size, {
    writeLine: writeLog,
  });
  const counted = async function* () {
    const stream = input.open();
    // An interruption must not wait for the next line of a pipe, which may never come.
    const stop = () => stream.destroy();
    context.signal.addEventListener('abort', stop);
    try {
      for await (const chunk of stream) {
        progress.advance(chunk.length);
        yield chunk;
      }
    } finally {
      context.signal.removeEventListener('abort', stop);
    }
  };
  let report: ImportReport;
  try {
    report = await importRecords({
      input: counted(),
      store,
      reject: rejects.add,
      progress: ({ read }) => progress.note(`${read.toLocaleString('en')} records`),
      signal: context.signal,
    });
  } catch (error) {
    progress.end();
    throw explainBrokenInput(error, input.name);
  } finally {
    rejects.close();
  }
  progress.end();
  context.out.write(summary(input.name, report, rejectsFile));
  if (report.interrupted) context.exitCode = INTERRUPTED_STATUS;
  else if (report.rejected > 0) context.exitCode = REJECTED_STATUS;
}

function summary(name: string, report: ImportReport, rejectsFile: string): string {
  const count = (number: number) => number.toLocaleString('en');
  let text =
    `${name}: ${count(report.created)} new, ${count(report.updated)} updated, ` +
    `${count(report.unchanged)} unchanged, ${count(report.rejected)} rejected\n`;
  if (report.rejected > 0) text += `  rejected lines with their reasons: ${rejectsFile}\n`;
  const { kept, ignored, unknown, incomplete } = report.warnings;
  const listed = (words: string, found: ReadonlyMap<string, number>) => {
    for (const [name, times] of found)
      text += `  ${words}: ${clipped(printable(name), 80)} (${count(times)} times)\n`;
  };
  listed('kept, not a field of the contract', kept);
  listed('ignored, cannot be kept', ignored);
  listed('unknown', unknown);
  if (incomplete > 0)
    text += `  incomplete: ${count(incomplete)} records; their history lists what was derived\n`;
  if (report.interrupted) text += '  interrupted; import the same file again to continue\n';
  return text;
}

/**
 * The rejects file, created with the first rejected line. `written` has the files that were opened before: inputs that
 * share one are appended.
 */
function createRejects(file: string, input: string, written: Set<string>) {
  let descriptor: number | undefined;
  const write = (work: () => void): void =>
    explained(
      work,
      (message) => `Cannot write the rejected lines of ${input} to ${file}: ${message}.`,
      'Choose another file with --rejects.',
    );
  return {
    add: async ({ line, problems, text }: RejectedLine): Promise<void> =>
      write(() => {
        descriptor ??= openSync(file, written.has(file) ? 'a' : 'w');
        written.add(file);
        appendFileSync(descriptor, `${JSON.stringify({ file: input, line, problems, text })}\n`);
      }),
    close: () => write(() => descriptor !== undefined && closeSync(descriptor)),
  };
}

function explainBrokenInput(error: unknown, name: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'Z_BUF_ERROR' || code === 'Z_DATA_ERROR') {
    return new OperatorError(
      `${name} is damaged gzip (${message}). The lines before the damage were imported.`,
      'Get the file again and repeat the import; nothing is duplicated.',
      { cause: error },
    );
  }
  if (code === 'EACCES' || code === 'EIO') {
    return new OperatorError(`Cannot read ${name}: ${message}.`, 'Fix that and import it again.', {
      cause: error,
    });
  }
  return error;
}
