/** Ids, hashes and addresses with a copy button: short in lists, whole on pages. */
import { Link } from '@tanstack/react-router';
import type { Message, NetworkInfo } from '../../../src/domain/message.ts';
import { type ExplorerPage, explorerLink } from '../../../src/domain/networks/block-explorers.ts';
import { printable, shortHash } from '../../../src/text/format.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { useExplorerUrls, useNames } from '../server/names.ts';
import type { Filters } from '../server/search-view.ts';
import { CopyButton } from './copy.tsx';
import { Icon } from './icons.tsx';

export function ShortHash({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <span className="hash inline gap-2">
      <code className="nowrap" title={text.slice(0, 2_000)}>
        {shortHash(text)}
      </code>
      <CopyButton text={text} what={what} />
    </span>
  );
}

interface HashProps {
  readonly text: string;
  readonly what: string;
  /** Its network: it is linked to the network's block explorer, and named by the operator's label. */
  readonly network: NetworkInfo;
  readonly page?: ExplorerPage | undefined;
}

/** Messages, by filters and in words. */
export interface MessagesOf {
  readonly filters: Filters;
  readonly words: string;
}

/** The messages of a lane, which its ramps, verifiers and executors have to do with. */
export function laneMessages(lane: Pick<Message, 'sourceNetworkInfo' | 'destNetworkInfo'>) {
  const { sourceNetworkInfo: source, destNetworkInfo: dest } = lane;
  return {
    filters: { sourceChainSelector: source.chainSelector, destChainSelector: dest.chainSelector },
    words: `messages from ${networkName(source)} to ${networkName(dest)}`,
  } satisfies MessagesOf;
}

/** The messages that a network sends, which its router has to do with. */
export function sentMessages(source: NetworkInfo): MessagesOf {
  return {
    filters: { sourceChainSelector: source.chainSelector },
    words: `messages from ${networkName(source)}`,
  };
}

export interface SearchableHashProps extends HashProps {
  readonly filter?: keyof Filters;
  /** Where no message has the value itself. */
  readonly search?: MessagesOf;
  /** What the contract is to the message. */
  readonly role?: string | undefined;
}

/** A whole hash with its name, linked to the search for it, or to the messages that it has to do with. */
export function SearchableHash({ filter = 'q', search, role, ...hash }: SearchableHashProps) {
  const { text, what, network } = hash;
  const label = useNames().label(network, text);
  return (
    <>
      {(label !== undefined || role !== undefined) && (
        <span className="flow gap-8">
          {label !== undefined && <bdi className="label">{printable(label)}</bdi>}
          {role !== undefined && <bdi className="muted">{printable(role)}</bdi>}
        </span>
      )}
      <span className="hash whole inline gap-2">
        <Link
          to="/"
          search={search?.filters ?? { [filter]: text }}
          title={search ? `Show ${search.words}` : `Search messages with this ${what}`}
        >
          <code className="wrap">{text}</code>
        </Link>
        <CopyButton text={text} what={what} />
        <ChainLink {...hash} />
      </span>
    </>
  );
}

/** The same in a list, shortened. */
export function SearchableShortHash({ search, ...hash }: HashProps & { readonly search: MessagesOf }) {
  const { text, what } = hash;
  return (
    <span className="hash inline gap-2">
      <Link to="/" search={search.filters} title={`${text}: show ${search.words}`}>
        <code>{shortHash(text)}</code>
      </Link>
      <CopyButton text={text} what={what} />
      <ChainLink {...hash} />
    </span>
  );
}

/** The way to the network's block explorer; nothing where none is known. */
export function ChainLink({ text, what, network, page = 'address' }: HashProps) {
  const url = explorerLink(useExplorerUrls(network.chainSelector), page, text);
  if (!url) return null;
  const title = `Open the ${what} at ${new URL(url).hostname}`;
  return (
    <a
      className="chain-link icon-button"
      href={url}
      target="_blank"
      rel="noopener noreferrer"
      title={title}
      aria-label={title}
    >
      <Icon name="out" />
    </a>
  );
}
