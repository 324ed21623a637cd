/** What can be typed after `lanescan search`, as in the search box of the explorer, as parameters of the search. */
import type { LookupMatch } from '../../api/routes/names-schema.ts';
import type { RawParameters } from '../../domain/filters/search-parameters.ts';
import { LANE_TEXT, meaningsOf, searchableText } from '../../domain/filters/search-text.ts';
import { statuses } from '../../domain/lifecycle.ts';
import { networkOfText } from '../../domain/networks/network-names.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import { printable } from '../../text/format.ts';
import type { Command } from '../command.ts';
import { selectorOf, statusesOf } from '../commands/filter-flags.ts';
import type { Records } from '../commands/records-interface.ts';
import { clipped } from './terminal-text.ts';

const MAX_NAMED = 5;

/** Parameters, or a text that only the records can explain. */
export type TextSearch = { readonly parameters: RawParameters } | { readonly lookUp: string };

/**
 * A message id, a transaction hash or an address (several, separated by commas, must all match), also inside a URL or without
 * 0x; a lane, statuses, or a network. Everything else is looked up: a shortened id, the symbol of a token, a label.
 *
 * @example parametersOfText(['sepolia', 'to', 'fuji'], command) // both chain selectors
 */
export function parametersOfText(words: readonly string[], command: Command): TextSearch {
  const text = searchableText(words.join(' '));
  if (text === '') return { parameters: [] };
  const [meaning] = meaningsOf(text);
  switch (meaning?.kind) {
    case 'hash':
    case 'transaction':
    case 'address':
    case 'terms':
      return { parameters: [['q', meaning.text]] };
    case 'shortened':
      return { lookUp: text };
  }
  const [, source, dest] = LANE_TEXT.exec(text) ?? [];
  if (source !== undefined && dest !== undefined) {
    return {
      parameters: [
        ['sourceChainSelector', selectorOf(source, 'source', command)],
        ['destChainSelector', selectorOf(dest, 'dest', command)],
      ],
    };
  }
  const named = statusesOf(text);
  if (named.split(',').every((name) => (statuses as readonly string[]).includes(name)))
    return { parameters: [['status', named]] };
  const network = networkOfText(text);
  return network ? { parameters: [['chainSelector', network.selector]] } : { lookUp: text };
}

/** The parameters of what the records know under this text; an error of the command where that is nothing, or not clear. */
export async function parametersOfLookUp(
  text: string,
  records: Records,
  command: Command,
): Promise<RawParameters> {
  const matches = await records.lookUp(text);
  const shown = JSON.stringify(clipped(printable(text), 70));
  const messages = matches.filter(({ kind }) => kind === 'message');
  if (messages.length > 0) return [['messageId', messages.map(({ value }) => value).join(',')]];
  const [first, ...others] = [...new Map(matches.map((match) => [match.value, match])).values()];
  if (!first)
    return command.error(
      `lanescan: ${shown} is not a message id, transaction hash, address, status, network or lane, nor a token or label that ` +
        'is known here.',
    );
  if (others.length === 0) return [['q', first.value]];
  const named = [first, ...others].slice(0, MAX_NAMED).map(matchWords);
  return command.error(
    [
      `lanescan: ${shown} can mean several things:`,
      ...named.map((line) => `  ${line}`),
      ...(others.length >= MAX_NAMED ? [`  and ${others.length + 1 - MAX_NAMED} more`] : []),
      'Search for one of these addresses.',
    ].join('\n'),
  );
}

/** @example kindWords('onRamp') // 'on-ramp' */
function kindWords(kind: LookupMatch['kind']): string {
  return kind.replace('Ramp', '-ramp');
}

function matchWords({ kind, value, name, chainSelector }: LookupMatch): string {
  const network = chainSelector === null ? '' : ` on ${networkWords(chainSelector)}`;
  return `${kindWords(kind)} ${name === null ? '' : `${clipped(printable(name), 20)} `}${printable(value)}${network}`;
}

function networkWords(selector: string): string {
  return networkBySelector(selector)?.name ?? selector;
}

/** What to do with an address that no message has as a party or a token, but that is known as a contract. */
export async function contractHint(parameters: RawParameters, records: Records): Promise<string> {
  const [text] = parameters.flatMap(([name, value]) => (name === 'q' ? [value] : []));
  if (text === undefined || text.includes(',')) return '';
  const [match] = await records.lookUp(text);
  if (!match || match.chainSelector === null) return '';
  const network = networkWords(match.chainSelector);
  if (match.kind === 'token')
    return ` It is a token on ${network}${match.name === null ? '' : ` that calls itself ${printable(match.name)}`}: fees may be paid in it, but no message transfers it.`;
  if (match.kind !== 'router' && match.kind !== 'onRamp' && match.kind !== 'offRamp') return '';
  if (match.remoteChainSelector === null)
    return ` It is the ${kindWords(match.kind)} of ${network}: lanescan search --source ${network}`;
  const remote = networkWords(match.remoteChainSelector);
  const [from, to] = match.kind === 'offRamp' ? [remote, network] : [network, remote];
  return ` It is the ${kindWords(match.kind)} of this lane: lanescan search ${from} to ${to}`;
}
