import type { Command } from 'commander';
import type { CursorCodec } from '../domain/cursor.ts';
import type { Message } from '../domain/message.ts';
import { findNetwork } from '../domain/networks.ts';
import { DEFAULT_LIMIT, MAX_LIMIT, type SearchQuery } from '../domain/query.ts';
import { type FilterName, filterNames, parseSearch } from '../domain/search-parameters.ts';
import type { Page } from '../store/reads/reads.ts';
import type { Store } from '../store/store.ts';
import type { ConfigFlags } from './config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from './context.ts';
import { addFilterOptions, asUsage, collecting, type ParameterFlags, rawParameters } from './filter-flags.ts';
import { createMessageTable, tableFooter } from './message-table.ts';
import { SIMULATED_NOTICE } from './message-words.ts';
import { writeOut } from './output.ts';
import { createPaint, printableJson } from './terminal-text.ts';

type SearchFlags = ConfigFlags &
  ParameterFlags<FilterName | 'limit' | 'cursor'> & { readonly json?: boolean; readonly all?: boolean };

export function addSearch(program: Command, context: CliContext): void {
  const command = program.command('search').description('find messages, newest first');
  addFilterOptions(command)
    .addOption(
      collecting(`--limit <number>`, `messages a page, 1 to ${MAX_LIMIT} (default: ${DEFAULT_LIMIT})`),
    )
    .addOption(
      collecting('--cursor <cursor>', 'continue after an earlier page; contains the filters of its search'),
    )
    .option('--all', 'every page, not just the first')
    .option('--json', 'one full record a line, ready for `lanescan import`');
  withStoreOptions(command)
    .addHelpText(
      'after',
      `
All filters combine. On a terminal the table fits its width; otherwise it has full ids and no colours.

Examples:
  $ lanescan search --sender 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 --status FAILED
  $ lanescan search --source ethereum-testnet-sepolia --dest solana-devnet --limit 50
  $ lanescan search --ready-for-manual-exec-only
  $ lanescan search --sent-after 2026-01-01T00:00:00Z --all --json | gzip > january.ndjson.gz`,
    )
    .action(async (flags: SearchFlags) => {
      // First: it defines networks that flags may name.
      const config = configOf(flags, context);
      // Wrong flags are reported before the store is opened; a cursor can only be read with the store's key.
      const early = flags.cursor === undefined ? parseFlags(flags, command) : undefined;
      await withStore(config, context, { connections: 1 }, async (store) => {
        const query = early ?? parseFlags(flags, command, store.cursors);
        if (store.simulated) context.err.write(`${SIMULATED_NOTICE}\n`);
        const show = flags.json ? showRecords(context) : showTable(context, flags.all === true);
        let shown = 0;
        let cursor: string | null = null;
        for await (const page of pages(store, query, flags.all === true)) {
          if (page.records.length > 0) await show(page);
          context.signal.throwIfAborted();
          shown += page.records.length;
          cursor = page.cursor;
        }
        await showFooter(footer(shown, cursor, flags), flags, context);
      });
    });
}

/** The query of the flags; errors are reported as wrong usage. */
function parseFlags(flags: SearchFlags, command: Command, cursors?: CursorCodec): SearchQuery {
  const raw = rawParameters(flags, [...filterNames, 'limit', 'cursor'], command);
  if (flags.all && flags.limit === undefined) raw.push(['limit', String(MAX_LIMIT)]);
  return asUsage(() => parseSearch(raw, cursors), command);
}

async function* pages(store: Store, first: SearchQuery, isWalk: boolean): AsyncGenerator<Page> {
  for (let query = first; ; ) {
    const page = await store.search(query);
    yield page;
    if (!isWalk || page.cursor === null) return;
    query = { ...query, after: store.cursors.decode(page.cursor).after };
  }
}

type ShowPage = (page: Page) => Promise<void>;

function showRecords({ out }: CliContext): ShowPage {
  return ({ records }) => {
    const lines = `${records.join('\n')}\n`;
    return writeOut(out, out.isTTY ? lines.split('\n').map(printableJson).join('\n') : lines);
  };
}

function showTable({ out, environment, now }: CliContext, isWalk: boolean): ShowPage {
  let table: ((page: readonly Message[]) => string) | undefined;
  return ({ records, cursor }) => {
    table ??= createMessageTable({
      width: out.isTTY ? (out.columns ?? 80) : null,
      paint: createPaint(out, environment),
      now: now(),
      isOpenEnded: isWalk && cursor !== null,
    });
    return writeOut(out, table(records.map((record) => JSON.parse(record) as Message)));
  };
}

function footer(shown: number, cursor: string | null, flags: SearchFlags): string {
  if (shown === 0) return nothingFound(flags);
  if (cursor === null) return tableFooter(shown);
  const [limit] = Array.isArray(flags.limit) ? flags.limit : [];
  const same = [
    limit === undefined ? '' : ` --limit ${limit}`,
    flags.config === undefined ? '' : ` --config ${shellQuoted(flags.config)}`,
    flags.data === undefined ? '' : ` --data ${shellQuoted(flags.data)}`,
    flags.json ? ' --json' : '',
  ].join('');
  return (
    `${tableFooter(shown)}, and there are more: add --all for all of them, or see the next page with\n` +
    `  lanescan search${same} --cursor ${cursor}`
  );
}

function nothingFound(flags: SearchFlags): string {
  const isFiltered = filterNames.some((name) => flags[name] !== undefined);
  if (flags.cursor !== undefined) return 'No further message: that was the last page.';
  if (!isFiltered)
    return 'There are no messages yet. Load some with `lanescan import`, or try `lanescan demo`.';
  const unknown = (['sourceChainSelector', 'destChainSelector'] as const).flatMap((name) => {
    const [text] = Array.isArray(flags[name]) ? flags[name] : [];
    const isUnknown = text !== undefined && /^\d+$/.test(text) && findNetwork(text) === undefined;
    return isUnknown
      ? [` ${text} is neither a selector nor a chain id of a network that Lanescan knows.`]
      : [];
  });
  return `No message matches all of these filters. Leave one out to see more.${unknown.join('')}`;
}

/** On a terminal below the table; otherwise on standard error, so that a pipe gets only messages. */
async function showFooter(
  text: string,
  flags: SearchFlags,
  { out, err, environment }: CliContext,
): Promise<void> {
  const isBelow = out.isTTY && !flags.json;
  const stream = isBelow ? out : err;
  await writeOut(stream, `${isBelow ? '\n' : ''}${createPaint(stream, environment)(text, 'dim')}\n`);
}

function shellQuoted(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
