/** One message in a list: the whole row is a link, with copy buttons on its hashes. */
import { Link } from '@tanstack/react-router';
import { memo } from 'react';
import type { FailureReason } from '../../../src/client/api-types.ts';
import type { Message, NetworkInfo } from '../../../src/domain/message.ts';
import { type NamedToken, type Names, transferredAmount } from '../../../src/domain/names/message-names.ts';
import { printable, shortHash, shortInteger } from '../../../src/text/format.ts';
import { laneWords, statusWords } from '../../../src/text/message-words.ts';
import { useNames } from '../server/names.ts';
import { CopyButton } from './copy-button.tsx';
import { ShortHash } from './hash.tsx';
import { Icon } from './icons.tsx';
import { LaneLabel } from './network.tsx';
import { Skeleton } from './notices.tsx';
import { ReasonText } from './reason-text.tsx';
import { StatusBadge } from './status.tsx';
import { Ago } from './time.tsx';

export const MessageRow = memo(
  ({
    message,
    isFresh,
    reason,
  }: {
    readonly message: Message;
    readonly isFresh: boolean;
    /** Why its last attempt failed. */
    readonly reason?: FailureReason | undefined;
  }) => {
    const { messageId, status, sender, receiver, tokenAmounts, readyForManualExecution } = message;
    const names = useNames(tokenAmounts.slice(0, 1).map(({ sourceTokenAddress }) => sourceTokenAddress));
    const needsAction = readyForManualExecution ? ', needs action' : '';
    return (
      <li className="row" data-fresh={isFresh}>
        <Link
          to="/message/$messageId"
          params={{ messageId }}
          state={{ isInside: true }}
          className="row-link"
          aria-label={`${statusWords[status]}${needsAction}: ${laneWords(message)}, message ${shortHash(messageId)}`}
        />
        <span className="cell-status">
          <StatusBadge status={status} />
          {readyForManualExecution && <NeedsAction />}
        </span>
        <span className="cell-lane">
          <LaneLabel source={message.sourceNetworkInfo} dest={message.destNetworkInfo} />
        </span>
        <span className="cell-id">
          <ShortHash text={messageId} what="message id" />
        </span>
        <span className="cell-parties">
          <span className="hash">
            <Party end="sender" address={sender} network={message.sourceNetworkInfo} names={names} />
            <CopyButton text={sender} what="sender" />
          </span>
          <Icon name="right" />
          <span className="hash">
            <Party end="receiver" address={receiver} network={message.destNetworkInfo} names={names} />
            <CopyButton text={receiver} what="receiver" />
          </span>
        </span>
        <span className="cell-tokens">
          <Tokens message={message} names={names} />
        </span>
        <span className="cell-time">
          <Ago at={message.sendTimestamp} />
        </span>
        {reason !== undefined && (
          <span className="cell-reason">
            <ReasonText reason={reason} network={message.destNetworkInfo} />
          </span>
        )}
      </li>
    );
  },
);

export function NeedsAction() {
  return (
    <span className="needs-action">
      <Icon name="hand" />
      Needs action
    </span>
  );
}

/** The operator's label of an account, or its address. */
function Party({
  end,
  address,
  network,
  names,
}: {
  readonly end: 'sender' | 'receiver';
  readonly address: string;
  readonly network: NetworkInfo;
  readonly names: Names;
}) {
  const label = names.label(network, address);
  const title = `${end === 'sender' ? 'Sender' : 'Receiver'} ${address}: search its messages`;
  return (
    <Link to="/" search={{ [end]: address }} title={title}>
      {label === undefined ? (
        <code>{shortHash(address)}</code>
      ) : (
        <bdi className="label">{printable(label)}</bdi>
      )}
    </Link>
  );
}

/** The first transfer. A symbol is the contract's own claim, so that the address stays beside it. */
function Tokens({ message, names }: { readonly message: Message; readonly names: Names }) {
  const [first, ...others] = message.tokenAmounts;
  if (!first) return <span className="muted">–</span>;
  const token = names.token(message.sourceNetworkInfo, first.sourceTokenAddress);
  const amount = transferredAmount(first, token);
  return (
    <>
      <span>
        <span title={`${first.amount} smallest units of ${first.sourceTokenAddress}`}>
          {amount === null ? `${shortInteger(first.amount)} units` : <strong>{amount.short}</strong>}
        </span>
        {token?.symbol && (
          <>
            {' '}
            <bdi className="symbol" title={claimOf(token)}>
              {printable(token.symbol)}
            </bdi>
          </>
        )}
      </span>{' '}
      <Link
        to="/"
        search={{ sourceTokenAddress: first.sourceTokenAddress }}
        className="token"
        title={`Token ${first.sourceTokenAddress}: search its transfers`}
      >
        <code>{shortHash(first.sourceTokenAddress)}</code>
      </Link>
      {others.length > 0 && <span className="muted"> +{others.length}</span>}
    </>
  );
}

/** Who calls the token that. */
export function claimOf({ symbol, name, source, address }: NamedToken): string {
  const called = printable([symbol, name && `“${name}”`].filter(Boolean).join(', '));
  return source === 'operator'
    ? `${called}, as this server’s operator calls ${address}`
    : `${address} calls itself ${called}`;
}

export function MessageRowSkeleton() {
  return (
    <div className="row">
      <span className="cell-status">
        <Skeleton width="84px" />
      </span>
      <span className="cell-lane">
        <Skeleton width="70%" />
      </span>
      <span className="cell-id">
        <Skeleton width="96px" />
      </span>
      <span className="cell-parties">
        <Skeleton width="80%" />
      </span>
      <span className="cell-tokens">
        <Skeleton width="60%" />
      </span>
      <span className="cell-time">
        <Skeleton width="40px" />
      </span>
    </div>
  );
}
