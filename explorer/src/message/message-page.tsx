/** The page of a message: status, forecast and what to do, then all its fields. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useParams, useRouter, useRouterState } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { Lane } from '../../../src/client/api-types.ts';
import { ResponseError } from '../../../src/client/client.ts';
import type { Message } from '../../../src/domain/message.ts';
import { clockTime, dayName, duration, exactTime, isMessageId, shortHash } from '../../../src/text/format.ts';
import { problemOf } from '../../../src/text/message-problem.ts';
import { isInFlight, laneWords, statusWords } from '../../../src/text/message-words.ts';
import { CopyButton } from '../parts/copy.tsx';
import {
  FreshnessBanner,
  IndexedSoFar,
  MessageFreshnessBanner,
  useIsUnwatched,
} from '../parts/freshness.tsx';
import { Icon, LaneLabel, NeedsAction, StatusBadge, StatusIcon, toneOf } from '../parts/icons.tsx';
import { BackLink, Loaded, MessagesLink, Notice, Skeleton, useKeys, useTitle } from '../parts/page.tsx';
import { AddressText, Ago, ReasonText } from '../parts/text.tsx';
import { attemptsQuery, historyQuery, messageKeys, messageQuery, searchQuery } from '../server/api-client.ts';
import { useLiveChanges } from '../server/change-stream.ts';
import { useTimed } from '../server/clock.ts';
import { MessageDetails, useLane } from './message-details.tsx';
import { type Forecast, forecast, type Step, stepsOf } from './outlook.ts';
import { ManualCommands, Rescue } from './rescue.tsx';

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

function NoMessageId({ text }: { readonly text: string }) {
  useTitle('No message id');
  return (
    <Notice title="This is not a message id" isProblem>
      <p>A message id is 0x and 64 hexadecimal digits. The address of this page has something else:</p>
      <p>
        <code className="wrap">{text.slice(0, 200)}</code>
      </p>
      <MessagesLink words="Show the newest messages" isButton />
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
  return (
    <article className="message-page">
      <Back />
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
      <Timeline message={message} />
      <Outlook message={message} />
      <MessageDetails message={message} />
    </article>
  );
}

/** Stages reached, with their times and durations, and stages to come. */
function Timeline({ message }: { readonly message: Message }) {
  const { data } = useQuery(historyQuery(message.messageId));
  if (!data) {
    return (
      <div className="timeline-place" aria-busy="true">
        <Skeleton width="100%" />
      </div>
    );
  }
  const { stages } = data;
  const steps = stepsOf(message, stages);
  return (
    <ol className="timeline" aria-label="What happened, and what comes next">
      {steps.map((step, index) => (
        <TimelineStep
          key={`${step.status} ${step.stage?.transactionHash ?? index}`}
          step={step}
          firstDay={stages[0]?.at ?? null}
        />
      ))}
    </ol>
  );
}

function TimelineStep({ step, firstDay }: { readonly step: Step; readonly firstDay: string | null }) {
  const { status, state, stage, tookMs } = step;
  const at = stage?.at ?? null;
  const isAhead = state === 'ahead';
  const isOtherDay = at !== null && firstDay !== null && at.slice(0, 10) !== firstDay.slice(0, 10);
  return (
    <li className="step" data-state={state} aria-current={state === 'current' ? 'step' : undefined}>
      <span className="step-mark">
        {isAhead ? <span className="step-ahead" /> : <StatusIcon status={status} />}
      </span>
      <span className={`step-name ${isAhead ? 'muted' : 'bold'}`} style={isAhead ? {} : toneOf(status)}>
        {status === 'SUCCESS' ? 'Executed' : statusWords[status]}
      </span>
      {at !== null && (
        <time className="step-time muted small" dateTime={at} title={exactTime(at)}>
          {(isOtherDay || status === 'SENT') && `${dayName(at)}, `}
          {clockTime(at)}
        </time>
      )}
      {stage !== null && at === null && <span className="step-time muted small">time not known</span>}
      {tookMs !== null && <span className="step-took small">+{duration(tookMs)}</span>}
      {state === 'current' && at !== null && status !== 'FAILED' && <SoFar since={at} />}
      {isAhead && <span className="step-time muted small">to come</span>}
    </li>
  );
}

function SoFar({ since }: { readonly since: string }) {
  const text = useTimed((now) => duration(Math.max(0, now - Date.parse(since))));
  return <span className="step-so-far small">for {text} now</span>;
}

/** The forecast, and what to do. */
function Outlook({ message }: { readonly message: Message }) {
  const { data: executions } = useQuery(attemptsQuery(message.messageId));
  // Of the last attempt that no reorganisation removed.
  const reason = executions?.attempts.findLast(({ removedAt }) => removedAt === null)?.reason ?? undefined;
  const lane = useLane(message);
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
          className={`callout card stack${problem.canBeExecuted ? ' callout-action' : ''}`}
          aria-labelledby="what-happened"
        >
          <h2 id="what-happened" className={`line${problem.canBeExecuted ? ' action' : ''}`}>
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
              <ManualCommands message={message} />
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
  const isLate = expected.kind === 'slow' || expected.kind === 'overdue';
  // Not linear: most of the scale is for the times of most messages, not for the tail.
  const place = (ms: number) => {
    if (ms <= p50Ms) return (ms / p50Ms) * 50;
    if (ms <= p90Ms) return 50 + ((ms - p50Ms) / Math.max(1, p90Ms - p50Ms)) * 30;
    return Math.min(100, 80 + ((ms - p90Ms) / Math.max(1, p99Ms - p90Ms)) * 20);
  };
  return (
    <section className="forecast card stack" aria-label="Expected time">
      <p>{expected.words}</p>
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect width="100" height="4" fill="var(--line)" />
        <rect width={place(elapsedMs)} height="4" fill={`var(--${isLate ? 'action' : 'moving'})`} />
        <path d="M50 0v4M80 0v4" stroke="var(--surface)" strokeWidth="2" vectorEffect="non-scaling-stroke" />
      </svg>
    </section>
  );
}

/** To where the visitor came from; to the newest messages where that is outside of the app. */
function Back() {
  const router = useRouter();
  const isInside = useRouterState({ select: ({ location }) => location.state.isInside ?? false });
  if (!isInside) return <BackLink to="/" name="Messages" />;
  return (
    <p className="back">
      <button type="button" className="button quiet" onClick={() => router.history.back()}>
        <Icon name="left" /> Back
      </button>
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
        <MessagesLink search={{ q: messageId }} words="Show the messages" isButton />
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
      <MessagesLink words="Show the newest messages" isButton />
    </Notice>
  );
}

function MessageSkeleton() {
  return (
    <div className="message-page" aria-busy="true">
      <p className="back" />
      <div className="message-head stack">
        {['120px', '320px', '480px'].map((width) => (
          <p key={width} className="message-state flow">
            <Skeleton width={width} />
          </p>
        ))}
      </div>
      <div className="timeline-place" />
    </div>
  );
}
