/**
 * Code splitting: all pages but the search are loaded when the user opens them, or when the browser is idle, so that they
 * also open while the server is down.
 */
import { type ComponentType, lazy } from 'react';

const loading: (() => Promise<unknown>)[] = [];

function later<T extends Record<string, ComponentType>>(load: () => Promise<T>, name: keyof T) {
  loading.push(load);
  return lazy(async () => ({ default: (await load())[name] as ComponentType }));
}

export const MessagePage = later(() => import('../message/message-page.tsx'), 'MessagePage');
export const LanesPage = later(() => import('../lanes/lanes-page.tsx'), 'LanesPage');
export const LanePage = later(() => import('../lanes/lane-page.tsx'), 'LanePage');
export const NetworksPage = later(() => import('../networks/networks-page.tsx'), 'NetworksPage');
export const OverviewPage = later(() => import('../overview/overview-page.tsx'), 'OverviewPage');

export const FailuresPage = later(() => import('../failures/failures-page.tsx'), 'FailuresPage');

const IDLE_AFTER_MS = 1_000;

/** Preloads the pages after the first one. What cannot be loaded now is loaded when the user opens it. */
export function loadWhenIdle(): void {
  setTimeout(() => {
    for (const load of loading) load().catch(() => undefined);
  }, IDLE_AFTER_MS);
}
