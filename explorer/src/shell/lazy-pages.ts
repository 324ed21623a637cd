/**
 * The pages that the search can do without: loaded when they are asked for, or when the browser has time for them,
 * so that they are there even if the server then is not.
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

const IDLE_AFTER_MS = 1_000;

/** Once the first page is there. What cannot be loaded now is tried again when somebody asks for it. */
export function loadWhenIdle(): void {
  setTimeout(() => {
    for (const load of loading) load().catch(() => undefined);
  }, IDLE_AFTER_MS);
}
