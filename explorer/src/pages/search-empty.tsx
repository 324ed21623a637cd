/** A search without a hit: nothing there at all, nothing that matches, or nothing yet. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { networksQuery } from '../api.ts';
import { networkName } from '../format.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { Notice } from '../parts/notices.tsx';
import { Ago } from '../parts/time.tsx';
import type { SearchView } from '../search-view.ts';

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

/** A filter for one particular thing: whoever looks for it expects it to be there. */
const particulars = ['q', 'messageId', 'sourceTransactionHash', 'destTransactionHash'] as const;

export function NothingFound({ view }: { readonly view: SearchView }) {
  const isParticular = particulars.some((name) => view[name] !== undefined);
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
      ) : (
        <p>Every filter is fine, but together they leave nothing. Take one away, or:</p>
      )}
      <p>
        <Link to="/" search={{}} className="button">
          Show all messages
        </Link>
      </p>
    </Notice>
  );
}

/** How far each network is indexed, for who misses something. */
export function IndexedSoFar() {
  const { data } = useQuery(networksQuery(false));
  if (!data || data.simulated) return null;
  const indexed = data.data.filter(({ indexing }) => indexing !== null);
  if (indexed.length === 0) {
    return (
      <p className="muted">
        No network is indexed here: records come from imports only, and it was not among them.
      </p>
    );
  }
  return (
    <ul className="indexed-so-far">
      {indexed.map((network) => (
        <li key={network.chainSelector}>
          <bdi>{networkName(network)}</bdi>: indexed to block {network.indexing?.indexedBlock ?? '–'}
          {network.indexing && (
            <span className="muted">
              {' '}
              ({network.indexing.health}, last seen <Ago at={network.indexing.lastSeenAt} suffix=" ago" />)
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
