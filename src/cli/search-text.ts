/** What can be typed after `lanescan search`, as in the search box of the explorer, as parameters of the search. */
import type { Command } from 'commander';
import { addressBytes, transactionHashBytes } from '../domain/addresses.ts';
import { statuses } from '../domain/lifecycle.ts';
import { networkOfText } from '../domain/network-names.ts';
import type { RawParameters } from '../domain/search-parameters.ts';
import { selectorOf, statusesOf } from './filter-flags.ts';
import { clipped, printable } from './terminal-text.ts';

const LANE = /^(.+?)\s*(?:→|->|=>|>|\sto\s)\s*(.+)$/i;

/**
 * A message id, a transaction hash or an address (several, separated by commas, must all match), a lane, or statuses.
 *
 * @example parametersOfText('sepolia to fuji', command) // both chain selectors
 */
export function parametersOfText(words: readonly string[], command: Command): RawParameters {
  const text = words.join(' ').trim();
  if (text === '') return [];
  const terms = text.split(/\s*,\s*/);
  if (terms.every(isKey)) return [['q', terms.join(',')]];
  const [, source, dest] = LANE.exec(text) ?? [];
  if (source !== undefined && dest !== undefined) {
    return [
      ['sourceChainSelector', selectorOf(source, 'source', command)],
      ['destChainSelector', selectorOf(dest, 'dest', command)],
    ];
  }
  const named = statusesOf(text);
  if (named.split(',').every((name) => (statuses as readonly string[]).includes(name)))
    return [['status', named]];
  const shown = JSON.stringify(clipped(printable(text), 70));
  const network = networkOfText(text);
  return command.error(
    network
      ? `lanescan: ${shown} is a network: add --source or --dest before it, or give a lane, as in "sepolia to fuji".`
      : `lanescan: ${shown} is not a message id, transaction hash, address, status or lane.${prefixHint(text)}`,
  );
}

function isKey(text: string): boolean {
  return addressBytes(text).length > 0 || transactionHashBytes(text).length > 0;
}

function prefixHint(text: string): string {
  return /^0x[0-9a-f]+(…|\.\.\.?)?[0-9a-f]*$/i.test(text)
    ? ' A shortened message id is found by `lanescan show`.'
    : '';
}
