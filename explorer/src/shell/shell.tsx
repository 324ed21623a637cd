/** The frame of every page: search box, navigation, theme switch, banners and footer. */
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet } from '@tanstack/react-router';
import { Suspense, useState } from 'react';
import { Icon } from '../parts/icons.tsx';
import { Notice, useTitle } from '../parts/page.tsx';
import { SearchBox } from '../search/search-box.tsx';
import { basePath, isSimulatedPage, readinessQuery, serverAway } from '../server/api-client.ts';

const pages = [
  ['/', 'Messages'],
  ['/lane', 'Lanes'],
  ['/network', 'Networks'],
  ['/overview', 'Overview'],
] as const;

export function Shell() {
  const { data } = useQuery(readinessQuery);
  const isAway = serverAway.use();
  return (
    <>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="masthead">
        <div className="masthead-inner line">
          <Link to="/" className="brand inline" aria-label="Lanescan, newest messages">
            <svg width="26" viewBox="0 0 32 32" aria-hidden="true">
              <rect width="32" height="32" rx="8" fill="var(--brand)" />
              <path d="M7 11h18M7 21h18" stroke="#ffffff73" strokeWidth="2.5" strokeLinecap="round" />
              <circle cx="20" cy="11" r="4" fill="#ffffff" />
              <circle cx="12" cy="21" r="4" fill="#ffffff" />
            </svg>
            <span className="brand-name">Lanescan</span>
          </Link>
          <SearchBox />
          <nav className="pages line gap-4" aria-label="Pages">
            {pages.map(([to, label]) => (
              <Link key={to} to={to} activeOptions={{ exact: to === '/', includeSearch: false }}>
                {label}
              </Link>
            ))}
          </nav>
          <ThemeSwitch />
        </div>
      </header>
      {(data?.simulated ?? isSimulatedPage) && (
        <div className="banner" role="note">
          <p>
            <strong>Simulated data.</strong> This is the simulated network of the demo: no message here exists
            on a chain.
          </p>
        </div>
      )}
      <div role="status">
        {isAway && (
          <div className="banner banner-away">
            <p>
              <strong>The server cannot be reached.</strong> What you see may be old. Trying again every few
              seconds…
            </p>
          </div>
        )}
      </div>
      <main id="content" tabIndex={-1}>
        <Suspense>
          <Outlet />
        </Suspense>
      </main>
      <footer className="colophon flow spread muted small">
        <p className="flow">
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

const themes = {
  system: { words: 'as the system', icon: 'system', next: 'light' },
  light: { words: 'light', icon: 'sun', next: 'dark' },
  dark: { words: 'dark', icon: 'moon', next: 'system' },
} as const;
const THEME_STORED_AS = 'lanescan-theme';

/** The theme: the system's, or the user's choice. index.html applies the choice before the first paint. */
function ThemeSwitch() {
  const root = document.documentElement.dataset;
  const [theme, setTheme] = useState<keyof typeof themes>(() =>
    root.theme === 'light' || root.theme === 'dark' ? root.theme : 'system',
  );
  const { words, icon, next } = themes[theme];
  const choose = () => {
    setTheme(next);
    if (next === 'system') delete root.theme;
    else root.theme = next;
    try {
      if (next === 'system') localStorage.removeItem(THEME_STORED_AS);
      else localStorage.setItem(THEME_STORED_AS, next);
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
  };
  const label = `Theme: ${words}. Change to ${themes[next].words}`;
  return (
    <button
      type="button"
      className="theme-switch icon-button"
      aria-label={label}
      title={label}
      onClick={choose}
    >
      <Icon name={icon} />
    </button>
  );
}

/** Shown when the code of a page cannot be loaded: the server is down, or has a newer version. */
export function BrokenPage() {
  useTitle('Not loaded');
  return (
    <Notice title="This page could not be loaded" isProblem>
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
