/** Numbers to compare: key figures, charts of days, and reasons of failed messages. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { FailureGroup, Failures } from '../../../src/client/api-types.ts';
import { counted, dayName, grouped, percent, printable, shortHash } from '../../../src/text/format.ts';
import type { Filters } from '../server/search-view.ts';
import { type Bar, BarChart } from './charts.tsx';
import { Icon, LaneLabel } from './icons.tsx';
import { MessagesLink, Skeleton } from './page.tsx';
import { AddressText, Ago } from './text.tsx';

interface Figure {
  readonly name: string;
  readonly value: ReactNode;
  readonly about?: ReactNode;
  readonly isAction?: boolean;
}

/** A row of key figures. */
export function Figures({ figures }: { readonly figures: readonly Figure[] }) {
  return (
    <dl className="figures card">
      {figures.map(({ name, value, about, isAction = false }) => (
        <div key={name} className="figure stack gap-2">
          <dt className="muted">{name}</dt>
          <dd className={`figure-value${isAction ? ' action' : ''}`}>{value}</dd>
          {about !== undefined && <dd className="muted small">{about}</dd>}
        </div>
      ))}
    </dl>
  );
}

/** The count of messages that are ready for manual execution, with a link to them. */
export function needActionFigure(count: number, within: Filters = {}): Figure {
  if (count === 0) return { name: 'Need action', value: '0', about: 'nothing to do' };
  const link = <MessagesLink search={{ ...within, readyForManualExecOnly: 'true' }} words="Show them" />;
  return { name: 'Need action', value: grouped(count), about: link, isAction: true };
}

/** In place of figures and the chart below them, while they are loaded. */
export function FiguresSkeleton({ names }: { readonly names: readonly string[] }) {
  const [value, about] = [<Skeleton key="value" width="96px" />, <Skeleton key="about" width="64px" />];
  return (
    <div aria-busy="true">
      <Figures figures={names.map((name) => ({ name, value, about }))} />
      <div className="card chart-place" />
    </div>
  );
}

/** A bar for each day; some days are labelled. */
export function dayBars<T extends { readonly day: string }>(
  days: readonly T[],
  barOf: (day: T) => Pick<Bar, 'parts'> & { readonly about?: string },
): readonly Bar[] {
  return days.map((day, index) => {
    const { parts, about = '' } = barOf(day);
    const name = dayName(day.day);
    const isLabelled = index % Math.ceil(days.length / 7) === 0;
    return { key: day.day, name: `${name}${about}`, ...(isLabelled && { tick: name }), parts };
  });
}

/** The parts of a bar of messages: what has become of them. */
export const outcomeParts = (messages: number, SUCCESS: number, FAILED: number): Bar['parts'] => [
  { series: 'Delivered', tone: 'done', value: SUCCESS },
  { series: 'In flight', tone: 'moving', value: messages - SUCCESS - FAILED },
  { series: 'Failed', tone: 'failed', value: FAILED },
];

/** The share of each day's messages that have failed, in per cent. */
export function FailureShareChart({ days }: Pick<Failures, 'days'>) {
  const bars = dayBars(days, ({ messages, failed }) => ({
    about: `, ${grouped(failed)} of ${grouped(messages)}`,
    parts: [{ series: 'Failed', tone: 'failed', value: messages === 0 ? 0 : (failed / messages) * 100 }],
  }));
  return (
    <BarChart
      label="Share of the messages sent each day (UTC) that have failed"
      bars={bars}
      format={(share) => `${share.toLocaleString('en', { maximumFractionDigits: 1 })} %`}
    />
  );
}

const fixerWords: Readonly<Record<FailureGroup['fixableBy'], string>> = {
  anyone: 'Anyone can execute them manually',
  sender: 'The sender has to act',
  'receiver-owner': "The receiver's owner has to act",
  'pool-owner': 'The owner of the token or its pool has to act',
  network: "CCIP's operators have to act",
  nobody: 'They can never be executed',
  unknown: 'Not known who can fix it',
};

