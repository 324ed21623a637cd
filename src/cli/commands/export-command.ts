import { randomBytes } from 'node:crypto';
import { createWriteStream, renameSync, rmSync, type WriteStream } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { Option } from 'commander';
import type { ExportShape } from '../../api/routes/export-route.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { filterNames } from '../../domain/filters/filter-table.ts';
import { parseFilters, type RawParameters } from '../../domain/filters/search-parameters.ts';
import { type ExportFormat, exportFormats } from '../../domain/records/export-format.ts';
import { counted, printable, printableJson } from '../../text/format.ts';
import type { Command } from '../command.ts';
import { loadAbis } from '../config/abi-folder.ts';
import { type CliContext, configOf } from '../context.ts';
import { OutputClosedError, writeOut } from '../output/output.ts';
import { createProgress } from '../output/progress-bar.ts';
import { addFilterOptions, asUsage, type ParameterFlags, rawParameters } from './filter-flags.ts';
import { type RecordFlags, withRecordOptions, withRecords } from './records.ts';
import type { Records } from './records-interface.ts';

const INTERRUPTED_STATUS = 130;

type ExportFlags = RecordFlags &
  ParameterFlags & {
    readonly format?: ExportFormat;
    readonly attempts?: boolean;
    readonly output?: string;
    readonly gzip?: boolean;
  };

export function addExport(program: Command, context: CliContext): void {
  const command = program.command('export').description('write every message that matches to a file');
  addFilterOptions(command)
    .addOption(
      new Option(
        '--format <format>',
        'csv, a table for spreadsheets; ndjson, full records (default: by the name of the file, or csv)',
      ).choices(exportFormats),
    )
    .option('--attempts', 'with the attempts to execute each message, and why they failed')
    .option('--output <file>', 'file to write, created when it is complete (default: standard output)')
    .option('--gzip', 'compress (also where the file is named .gz)');
  withRecordOptions(command)
    .notes(`
Newest first, from a snapshot of the store at the start, whatever is written meanwhile. \`lanescan import\` reads the
NDJSON unchanged. In CSV, text that a spreadsheet would take for a formula is preceded by an apostrophe.

Examples:
  $ lanescan export --output messages.csv
  $ lanescan export --status failed --source sepolia > failed.csv
  $ lanescan export --status failed --attempts --output why.ndjson
  $ lanescan export --sent-after 2026-01-01 --output january.ndjson.gz --url https://lanescan.example`)
    .action(async (flags: ExportFlags) => {
      // First: it defines networks that flags may name.
      const config = configOf(flags, context);
      if (flags.attempts) loadAbis(config);
      const raw = rawParameters(flags, filterNames, command);
      asUsage(() => parseFilters(raw, {}), command);
      const isCompressed = flags.gzip === true || /\.gz$/i.test(flags.output ?? '');
      if (isCompressed && flags.output === undefined && context.out.isTTY) {
        command.error(
          'lanescan: --gzip cannot be shown on a terminal; name a file with --output, or redirect the output.',
        );
      }
      const formatByName = /\.(ndjson|jsonl)(\.gz)?$/i.test(flags.output ?? '') ? 'ndjson' : 'csv';
      const shape = { format: flags.format ?? formatByName, withAttempts: flags.attempts === true };
      await withRecords(flags, config, context, (records) =>
        exportTo(flags.output, shape, isCompressed, raw, records, context),
      );
    });
}

async function exportTo(
  output: string | undefined,
  shape: ExportShape,
  isCompressed: boolean,
  parameters: RawParameters,
  source: Records,
  context: CliContext,
): Promise<void> {
  const destination = output === undefined ? standardOutput(context, shape.format) : newFile(output);
  const progress = createProgress(context.err, `Exporting to ${output ?? 'standard output'}`, null);
  /** Null where the source does not count them. */
  let exportedRows: number | null = 0;
  let exportedBytes = 0;
  const texts = async function* () {
    for await (const { bytes, rows } of source.export(parameters, shape, context.signal)) {
      exportedRows = rows === null || exportedRows === null ? null : exportedRows + rows;
      exportedBytes += bytes.length;
      if (exportedRows !== null) progress.note(counted(exportedRows, 'message'));
      progress.advance(bytes.length);
      yield bytes;
    }
  };
  try {
    const source = Readable.from(texts(), { objectMode: false });
    if (isCompressed) await pipeline(source, createGzip(), destination.stream);
    else await pipeline(source, destination.stream);
    destination.finish();
  } catch (error) {
    destination.discard();
    progress.end();
    if (context.signal.aborted) {
      context.err.write('Interrupted; the export is incomplete.\n');
      context.exitCode = INTERRUPTED_STATUS;
      return;
    }
    throw explained(error, output);
  }
  progress.end();
  const amount = exportedRows === null ? counted(exportedBytes, 'byte') : counted(exportedRows, 'message');
  context.err.write(`${amount} exported${output === undefined ? '' : ` to ${output}`}\n`);
}

interface Destination {
  readonly stream: Writable;
  finish(): void;
  discard(): void;
}

/** The file is renamed when it is complete, so that a partial file is not mistaken for a complete one. */
function newFile(output: string): Destination {
  const temporary = `${output}.${randomBytes(4).toString('hex')}.part`;
  const stream: WriteStream = createWriteStream(temporary, { flags: 'wx', flush: true });
  return {
    stream,
    finish: () => renameSync(temporary, output),
    discard: () => {
      stream.destroy();
      rmSync(temporary, { force: true });
    },
  };
}

function standardOutput({ out }: CliContext, format: ExportFormat): Destination {
  const shown = (bytes: Buffer) => {
    const makePrintable = format === 'ndjson' ? printableJson : printable;
    return bytes.toString('utf8').split(/\r?\n/).map(makePrintable).join('\n');
  };
  const stream = new Writable({
    write(bytes: Buffer, _encoding, done) {
      writeOut(out, out.isTTY ? shown(bytes) : bytes).then(() => done(), done);
    },
  });
  return { stream, finish: () => undefined, discard: () => undefined };
}

function explained(error: unknown, output: string | undefined): unknown {
  const { code, message, syscall } = error as NodeJS.ErrnoException;
  if (output === undefined || error instanceof OutputClosedError || syscall === undefined) return error;
  if (!['open', 'write', 'rename', 'fsync', 'close'].includes(syscall) || code === undefined) return error;
  return new OperatorError(`Cannot write ${output}: ${message}.`, 'Choose another file with --output.', {
    cause: error,
  });
}
