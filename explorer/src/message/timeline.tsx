/** The timeline of a message: stages reached, with their times and durations, and stages to come. */

import type { Stage } from '../../../src/client/api-types.ts';
import type { Message } from '../../../src/domain/message.ts';
import { clockTime, dayName, duration, exactTime } from '../../../src/text/format.ts';
import { statusWords } from '../../../src/text/message-words.ts';
import { StatusIcon, toneOf } from '../parts/icons.tsx';
import { Skeleton } from '../parts/page.tsx';
import { useTimed } from '../server/clock.ts';
import { type Step, stepsOf } from './outlook.ts';

export function Timeline({
  message,
  stages,
}: {
  readonly message: Message;
  readonly stages: readonly Stage[] | undefined;
}) {
  if (!stages) {
    return (
      <div className="timeline-place" aria-busy="true">
        <Skeleton width="100%" />
      </div>
    );
  }
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
  const isOtherDay = at !== null && firstDay !== null && at.slice(0, 10) !== firstDay.slice(0, 10);
  return (
    <li className="step" data-state={state} aria-current={state === 'current' ? 'step' : undefined}>
      <span className="step-mark">
        {state === 'ahead' ? <span className="step-ahead" /> : <StatusIcon status={status} />}
      </span>
      <span className="step-name" style={state === 'ahead' ? {} : toneOf(status)}>
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
      {state === 'ahead' && <span className="step-time muted small">to come</span>}
    </li>
  );
}

function SoFar({ since }: { readonly since: string }) {
  const text = useTimed((now) => duration(Math.max(0, now - Date.parse(since))));
  return <span className="step-so-far small">for {text} now</span>;
}
