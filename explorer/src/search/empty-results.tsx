/** What a search without results shows: no messages at all, or none that match. */
import { Link } from '@tanstack/react-router';
import { CopyButton } from '../parts/copy-button.tsx';
import { IndexedSoFar } from '../parts/indexed-so-far.tsx';
import { Notice } from '../parts/notices.tsx';
import type { SearchView } from '../server/search-view.ts';

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
