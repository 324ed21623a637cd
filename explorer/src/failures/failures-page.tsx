/** The page of failed messages: how many, since when, and why. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { Failures } from '../../../src/client/api-types.ts';
import { grouped, percent } from '../../../src/text/format.ts';
import { FailureReasons, FailureShareChart } from '../parts/failure-reasons.tsx';
import { Figure, Figures, FiguresSkeleton, NeedActionFigure } from '../parts/figures.tsx';
import { Icon } from '../parts/icons.tsx';
import { FailureNotice } from '../parts/notices.tsx';
import { useTitle } from '../parts/page-title.ts';
import { Segments } from '../parts/segments.tsx';
import { failuresQuery } from '../server/api-client.ts';
import { basePath } from '../server/base-path.ts';
import { type FailureWindow, failureWindows } from './failure-window.ts';

export function FailuresPage() {
  useTitle('Failed messages');
  const { days = '30' } = useSearch({ from: '/failure' });
  const navigate = useNavigate();
  const { data, error, refetch, isPlaceholderData } = useQuery(failuresQuery(Number(days)));
  return (
    <div className="page">
      <p className="back">
        <Link to="/overview" className="button quiet">
          <Icon name="left" /> Overview
        </Link>
      </p>
      <header className="page-head">
        <h1>Failed messages</h1>
        <Segments
          legend="How many days"
          options={failureWindows}
          chosen={days}
          onChoose={(chosen: FailureWindow) =>
            void navigate({ to: '/failure', search: chosen === '30' ? {} : { days: chosen }, replace: true })
          }
        />
      </header>
      {error && !data && <FailureNotice error={error} onRetry={() => void refetch()} />}
      {!error && !data && <FiguresSkeleton names={['Failed', 'Share', 'Need action', 'Reasons']} />}
      {data && (
        <div data-stale={isPlaceholderData} className="fades">
          <Totals failures={data} />
          <section className="panel">
            <header className="panel-head">
              <h2>Share of failures by day</h2>
              <p className="muted">by the day a message was sent; one that was rescued no longer counts</p>
            </header>
            <FailureShareChart days={data.days} />
          </section>
          <section className="panel">
            <header className="panel-head">
              <h2>Why they failed</h2>
              <p className="panel-links">
                <Link to="/" search={{ status: 'FAILED' }}>
                  Show the messages
                </Link>
                <a href={`${basePath}/v2/messages/export?format=csv&status=FAILED&attempts=true`} download>
                  Export with reasons
                </a>
              </p>
            </header>
            {data.failed === 0 ? (
              <p className="muted">No message of these {days} days has failed.</p>
            ) : (
              <FailureReasons failures={data} withMessages />
            )}
          </section>
        </div>
      )}
    </div>
  );
}

function Totals({ failures: { failed, days, reasons, otherReasons } }: { readonly failures: Failures }) {
  const messages = days.reduce((sum, day) => sum + day.messages, 0);
  const ready = reasons.reduce((sum, { readyForManualExecution }) => sum + readyForManualExecution, 0);
  const canFix = reasons
    .filter(({ fixableBy }) => fixableBy === 'anyone')
    .reduce((sum, group) => sum + group.messages, 0);
  return (
    <Figures>
      <Figure name="Failed" value={grouped(failed)} about={`of ${grouped(messages)} messages`} />
      <Figure name="Share" value={percent(failed, messages)} about="of the messages of this time" />
      <NeedActionFigure count={ready} within={{ status: 'FAILED' }} />
      <Figure
        name="Reasons"
        value={grouped(reasons.length + (otherReasons?.reasons ?? 0))}
        about={`${grouped(canFix)} messages that anyone can fix`}
      />
    </Figures>
  );
}
