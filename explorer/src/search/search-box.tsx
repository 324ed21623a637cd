/** The search box: takes ids, hashes, addresses, networks, lanes and statuses. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { LookupMatch, Network } from '../../../src/client/api-types.ts';
import {
  type Meaning,
  meaningsOf,
  type NamedNetwork,
  searchableText,
} from '../../../src/domain/filters/search-text.ts';
import { shortHash } from '../../../src/text/format.ts';
import { networkName, statusWords } from '../../../src/text/message-words.ts';
import { Icon } from '../parts/icons.tsx';
import { isTyping } from '../parts/is-typing.ts';
import { type Option, useOptionList } from '../parts/option-list.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { api, lookupQuery, networksQuery } from '../server/api-client.ts';
import type { Filters } from '../server/search-view.ts';
import { contractFilters, MatchRow, Named, Row } from './lookup-match.tsx';

/** The networks that have traffic here, the busiest first. */
export function useKnownNetworks(
  isEnabled: boolean,
): readonly (NamedNetwork & { readonly messages: number })[] {
  const { data } = useQuery({ ...networksQuery(true), enabled: isEnabled, refetchInterval: false });
  return (data?.data ?? [])
    .map((network: Network) => ({
      selector: network.chainSelector,
      name: network.name,
      displayName: networkName(network),
      chainId: network.chainId,
      messages: network.sent + network.received,
    }))
    .sort((a, b) => b.messages - a.messages);
}

export function SearchBox() {
  const navigate = useNavigate();
  const field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  const [isOpen, setOpen] = useState(false);
  const [isLooking, setLooking] = useState(false);
  const known = useKnownNetworks(isOpen);
  const isSettled = text.trim().length > 2;
  const understood = searchableText(text);
  const lookup = useQuery(lookupQuery(isOpen && text.trim().length > 1 ? understood : ''));
  const read = meaningsOf(text, { known, statusWords });
  const meanings = choicesOf(read, lookup.data?.text === understood ? lookup.data.data : []);

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target))
        return;
      event.preventDefault();
      field.current?.focus();
      field.current?.select();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);

  const finish = () => {
    setText('');
    setOpen(false);
    field.current?.blur();
  };
  const pick = async (meaning: Choice) => {
    setLooking(true);
    try {
      const found = await destinationOf(meaning);
      finish();
      if ('messageId' in found) {
        await navigate({ to: '/message/$messageId', params: found, state: { isInside: true } });
      } else {
        await navigate({ to: '/', search: found.filters });
      }
    } finally {
      setLooking(false);
    }
  };
  const options = meanings.map(
    (meaning): Option<Choice> => ({
      key: JSON.stringify(meaning),
      value: meaning,
      content: <MeaningRow meaning={meaning} />,
    }),
  );
  const { fieldProps, onKeyDown, list, reset } = useOptionList(options, (meaning) => void pick(meaning));
  const isNotUnderstood = isOpen && isSettled && meanings.length === 0 && !lookup.isFetching;

  return (
    <search className="box" data-looking={isLooking}>
      <Icon name="search" />
      <input
        {...fieldProps}
        ref={field}
        type="search"
        value={text}
        aria-label="Search: message id, transaction, address, token, network"
        aria-invalid={isNotUnderstood}
        aria-describedby={isNotUnderstood ? 'box-hint' : undefined}
        placeholder="Message id, transaction, address, token, network…"
        enterKeyHint="search"
        onChange={(event) => {
          setText(event.target.value);
          setOpen(true);
          reset();
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            event.stopPropagation();
            finish();
          } else onKeyDown(event);
        }}
      />
      <span className="box-key">/</span>
      {isOpen && (options.length > 0 || isNotUnderstood) && (
        // biome-ignore lint/a11y/noStaticElementInteractions: it only keeps the field's focus while an option is pressed.
        <div className="box-panel" onMouseDown={(event) => event.preventDefault()}>
          {list('What this can mean')}
          {isNotUnderstood && (
            <p id="box-hint" className="box-hint" role="status">
              Nothing here goes by this. Type or paste a message id, a transaction or an address, whole or
              shortened as in 0x2f63…aa14, the URL of a block explorer, a token’s symbol, a network such as
              “sepolia”, or a lane such as “sepolia to fuji”.
            </p>
          )}
        </div>
      )}
    </search>
  );
}

