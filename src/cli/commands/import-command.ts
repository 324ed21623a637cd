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
import { parseTime } from '../../base/iso-time.ts';
import type { WriteLog } from '../../base/log.ts';
import { explained, OperatorError } from '../../base/operator-error.ts';
import { filterNames } from '../../domain/filters/filter-table.ts';
import { parseFilters } from '../../domain/filters/search-parameters.ts';
import { type ImportReport, importRecords, type RejectedLine } from '../../ingest/import/import.ts';
import { jsonText, type MirrorCounts, type RejectedRecord } from '../../ingest/mirror/intake.ts';
import { followSource } from '../../ingest/mirror/mirror.ts';
import { createSource } from '../../ingest/mirror/source.ts';
import type { Store } from '../../store/store.ts';
import { counted, printable } from '../../text/format.ts';
import type { Command } from '../command.ts';
import type { ConfigFlags } from '../config/config.ts';
import { type CliContext, configOf, withLogOption, withStoreOptions, withWriter } from '../context.ts';
import { logWriter, openLog } from '../output/command-log.ts';
import { besideBar, createProgress } from '../output/progress-bar.ts';
import { clipped } from '../output/terminal-text.ts';
import { lanescanVersion } from '../version.ts';
import { addFilterOptions, asUsage, type ParameterFlags, rawParameters } from './filter-flags.ts';

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

/** Rejected records that are logged; further ones are only counted. */
const LOGGED_REJECTS = 20;

type MirrorFlags = ConfigFlags &
  ParameterFlags & {
    readonly once?: boolean;
    /** Milliseconds since 1970. */
    readonly since?: number;
    readonly rate: number;
    readonly poll: number;
    readonly rejects?: string;
  };

export function addMirror(program: Command, context: CliContext): void {
  const rejected = (problem: string): never => command.error(`lanescan: ${problem}`);
  const numberOf = (flag: string, max: number, unit: string) => (text: string) => {
    const number = /^\d{1,6}(\.\d{1,3})?$/.test(text) ? Number(text) : 0;
    return number > 0 && number <= max
      ? number
      : rejected(`${flag} takes ${unit}, more than 0 and at most ${max}`);
  };
  const command: Command = program
    .command('mirror')
    .argument('<url>', 'base URL of a server with this API: the part before /v2')
    .description('mirror another server: copy its messages, then follow new ones and status changes')
    .option('--once', 'catch up, then exit')
    .option(
      '--since <time>',
      'only messages sent since then (ISO 8601 with a time zone; default: all)',
      (text) => {
        const time = parseTime(text);
        return Number.isNaN(time)
          ? rejected('--since takes an ISO 8601 time with a time zone, such as 2026-01-31T12:00:00Z')
          : time;
      },
    )
    .option(
      '--rate <number>',
      'maximum number of requests a second',
      numberOf('--rate', 1_000, 'requests a second'),
      5,
    )
    .option(
      '--poll <seconds>',
      'interval of polling for new messages',
      numberOf('--poll', 86_400, 'seconds'),
      10,
    )
    .option('--rejects <file>', 'file for rejected records, with their reasons');
  addFilterOptions(command);
  withLogOption(withStoreOptions(command))
    .notes(`
Stopped or killed at any moment, it resumes where it was. Records pass the same checks as in an import; invalid ones are
logged, counted and fetched again later. Credentials go into the URL; they are never shown.

Exit status: 0 up to date or stopped, 3 some records were rejected, 1 failure, 130 interrupted with --once.

Examples:
  $ lanescan mirror https://lanescan.example.org
  $ lanescan mirror https://lanescan.example.org --since 2026-01-01T00:00:00Z --once
  $ lanescan mirror http://127.0.0.1:8080 --source ethereum-testnet-sepolia --rate 50`)
    .action(async (url: string, flags: MirrorFlags) => {
      const filters = rawParameters(flags, filterNames, command);
      asUsage(() => parseFilters(filters, {}), command);
      const { since } = flags;
      const config = configOf(flags, context);
      const log = await openLog(config, context, { stream: besideBar(context.err) });
      const writeLog = logWriter(log, 'mirror');
      const source = createSource({
        url,
        requestsPerSecond: flags.rate,
        userAgent: `lanescan/${lanescanVersion}`,
        signal: context.signal,
        writeLog,
      });
      await withWriter(config, context, 'any', logWriter(log, 'store'), async (store) => {
        const rejects = flags.rejects === undefined ? undefined : openRejects(flags.rejects);
        const shown = createReporter(source.name, context, writeLog);
        try {
          const counts = await followSource({
            source,
            store,
            filters,
            ...(since !== undefined && { since }),
            once: flags.once === true,
            signal: context.signal,
            progress: shown.progress,
            reject: (record) => {
              shown.reject(record);
              rejects?.(record);
            },
            writeLog,
            timing: { roundIntervalMs: flags.poll * 1_000 },
          });
          shown.end();
          context.out.write(`${source.name}: ${describe(counts)}\n`);
          if (context.signal.aborted && flags.once) context.exitCode = INTERRUPTED_STATUS;
          else if (counts.rejected > 0) context.exitCode = REJECTED_STATUS;
        } catch (error) {
          shown.end();
          throw error;
        }
      });
    });
}

/** Appends one line for each rejected record, at once: they are few, and a mirror may be killed at any moment. */
function openRejects(file: string): (record: RejectedRecord) => void {
  const write = (text: string): void =>
    explained(
      () => appendFileSync(file, text),
      (message) => `Cannot write rejected records to ${file}: ${message}.`,
      'Choose another file with --rejects.',
    );
  write('');
  return (record) => write(`${jsonText(record) ?? JSON.stringify({ ...record, record: null })}\n`);
}

function createReporter(name: string, { err }: CliContext, writeLog: WriteLog) {
  const bar = createProgress(err, `Mirroring ${name}`, null, { writeLine: writeLog });
  let rejected = 0;
  let bytes = 0;
  let logged = '';
  return {
    progress(counts: Readonly<MirrorCounts>) {
      // Rounds without news are not logged.
      const words = describe(counts);
      const advance = counts.bytes - bytes;
      bytes = counts.bytes;
      if (words === logged) return;
      logged = words;
      bar.note(words);
      bar.advance(advance);
    },
    reject({ messageId, problems }: RejectedRecord) {
      if (++rejected > LOGGED_REJECTS) return;
      const reasons = problems.slice(0, 3).map(({ path, problem }) => `${path} ${problem}`);
      const level = 'warn';
      writeLog(`rejected ${messageId ?? 'a record'}: ${clipped(printable(reasons.join('; ')), 300)}`, {
        level,
      });
      if (rejected === LOGGED_REJECTS) writeLog('further rejected records are only counted', { level });
    },
    end: () => bar.end(),
  };
}

function describe(counts: Readonly<MirrorCounts>): string {
  const { created, updated, rejected, missed, rechecked, reached, isBackfilled } = counts;
  const parts = [`${created.toLocaleString('en')} new`, `${updated.toLocaleString('en')} updated`];
  if (rejected > 0) parts.push(`${rejected.toLocaleString('en')} rejected`);
  if (missed > 0) parts.push(`${counted(missed, 'response')} missing`);
  if (!isBackfilled && reached !== null)
    parts.push(`back to ${new Date(reached).toISOString().slice(0, 19)}Z`);
  if (rechecked > 0) parts.push(`${rechecked.toLocaleString('en')} unfinished fetched again`);
  return parts.join(', ');
}
