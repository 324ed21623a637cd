import { type FilterName, filterNames } from '../../domain/filters/filter-table.ts';
import { DEFAULT_LIMIT, MAX_LIMIT } from '../../domain/filters/query.ts';
import { parseSearch, type RawParameters } from '../../domain/filters/search-parameters.ts';
import type { Message } from '../../domain/message.ts';
import { findNetwork } from '../../domain/networks/networks.ts';
import type { Command } from '../command.ts';
import { type CliContext, configOf } from '../context.ts';
import { createMessageTable, tableFooter } from '../output/message-table.ts';
import { jsonLine, writeNote, writeOut } from '../output/output.ts';
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
