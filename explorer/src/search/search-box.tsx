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
import { networkBySelector } from '../../../src/domain/networks/networks.ts';
import { printable, shortHash } from '../../../src/text/format.ts';
import { networkName, statusWords } from '../../../src/text/message-words.ts';
import { type Option, useOptionList } from '../parts/controls.tsx';
import { Icon, NamedNetwork, StatusBadge } from '../parts/icons.tsx';
import { useKeys } from '../parts/page.tsx';
import { api, lookupQuery, networksQuery } from '../server/api-client.ts';
import type { Filters } from '../server/search-view.ts';

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
  const choices = choicesOf(read, lookup.data?.text === understood ? lookup.data.data : []);

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
  const pick = async (lead: Choice['value']) => {
    setLooking(true);
    try {
      const found = await lead();
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
  const { fieldProps, onKeyDown, list, reset } = useOptionList(choices, (lead) => void pick(lead));
  const isNotUnderstood = isOpen && isSettled && choices.length === 0 && !lookup.isFetching;

  return (
    <search className="box line" data-looking={isLooking}>
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
      <kbd className="box-key">/</kbd>
      {isOpen && (choices.length > 0 || isNotUnderstood) && (
        // biome-ignore lint/a11y/noStaticElementInteractions: it only keeps the field's focus while an option is pressed.
        <div className="box-panel" onMouseDown={(event) => event.preventDefault()}>
          {list('What this can mean')}
          {isNotUnderstood && (
            <p id="box-hint" className="hint muted" role="status">
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

// ---- What can be chosen

type Destination = { readonly messageId: string } | { readonly filters: Filters };

/** How it is shown, and where it leads. */
type Choice = Option<() => Promise<Destination> | Destination>;

/** What the server knows comes first, unless the text is whole: `LINK` is a token before it is part of `Etherlink`. */
function choicesOf(meanings: readonly Meaning[], matches: readonly LookupMatch[]): readonly Choice[] {
  const read = meanings.flatMap((meaning) => (meaning.kind === 'shortened' ? [] : [choiceOf(meaning)]));
  const found = matches.map((match) => ({
    key: JSON.stringify(match),
    value: () => destinationOf(match),
    content: <MatchRow match={match} />,
  }));
  const isWhole = meanings.some(({ kind }) => kind === 'address' || kind === 'hash' || kind === 'lane');
  return isWhole ? [...read, ...found] : [...found, ...read];
}

/** What a meaning is called where nothing but its text is shown. */
const textWords = {
  hash: 'Message or transaction',
  transaction: 'Transaction',
  address: 'Sender, receiver or origin',
  terms: 'Token or pool',
} as const;

const named = ({ displayName, selector }: Known) => (
  <NamedNetwork key={selector} name={displayName} selector={selector} />
);

/** A meaning of the text by itself. */
function choiceOf(meaning: Exclude<Meaning, { kind: 'shortened' }>): Choice {
  const choice = (means: string, shown: ReactNode, value: Choice['value']): Choice => ({
    key: JSON.stringify(meaning),
    value,
    content: <OptionRow means={means} value={shown} />,
  });
  const filtered = (means: string, shown: ReactNode, filters: Filters) =>
    choice(means, shown, () => ({ filters }));
  switch (meaning.kind) {
    case 'network':
      return filtered('From or to', named(meaning.network), { chainSelector: meaning.network.selector });
    case 'source':
      return filtered('From', named(meaning.network), { sourceChainSelector: meaning.network.selector });
    case 'dest':
      return filtered('To', named(meaning.network), { destChainSelector: meaning.network.selector });
    case 'status':
      return filtered('Status', <StatusBadge status={meaning.status} />, { status: meaning.status });
    case 'lane': {
      const { source, dest } = meaning;
      const lane = [named(source), <Icon key="to" name="right" />, named(dest)];
      return filtered('Lane', lane, {
        sourceChainSelector: source.selector,
        destChainSelector: dest.selector,
      });
    }
    default: {
      const { kind, text } = meaning;
      const terms = text.split(',');
      const means = terms.length > 1 ? 'All of these' : textWords[kind];
      return choice(means, <code>{terms.map(shortHash).join(', ')}</code>, () =>
        kind === 'address' ? destinationOfAddress(text) : destinationOfText(text),
      );
    }
  }
}

// ---- Where it leads. Exactly one hit goes straight to its message

async function destinationOfText(text: string): Promise<Destination> {
  return (await hit({ q: text })) ?? { filters: { q: text } };
}

/** For an account: the messages it sent or received. For a token: the messages that transfer it. */
async function destinationOfAddress(text: string): Promise<Destination> {
  const [asParty, asAnything] = await Promise.all([hit({ address: text }), hit({ q: text })]);
  const found = asParty ?? asAnything;
  if (found) return found;
  const known = await api.lookup(text).catch(() => undefined);
  const contract = known?.data.find(({ kind }) => kind !== 'label');
  return contract ? destinationOf(contract) : { filters: { address: text } };
}

function destinationOf(match: LookupMatch): Promise<Destination> | Destination {
  const filters = contractFilters(match);
  if (filters) return { filters };
  const { kind, value } = match;
  if (kind === 'message') return { messageId: value };
  return kind === 'transaction' ? destinationOfText(value) : destinationOfAddress(value);
}

/** The one message that matches, or filters where several do; undefined where none does or the request failed. */
async function hit(filters: Filters): Promise<Destination | undefined> {
  const page = await api.search({ ...filters, limit: 2, view: 'summary' }).catch(() => undefined);
  const [first, second] = page?.data ?? [];
  if (!first) return undefined;
  return second ? { filters } : { messageId: first.messageId };
}

// ---- What the server knows by a text

const foundWords: Readonly<Record<LookupMatch['kind'], string>> = {
  message: 'Message',
  transaction: 'Transaction',
  address: 'Sender, receiver or token',
  label: 'Label',
  token: 'Token',
  router: 'Router',
  onRamp: 'On-ramp',
  offRamp: 'Off-ramp',
};

/** What a text was found to be, with its network. */
export function MatchRow({ match }: { readonly match: LookupMatch }) {
  const { kind, value, name, chainSelector, remoteChainSelector } = match;
  return (
    <OptionRow
      means={foundWords[kind]}
      value={
        <>
          {name !== null && <bdi className={kind === 'token' ? 'bold' : 'label'}>{printable(name)}</bdi>}
          <code>{shortHash(value)}</code>
          {chainSelector !== null && <NetworkOf selector={chainSelector} />}
          {remoteChainSelector !== null && (
            <>
              <Icon name={kind === 'offRamp' ? 'left' : 'right'} />
              <NetworkOf selector={remoteChainSelector} />
            </>
          )}
        </>
      }
    />
  );
}

function NetworkOf({ selector }: { readonly selector: string }) {
  return <NamedNetwork name={networkBySelector(selector)?.displayName ?? selector} selector={selector} />;
}

export function OptionRow({ means, value }: { readonly means: string; readonly value: ReactNode }) {
  return (
    <>
      <span className="inline">{value}</span>
      <span className="muted small nowrap">{means}</span>
    </>
  );
}

/** The messages that a token or a contract of CCIP has to do with; undefined for anything else. */
export function contractFilters(match: LookupMatch): Filters | undefined {
  const { kind, value, chainSelector, remoteChainSelector } = match;
  const own = chainSelector ?? '';
  const other = remoteChainSelector ?? '';
  switch (kind) {
    case 'token':
      return { sourceTokenAddress: value, ...(own !== '' && { sourceChainSelector: own }) };
    case 'router':
      return { sourceChainSelector: own };
    case 'onRamp':
      return { sourceChainSelector: own, destChainSelector: other };
    case 'offRamp':
      return { sourceChainSelector: other, destChainSelector: own };
    default:
      return undefined;
  }
}
