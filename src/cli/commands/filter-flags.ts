/** The filters of the search as flags, shared by all commands that have them. */
import { Option } from 'commander';
import { ApiError } from '../../domain/errors.ts';
import { type FilterName, filterNames, filterTable } from '../../domain/filters/filter-table.ts';
import { networkOfText, similarNetworks } from '../../domain/networks/network-names.ts';
import { printable } from '../../text/format.ts';
import type { Command } from '../command.ts';

/** Flags of parameters: every value given, in the order given. */
export type ParameterFlags<Name extends string = FilterName> = {
  readonly [name in Name]?: readonly string[] | boolean;
};

const NETWORK_FORMAT = 'its selector, name or chain id.';
const TIME_FORMAT = 'A date (midnight UTC), or an ISO 8601 time with a time zone.';

/** Flags that take more than the API, and shorter ones. The others have the name and the description of the API. */
const flagForms: Partial<Record<FilterName, { readonly alias?: string; readonly description: string }>> = {
  sourceChainSelector: { alias: '--source', description: `Source network: ${NETWORK_FORMAT}` },
  destChainSelector: { alias: '--dest', description: `Destination network: ${NETWORK_FORMAT}` },
  chainSelector: { alias: '--network', description: `Source or destination network: ${NETWORK_FORMAT}` },
  readyForManualExecOnly: { description: 'Only messages that are ready for manual execution.' },
  sentAfter: { description: `Sent at this time or later. ${TIME_FORMAT}` },
  sentBefore: { description: `Sent before this time. ${TIME_FORMAT}` },
};

export function addFilterOptions(command: Command, names: readonly FilterName[] = filterNames): Command {
  for (const name of names) command.addOption(filterOption(name));
  return command;
}

function filterOption(name: FilterName): Option {
  const { alias, description = filterTable[name].description } = flagForms[name] ?? {};
  const { noun } = filterTable[name].kind;
  const flag = alias ? `${alias}, ${flagOf(name)}` : flagOf(name);
  return noun === null
    ? new Option(flag, plainEnd(description))
    : collecting(`${flag} <${noun}>`, plainEnd(description));
}

/** An option that collects repeated values, so that a repetition is rejected as by the API. */
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
    for (const value of Array.isArray(given) ? (given as readonly string[]) : [])
      raw.push([name, apiValue(value, name, command)]);
  }
  return raw;
}

function apiValue(text: string, parameter: string, command: Command): string {
  const noun = Object.hasOwn(filterTable, parameter) && filterTable[parameter as FilterName].kind.noun;
  if (noun === 'network') return selectorOf(text, parameter, command);
  if (noun === 'statuses') return statusesOf(text);
  if (noun === 'time') return /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text;
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
