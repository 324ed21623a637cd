/** The search page: filters, rows, pagination, and the count of new messages. */

import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useRouterState, useSearch } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { ResponseError } from '../../../src/client/client.ts';
import type { Message } from '../../../src/domain/message.ts';
import { counted } from '../../../src/text/format.ts';
import { FreshnessBanner, type FreshnessState, useFreshness } from '../parts/freshness.tsx';
import { Icon } from '../parts/icons.tsx';
import { MessageRow, MessageRowSkeleton } from '../parts/message-row.tsx';
import { FailureNotice, MessagesLink, Notice, useKeys, useTitle } from '../parts/page.tsx';
import { Ago } from '../parts/text.tsx';
import { reasonsQuery, searchQuery } from '../server/api-client.ts';
import { hasFilters, PAGE_SIZES, type SearchView, withFilters } from '../server/search-view.ts';
import { FilterBar } from './filter-bar.tsx';
import { useNewMessages } from './new-messages.ts';
import { ViewActions } from './view-actions.tsx';

// Seldom needed: not part of the first script.
const EmptyResults = lazy(async () => ({ default: (await import('./empty-results.tsx')).EmptyResults }));

export function SearchPage() {
  const view = useSearch({ from: '/' });
  const navigate = useNavigate();
  const page = useQuery(searchQuery(view));
  const news = useNewMessages(view, page.data);
  useTitle(hasFilters(view) ? 'Search' : 'Newest messages');
  useKeys(({ key }) => moveFocus(key === 'j' ? 1 : key === 'k' ? -1 : 0));

  const show = (changed: SearchView) => void navigate({ to: '/', search: changed });
  const rows = page.data?.data ?? [];
  const reasons = useReasons(view, rows);
  const { error } = page;
  const invalid = error instanceof ResponseError && error.status === 400 ? error : undefined;
  return (
    <div>
      <h1 className="visually-hidden">Cross-chain messages</h1>
      <FreshnessBanner />
      <FilterBar view={view} onChange={(changes) => show(withFilters(view, changes))} />
      <div className="toolbar line spread">
        {view.cursor === undefined ? <LivePill news={news} /> : <p className="muted small">Older messages</p>}
        {reasons && (
          <Link to="/failure" className="by-reason small">
            Grouped by reason
          </Link>
        )}
        <ViewActions view={view} />
      </div>
      <p className="visually-hidden" role="status">
        {page.isSuccess && !page.isPlaceholderData ? `${counted(rows.length, 'message')} shown` : ''}
      </p>
      {page.isPending && <RowsSkeleton />}
      {rows.length === 0 && invalid && <InvalidSearch error={invalid} view={view} />}
      {rows.length === 0 && error && !invalid && (
        <FailureNotice error={error} onRetry={() => void page.refetch()} />
      )}
      {page.isSuccess && rows.length === 0 && (
        <Suspense>
          <EmptyResults view={view} />
        </Suspense>
      )}
      {rows.length > 0 && (
        <>
          <RowHeadings />
          <ol className="rows fades" data-stale={page.isPlaceholderData} aria-label="Messages, newest first">
            {rows.map((message) => (
              <MessageRow
                key={message.messageId}
                message={message}
                isFresh={news.fresh.has(message.messageId)}
                reason={reasons?.get(message.messageId) ?? undefined}
              />
            ))}
          </ol>
          <Pager view={view} next={page.isPlaceholderData ? null : (page.data?.pagination.cursor ?? null)} />
        </>
      )}
    </div>
  );
}

/** Why the failed messages of the page failed, where the view is of such messages; undefined in any other view. */
function useReasons(view: SearchView, rows: readonly Message[]) {
  const isOfFailures = view.readyForManualExecOnly === 'true' || view.status === 'FAILED';
  const failed = isOfFailures ? rows.filter(({ status }) => status === 'FAILED') : [];
  const { data = [] } = useQuery(reasonsQuery(failed.map(({ messageId }) => messageId)));
  return isOfFailures ? new Map(data.map(({ messageId, reason }) => [messageId, reason])) : undefined;
}

const headings = ['Status', 'Lane', 'Message', 'Sender and receiver', 'Tokens', 'Sent'];

function RowHeadings() {
  return (
    <div className="row-headings muted small" aria-hidden="true">
      {headings.map((heading) => (
        <span key={heading}>{heading}</span>
      ))}
    </div>
  );
}

