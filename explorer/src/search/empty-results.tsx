/** What a search without results shows: no messages at all, or none that match. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { addressBytes } from '../../../src/domain/addresses.ts';
import { networkBySelector } from '../../../src/domain/networks/networks.ts';
import { printable } from '../../../src/text/format.ts';
import { CopyButton } from '../parts/copy.tsx';
import { IndexedSoFar } from '../parts/freshness.tsx';
import { MessagesLink, Notice } from '../parts/page.tsx';
import { lookupQuery, tokensQuery } from '../server/api-client.ts';
import { filtersOf, hasFilters, type SearchView } from '../server/search-view.ts';
import { contractFilters, MatchRow } from './search-box.tsx';

const waysToFill = [
  ['Index chains through the RPC endpoints in lanescan.yaml', 'lanescan index'],
  ['Mirror another server with the same API', 'lanescan mirror https://other.example'],
  ['Import records, one JSON object per line', 'lanescan import records.ndjson.gz'],
  ['Try it with a simulated network', 'lanescan demo'],
] as const;

export function EmptyResults({ view }: { readonly view: SearchView }) {
  return hasFilters(view) ? <NothingFound view={view} /> : <NothingYet />;
}

function NothingYet() {
  return (
    <Notice title="No messages yet">
      <p>Four ways to fill Lanescan:</p>
      <ul className="ways stack gap-16">
        {waysToFill.map(([what, command]) => (
          <li key={command} className="stack gap-4">
            <span>{what}</span>
            <span className="command line spread">
              <code>{command}</code>
              <CopyButton text={command} what="command" />
            </span>
          </li>
        ))}
      </ul>
      <p className="muted">New messages appear here automatically.</p>
    </Notice>
  );
}

/** Filters for one particular message or transaction, which the user expects to exist. */
const particulars = ['q', 'messageId', 'sourceTransactionHash', 'destTransactionHash'] as const;
/** Filters that an address goes into, and what a message would have to do with it. */
const accountWords: Readonly<Record<string, string>> = {
  sender: 'was sent by this address',
  receiver: 'goes to this address',
  q: 'has this address as its sender, receiver, origin, token or pool',
};
const accounts = ['q', 'address', 'sender', 'receiver'] as const;

function NothingFound({ view }: { readonly view: SearchView }) {
  const names = Object.keys(filtersOf(view));
  const isOnly = names.length === 1;
  const account = isOnly ? accounts.map((name) => view[name]).find(isAddress) : undefined;
  const { data } = useQuery(lookupQuery(account ?? ''));
  const contracts = (account === undefined ? [] : (data?.data ?? [])).filter(contractFilters);
  const isParticular = particulars.some((name) => view[name] !== undefined);
  const missing = isParticular ? 'Not found here' : 'No message matches';
  return (
    <Notice title={contracts.length > 0 ? 'A contract, not an account' : missing}>
      {contracts.length > 0 ? (
        <>
          <p>No message has this address as its sender or receiver. It is a known contract:</p>
          <ul className="matches stack gap-4">
            {contracts.map((match) => (
              <li key={JSON.stringify(match)}>
                <Link to="/" search={contractFilters(match) ?? {}} className="flow spread plain">
                  <MatchRow match={match} />
                </Link>
              </li>
            ))}
          </ul>
        </>
      ) : account !== undefined ? (
        <>
          <p>
            No indexed message {accountWords[names[0] ?? ''] ?? accountWords.q}. The first that does appears
            here. Accounts that only execute messages, and contracts of verifiers and executors, are not
            searched.
          </p>
          <IndexedSoFar />
        </>
      ) : isParticular ? (
        <>
          <p>
            No message has it as an id, a transaction, a token, a sender or a receiver. If it was sent a
            moment ago, it may not be indexed yet: this page shows it as soon as it arrives.
          </p>
          <IndexedSoFar />
        </>
      ) : view.sourceTokenAddress !== undefined ? (
        <NoTransfers view={view} address={view.sourceTokenAddress} />
      ) : isOnly ? (
        <p>No indexed message matches. The first that does appears here.</p>
      ) : (
        <p>Each filter may match some messages, but none matches all of them. Remove one, or:</p>
      )}
      <MessagesLink words="Show all messages" isButton />
    </Notice>
  );
}

function isAddress(text: string | undefined): boolean {
  return text !== undefined && addressBytes(text).length > 0 && !/^0x[0-9a-f]{64}$/i.test(text);
}

/** A token that fees are paid in is known, and yet no message transfers it. */
function NoTransfers({ view, address }: { readonly view: SearchView; readonly address: string }) {
  const { data } = useQuery(tokensQuery(address));
  const { sourceChainSelector: source } = view;
  const token = data?.find(({ chainSelector }) => source === undefined || chainSelector === source);
  const network = token && networkBySelector(token.chainSelector)?.displayName;
  return (
    <>
      <p>
        No indexed message transfers this token
        {token?.symbol && ', which calls itself '}
        <bdi className="bold">{printable(token?.symbol ?? '')}</bdi>.{token && ' Fees may be paid in it.'}
      </p>
      {token && network && (
        <MessagesLink
          search={{ sourceChainSelector: token.chainSelector }}
          words={`Show messages from ${network}`}
          isButton
        />
      )}
    </>
  );
}
