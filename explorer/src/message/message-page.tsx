/** The page of a message: status, forecast and what to do, then all its fields. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useRouter, useRouterState } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { FailureReason, Lane } from '../../../src/client/api-types.ts';
import { ResponseError } from '../../../src/client/client.ts';
import type { Message } from '../../../src/domain/message.ts';
import { isMessageId, shortHash } from '../../../src/text/format.ts';
import { problemOf } from '../../../src/text/message-problem.ts';
import { isInFlight, laneWords, statusWords } from '../../../src/text/message-words.ts';
import { CopyButton } from '../parts/copy.tsx';
import {
  FreshnessBanner,
  IndexedSoFar,
  MessageFreshnessBanner,
  useIsUnwatched,
} from '../parts/freshness.tsx';
import { laneMessages } from '../parts/hash.tsx';
import { Icon, LaneLabel, NeedsAction, StatusBadge } from '../parts/icons.tsx';
import { Loaded, Notice, Skeleton, useKeys, useTitle } from '../parts/page.tsx';
import { AddressText, Ago, ReasonText } from '../parts/text.tsx';
import {
  attemptsQuery,
  historyQuery,
  lanesQuery,
  messageKeys,
  messageQuery,
  searchQuery,
} from '../server/api-client.ts';
import { useLiveChanges } from '../server/change-stream.ts';
import { useTimed } from '../server/clock.ts';
import { ManualExecution } from './manual-execution.tsx';
import { MessageDetails } from './message-details.tsx';
import { type Forecast, forecast } from './outlook.ts';
import { Rescue } from './rescue.tsx';
import { Timeline } from './timeline.tsx';

export function MessagePage() {
  const { messageId } = useParams({ from: '/message/$messageId' });
  const router = useRouter();
  const navigate = useNavigate();
  useKeys(({ key, defaultPrevented }) => {
    if (key !== 'Escape' || defaultPrevented || document.querySelector(':popover-open')) return;
    if (router.state.location.state.isInside) router.history.back();
    else void navigate({ to: '/' });
  });
  return isMessageId(messageId) ? (
    <KnownOrNot messageId={messageId.toLowerCase()} />
  ) : (
    <NoMessageId text={messageId} />
  );
}

const toNewestMessages = (
  <p>
    <Link to="/" className="button">
      Show the newest messages
    </Link>
  </p>
);

function NoMessageId({ text }: { readonly text: string }) {
  useTitle('No message id');
  return (
    <Notice title="This is not a message id" tone="problem">
      <p>A message id is 0x and 64 hexadecimal digits. The address of this page has something else:</p>
      <p>
        <code className="wrap">{text.slice(0, 200)}</code>
      </p>
      {toNewestMessages}
    </Notice>
  );
}

function KnownOrNot({ messageId }: { readonly messageId: string }) {
  const client = useQueryClient();
  const query = useQuery(messageQuery(messageId));
  const { data: message, error } = query;
  useTitle(
    message
      ? `${statusWords[message.status]} · ${laneWords(message)} · ${shortHash(messageId)}`
      : `Message ${shortHash(messageId)}`,
  );
  const keys = messageKeys(messageId);
  const readAgain = (...queryKeys: readonly (readonly string[])[]) => {
    for (const queryKey of queryKeys) void client.invalidateQueries({ queryKey });
  };
  // A message that is not known yet is followed too: it may arrive.
  useLiveChanges({
    parameters: message?.status === 'SUCCESS' ? null : { messageId },
    onChange: ({ change, message: changed }) => {
      if (change === 'removed') return readAgain(keys.message, keys.history, keys.attempts);
      // A response that is still in flight may be older than this change.
      void client.cancelQueries({ queryKey: keys.message });
      client.setQueryData(keys.message, changed);
      readAgain(keys.history, keys.attempts);
    },
    // It may have changed between the read and the start of the stream.
    onBegin: () => readAgain(keys.message, keys.history, keys.attempts),
  });
  if (!message && error instanceof ResponseError && error.status === 404)
    return <NotKnown messageId={messageId} />;
  return (
    <Loaded query={query} skeleton={<MessageSkeleton />}>
      {(found) => <MessageView message={found} />}
    </Loaded>
  );
}

function MessageView({ message }: { readonly message: Message }) {
  const { messageId, sourceNetworkInfo, destNetworkInfo } = message;
  const history = useQuery(historyQuery(messageId));
  const { data: executions } = useQuery(attemptsQuery(messageId));
  // Of the last attempt that no reorganisation removed.
  const reason = executions?.attempts.findLast(({ removedAt }) => removedAt === null)?.reason ?? undefined;
  const lane = useQuery(lanesQuery(laneMessages(message).filters)).data?.data[0];
  return (
    <article className="message-page">
      <BackLink />
      <MessageFreshnessBanner message={message} />
      <header className="message-head stack">
        <div className="message-state flow">
          <StatusBadge status={message.status} />
          {message.readyForManualExecution && <NeedsAction />}
          {message.version !== null && <span className="tag">CCIP {message.version}</span>}
          <span className="muted">
            sent <Ago at={message.sendTimestamp} suffix=" ago" />
          </span>
        </div>
        <h1 className="message-lane">
          <LaneLabel source={sourceNetworkInfo} dest={destNetworkInfo} />
        </h1>
        <p className="line gap-4 muted">
          <code className="wrap">{messageId}</code>
          <CopyButton text={messageId} what="message id" />
        </p>
      </header>
      <Timeline message={message} stages={history.data?.stages} />
      <Outlook message={message} lane={lane} reason={reason} />
      <MessageDetails message={message} history={history.data} attempts={executions?.attempts} lane={lane} />
    </article>
  );
}

interface OutlookProps {
  readonly message: Message;
  readonly lane: Lane | undefined;
  readonly reason: FailureReason | undefined;
}

/** The forecast, and what to do. */
function Outlook({ message, lane, reason }: OutlookProps) {
  // Computed every second, so that the text keeps up with the clock.
  const elapsedMs = useTimed((now) => Math.floor((now - Date.parse(message.sendTimestamp)) / 1_000) * 1_000);
  const isUnwatched = useIsUnwatched(message);
  const expected = lane && isInFlight(message) && !isUnwatched ? forecast(elapsedMs, lane.delivery) : null;
  const problem = problemOf(message, { reason, isOverdue: expected?.kind === 'overdue' });
  return (
    <>
      {expected && lane && <ForecastBar expected={expected} elapsedMs={elapsedMs} delivery={lane.delivery} />}
      {problem && (
        <section
          className={`callout stack${problem.canBeExecuted ? ' callout-action' : ''}`}
          aria-labelledby="what-happened"
        >
          <h2 id="what-happened" className="line">
            <Icon name={problem.canBeExecuted ? 'hand' : 'info'} />
            {problem.title}
          </h2>
          <p>
            {problem.whatHappened}
            {reason && message.status === 'FAILED' && (
              <>
                {' '}
                <strong>
                  <ReasonText reason={reason} network={message.destNetworkInfo} />
                </strong>
              </>
            )}{' '}
            {problem.consequence}
          </p>
          {problem.advice && (
            <p>
              <AddressText text={problem.advice} />
            </p>
          )}
          {problem.canBeExecuted && (
            <>
              <Rescue message={message} />
              <ManualExecution message={message} />
            </>
          )}
        </section>
      )}
    </>
  );
}

