/** Reasons of failed messages, the most frequent first: what happened, who can fix it, where, and the newest examples. */
import { Link } from '@tanstack/react-router';
import type { FailureGroup, Failures } from '../../../src/client/api-types.ts';
import { counted, dayName, grouped, percent, printable, shortHash } from '../../../src/text/format.ts';
import { AddressText } from './address-text.tsx';
import { type Bar, BarChart } from './charts.tsx';
import { Icon } from './icons.tsx';
import { LaneLabel } from './network.tsx';
import { Ago } from './time.tsx';

const fixerWords: Readonly<Record<FailureGroup['fixableBy'], string>> = {
  anyone: 'Anyone can execute them manually',
  sender: 'The sender has to act',
  'receiver-owner': "The receiver's owner has to act",
  'pool-owner': 'The owner of the token or its pool has to act',
  network: "CCIP's operators have to act",
  nobody: 'They can never be executed',
  unknown: 'Not known who can fix it',
};

export function FailureReasons({
  failures,
  shown = failures.reasons.length,
  withLanes = true,
  withMessages = false,
}: {
  readonly failures: Failures;
  /** How many reasons are shown. */
  readonly shown?: number;
  /** Whether the lanes of each reason are named. */
  readonly withLanes?: boolean;
  /** Whether the newest messages of each reason are listed. */
  readonly withMessages?: boolean;
}) {
  const { reasons, counted: total, otherReasons, truncated, failed } = failures;
  const hidden = reasons.slice(shown);
  const more = {
    reasons: hidden.length + (otherReasons?.reasons ?? 0),
    messages: hidden.reduce((sum, { messages }) => sum + messages, 0) + (otherReasons?.messages ?? 0),
  };
  return (
    <>
      <ol className="reasons">
        {reasons.slice(0, shown).map((group) => (
          <li key={`${group.code} ${group.fixableBy} ${group.title}`}>
            <Reason group={group} total={total} withLanes={withLanes} withMessages={withMessages} />
          </li>
        ))}
      </ol>
      {more.reasons > 0 && (
        <p className="muted">
          And {counted(more.reasons, 'more reason')} with {counted(more.messages, 'message')}.
        </p>
      )}
      {truncated && (
        <p className="muted">
          The newest {grouped(total)} of {grouped(failed)} failed messages are grouped.
        </p>
      )}
    </>
  );
}

function Reason({
  group,
  total,
  withLanes,
  withMessages,
}: {
  readonly group: FailureGroup;
  readonly total: number;
  readonly withLanes: boolean;
  readonly withMessages: boolean;
}) {
  const { title, fixableBy, messages, readyForManualExecution, newest } = group;
  const [first] = newest;
  return (
    <>
      <p className="reason-head">
        <span className="reason-title">
          <AddressText text={printable(title)} />
        </span>
        <span className="reason-count">
          {grouped(messages)} <span className="muted">{percent(messages, total)}</span>
        </span>
      </p>
      <span className="meter" aria-hidden="true">
        <span className="fill-failed" style={{ width: `${(messages / Math.max(1, total)) * 100}%` }} />
      </span>
      <p className="reason-about">
        <span>{fixerWords[fixableBy]}</span>
        {readyForManualExecution > 0 && (
          <span className="tone-action">
            <Icon name="hand" /> {grouped(readyForManualExecution)} need action
          </span>
        )}
        {withLanes && <Lanes group={group} />}
        {!withMessages && first && (
          <Link to="/message/$messageId" params={{ messageId: first.messageId }} state={{ isInside: true }}>
            newest <Ago at={first.sendTimestamp} suffix=" ago" />
          </Link>
        )}
      </p>
      {withMessages && (
        <ul className="reason-messages" aria-label={`Newest messages: ${printable(title)}`}>
          {newest.map(({ messageId, sendTimestamp }) => (
            <li key={messageId}>
              <Link to="/message/$messageId" params={{ messageId }} state={{ isInside: true }}>
                <code title={messageId}>{shortHash(messageId)}</code>
              </Link>{' '}
              <span className="muted">
                <Ago at={sendTimestamp} suffix=" ago" />
              </span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Lanes({ group: { lanes, laneCount } }: { readonly group: FailureGroup }) {
  const [first] = lanes;
  if (!first) return null;
  const { sourceNetworkInfo: source, destNetworkInfo: dest } = first;
  return (
    <span className="reason-lane">
      <Link to="/lane/$source/$dest" params={{ source: source.name, dest: dest.name }}>
        <LaneLabel source={source} dest={dest} />
      </Link>
      {laneCount > 1 && <span>and {counted(laneCount - 1, 'more lane')}</span>}
    </span>
  );
}

/** The share of each day's messages that have failed, in per cent. */
export function FailureShareChart({ days }: { readonly days: Failures['days'] }) {
  const bars = days.map(({ day, messages, failed }, index): Bar => {
    const isLabelled = index % Math.ceil(days.length / 7) === 0;
    return {
      key: day,
      name: `${dayName(day)}, ${grouped(failed)} of ${grouped(messages)}`,
      ...(isLabelled && { tick: dayName(day) }),
      parts: [{ series: 'Failed', tone: 'failed', value: messages === 0 ? 0 : (failed / messages) * 100 }],
    };
  });
  return (
    <BarChart
      label="Share of the messages sent each day (UTC) that have failed"
      bars={bars}
      format={(share) => `${share.toLocaleString('en', { maximumFractionDigits: 1 })} %`}
    />
  );
}
