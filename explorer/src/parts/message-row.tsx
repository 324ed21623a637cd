/** One message in a list: the whole row is a link, with copy buttons on its hashes. */
import { Link } from '@tanstack/react-router';
import { memo } from 'react';
import type { Message } from '../../../src/domain/message.ts';
import { CopyButton } from './copy-button.tsx';
import { laneWords, printable, shortAmount, shortHash, tokenDecimals } from './format.ts';
import { ShortHash } from './hash.tsx';
import { Icon } from './icons.tsx';
import { LaneLabel } from './network.tsx';
import { Skeleton } from './notices.tsx';
import { StatusBadge } from './status.tsx';
import { statusWords } from './status-words.ts';
import { Ago } from './time.tsx';

export const MessageRow = memo(
  ({
    message,
    isFresh,
    reason,
  }: {
    readonly message: Message;
    readonly isFresh: boolean;
    /** Why its last attempt failed, in a sentence. */
    readonly reason?: string | undefined;
  }) => {
    const { messageId, status, sender, receiver, tokenAmounts, readyForManualExecution } = message;
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
            <Link to="/" search={{ sender }} title={`Sender ${sender}: search its messages`}>
              <code>{shortHash(sender)}</code>
            </Link>
            <CopyButton text={sender} what="sender" />
          </span>
          <Icon name="right" />
          <span className="hash">
            <Link to="/" search={{ receiver }} title={`Receiver ${receiver}: search its messages`}>
              <code>{shortHash(receiver)}</code>
            </Link>
            <CopyButton text={receiver} what="receiver" />
          </span>
        </span>
        <span className="cell-tokens">
          <Tokens tokens={tokenAmounts} />
        </span>
        <span className="cell-time">
          <Ago at={message.sendTimestamp} />
        </span>
        {reason !== undefined && <span className="cell-reason">{printable(reason)}</span>}
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

function Tokens({ tokens }: { readonly tokens: Message['tokenAmounts'] }) {
  const [first] = tokens;
  if (!first) return <span className="muted">–</span>;
  return (
    <>
      <span title={`${first.amount} smallest units of ${first.sourceTokenAddress}`}>
        {tokenDecimals(first) === null ? (
          `${shortAmount(first)} units`
        ) : (
          <strong>{shortAmount(first)}</strong>
        )}
      </span>{' '}
      <code className="token" title={first.sourceTokenAddress}>
        {shortHash(first.sourceTokenAddress)}
      </code>
      {tokens.length > 1 && <span className="muted"> +{tokens.length - 1}</span>}
    </>
  );
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
