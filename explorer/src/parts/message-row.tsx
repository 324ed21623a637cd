/** One message in a list: the whole row is a link, with copy buttons on its hashes. */
import { Link } from '@tanstack/react-router';
import { memo } from 'react';
import type { FailureReason } from '../../../src/client/api-types.ts';
import type { Message } from '../../../src/domain/message.ts';
import { type NamedToken, type Names, transferredAmount } from '../../../src/domain/names/message-names.ts';
import { printable, shortHash, shortInteger } from '../../../src/text/format.ts';
import { laneWords, statusWords } from '../../../src/text/message-words.ts';
import { useNames } from '../server/names.ts';
import { CopyButton } from './copy.tsx';
import { ShortHash } from './hash.tsx';
import { Icon, LaneLabel, NeedsAction, StatusBadge } from './icons.tsx';
import { Skeleton } from './page.tsx';
import { Ago, ReasonText } from './text.tsx';

interface MessageRowProps {
  readonly message: Message;
  readonly isFresh: boolean;
  /** Why its last attempt failed. */
  readonly reason?: FailureReason | undefined;
}

export const MessageRow = memo(({ message, isFresh, reason }: MessageRowProps) => {
  const { messageId, status, tokenAmounts, readyForManualExecution } = message;
  const { sourceNetworkInfo: source, destNetworkInfo: dest } = message;
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
      <span className="cell-status stack">
        <StatusBadge status={status} />
        {readyForManualExecution && <NeedsAction />}
      </span>
      <span className="cell-lane">
        <LaneLabel source={source} dest={dest} />
      </span>
      <span className="cell-id">
        <ShortHash text={messageId} what="message id" />
      </span>
      <span className="cell-parties line">
        {party('sender', message.sender, names.label(source, message.sender))}
        <Icon name="right" />
        {party('receiver', message.receiver, names.label(dest, message.receiver))}
      </span>
      <span className="cell-tokens">
        <FirstTransfer message={message} names={names} />
      </span>
      <span className="cell-time muted nowrap">
        <Ago at={message.sendTimestamp} />
      </span>
      {reason !== undefined && (
        <span className="cell-reason muted small wrap">
          <ReasonText reason={reason} network={dest} />
        </span>
      )}
    </li>
  );
});

/** The operator's label is shown instead of the address. */
function party(end: 'sender' | 'receiver', address: string, label: string | undefined) {
  const title = `${end === 'sender' ? 'Sender' : 'Receiver'} ${address}: search its messages`;
  return (
    <span className="hash inline gap-2">
      <Link to="/" search={{ [end]: address }} title={title}>
        {label === undefined ? (
          <code>{shortHash(address)}</code>
        ) : (
          <bdi className="label">{printable(label)}</bdi>
        )}
      </Link>
      <CopyButton text={address} what={end} />
    </span>
  );
}

/** A symbol is the contract's own claim, so that the address stays beside it. */
function FirstTransfer({ message, names }: { readonly message: Message; readonly names: Names }) {
  const [first, ...others] = message.tokenAmounts;
  if (!first) return <span className="muted">–</span>;
  const { amount, sourceTokenAddress: address } = first;
  const token = names.token(message.sourceNetworkInfo, address);
  const words = transferredAmount(first, token);
  return (
    <>
      <span>
        <span title={`${amount} smallest units of ${address}`}>
          {words === null ? `${shortInteger(amount)} units` : <strong>{words.short}</strong>}
        </span>{' '}
        <TokenSymbol token={token} />
      </span>{' '}
      <Link
        to="/"
        search={{ sourceTokenAddress: address }}
        className="small"
        title={`Token ${address}: search its transfers`}
      >
        <code>{shortHash(address)}</code>
      </Link>
      {others.length > 0 && <span className="muted"> +{others.length}</span>}
    </>
  );
}

/** What a token is called. Shown beside the address, never instead of it: anybody can claim any symbol. */
export function TokenSymbol({ token }: { readonly token: NamedToken | undefined }) {
  if (!token?.symbol) return null;
  const { symbol, name, source, address } = token;
  const called = printable(name ? `${symbol}, “${name}”` : symbol);
  const title =
    source === 'operator'
      ? `${called}, as this server’s operator calls ${address}`
      : `${address} calls itself ${called}`;
  return (
    <bdi className="bold" title={title}>
      {printable(symbol)}
    </bdi>
  );
}

const cellWidths = { status: '84px', lane: '70%', id: '96px', parties: '80%', tokens: '60%', time: '40px' };

export function MessageRowSkeleton() {
  return (
    <div className="row">
      {Object.entries(cellWidths).map(([cell, width]) => (
        <span key={cell} className={`cell-${cell}`}>
          <Skeleton width={width} />
        </span>
      ))}
    </div>
  );
}
