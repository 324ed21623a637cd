/**
 * The explorer: a web app that reads the public API. Its page, with a title and a link preview, and its assets are served from
 * memory. Its paths are singular where those of the API are plural, so they never collide.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ApiError } from '../../domain/errors.ts';
import type { Message } from '../../domain/message.ts';
import { laneWords, statusWords } from '../../text/message-words.ts';
import { type Html, html } from '../documentation/html.ts';
import type { RouteResponse } from '../server/caching.ts';
import type { MediaType, RouteContext, ServedPath } from '../server/route.ts';

/** The same path from the source and from the compiled program. */
export const builtExplorer = fileURLToPath(new URL('../../../dist/explorer/', import.meta.url));

const pagePaths = ['/', '/overview', '/failure', '/lane', '/lane/{source}/{dest}', '/network'];

const assetTypes: Readonly<Record<string, MediaType>> = { '.js': 'text/javascript', '.css': 'text/css' };

/** @returns `notFoundPage`: for browsers, at any other address; undefined where the explorer is not built */
export function createExplorer(
  folder: string,
  basePath: string,
): { readonly paths: readonly ServedPath[]; readonly notFoundPage?: ServedPath } {
  const template = path.join(folder, 'index.html');
  if (!existsSync(template)) return { paths: [notBuilt(basePath), ...iconAndRobots] };
  const page = createPage(readFileSync(template, 'utf8'), basePath);
  const assets = readAssets(path.join(folder, 'assets'));
  const paths: readonly ServedPath[] = [
    ...iconAndRobots,
    ...pagePaths.map((pagePath) =>
      htmlPath(pagePath, (_request, { store }) => page(generalPreview, store.simulated)),
    ),
    htmlPath('/message/{messageId}', async ({ path: { messageId = '' } }, context) => {
      // Without the database the page is served without a preview; the app shows the error.
      const preview = await messagePreview(messageId, context).catch(() => generalPreview);
      const response = page(preview ?? generalPreview, context.store.simulated);
      return preview ? response : { ...response, status: 404 };
    }),
    {
      path: '/assets/{file}',
      mediaTypes: ['text/javascript', 'text/css'],
      handle({ path: { file = '' } }) {
        const asset = assets.get(file);
        if (asset) return asset;
        throw new ApiError('NOT_FOUND', 'This version of the explorer has no such file. Reload the page.');
      },
    },
  ];
  return {
    paths,
    notFoundPage: htmlPath('/*', (_request, { store }) => ({
      ...page(notFoundPreview, store.simulated),
      status: 404,
    })),
  };
}

function htmlPath(pagePath: string, handle: ServedPath['handle']): ServedPath {
  return { path: pagePath, mediaTypes: ['text/html'], handle };
}

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#0b5fbd"/>' +
  '<path d="M7 11h18M7 21h18" stroke="#fff" stroke-opacity=".45" stroke-width="2.5" stroke-linecap="round"/>' +
  '<circle cx="20" cy="11" r="4" fill="#fff"/><circle cx="12" cy="21" r="4" fill="#fff"/></svg>\n';

/** Pages may be indexed by search engines; the API is for programs. */
const ROBOTS = 'User-agent: *\nDisallow: /v2/\nDisallow: /metrics\n';

/** What browsers and crawlers ask of every website. */
const iconAndRobots: readonly ServedPath[] = [
  {
    path: '/favicon.ico',
    mediaTypes: ['image/svg+xml'],
    handle: () => ({ body: ICON, freshness: 'checked' }),
  },
  { path: '/robots.txt', mediaTypes: ['text/plain'], handle: () => ({ body: ROBOTS, freshness: 'checked' }) },
];

/** Served in a checkout that was not built; the API works without the explorer. */
const notBuilt = (basePath: string) =>
  htmlPath('/', () => ({
    status: 404,
    freshness: 'checked',
    body: html`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Lanescan</title>
<p>The explorer is not built yet. Build it with <code>npm run build</code> and start Lanescan again.
<p>The API works without it: see <a href="${basePath}/docs">${basePath}/docs</a>.
</html>`.text,
  }));

// ---- The page

/** What search engines and chats show of a link. */
interface Preview {
  readonly title: string;
  readonly description: string;
}

const generalPreview: Preview = {
  title: 'Lanescan: where is my cross-chain message?',
  description:
    'Search CCIP messages by id, transaction, address or network. See where each one is, whether it is all right, ' +
    'and what to do if it is not.',
};

