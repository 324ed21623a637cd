import { age, exactTime } from '../../../src/text/format.ts';
import { useTimed } from '../server/clock.ts';

/** How long ago, kept up to date; the exact time on hover. */
export function Ago({ at, suffix = '' }: { readonly at: string; readonly suffix?: string }) {
  const text = useTimed((now) => (now - Date.parse(at) < 1_000 ? 'now' : age(now - Date.parse(at))));
  return (
    <time dateTime={at} title={exactTime(at)}>
      {text}
      {text === 'now' ? '' : suffix}
    </time>
  );
}

export function ExactTime({ at }: { readonly at: string }) {
  return (
    <span className="exact-time">
      <time dateTime={at}>{exactTime(at)}</time>{' '}
      <span className="muted">
        (<Ago at={at} suffix=" ago" />)
      </span>
    </span>
  );
}
