/** The page of failed messages: how many, since when, and why. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { Failures } from '../../../src/client/api-types.ts';
import { grouped, percent } from '../../../src/text/format.ts';
import { Segments } from '../parts/controls.tsx';
import { Icon } from '../parts/icons.tsx';
import { Loaded, useTitle } from '../parts/page.tsx';
import {
  FailureReasons,
  FailureShareChart,
  Figures,
  FiguresSkeleton,
  needActionFigure,
  Panel,
} from '../parts/statistics.tsx';
import { failuresQuery } from '../server/api-client.ts';
import { basePath } from '../server/base-path.ts';
import { dayWindows } from '../server/search-view.ts';

export function FailuresPage() {
  useTitle('Failed messages');
  const { days = '30' } = useSearch({ from: '/failure' });
  const navigate = useNavigate();
  const query = useQuery(failuresQuery(Number(days)));
  const links = (
    <p className="flow">
      <Link to="/" search={{ status: 'FAILED' }}>
        Show the messages
      </Link>
      <a href={`${basePath}/v2/messages/export?format=csv&status=FAILED&attempts=true`} download>
        Export with reasons
      </a>
    </p>
  );
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
          options={dayWindows}
          chosen={days}
          onChoose={(chosen) =>
            void navigate({ to: '/failure', search: chosen === '30' ? {} : { days: chosen }, replace: true })
          }
        />
      </header>
      <Loaded
        query={query}
        skeleton={<FiguresSkeleton names={['Failed', 'Share', 'Need action', 'Reasons']} />}
      >
        {(failures) => (
          <div data-stale={query.isPlaceholderData} className="fades">
            <Totals failures={failures} />
            <Panel
              title="Share of failures by day"
              about="by the day a message was sent; one that was rescued no longer counts"
            >
              <FailureShareChart days={failures.days} />
            </Panel>
            <Panel title="Why they failed" about={links}>
              <FailureReasons
                failures={failures}
                none={`No message of these ${days} days has failed.`}
                withMessages
              />
            </Panel>
          </div>
        )}
      </Loaded>
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
    <Figures
      figures={[
        { name: 'Failed', value: grouped(failed), about: `of ${grouped(messages)} messages` },
        { name: 'Share', value: percent(failed, messages), about: 'of the messages of this time' },
        needActionFigure(ready, { status: 'FAILED' }),
        {
          name: 'Reasons',
          value: grouped(reasons.length + (otherReasons?.reasons ?? 0)),
          about: `${grouped(canFix)} messages that anyone can fix`,
        },
      ]}
    />
  );
}
