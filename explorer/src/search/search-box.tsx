/** The search box: takes ids, hashes, addresses, networks, lanes and statuses. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { networkName, shortHash } from '../parts/format.ts';
import { Icon } from '../parts/icons.tsx';
import { isTyping } from '../parts/is-typing.ts';
import { NetworkMark } from '../parts/network.tsx';
import { type Option, useOptionList } from '../parts/option-list.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { getJson, networksQuery } from '../server/api-client.ts';
import type { Network, SearchResult } from '../server/api-types.ts';
import type { Filters } from '../server/search-view.ts';
import { type KnownNetwork, type Meaning, meaningsOf } from './input-meanings.ts';

/** The networks that have traffic here, the busiest first. */
export function useKnownNetworks(
  isEnabled: boolean,
): readonly (KnownNetwork & { readonly messages: number })[] {
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
  const meanings = meaningsOf(text, known);
  const isSettled = text.trim().length > 2;

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
  const pick = async (meaning: Meaning) => {
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
    (meaning): Option<Meaning> => ({
      key: JSON.stringify(meaning),
      value: meaning,
      content: <MeaningRow meaning={meaning} />,
    }),
  );
  const { fieldProps, onKeyDown, list, reset } = useOptionList(options, (meaning) => void pick(meaning));
  const isNotUnderstood = isOpen && isSettled && meanings.length === 0;

  return (
    <search className="box" data-looking={isLooking}>
      <Icon name="search" />
      <input
        {...fieldProps}
        ref={field}
        type="search"
        value={text}
        aria-label="Search: message id, transaction, address, network"
        aria-invalid={isNotUnderstood}
        aria-describedby={isNotUnderstood ? 'box-hint' : undefined}
        placeholder="Message id, transaction, address, network…"
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
              This is not a message id, transaction hash, address, network or status. Ids and hashes are 0x
              and 64 hexadecimal digits; type a network by name, such as “sepolia” or “sepolia to fuji”.
            </p>
          )}
        </div>
      )}
    </search>
  );
}

function MeaningRow({ meaning }: { readonly meaning: Meaning }): ReactNode {
  switch (meaning.kind) {
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

function Row({ means, value }: { readonly means: string; readonly value: ReactNode }) {
  return (
    <>
      <span className="option-value">{value}</span>
      <span className="option-role">{means}</span>
    </>
  );
}

function Named({ network }: { readonly network: KnownNetwork }) {
  return (
    <span className="network">
      <NetworkMark name={network.displayName} seed={network.selector} />
      <bdi>{network.displayName}</bdi>
    </span>
  );
}

// ---- Where a meaning leads

type Destination = { readonly messageId: string } | { readonly filters: Filters };

/** Exactly one hit goes straight to its message. */
async function destinationOf(meaning: Meaning): Promise<Destination> {
  switch (meaning.kind) {
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
      return asParty ?? asAnything ?? { filters: { address: meaning.text } };
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

/** The one message that matches, or filters where several do; undefined where none does or the request failed. */
async function hit(filters: Filters): Promise<Destination | undefined> {
  const parameters = new URLSearchParams({ ...filters, limit: '2', view: 'summary' });
  const page = await getJson<SearchResult>(`/v2/messages?${parameters}`).catch(() => undefined);
  const [first, second] = page?.data ?? [];
  if (!first) return undefined;
  return second ? { filters } : { messageId: first.messageId };
}
