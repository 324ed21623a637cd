/** Ids, hashes and addresses with a copy button: short in lists, whole on pages. */
import { Link } from '@tanstack/react-router';
import type { NetworkInfo } from '../../../src/domain/message.ts';
import { type ExplorerPage, explorerLink } from '../../../src/domain/networks/explorer-links.ts';
import { printable, shortHash } from '../../../src/text/format.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { useExplorerUrls, useNames } from '../server/names.ts';
import type { Filters } from '../server/search-view.ts';
import { CopyButton } from './copy-button.tsx';
import { Icon } from './icons.tsx';

export function ShortHash({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <span className="hash">
      <code title={text}>{shortHash(text)}</code>
      <CopyButton text={text} what={what} />
    </span>
  );
}

/** Where a value is on its chain. */
interface Place {
  readonly network: NetworkInfo;
  readonly page: ExplorerPage;
}

/** Messages, by filters and in words. */
export interface MessagesOf {
  readonly filters: Filters;
  readonly words: string;
}

/** The messages from one network to another, which their ramps, verifiers and executors have to do with. */
export function laneMessages(source: NetworkInfo, dest: NetworkInfo): MessagesOf {
  return {
    filters: { sourceChainSelector: source.chainSelector, destChainSelector: dest.chainSelector },
    words: `messages from ${networkName(source)} to ${networkName(dest)}`,
  };
}

/** The messages that a network sends, which its router has to do with. */
export function sentMessages(source: NetworkInfo): MessagesOf {
  return {
    filters: { sourceChainSelector: source.chainSelector },
    words: `messages from ${networkName(source)}`,
  };
}

interface HashProps {
  readonly text: string;
  readonly what: string;
  /** Links it to the network's block explorer, and names it by the operator's label. */
  readonly at?: Place;
  /** What the contract is to the message. */
  readonly role?: string | undefined;
}

/** A whole hash, linked to the search for it, or to the messages that it has to do with. */
export function SearchableHash({
  text,
  what,
  filter = 'q',
  search,
  at,
  role,
}: HashProps & {
  readonly filter?: keyof Filters;
  /** Where no message has the value itself. */
  readonly search?: MessagesOf | undefined;
}) {
  return (
    <>
      <AddressName text={text} at={at} role={role} />
      <span className="hash whole">
        <Link
          to="/"
          search={search?.filters ?? { [filter]: text }}
          title={search ? `Show ${search.words}` : `Search messages with this ${what}`}
        >
          <code>{text}</code>
        </Link>
        <CopyButton text={text} what={what} />
        <ChainLink text={text} what={what} at={at} />
      </span>
    </>
  );
}

/** The same in a list, shortened. */
export function SearchableShortHash({
  text,
  what,
  search,
  at,
}: Omit<HashProps, 'role'> & { readonly search: MessagesOf }) {
  return (
    <span className="hash">
      <Link to="/" search={search.filters} title={`${text}: show ${search.words}`}>
        <code>{shortHash(text)}</code>
      </Link>
      <CopyButton text={text} what={what} />
      <ChainLink text={text} what={what} at={at} />
    </span>
  );
}

/** The operator's label, or what the contract is to the message. */
function AddressName({
  text,
  at,
  role,
}: {
  readonly text: string;
  readonly at: Place | undefined;
  readonly role: string | undefined;
}) {
  const names = useNames();
  const label = at && names.label(at.network, text);
  if (label === undefined && role === undefined) return null;
  return (
    <span className="address-name">
      {label !== undefined && <bdi className="label">{printable(label)}</bdi>}
      {role !== undefined && <bdi className="muted">{printable(role)}</bdi>}
    </span>
  );
}

/** The way to the network's block explorer; nothing where none is known. */
export function ChainLink({
  text,
  what,
  at,
}: {
  readonly text: string;
  readonly what: string;
  readonly at: Place | undefined;
}) {
  const urls = useExplorerUrls(at?.network.chainSelector);
  const url = at && explorerLink(urls, at.page, text);
  if (!url) return null;
  const { hostname } = new URL(url);
  return (
    <a
      className="chain-link"
      href={url}
      target="_blank"
      rel="noopener noreferrer"
      title={`Open the ${what} at ${hostname}`}
      aria-label={`Open the ${what} at ${hostname}`}
    >
      <Icon name="out" />
    </a>
  );
}
