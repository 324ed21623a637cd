/** The search box: takes ids, hashes, addresses, networks, lanes and statuses. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useRef, useState } from 'react';
import type { LookupMatch } from '../../../src/client/api-types.ts';
import {
  type NamedNetwork as Known,
  type Meaning,
  meaningsOf,
  searchableText,
} from '../../../src/domain/filters/search-text.ts';
import { shortHash } from '../../../src/text/format.ts';
import { networkName, statusWords } from '../../../src/text/message-words.ts';
import { type Option, useOptionList } from '../parts/controls.tsx';
import { Icon, NamedNetwork, StatusBadge } from '../parts/icons.tsx';
import { useKeys } from '../parts/page.tsx';
import { api, lookupQuery, networksQuery } from '../server/api-client.ts';
import type { Filters } from '../server/search-view.ts';
import { contractFilters, MatchRow, OptionRow } from './lookup-match.tsx';

/** The networks that have traffic here, the busiest first. */
export function useKnownNetworks(isEnabled: boolean): readonly (Known & { readonly messages: number })[] {
  const { data } = useQuery({ ...networksQuery(true), enabled: isEnabled, refetchInterval: false });
  return (data?.data ?? [])
    .map((network) => ({
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

  useKeys((event) => {
    if (event.key !== '/') return;
    event.preventDefault();
    field.current?.focus();
    field.current?.select();
  });
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

/** What a meaning is called where nothing but its text is shown. */
const textWords = {
  hash: 'Message or transaction',
  transaction: 'Transaction',
  address: 'Sender, receiver or origin',
  terms: 'Token or pool',
} as const;
const networkWords = { network: 'From or to', source: 'From', dest: 'To' } as const;

const named = ({ displayName, selector }: Known) => <NamedNetwork name={displayName} selector={selector} />;

function MeaningRow({ meaning }: { readonly meaning: Choice }): ReactNode {
  switch (meaning.kind) {
    case 'found':
      return <MatchRow match={meaning.match} />;
    case 'network':
    case 'source':
    case 'dest':
      return <OptionRow means={networkWords[meaning.kind]} value={named(meaning.network)} />;
    case 'status':
      return <OptionRow means="Status" value={<StatusBadge status={meaning.status} />} />;
    case 'lane': {
      const lane = (
        <>
          {named(meaning.source)}
          <Icon name="right" />
          {named(meaning.dest)}
        </>
      );
      return <OptionRow means="Lane" value={lane} />;
    }
    default: {
      const terms = meaning.text.split(',');
      return (
        <OptionRow
          means={terms.length > 1 ? 'All of these' : textWords[meaning.kind]}
          value={<code>{terms.map(shortHash).join(', ')}</code>}
        />
      );
    }
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