/** What can be chosen: a meaning of the text by itself, or something that the server knows by it. */
type Choice =
  | Exclude<Meaning, { kind: 'shortened' }>
  | { readonly kind: 'found'; readonly match: LookupMatch };

/** What the server knows comes first, unless the text is whole: `LINK` is a token before it is part of `Etherlink`. */
function choicesOf(meanings: readonly Meaning[], matches: readonly LookupMatch[]): readonly Choice[] {
  const read = meanings.filter((meaning) => meaning.kind !== 'shortened');
  const found = matches.map((match) => ({ kind: 'found', match }) as const);
  const isWhole = read.some(({ kind }) => kind === 'address' || kind === 'hash' || kind === 'lane');
  return isWhole ? [...read, ...found] : [...found, ...read];
}

function MeaningRow({ meaning }: { readonly meaning: Choice }): ReactNode {
  switch (meaning.kind) {
    case 'found':
      return <MatchRow match={meaning.match} />;
    case 'network':
      return <Row means="From or to" value={<Named network={meaning.network} />} />;
    case 'hash':
      return <Row means="Message or transaction" value={<code>{shortHash(meaning.text)}</code>} />;
    case 'transaction':
      return <Row means="Transaction" value={<code>{shortHash(meaning.text)}</code>} />;
    case 'address':
      return <Row means="Sender, receiver or origin" value={<code>{shortHash(meaning.text)}</code>} />;
    case 'terms':
      return meaning.text.includes(',') ? (
        <Row means="All of these" value={<code>{meaning.text.split(',').map(shortHash).join(', ')}</code>} />
      ) : (
        <Row means="Token or pool" value={<code>{shortHash(meaning.text)}</code>} />
      );
    case 'status':
      return <Row means="Status" value={<StatusBadge status={meaning.status} />} />;
    case 'lane':
      return (
        <Row
          means="Lane"
          value={
            <>
              <Named network={meaning.source} />
              <Icon name="right" />
              <Named network={meaning.dest} />
            </>
          }
        />
      );
    case 'source':
      return <Row means="From" value={<Named network={meaning.network} />} />;
    case 'dest':
      return <Row means="To" value={<Named network={meaning.network} />} />;
  }
}

// ---- Where a meaning leads

type Destination = { readonly messageId: string } | { readonly filters: Filters };

/** Exactly one hit goes straight to its message. */
async function destinationOf(meaning: Choice): Promise<Destination> {
  switch (meaning.kind) {
    case 'found':
      return destinationOfMatch(meaning.match);
    case 'network':
      return { filters: { chainSelector: meaning.network.selector } };
    case 'hash':
    case 'transaction':
    case 'terms':
      return (await hit({ q: meaning.text })) ?? { filters: { q: meaning.text } };
    case 'address': {
      // For an account: the messages it sent or received. For a token: the messages that transfer it.
      const [asParty, asAnything] = await Promise.all([
        hit({ address: meaning.text }),
        hit({ q: meaning.text }),
      ]);
      if (asParty ?? asAnything) return asParty ?? asAnything ?? { filters: {} };
      const known = await api.lookup(meaning.text).catch(() => undefined);
      const contract = known?.data.find(({ kind }) => kind !== 'label');
      return contract ? destinationOfMatch(contract) : { filters: { address: meaning.text } };
    }
    case 'status':
      return { filters: { status: meaning.status } };
    case 'lane':
      return {
        filters: { sourceChainSelector: meaning.source.selector, destChainSelector: meaning.dest.selector },
      };
    case 'source':
      return { filters: { sourceChainSelector: meaning.network.selector } };
    case 'dest':
      return { filters: { destChainSelector: meaning.network.selector } };
  }
}

function destinationOfMatch(match: LookupMatch): Promise<Destination> | Destination {
  const filters = contractFilters(match);
  if (filters) return { filters };
  const { kind, value } = match;
  if (kind === 'message') return { messageId: value };
  return destinationOf({ kind: kind === 'transaction' ? 'terms' : 'address', text: value });
}

/** The one message that matches, or filters where several do; undefined where none does or the request failed. */
async function hit(filters: Filters): Promise<Destination | undefined> {
  const page = await api.search({ ...filters, limit: 2, view: 'summary' }).catch(() => undefined);
  const [first, second] = page?.data ?? [];
  if (!first) return undefined;
  return second ? { filters } : { messageId: first.messageId };
}