interface ForecastBarProps {
  readonly expected: Forecast;
  readonly elapsedMs: number;
  readonly delivery: Lane['delivery'];
}

/** Elapsed time against the lane's percentiles, on a scale that ends where "overdue" begins. */
function ForecastBar({ expected, elapsedMs, delivery: { p50Ms, p90Ms, p99Ms } }: ForecastBarProps) {
  if (!p50Ms || !p90Ms || !p99Ms) return null;
  // Not linear: most of the scale is for the times of most messages, not for the tail.
  const place = (ms: number) => {
    if (ms <= p50Ms) return (ms / p50Ms) * 50;
    if (ms <= p90Ms) return 50 + ((ms - p50Ms) / Math.max(1, p90Ms - p50Ms)) * 30;
    return Math.min(100, 80 + ((ms - p90Ms) / Math.max(1, p99Ms - p90Ms)) * 20);
  };
  return (
    <section className="forecast stack" data-kind={expected.kind} aria-label="Expected time">
      <p>{expected.words}</p>
      <svg className="forecast-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect className="forecast-track" width="100" height="4" />
        <rect className="forecast-gone" width={place(elapsedMs)} height="4" />
        <path className="forecast-marks" d="M50 0v4M80 0v4" vectorEffect="non-scaling-stroke" />
      </svg>
    </section>
  );
}

function BackLink() {
  const router = useRouter();
  const isInside = useRouterState({ select: ({ location }) => location.state.isInside ?? false });
  return (
    <p className="back">
      {isInside ? (
        <button type="button" className="button quiet" onClick={() => router.history.back()}>
          <Icon name="left" /> Back
        </button>
      ) : (
        <Link to="/" className="button quiet">
          <Icon name="left" /> Messages
        </Link>
      )}
    </p>
  );
}

/** No message with this id: it may be a transaction hash, a message removed by a reorg, or one not indexed yet. */
function NotKnown({ messageId }: { readonly messageId: string }) {
  const navigate = useNavigate();
  const { data: history } = useQuery(historyQuery(messageId));
  const { data: found } = useQuery(searchQuery({ q: messageId, limit: '25' }));
  const hits = found?.data ?? [];
  const [only] = hits;
  useEffect(() => {
    if (hits.length === 1 && only) {
      void navigate({ to: '/message/$messageId', params: { messageId: only.messageId }, replace: true });
    }
  }, [hits.length, only, navigate]);

  if (history) {
    return (
      <Notice title="This message was removed">
        <p>
          It was seen here, but a reorganisation of its source chain removed the transaction that sent it. If
          it is sent again, this page shows it.
        </p>
      </Notice>
    );
  }
  if (hits.length > 1) {
    return (
      <Notice title="Not a message ID">
        <p>Several messages use this transaction:</p>
        <p>
          <Link to="/" search={{ q: messageId }} className="button">
            Show the messages
          </Link>
        </p>
      </Notice>
    );
  }
  return (
    <Notice title="Message not found yet">
      <p>
        <code className="wrap">{messageId}</code>
      </p>
      <FreshnessBanner />
      <p>
        No message with this id is indexed. If it was sent a moment ago, keep this page open: it shows the
        message as soon as it arrives.
      </p>
      <IndexedSoFar />
      {toNewestMessages}
    </Notice>
  );
}

function MessageSkeleton() {
  return (
    <div className="message-page" aria-busy="true">
      <p className="back" />
      <div className="message-head stack">
        <div className="message-state flow">
          <Skeleton width="120px" />
        </div>
        <p className="message-lane">
          <Skeleton width="320px" />
        </p>
        <p className="line gap-4 muted">
          <Skeleton width="480px" />
        </p>
      </div>
      <div className="timeline-place" />
    </div>
  );
}
