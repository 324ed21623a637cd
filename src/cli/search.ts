import { type Command, Option } from 'commander';
import { ApiError } from '../domain/errors.ts';
import type { Message } from '../domain/message.ts';
import { nearestName } from '../domain/nearest-name.ts';
import { findNetwork, networks } from '../domain/networks.ts';
import { DEFAULT_LIMIT, MAX_LIMIT, type SearchQuery } from '../domain/query.ts';
import {
  type FilterName,
  filterNames,
  filterParameters,
  parseSearch,
  type RawParameters,
} from '../domain/search-parameters.ts';
import type { Page, Store } from '../store/store.ts';
import type { ConfigFlags } from './config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from './context.ts';
import { createMessageTable, tableFooter } from './message-table.ts';
import { simulatedNotice } from './message-words.ts';
import { writeOut } from './output.ts';
import { createPaint, printable, printableJson } from './terminal-text.ts';

/** Flags of filters and of `limit` and `cursor`: every value given, in the order given. */
type ParameterFlags = { readonly [name in FilterName | 'limit' | 'cursor']?: readonly string[] | boolean };
type SearchFlags = ConfigFlags & ParameterFlags & { readonly json?: boolean; readonly all?: boolean };

/** What the CLI adds to a filter: the name of its value, a shorter flag, a switch instead of a value. */
const flagForms: Partial<Record<FilterName, { value?: string; alias?: string; description?: string }>> = {
  sourceChainSelector: {
    value: 'network',
    alias: '--source',
    description: 'Source network: its selector, name or chain id.',
  },
  destChainSelector: {
    value: 'network',
    alias: '--dest',
    description: 'Destination network: its selector, name or chain id.',
  },
  readyForManualExecOnly: { description: 'Only messages that are ready for manual execution.' },
  sourceTransactionHash: { value: 'hash' },
  destTransactionHash: { value: 'hash' },
  status: { value: 'list' },
  sentAfter: { value: 'time' },
  sentBefore: { value: 'time' },
  messageId: { value: 'ids' },
  q: { value: 'terms' },
};

export function addSearch(program: Command, context: CliContext): void {
  const command = program.command('search').description('find messages, newest first');
  for (const name of filterNames) command.addOption(filterOption(name));
  command
    .addOption(
      collecting(`--limit <number>`, `messages a page, 1 to ${MAX_LIMIT} (default: ${DEFAULT_LIMIT})`),
    )
    .addOption(
      collecting('--cursor <cursor>', 'go on behind an earlier page; carries the filters of its search'),
    )
    .option('--all', 'every page, not just the first')
    .option('--json', 'one whole record a line, ready for `lanescan import`');
  withStoreOptions(command)
    .addHelpText(
      'after',
      `
All filters combine. On a terminal the table fits its width; elsewhere it has whole ids and no colours.

Examples:
  $ lanescan search --sender 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 --status FAILED
  $ lanescan search --source ethereum-testnet-sepolia --dest solana-devnet --limit 50
  $ lanescan search --ready-for-manual-exec-only
  $ lanescan search --sent-after 2026-01-01T00:00:00Z --all --json | gzip > january.ndjson.gz`,
    )
    .action(async (flags: SearchFlags) => {
      const query = parseFlags(flags, command);
      await withStore(configOf(flags, context), context, { connections: 1 }, async (store) => {
        if (store.simulated) context.err.write(`${simulatedNotice}\n`);
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

function filterOption(name: FilterName): Option {
  const { value = 'address', alias, description } = flagForms[name] ?? {};
  const flag = alias ? `${alias}, ${flagOf(name)}` : flagOf(name);
  const shown = plainEnd(description ?? filterParameters[name].description);
  if (name === 'readyForManualExecOnly') return new Option(flag, shown);
  return collecting(`${flag} <${value}>`, shown);
}

/** An option that keeps every value it was given, so that a repeated one is refused as the API does. */
function collecting(flags: string, description: string): Option {
  return new Option(flags, description).argParser((value: string, before: readonly string[] = []) => [
    ...before,
    value,
  ]);
}

/** Descriptions of the API are sentences; those of flags are not. */
function plainEnd(sentence: string): string {
  const text = sentence.replace(/\.$/, '');
  return /^[A-Z][a-z ]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

/** @example flagOf('sourceChainSelector') // '--source-chain-selector' */
function flagOf(parameter: string): string {
  return `--${parameter.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The query that the flags ask for. What the API would refuse is wrong usage, told in terms of the flags. */
function parseFlags(flags: SearchFlags, command: Command): SearchQuery {
  const raw: [string, string][] = [];
  for (const name of [...filterNames, 'limit', 'cursor'] as const) {
    const given = flags[name];
    if (given === true) raw.push([name, 'true']);
    for (const value of Array.isArray(given) ? given : []) {
      const isNetwork = name === 'sourceChainSelector' || name === 'destChainSelector';
      raw.push([name, isNetwork ? selectorOf(value, name, command) : value]);
    }
  }
  if (flags.all && flags.limit === undefined) raw.push(['limit', String(MAX_LIMIT)]);
  try {
    return parseSearch(raw);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return command.error(inTermsOfFlags(error));
  }
}

function inTermsOfFlags({ details, message }: ApiError): string {
  const lines = details.map(({ parameter, problem }) => {
    const text = problem.replace(/\b(cursor|sentAfter|sentBefore)\b/g, flagOf);
    return `lanescan: ${flagOf(parameter)} ${text}`;
  });
  return lines.length > 0 ? lines.join('\n') : `lanescan: ${message}`;
}

/** The selector of a network by its selector, name (CCIP's or the one for people) or chain id. */
function selectorOf(text: string, parameter: string, command: Command): string {
  const wanted = text.trim().toLowerCase();
  const network =
    findNetwork(text.trim()) ?? networks.find(({ displayName }) => displayName.toLowerCase() === wanted);
  if (network) return network.selector;
  // A number may be the selector of a network that only its owner knows.
  if (/^\d*$/.test(text)) return text;
  return command.error(
    `lanescan: ${flagOf(parameter)} knows no network ${JSON.stringify(printable(text))}; ${networkHint(wanted)}`,
  );
}

function networkHint(wanted: string): string {
  const alike = networks.filter(({ name, displayName }) =>
    `${name} ${displayName.toLowerCase()}`.includes(wanted),
  );
  const byName = nearestName(
    wanted,
    networks.map(({ name }) => name),
  );
  if (alike.length === 0)
    return byName ? `did you mean ${byName}?` : 'it takes a selector, a name or a chain id.';
  // The network itself before the many that are built on it.
  alike.sort(
    (a, b) =>
      Number(b.name.endsWith(wanted)) - Number(a.name.endsWith(wanted)) || b.name.length - a.name.length,
  );
  const names = alike.slice(0, 3).map(({ name }) => name);
  return `did you mean ${names.join(', ')}${alike.length > 3 ? ` or another of ${alike.length}` : ''}?`;
}

async function* pages(store: Store, first: SearchQuery, isWalk: boolean): AsyncGenerator<Page> {
  for (let query = first; ; ) {
    const page = await store.search(query);
    yield page;
    if (!isWalk || page.cursor === null) return;
    query = parseSearch([
      ['cursor', page.cursor],
      ['limit', String(first.limit)],
    ] satisfies RawParameters);
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

/** Below a table on a terminal; beside it elsewhere, so that what goes into a pipe is messages only. */
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
