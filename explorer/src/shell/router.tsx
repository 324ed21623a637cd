/**
 * The router. The app's paths are singular, because the plural ones belong to the API; src/api/routes/explorer-route.ts serves the
 * page at each of them.
 */
import { createRootRoute, createRoute, createRouter } from '@tanstack/react-router';
import { type ComponentType, lazy } from 'react';
import { isMessageId } from '../../../src/text/format.ts';
import { SearchPage } from '../search/search-page.tsx';
import { basePath, historyQuery, messageQuery, queryClient } from '../server/api-client.ts';
import { dayWindowOf, parseParameters, viewOf, writeParameters } from '../server/search-view.ts';
import { BrokenPage, NotFoundPage, Shell } from './shell.tsx';

// ---- Code splitting: all pages but the search are loaded when the user opens them, or when the browser is idle, so that they
// also open while the server is down.

const loading: (() => Promise<unknown>)[] = [];

function later<T extends Record<string, ComponentType>>(load: () => Promise<T>, name: keyof T) {
  loading.push(load);
  return lazy(async () => ({ default: (await load())[name] as ComponentType }));
}

const MessagePage = later(() => import('../message/message-page.tsx'), 'MessagePage');
const LanesPage = later(() => import('../lanes/lanes-page.tsx'), 'LanesPage');
const LanePage = later(() => import('../lanes/lane-page.tsx'), 'LanePage');
const NetworksPage = later(() => import('../networks/networks-page.tsx'), 'NetworksPage');
const OverviewPage = later(() => import('../overview/overview-page.tsx'), 'OverviewPage');
const FailuresPage = later(() => import('../overview/overview-page.tsx'), 'FailuresPage');

const IDLE_AFTER_MS = 1_000;

/** Preloads the pages after the first one. What cannot be loaded now is loaded when the user opens it. */
export function loadWhenIdle(): void {
  setTimeout(() => {
    for (const load of loading) load().catch(() => undefined);
  }, IDLE_AFTER_MS);
}

// ---- Routes

const root = createRootRoute({ component: Shell, notFoundComponent: NotFoundPage });

const routeTree = root.addChildren([
  createRoute({
    getParentRoute: () => root,
    path: '/',
    validateSearch: viewOf,
    component: SearchPage,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/message/$messageId',
    // It only starts the requests, while the page's code is loaded: a message is often opened by a link.
    loader: ({ params: { messageId } }) => {
      if (!isMessageId(messageId)) return;
      void queryClient.prefetchQuery(messageQuery(messageId));
      void queryClient.prefetchQuery(historyQuery(messageId));
    },
    component: MessagePage,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/lane',
    // It is set even when undefined: without the key, the router keeps the URL's value.
    validateSearch: ({ sort }): { sort?: string | undefined } => ({
      sort: typeof sort === 'string' ? sort : undefined,
    }),
    component: LanesPage,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/lane/$source/$dest',
    component: LanePage,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/network',
    validateSearch: ({ show }): { show?: 'all' } => (show === 'all' ? { show } : {}),
    component: NetworksPage,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/overview',
    component: OverviewPage,
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/failure',
    validateSearch: dayWindowOf,
    component: FailuresPage,
  }),
]);

export const router = createRouter({
  routeTree,
  basepath: `${basePath}/`,
  parseSearch: parseParameters,
  stringifySearch: writeParameters,
  defaultErrorComponent: BrokenPage,
  scrollRestoration: true,
  trailingSlash: 'preserve',
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
  interface HistoryState {
    /** Cursors of the pages before this one, the newest first; an empty string is the first page. */
    readonly trail?: readonly string[];
    /** Whether the user came from inside the app: then "back" stays in the app. */
    readonly isInside?: boolean;
  }
}
