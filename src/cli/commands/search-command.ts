import { randomBytes } from 'node:crypto';
import { createWriteStream, renameSync, rmSync, type WriteStream } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { Option } from 'commander';
import type { ExportShape } from '../../api/routes/export-route.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { type FilterName, filterNames } from '../../domain/filters/filter-table.ts';
import { DEFAULT_LIMIT, MAX_LIMIT } from '../../domain/filters/query.ts';
import { parseFilters, parseSearch, type RawParameters } from '../../domain/filters/search-parameters.ts';
import type { Message } from '../../domain/message.ts';
import { findNetwork } from '../../domain/networks/networks.ts';
import { type ExportFormat, exportFormats } from '../../domain/records/export-format.ts';
import { counted, printable, printableJson } from '../../text/format.ts';
import type { Command } from '../command.ts';
import { loadAbis } from '../config/abi-folder.ts';
import { type CliContext, configOf } from '../context.ts';
import { createMessageTable, tableFooter } from '../output/message-table.ts';
import { jsonLine, OutputClosedError, writeNote, writeOut } from '../output/output.ts';
import { createProgress } from '../output/progress-bar.ts';
import { contractHint, parametersOfLookUp, parametersOfText } from '../output/search-text.ts';
import { createPaint } from '../output/terminal-text.ts';
import { addFilterOptions, asUsage, collecting, type ParameterFlags, rawParameters } from './filter-flags.ts';
import { NO_MESSAGES } from './lanes-command.ts';
import { demoFolder, type RecordFlags, withRecordOptions, withRecords } from './records.ts';
import type { RecordPage, Records } from './records-interface.ts';

type SearchFlags = RecordFlags &
  ParameterFlags<FilterName | 'limit' | 'cursor'> & { readonly json?: boolean; readonly all?: boolean };

export function addSearch(program: Command, context: CliContext): void {
  const command = program
    .command('search')
    .argument(
      '[text...]',
      'message id (also its beginning), transaction, address, URL of a block explorer, token symbol, label, status, network, or a lane (sepolia to fuji)',
    )
    .description('find messages, newest first');
  addFilterOptions(command)
    .addOption(
      collecting(`--limit <number>`, `messages a page, 1 to ${MAX_LIMIT} (default: ${DEFAULT_LIMIT})`),
    )
    .addOption(
      collecting('--cursor <cursor>', 'continue after an earlier page; contains the filters of its search'),
    )
    .option('--all', 'every page, not just the first')
    .option('--json', 'one full record a line, ready for `lanescan import`');
  withRecordOptions(command)
    .notes(`
All filters combine. On a terminal the table fits its width; otherwise it has full ids and no colours.

Examples:
  $ lanescan search 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266
  $ lanescan search sepolia to fuji --status failed
  $ lanescan search --source sepolia --dest solana-devnet --limit 50
  $ lanescan search --ready-for-manual-exec-only --url https://lanescan.example
  $ lanescan search --sent-after 2026-01-01 --all --json | gzip > january.ndjson.gz`)
    .action(async (text: readonly string[], flags: SearchFlags) => {
      // First: it defines networks that flags may name.
      const config = configOf(flags, context);
      const typed = parametersOfText(text, command);
      const given = parametersOf('parameters' in typed ? typed.parameters : [], flags, command);
      const demo = demoFolder(config, flags);
      await withRecords(flags, config, context, async (records) => {
        const first =
          'lookUp' in typed
            ? [...(await parametersOfLookUp(typed.lookUp, records, command)), ...given]
            : given;
        const show = createView(context, flags, records);
        let shown = 0;
        let cursor: string | null = null;
        for await (const page of pages(records, first, flags.all === true, command)) {
          if (page.records.length > 0) await show(page);
          context.signal.throwIfAborted();
          shown += page.records.length;
          cursor = page.cursor;
        }
        const footerText =
          shown === 0
            ? `${nothingFound(flags, first, demo)}${await contractHint(first, records)}`
            : footer(shown, cursor, flags);
        await writeNote(footerText, flags.json === true, context);
      });
    });
}

/** The parameters of the search; wrong flags are reported before the store is opened. */
function parametersOf(typed: RawParameters, flags: SearchFlags, command: Command): RawParameters {
  const raw = [...typed, ...rawParameters(flags, [...filterNames, 'limit', 'cursor'], command)];
  if (flags.all && flags.limit === undefined) raw.push(['limit', String(MAX_LIMIT)]);
  // A cursor can only be read with the key of its store.
  if (flags.cursor === undefined) asUsage(() => parseSearch(raw), command);
  return raw;
}

async function* pages(records: Records, first: RawParameters, isWalk: boolean, command: Command) {
  const limit = first.filter(([name]) => name === 'limit');
  for (let parameters = first; ; ) {
    // The store's parser throws at once, before there is a promise.
    const page = await asUsage(() => records.search(parameters), command);
    yield page;
    if (!isWalk || page.cursor === null) return;
    parameters = [['cursor', page.cursor], ...limit];
  }
}

/** Shows page after page: records as JSON, or one table. */
function createView({ out, environment, now }: CliContext, { json, all }: SearchFlags, source: Records) {
  let table: ReturnType<typeof createMessageTable> | undefined;
  return async ({ records, cursor }: RecordPage): Promise<void> => {
    if (json) return writeOut(out, records.map((record) => jsonLine(out, record)).join(''));
    table ??= createMessageTable({
      width: out.isTTY ? (out.columns ?? 80) : null,
      paint: createPaint(out, environment),
      now: now(),
      isOpenEnded: all === true && cursor !== null,
    });
    const messages = records.map((record) => JSON.parse(record) as Message);
    await writeOut(out, table(messages, await source.names(messages)));
  };
}

function footer(shown: number, cursor: string | null, flags: SearchFlags): string {
  if (cursor === null) return tableFooter(shown);
  const [limit] = Array.isArray(flags.limit) ? flags.limit : [];
  const same = [
    limit === undefined ? '' : ` --limit ${limit}`,
    flags.config === undefined ? '' : ` --config ${shellQuoted(flags.config)}`,
    flags.data === undefined ? '' : ` --data ${shellQuoted(flags.data)}`,
    flags.url === undefined ? '' : ` --url ${shellQuoted(flags.url)}`,
    flags.json ? ' --json' : '',
  ].join('');
  return (
    `${tableFooter(shown)}, and there are more: add --all for all of them, or see the next page with\n` +
    `  lanescan search${same} --cursor ${cursor}`
  );
}

function nothingFound(flags: SearchFlags, parameters: RawParameters, demo: string | undefined): string {
  if (flags.cursor !== undefined) return 'No further message: that was the last page.';
  const filters = parameters.filter(([name]) => (filterNames as readonly string[]).includes(name));
  if (filters.length === 0)
    return demo === undefined
      ? NO_MESSAGES
      : `There are no messages yet. Those of the demo are in ${demo}: add --data ${shellQuoted(demo)}`;
  const unknown = (['sourceChainSelector', 'destChainSelector'] as const).flatMap((name) => {
    const [text] = Array.isArray(flags[name]) ? flags[name] : [];
    const isUnknown = text !== undefined && /^\d+$/.test(text) && findNetwork(text) === undefined;
    return isUnknown
      ? [` ${text} is neither a selector nor a chain id of a network that Lanescan knows.`]
      : [];
  });
  const nothing =
    filters.length === 1
      ? 'No message matches.'
      : 'No message matches all of these filters. Leave one out to see more.';
  return `${nothing}${unknown.join('')}`;
}

function shellQuoted(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

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
