/** What every page needs: its title and keys, notices in place of its content, and placeholders while it loads. */
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect } from 'react';
import { ResponseError, TransportError } from '../../../src/client/client.ts';
import { isSimulatedPage, readinessQuery } from '../server/api-client.ts';
import type { SearchView } from '../server/search-view.ts';
import { Icon } from './icons.tsx';

/** The title of the page in its tab; it also says whether the data is simulated. */
export function useTitle(title: string): void {
  const { data } = useQuery(readinessQuery);
  const isSimulated = data?.simulated ?? isSimulatedPage;
  useEffect(() => {
    document.title = `${title} · Lanescan${isSimulated ? ' (simulated data)' : ''}`;
  }, [title, isSimulated]);
}

/** Listens to keyboard shortcuts: keys that are not input of a field. */
export function useKeys(onKey: (event: KeyboardEvent) => void): void {
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const { target } = event;
      const isTyping =
        target instanceof HTMLElement &&
        (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
      if (!isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) onKey(event);
    };
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  });
}

/** The way back to the page above this one. */
export function BackLink({ to, name }: { readonly to: '/' | '/lane' | '/overview'; readonly name: string }) {
  return (
    <p className="back">
      <Link to={to} className="button quiet">
        <Icon name="left" /> {name}
      </Link>
    </p>
  );
}

interface MessagesLinkProps {
  readonly search?: SearchView;
  readonly words: ReactNode;
  readonly isButton?: boolean;
}

/** Leads to the messages that match; without filters to the newest. A button is a paragraph. */
export function MessagesLink({ search = {}, words, isButton = false }: MessagesLinkProps) {
  const link = (
    <Link to="/" search={search} className={isButton ? 'button' : ''}>
      {words}
    </Link>
  );
  return isButton ? <p>{link}</p> : link;
}

interface CardProps {
  readonly title: string;
  /** Beside the title. */
  readonly about?: ReactNode;
  /** Over all columns. */
  readonly wide?: boolean;
  readonly children: ReactNode;
}

export function Card({ title, about, wide = false, children }: CardProps) {
  return (
    <section className={`card stack${wide ? ' card-wide' : ''}`}>
      <header className="card-head flow spread">
        <h2>{title}</h2>
        {about && <div className="inline gap-4 muted small">{about}</div>}
      </header>
      {children}
    </section>
  );
}

interface NoticeProps {
  readonly title: string;
  readonly isProblem?: boolean;
  readonly children: ReactNode;
}

/** In place of the content of a page. */
export function Notice({ title, isProblem = false, children }: NoticeProps) {
  return (
    <section className="notice stack gap-12" role={isProblem ? 'alert' : undefined}>
      <h2 className={isProblem ? 'problem' : ''}>{title}</h2>
      {children}
    </section>
  );
}

/** Why a request failed, and what happens next. */
export function FailureNotice({ error, onRetry }: { readonly error: Error; readonly onRetry: () => void }) {
  const isAway = error instanceof TransportError;
  const isBusy = error instanceof ResponseError && error.isTemporary;
  const problem = isBusy ? 'The server is busy' : 'That did not work';
  return (
    <Notice title={isAway ? 'The server cannot be reached' : problem} isProblem>
      <p>
        {isAway
          ? 'It may be restarting, or the network is down. It is tried again every few seconds.'
          : error.message}
      </p>
      <p>
        <button type="button" className="button" onClick={onRetry}>
          Try again now
        </button>
      </p>
    </Notice>
  );
}

interface LoadedProps<T> {
  readonly query: UseQueryResult<T>;
  readonly skeleton: ReactNode;
  readonly children: (data: T) => ReactNode;
}

/** What a query has found; until then a skeleton, or why there is nothing. */
export function Loaded<T>({ query: { data, error, refetch }, skeleton, children }: LoadedProps<T>) {
  if (data !== undefined) return children(data);
  return error ? <FailureNotice error={error} onRetry={() => void refetch()} /> : skeleton;
}

/** Skeleton: a grey bar in place of a text that loads. It has the size of the text, so that there is no layout shift. */
export function Skeleton({ width }: { readonly width: string }) {
  return <span className="skeleton" style={{ width }} aria-hidden="true" />;
}

/** The same for so many rows. */
export function RowsSkeleton({ rows }: { readonly rows: number }) {
  return (
    <div className="skeletons stack" aria-busy="true">
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike.
        <Skeleton key={row} width="100%" />
      ))}
    </div>
  );
}
