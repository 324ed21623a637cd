/** How far each network is indexed: shown where a message was not found. */
import { useQuery } from '@tanstack/react-query';
import { blockNoun } from '../../../src/domain/chain-families.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { networksQuery } from '../server/api-client.ts';
import { Ago } from './time.tsx';

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
          <bdi>{networkName(network)}</bdi>: indexed to {blockNoun(network.chainFamily)}{' '}
          {network.indexing?.indexedBlock ?? '–'}
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