interface FailureReasonsProps {
  readonly failures: Failures;
  /** Where none has failed. */
  readonly none: string;
  /** How many reasons are shown. */
  readonly shown?: number;
  /** Whether the lanes of each reason are named. */
  readonly withLanes?: boolean;
  /** Whether the newest messages of each reason are listed. */
  readonly withMessages?: boolean;
}

/** Reasons, the most frequent first: what happened, who can fix it, where, and the newest examples. */
export function FailureReasons({ failures, none, shown, ...options }: FailureReasonsProps) {
  const { reasons, counted: total, otherReasons, truncated, failed } = failures;
  if (failed === 0) return <p className="muted">{none}</p>;
  const hidden = shown === undefined ? [] : reasons.slice(shown);
  const more = {
    reasons: hidden.length + (otherReasons?.reasons ?? 0),
    messages: hidden.reduce((sum, { messages }) => sum + messages, 0) + (otherReasons?.messages ?? 0),
  };
  return (
    <>
      <ol className="reasons stack gap-16">
        {reasons.slice(0, shown).map((group) => (
          <Reason
            key={`${group.code} ${group.fixableBy} ${group.title}`}
            group={group}
            total={total}
            {...options}
          />
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

interface ReasonProps extends Pick<FailureReasonsProps, 'withLanes' | 'withMessages'> {
  readonly group: FailureGroup;
  readonly total: number;
}

function Reason({ group, total, withLanes = true, withMessages = false }: ReasonProps) {
  const { title, fixableBy, messages, readyForManualExecution, newest, lanes, laneCount } = group;
  const [first] = newest;
  const [lane] = withLanes ? lanes : [];
  return (
    <li className="stack">
      <p className="line spread gap-16 baseline">
        <strong className="reason-title wrap">
          <AddressText text={printable(title)} />
        </strong>
        <span className="nowrap">
          {grouped(messages)} <span className="muted">{percent(messages, total)}</span>
        </span>
      </p>
      <span className="meter" aria-hidden="true">
        <span style={{ width: `${(messages / Math.max(1, total)) * 100}%` }} />
      </span>
      <p className="flow muted small">
        <span>{fixerWords[fixableBy]}</span>
        {readyForManualExecution > 0 && (
          <span className="action">
            <Icon name="hand" /> {grouped(readyForManualExecution)} need action
          </span>
        )}
        {lane && (
          <span className="reason-lane inline">
            <LaneLink lane={lane} />
            {laneCount > 1 && <span>and {counted(laneCount - 1, 'more lane')}</span>}
          </span>
        )}
        {!withMessages && first && (
          <Link to="/message/$messageId" params={{ messageId: first.messageId }} state={{ isInside: true }}>
            newest <Ago at={first.sendTimestamp} suffix=" ago" />
          </Link>
        )}
      </p>
      {withMessages && (
        <ul className="reason-messages flow muted small" aria-label={`Newest messages: ${printable(title)}`}>
          {newest.map(({ messageId, sendTimestamp }) => (
            <li key={messageId}>
              <Link to="/message/$messageId" params={{ messageId }} state={{ isInside: true }}>
                <code title={messageId}>{shortHash(messageId)}</code>
              </Link>{' '}
              <Ago at={sendTimestamp} suffix=" ago" />
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

interface LaneLinkProps {
  readonly lane: FailureGroup['lanes'][number];
  readonly className?: string;
  /** Behind the name. */
  readonly children?: ReactNode;
}

/** A lane's name, which leads to its page. */
export function LaneLink({ lane, className = 'inline', children }: LaneLinkProps) {
  const { sourceNetworkInfo: source, destNetworkInfo: dest } = lane;
  return (
    <Link
      to="/lane/$source/$dest"
      params={{ source: source.name, dest: dest.name }}
      className={`plain ${className}`}
    >
      <LaneLabel source={source} dest={dest} />
      {children}
    </Link>
  );
}
