import { once } from 'node:events';
import { createReadStream, createWriteStream, statSync, type WriteStream } from 'node:fs';
import path from 'node:path';
import { finished } from 'node:stream/promises';
import type { Command } from 'commander';
import { OperatorError } from '../domain/errors.ts';
import { type ImportReport, importRecords, type RejectedLine } from '../ingest/import.ts';
import type { Store } from '../store/store.ts';
import type { ConfigFlags } from './config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from './context.ts';
import { createProgress } from './progress.ts';

const REJECTED_STATUS = 3;
const INTERRUPTED_STATUS = 130;

interface ImportFlags extends ConfigFlags {
  readonly rejects?: string;
}

export function addImport(program: Command, context: CliContext): void {
  withStoreOptions(program.command('import'))
    .argument('<file...>', 'NDJSON files, plain or gzip; - reads standard input')
    .option('--rejects <file>', 'where lines that are no valid record go (default: NAME.rejects.ndjson here)')
    .description('load message records')
    .addHelpText(
      'after',
      `
A record a line. What is there already is not doubled, and an older state of a message never replaces a
later one, so that the same file can be imported again at any time.

Exit status: 0 all lines imported, 3 some were rejected, 1 the import failed, 130 interrupted.

Examples:
  $ lanescan import records.ndjson archive/*.ndjson.gz
  $ curl -s https://example.org/records.ndjson.gz | lanescan import -`,
    )
    .action(async (files: readonly string[], flags: ImportFlags) => {
      const inputs = files.map((file) => openInput(file, context));
      await withStore(configOf(flags, context), context, { content: 'real' }, async (store) => {
        for (const input of inputs) {
          if (context.signal.aborted) break;
          await importOne(input, store, flags, context);
        }
      });
    });
}

interface Input {
  readonly name: string;
  /** Bytes on disk; null for a pipe. */
  readonly size: number | null;
  readonly open: () => AsyncIterable<Buffer>;
}

/** Looks at every file before the first is read: a typing mistake should not show after an hour. */
function openInput(file: string, context: CliContext): Input {
  if (file === '-') return { name: 'stdin', size: null, open: () => context.input };
  let size: number;
  try {
    const stats = statSync(file);
    if (stats.isDirectory()) throw new Error('it is a folder');
    size = stats.size;
  } catch (error) {
    throw new OperatorError(`Cannot read ${file}: ${(error as Error).message}.`, 'Check the path.', {
      cause: error,
    });
  }
  return { name: file, size, open: () => createReadStream(file) };
}

async function importOne(input: Input, store: Store, flags: ImportFlags, context: CliContext): Promise<void> {
  const rejects = createRejects(flags.rejects ?? `${path.basename(input.name)}.rejects.ndjson`, input.name);
  const progress = createProgress(context.err, `Importing ${input.name}`, input.size);
  const counted = async function* () {
    for await (const chunk of input.open()) {
      progress.advance(chunk.length);
      yield chunk;
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
    await rejects.close();
  }
  progress.end();
  context.out.write(summary(input.name, report, rejects.file));
  if (report.interrupted) context.exitCode = INTERRUPTED_STATUS;
  else if (report.rejected > 0) context.exitCode = REJECTED_STATUS;
}

function summary(name: string, report: ImportReport, rejectsFile: string): string {
  const count = (number: number) => number.toLocaleString('en');
  let text =
    `${name}: ${count(report.created)} new, ${count(report.updated)} updated, ` +
    `${count(report.unchanged)} unchanged, ${count(report.rejected)} rejected\n`;
  if (report.rejected > 0) text += `  rejected lines with their reasons: ${rejectsFile}\n`;
  for (const [field, times] of report.ignored)
    text += `  not part of a record, left out: ${field} (${count(times)} times)\n`;
  if (report.interrupted) text += '  interrupted; import the same file again to go on\n';
  return text;
}

/** The rejects file, made when there is something to put into it. */
function createRejects(file: string, input: string) {
  let stream: WriteStream | undefined;
  const open = async (): Promise<WriteStream> => {
    const opened = createWriteStream(file);
    await once(opened, 'open').catch((error: Error) => {
      throw new OperatorError(
        `Cannot write the rejected lines of ${input} to ${file}: ${error.message}.`,
        'Choose another place with --rejects.',
        { cause: error },
      );
    });
    return opened;
  };
  return {
    file,
    add: async ({ line, problems, text }: RejectedLine): Promise<void> => {
      stream ??= await open();
      const written = stream.write(`${JSON.stringify({ file: input, line, problems, text })}\n`);
      if (!written) await once(stream, 'drain');
    },
    close: async (): Promise<void> => {
      if (!stream) return;
      stream.end();
      await finished(stream);
    },
  };
}

function explainBrokenInput(error: unknown, name: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'Z_BUF_ERROR' || code === 'Z_DATA_ERROR') {
    return new OperatorError(
      `${name} is damaged gzip (${message}). Everything before the damage has been imported.`,
      'Get the file again and import it once more; nothing is doubled.',
      { cause: error },
    );
  }
  if (code === 'EACCES' || code === 'EIO') {
    return new OperatorError(`Cannot read ${name}: ${message}.`, 'Mend that and import it again.', {
      cause: error,
    });
  }
  return error;
}