function RowsSkeleton() {
  return (
    <div aria-busy="true">
      <RowHeadings />
      <div className="rows">
        {Array.from({ length: 12 }, (_, row) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike.
          <MessageRowSkeleton key={row} />
        ))}
      </div>
    </div>
  );
}

function LivePill({ news }: { readonly news: ReturnType<typeof useNewMessages> }) {
  const { state, lastChangeAt } = useFreshness();
  if (news.count > 0) {
    const words = `${news.count >= 1000 ? '1,000+' : news.count} new`;
    return (
      <>
        <button type="button" className="button chip pill" onClick={news.show}>
          <Icon name="up" />
          {words}
        </button>
        <span className="visually-hidden" role="status">
          {words}
        </span>
      </>
    );
  }
  const unconnected = ['line-strong', news.state === 'connecting' ? 'Connecting…' : 'Not live'] as const;
  const [tone, words] = news.state === 'live' ? liveStates[state] : unconnected;
  return (
    <p className={`inline small ${tone === 'action' ? tone : 'muted'}`}>
      <span className="live-dot" style={{ background: `var(--${tone})` }} />
      {state === 'imported' && lastChangeAt !== null && news.state === 'live' ? (
        <span>
          Imported <Ago at={lastChangeAt} suffix=" ago" />
        </span>
      ) : (
        words
      )}
    </p>
  );
}

/** The colour of the dot, and the words. A connected stream is not enough for "live": an indexer or mirror must be running. */
const liveStates: Readonly<Record<FreshnessState, readonly [tone: string, words: string]>> = {
  live: ['done', 'Live'],
  stopped: ['action', 'Not live: indexing stopped'],
  behind: ['action', 'Connected: indexing is behind'],
  imported: ['line-strong', 'Connected: nothing imported yet'],
  unknown: ['line-strong', 'Connected'],
};

function Pager({ view, next }: { readonly view: SearchView; readonly next: string | null }) {
  const navigate = useNavigate();
  const trail = useRouterState({ select: ({ location }) => location.state.trail ?? [] });
  const { cursor, ...newest } = view;
  const limit = view.limit ?? PAGE_SIZES[0];
  const previous = trail.at(-1);
  return (
    <nav className="pager" aria-label="Pages of messages">
      {cursor === undefined ? (
        <span />
      ) : (
        <Link
          to="/"
          search={previous ? { ...newest, cursor: previous } : newest}
          state={{ trail: trail.slice(0, -1) }}
          className="button"
          rel={previous === undefined ? undefined : 'prev'}
        >
          <Icon name="left" /> {previous === undefined ? 'Newest' : 'Newer'}
        </Link>
      )}
      <label className="page-size inline muted small">
        <span>Rows</span>
        <select
          className="field"
          value={limit}
          onChange={({ target: { value } }) => {
            const changed = { limit: value === PAGE_SIZES[0] ? undefined : value };
            void navigate({ to: '/', search: withFilters(view, changed) });
          }}
        >
          {[...new Set([...PAGE_SIZES, limit])].map((size) => (
            <option key={size}>{size}</option>
          ))}
        </select>
      </label>
      {next === null ? (
        <span className="button" aria-disabled="true">
          Older <Icon name="right" />
        </span>
      ) : (
        <Link
          to="/"
          search={{ ...view, cursor: next }}
          state={{ trail: [...trail, cursor ?? ''] }}
          className="button"
          rel="next"
        >
          Older <Icon name="right" />
        </Link>
      )}
    </nav>
  );
}

/** Invalid input: the server's message, and a link to the search without the wrong parameters. */
function InvalidSearch({ error, view }: { readonly error: ResponseError; readonly view: SearchView }) {
  const isOld = error.code === 'INVALID_CURSOR';
  const without = isOld ? {} : Object.fromEntries(error.parameters.map((name) => [name, undefined]));
  const title = isOld ? 'This page of the search is no longer there' : 'This search cannot be understood';
  return (
    <Notice title={title} isProblem>
      <p>
        {error.message}
        {!isOld && '.'}
      </p>
      <MessagesLink
        search={withFilters(view, without)}
        words={isOld ? 'Show the newest' : `Search without ${error.parameters.join(', ') || 'it'}`}
        isButton
      />
    </Notice>
  );
}

/** Through the rows; Enter then opens the one that has it. */
function moveFocus(step: number): void {
  if (step === 0) return;
  const links = [...document.querySelectorAll<HTMLElement>('.rows .row-link')];
  const at = links.indexOf(document.activeElement as HTMLElement);
  links[Math.max(0, Math.min(at + step, links.length - 1))]?.focus();
}
