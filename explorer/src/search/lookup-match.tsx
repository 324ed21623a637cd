/** What the server knows by a text: a row that says what it is, and the messages that it has to do with. */
import type { ReactNode } from 'react';
import type { LookupMatch } from '../../../src/client/api-types.ts';
import { networkBySelector } from '../../../src/domain/networks/networks.ts';
import { printable, shortHash } from '../../../src/text/format.ts';
import { Icon, NamedNetwork } from '../parts/icons.tsx';
import type { Filters } from '../server/search-view.ts';

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
          {name !== null && <bdi className={kind === 'token' ? 'symbol' : 'label'}>{printable(name)}</bdi>}
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
      <span className="option-value">{value}</span>
      <span className="option-role muted small">{means}</span>
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
