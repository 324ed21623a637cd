/** What a search without results shows: no messages at all, or none that match. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { networkBySelector } from '../../../src/domain/networks.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { printable } from '../parts/format.ts';
import { IndexedSoFar } from '../parts/indexed-so-far.tsx';
import { Notice } from '../parts/notices.tsx';
import { tokensQuery } from '../server/api-client.ts';
import { filtersOf, type SearchView } from '../server/search-view.ts';

const waysToFill = [
  ['Index from your own RPC endpoints, as lanescan.yaml names them', 'lanescan index'],
  ['Follow another server that speaks this API', 'lanescan mirror https://other.example'],
  ['Load records, one JSON a line', 'lanescan import records.ndjson.gz'],
  ['Try it with a simulated network', 'lanescan demo'],
] as const;

export function NothingYet() {
  return (
    <Notice title="No messages yet">
      <p>Four ways to fill Lanescan:</p>
      <ul className="ways">
        {waysToFill.map(([what, command]) => (
          <li key={command}>
            <span>{what}</span>
            <span className="command">
              <code>{command}</code>
              <CopyButton text={command} what="command" />
            </span>
          </li>
        ))}
      </ul>
      <p className="muted">New messages appear here by themselves.</p>
    </Notice>
  );
}

/** Filters for one particular message or transaction, which the user expects to exist. */
const particulars = ['q', 'messageId', 'sourceTransactionHash', 'destTransactionHash'] as const;

export function NothingFound({ view }: { readonly view: SearchView }) {
  const isParticular = particulars.some((name) => view[name] !== undefined);
  const isOnly = Object.keys(filtersOf(view)).length === 1;
  return (
    <Notice title={isParticular ? 'Not found here' : 'No message matches'}>
      {isParticular ? (
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
        <p>No message that is known here has this. It shows up as soon as one does.</p>
      ) : (
        <p>Each filter may match some messages, but none matches all of them. Take one away, or:</p>
      )}
      <p>
        <Link to="/" search={{}} className="button">
          Show all messages
        </Link>
      </p>
    </Notice>
  );
}

/** A token that fees are paid in is known, and yet no message transfers it. */
function NoTransfers({ view, address }: { readonly view: SearchView; readonly address: string }) {
  const { data } = useQuery(tokensQuery(address));
  const token = data?.data.find(
    ({ chainSelector }) =>
      view.sourceChainSelector === undefined || chainSelector === view.sourceChainSelector,
  );
  const network = token && networkBySelector(token.chainSelector)?.displayName;
  return (
    <>
      <p>
        No message that is known here transfers this token
        {token?.symbol ? (
          <>
            , which calls itself <bdi className="symbol">{printable(token.symbol)}</bdi>
          </>
        ) : null}
        .{token && ' Fees may be paid in it.'}
      </p>
      {token && network && (
        <p>
          <Link to="/" search={{ sourceChainSelector: token.chainSelector }} className="button">
            Show messages from {network}
          </Link>
        </p>
      )}
    </>
  );
}