const notFoundPreview: Preview = {
  title: 'Nothing here · Lanescan',
  description: 'There is nothing at this address.',
};

const TITLE_IN_TEMPLATE = '<title>Lanescan</title>';

function createPage(
  builtPage: string,
  basePath: string,
): (preview: Preview, isSimulated: boolean) => RouteResponse {
  if (!builtPage.includes(TITLE_IN_TEMPLATE))
    throw new Error('The explorer’s index.html has lost its title.');
  const template = withBasePath(builtPage, basePath);
  const headers = {
    'Content-Security-Policy': contentSecurityPolicy(template),
    'Cross-Origin-Opener-Policy': 'same-origin',
  };
  return (preview, isSimulated) => ({
    // A function, because a replacement text would interpret `$&` in the preview.
    body: template.replace(TITLE_IN_TEMPLATE, () => previewHead(preview, isSimulated).text),
    freshness: 'checked',
    headers,
  });
}

/** The built page has links to its assets that are relative; pages are served at paths of several depths. */
function withBasePath(builtPage: string, basePath: string): string {
  const page = builtPage
    .replaceAll('="./assets/', `="${basePath}/assets/`)
    .replaceAll('href="/docs"', `href="${basePath}/docs"`);
  if (basePath === '') return page;
  // explorer/src/server/api-client.ts reads it.
  const meta = html`<meta name="lanescan-base-path" content="${basePath}">`;
  return page.replace(TITLE_IN_TEMPLATE, () => `${meta.text}\n${TITLE_IN_TEMPLATE}`);
}

function previewHead({ title, description }: Preview, isSimulated: boolean): Html {
  const labelledTitle = isSimulated ? `${title} (simulated data)` : title;
  // explorer/src/server/api-client.ts reads it.
  const simulated = isSimulated ? html`<meta name="lanescan-simulated" content="true">` : html``;
  return html`<title>${labelledTitle}</title>${simulated}
<meta name="description" content="${description}">
<meta property="og:site_name" content="Lanescan">
<meta property="og:type" content="website">
<meta property="og:title" content="${labelledTitle}">
<meta property="og:description" content="${description}">
<meta name="twitter:card" content="summary">`;
}

/**
 * Allows scripts and styles from this server, and the inline scripts of the built page. Trusted Types forbid turning text
 * into markup.
 */
function contentSecurityPolicy(template: string): string {
  const inline = [...template.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(
    ([, script = '']) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`,
  );
  return [
    "default-src 'none'",
    `script-src ${["'self'", ...inline].join(' ')}`,
    "style-src 'self'",
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

async function messagePreview(messageId: string, { store }: Pick<RouteContext, 'store'>) {
  const digits = /^0x([0-9a-fA-F]{64})$/.exec(messageId)?.[1]?.toLowerCase();
  if (digits === undefined) return undefined;
  const found = await store.findMessage(digits);
  if (!found) return undefined;
  const message = JSON.parse(found.record) as Message;
  const outcome =
    message.deliveryTime === null
      ? 'Not executed yet.'
      : `Executed after ${Math.round(message.deliveryTime / 1000)} s.`;
  const tokens = message.tokenAmounts.length;
  const tokenText =
    tokens === 0 ? 'It carries no tokens.' : `It carries ${tokens === 1 ? 'a token' : `${tokens} tokens`}.`;
  return {
    title: `${statusWords[message.status]} · ${laneWords(message)} · ${messageId.slice(0, 8)}…${messageId.slice(-6)}`,
    description: `CCIP message sent on ${message.sendTimestamp.slice(0, 10)} at ${message.sendTimestamp.slice(11, 19)} UTC. ${outcome} ${tokenText}`,
  };
}

// ---- The assets

/** Their names contain a hash of their content, and the build has compressed them. */
function readAssets(folder: string): ReadonlyMap<string, RouteResponse> {
  const assets = new Map<string, RouteResponse>();
  const files = readdirSync(folder);
  const read = (file: string) => (files.includes(file) ? readFileSync(path.join(folder, file)) : undefined);
  for (const file of files) {
    const mediaType = assetTypes[path.extname(file)];
    const body = mediaType && read(file);
    if (!body) continue;
    const [br, gzip] = [read(`${file}.br`), read(`${file}.gz`)];
    assets.set(file, {
      body,
      headers: { 'Content-Type': `${mediaType}; charset=utf-8` },
      freshness: 'immutable',
      compressed: { ...(br && { br }), ...(gzip && { gzip }) },
    });
  }
  return assets;
}
