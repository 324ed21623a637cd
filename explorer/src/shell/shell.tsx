/** The frame of every page: search box, navigation, theme switch, banners and footer. */
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet } from '@tanstack/react-router';
import { Suspense } from 'react';
import { Icon } from '../parts/icons.tsx';
import { Notice, useTitle } from '../parts/page.tsx';
import { SearchBox } from '../search/search-box.tsx';
import { readinessQuery, serverAway } from '../server/api-client.ts';
import { basePath } from '../server/base-path.ts';
import { useTheme } from './theme.ts';

const pages = [
  ['/', 'Messages'],
  ['/lane', 'Lanes'],
  ['/network', 'Networks'],
  ['/overview', 'Overview'],
] as const;

export function Shell() {
  return (
    <>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="masthead">
        <div className="masthead-inner line">
          <Link to="/" className="brand" aria-label="Lanescan, newest messages">
            <svg className="brand-mark" viewBox="0 0 32 32" aria-hidden="true">
              <rect className="brand-ground" width="32" height="32" rx="8" />
              <path className="brand-lane" d="M7 11h18M7 21h18" />
              <circle className="brand-message" cx="20" cy="11" r="4" />
              <circle className="brand-message" cx="12" cy="21" r="4" />
            </svg>
            <span className="brand-name">Lanescan</span>
          </Link>
          <SearchBox />
          <nav className="pages" aria-label="Pages">
            {pages.map(([to, label]) => (
              <Link key={to} to={to} activeOptions={{ exact: to === '/', includeSearch: false }}>
                {label}
              </Link>
            ))}
          </nav>
          <ThemeSwitch />
        </div>
      </header>
      <SimulatedBanner />
      <ConnectionBanner />
      <main id="content" tabIndex={-1}>
        <Suspense>
          <Outlet />
        </Suspense>
      </main>
      <footer className="colophon muted small">
        <p>
          Lanescan reads its own API and nothing else. <a href={`${basePath}/docs`}>API documentation</a>
          <a href={`${basePath}/openapi.json`}>OpenAPI</a>
        </p>
        <p className="keys">
          <kbd>/</kbd> search <kbd>j</kbd> <kbd>k</kbd> rows <kbd>enter</kbd> open <kbd>esc</kbd> back
        </p>
      </footer>
    </>
  );
}

const themeWords = { system: 'as the system', light: 'light', dark: 'dark' } as const;
const themeIcons = { system: 'system', light: 'sun', dark: 'moon' } as const;

function ThemeSwitch() {
  const { theme, next, choose } = useTheme();
  const label = `Theme: ${themeWords[theme]}. Change to ${themeWords[next]}`;
  return (
    <button
      type="button"
      className="theme-switch"
      aria-label={label}
      title={label}
      onClick={() => choose(next)}
    >
      <Icon name={themeIcons[theme]} />
    </button>
  );
}

function SimulatedBanner() {
  const { data } = useQuery(readinessQuery);
  if (!data?.simulated) return null;
  return (
    <div className="banner banner-simulated" role="note">
      <p>
        <strong>Simulated data.</strong> This is the simulated network of the demo: no message here exists on
        a chain.
      </p>
    </div>
  );
}

function ConnectionBanner() {
  const isAway = serverAway.use();
  return (
    <div className="connection" role="status">
      {isAway && (
        <div className="banner banner-away">
          <p>
            <strong>The server cannot be reached.</strong> What you see may be old. Trying again every few
            seconds…
          </p>
        </div>
      )}
    </div>
  );
}

/** Shown when the code of a page cannot be loaded: the server is down, or has a newer version. */
export function BrokenPage() {
  useTitle('Not loaded');
  return (
    <Notice title="This page could not be loaded" tone="problem">
      <p>The server may be away, or it has been updated since this tab was opened.</p>
      <p>
        <button type="button" className="button" onClick={() => location.reload()}>
          Reload
        </button>
      </p>
    </Notice>
  );
}

export function NotFoundPage() {
  useTitle('Nothing here');
  return (
    <Notice title="There is nothing at this address">
      <p>
        Look for a message in the box above, or start with the <Link to="/">newest messages</Link>.
      </p>
    </Notice>
  );
}
