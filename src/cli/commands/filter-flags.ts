/** The filters of the search as flags, shared by all commands that have them. */
import { type Command, Option } from 'commander';
import { ApiError } from '../../domain/errors.ts';
import { type FilterName, filterNames, filterParameters } from '../../domain/filters/search-parameters.ts';
import { networkOfText, similarNetworks } from '../../domain/networks/network-names.ts';
import { printable } from '../../text/format.ts';

/** Flags of parameters: every value given, in the order given. */
export type ParameterFlags<Name extends string = FilterName> = {
  readonly [name in Name]?: readonly string[] | boolean;
};

interface FlagForm {
  /** The name of its value in the help; null for a switch. */
  readonly value: string | null;
  /** A shorter flag. */
  readonly alias?: string;
  /** Replaces the API's description. */
  readonly description?: string;
}

const TIME_FORMAT = 'A date (midnight UTC), or an ISO 8601 time with a time zone.';

/** The flag of each filter. The type makes the table complete: a new filter needs its flag. */
const flagForms: Readonly<Record<FilterName, FlagForm>> = {
  sender: { value: 'address' },
  receiver: { value: 'address' },
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
  chainSelector: {
    value: 'network',
    alias: '--network',
    description: 'Source or destination network: its selector, name or chain id.',
  },
  readyForManualExecOnly: {
    value: null,
    description: 'Only messages that are ready for manual execution.',
  },
  sourceTransactionHash: { value: 'hash' },
  status: { value: 'statuses' },
  sentAfter: { value: 'time', description: `Sent at this time or later. ${TIME_FORMAT}` },
  sentBefore: { value: 'time', description: `Sent before this time. ${TIME_FORMAT}` },
  address: { value: 'address' },
  sourceTokenAddress: { value: 'address' },
  destTransactionHash: { value: 'hash' },
  messageId: { value: 'ids' },
  q: { value: 'terms' },
};

/** Adds a flag for each filter, or for some of them. */
export function addFilterOptions(command: Command, names: readonly FilterName[] = filterNames): Command {
  for (const name of names) command.addOption(filterOption(name));
  return command;
}

function filterOption(name: FilterName): Option {
  const { value, alias, description } = flagForms[name];
  const flag = alias ? `${alias}, ${flagOf(name)}` : flagOf(name);
  const shown = plainEnd(description ?? filterParameters[name].description);
  if (value === null) return new Option(flag, shown);
  return collecting(`${flag} <${value}>`, shown);
}

/** An option that collects repeated values, so that a repetition is refused as by the API. */
export function collecting(flags: string, description: string): Option {
  return new Option(flags, description).argParser((value: string, before: readonly string[] = []) => [
    ...before,
    value,
  ]);
}

/** Turns the sentence of an API description into the style of flag descriptions. */
function plainEnd(sentence: string): string {
  const text = sentence.replace(/\.$/, '');
  return /^[A-Z][a-z ]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

/** @example flagOf('sourceChainSelector') // '--source-chain-selector' */
function flagOf(parameter: string): string {
  return `--${parameter.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The flags as request parameters, in the API's notation: networks may be given by name, times as dates. */
export function rawParameters<Name extends string>(
  flags: ParameterFlags<Name>,
  names: readonly Name[],
  command: Command,
): [name: string, value: string][] {
  const raw: [string, string][] = [];
  for (const name of names) {
    const given = flags[name];
    if (given === true) raw.push([name, 'true']);
    for (const value of Array.isArray(given) ? (given as readonly string[]) : []) {
      const { value: kind } = (flagForms as Partial<Record<string, FlagForm>>)[name] ?? {};
      raw.push([name, apiValue(value, kind, name, command)]);
    }
  }
  return raw;
}

function apiValue(
  text: string,
  kind: string | null | undefined,
  parameter: string,
  command: Command,
): string {
  if (kind === 'network') return selectorOf(text, parameter, command);
  if (kind === 'statuses') return statusesOf(text);
  if (kind === 'time') return /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text;
  return text;
}

/** @example statusesOf('failed, source-finalized') // 'FAILED,SOURCE_FINALIZED' */
export function statusesOf(text: string): string {
  return text
    .split(',')
    .map((status) =>
      status
        .trim()
        .toUpperCase()
        .replace(/[\s-]+/g, '_'),
    )
    .join(',');
}

/** Reports errors of the API's parsers as wrong usage, in terms of the flags. */
export function asUsage<T>(parse: () => T, command: Command): T {
  try {
    return parse();
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

/** The selector of a network given by selector, name (CCIP's or the display name, or its last words) or chain id. */
export function selectorOf(text: string, parameter: string, command: Command): string {
  const network = networkOfText(text);
  if (network) return network.selector;
  // A number may be the selector of a private network.
  if (/^\d*$/.test(text)) return text;
  return command.error(
    `lanescan: ${flagOf(parameter)} is an unknown network, ${JSON.stringify(printable(text))}; ${networkHint(text)}`,
  );
}

function networkHint(typed: string): string {
  const alike = similarNetworks(typed);
  if (alike.length === 0) return 'it takes a selector, a name or a chain id.';
  const names = alike.slice(0, 3).map(({ name }) => name);
  return `did you mean ${names.join(', ')}${alike.length > 3 ? ` or another of ${alike.length}` : ''}?`;
}
