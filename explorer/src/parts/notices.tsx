/** Notices in place of rows or of a page, and placeholders while they load. */
import type { ReactNode } from 'react';
import { ResponseError, TransportError } from '../../../src/client/client.ts';

export function Notice({
  title,
  children,
  tone = 'plain',
}: {
  readonly title: string;
  readonly children: ReactNode;
  readonly tone?: 'plain' | 'problem';
}) {
  return (
    <section className={`notice notice-${tone}`} role={tone === 'problem' ? 'alert' : undefined}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** Why a request failed, and what happens next. */
export function FailureNotice({ error, onRetry }: { readonly error: Error; readonly onRetry: () => void }) {
  if (error instanceof TransportError) {
    return (
      <Notice title="The server cannot be reached" tone="problem">
        <p>It may be restarting, or the network is down. It is tried again every few seconds.</p>
        <Retry onRetry={onRetry} />
      </Notice>
    );
  }
  if (error instanceof ResponseError && error.isTemporary) {
    return (
      <Notice title="The server is busy" tone="problem">
        <p>{error.message}</p>
        <Retry onRetry={onRetry} />
      </Notice>
    );
  }
  return (
    <Notice title="That did not work" tone="problem">
      <p>{error.message}</p>
      <Retry onRetry={onRetry} />
    </Notice>
  );
}

function Retry({ onRetry }: { readonly onRetry: () => void }) {
  return (
    <p>
      <button type="button" className="button" onClick={onRetry}>
        Try again now
      </button>
    </p>
  );
}

/** Skeleton: a grey bar in place of a text that loads. It has the size of the text, so that there is no layout shift. */
export function Skeleton({ width }: { readonly width: string }) {
  return <span className="skeleton" style={{ width }} aria-hidden="true" />;
}
