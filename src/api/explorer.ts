/**
 * The explorer: a web app whose built files are served from memory.
 *
 * It runs in the browser and reads the same API as everybody else. All that happens here is its page, with a title
 * and a preview for those who share a link, and its assets. Every one of its paths gets the same page; the paths are
 * singular words where the API's are plural, so that neither ever hides the other.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ApiError } from '../domain/errors.ts';
import type { Message, NetworkInfo } from '../domain/message.ts';
import { type Html, html } from './html.ts';
import type { MediaType, RouteAnswer, RouteContext, ServedPath } from './route.ts';

/** The same place from the source and from the compiled program. */
export const builtExplorer = fileURLToPath(new URL('../../dist/explorer/', import.meta.url));

const pagePaths = ['/', '/overview', '/lane', '/lane/{source}/{dest}', '/network'];

const assetTypes: Readonly<Record<string, MediaType>> = { '.js': 'text/javascript', '.css': 'text/css' };

export function explorerPaths(folder: string): readonly ServedPath[] {
  const template = path.join(folder, 'index.html');
  if (!existsSync(template)) return notBuilt;
  const page = createPage(readFileSync(template, 'utf8'));
  const assets = readAssets(path.join(folder, 'assets'));
  return [
    ...pagePaths.map(
      (pagePath): ServedPath => ({
        path: pagePath,
        mediaType: 'text/html',
        handle: (_request, { store }) => page(generalPreview, store.simulated),
      }),
    ),
    {
      path: '/message/{messageId}',
      mediaType: 'text/html',
      handle: async ({ path: { messageId = '' } }, context) =>
        page((await messagePreview(messageId, context)) ?? generalPreview, context.store.simulated),
    },
    {
      path: '/assets/{file}',
      mediaType: 'text/javascript',
      otherMediaTypes: ['text/css'],
      handle({ path: { file = '' } }) {
        const asset = assets.get(file);
        if (asset) return asset;
        throw new ApiError('NOT_FOUND', 'This version of the explorer has no such file. Reload the page.');
      },
    },
  ];
}

/** In a checkout that was never built; the API does not mind. */
const notBuilt: readonly ServedPath[] = [
  {
    path: '/',
    mediaType: 'text/html',
    handle: () => ({
      status: 404,
      freshness: 'checked',
      body: html`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Lanescan</title>
<p>The explorer is not built yet. Build it with <code>npm run build</code> and start Lanescan again.
<p>The API works without it: see <a href="/docs">/docs</a>.
</html>`.text,
    }),
  },
];

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

const titleInTemplate = '<title>Lanescan</title>';

function createPage(template: string): (preview: Preview, isSimulated: boolean) => RouteAnswer {
  if (!template.includes(titleInTemplate)) throw new Error('The explorer’s index.html has lost its title.');
  const headers = {
    'Content-Security-Policy': contentSecurityPolicy(template),
    'Cross-Origin-Opener-Policy': 'same-origin',
  };
  return (preview, isSimulated) => ({
    // As a function: a replacement text would give a meaning to `$&` in somebody's words.
    body: template.replace(titleInTemplate, () => previewHead(preview, isSimulated).text),
    freshness: 'checked',
    headers,
  });
}

function previewHead({ title, description }: Preview, isSimulated: boolean): Html {
  const honest = isSimulated ? `${title} (simulated data)` : title;
  return html`<title>${honest}</title>
<meta name="description" content="${description}">
<meta property="og:site_name" content="Lanescan">
<meta property="og:type" content="website">
<meta property="og:title" content="${honest}">
<meta property="og:description" content="${description}">
<meta name="twitter:card" content="summary">`;
}

/**
 * Scripts and styles from this server only, besides the inline scripts that were in the page when it was built; nothing
 * may turn a text into markup.
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

async function messagePreview(
  messageId: string,
  { store }: Pick<RouteContext, 'store'>,
): Promise<Preview | undefined> {
  const digits = /^0x([0-9a-fA-F]{64})$/.exec(messageId)?.[1]?.toLowerCase();
  if (digits === undefined) return undefined;
  // A page without a preview is worth more than none: the app tells what is wrong with the database.
  const found = await store.findMessage(digits).catch(() => undefined);
  if (!found) return undefined;
  const message = JSON.parse(found.record) as Message;
  const lane = `${networkName(message.sourceNetworkInfo)} → ${networkName(message.destNetworkInfo)}`;
  const outcome =
    message.deliveryTime === null
      ? 'Not executed yet.'
      : `Executed after ${Math.round(message.deliveryTime / 1000)} s.`;
  const tokens = message.tokenAmounts.length;
  const cargo =
    tokens === 0 ? 'It carries no tokens.' : `It carries ${tokens === 1 ? 'a token' : `${tokens} tokens`}.`;
  return {
    title: `${statusWords(message.status)} · ${lane} · ${messageId.slice(0, 8)}…${messageId.slice(-6)}`,
    description: `CCIP message sent on ${message.sendTimestamp.slice(0, 10)} at ${message.sendTimestamp.slice(11, 19)} UTC. ${outcome} ${cargo}`,
  };
}

function statusWords(status: Message['status']): string {
  const words = status.toLowerCase().replace('_', ' ');
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
}

/** Names come with the records: control characters and marks that turn text around stay out of a title. */
function networkName({ displayName, name }: NetworkInfo): string {
  return (displayName?.trim() || name).replace(/[\p{C}]/gu, '').slice(0, 60);
}

// ---- The assets

/** Their names change with their content, and they were compressed when they were built. */
function readAssets(folder: string): ReadonlyMap<string, RouteAnswer> {
  const files = readdirSync(folder);
  return new Map(
    files.flatMap((file): [string, RouteAnswer][] => {
      const mediaType = assetTypes[path.extname(file)];
      if (mediaType === undefined) return [];
      const inCoding = (ending: string) =>
        files.includes(`${file}${ending}`) ? readFileSync(path.join(folder, `${file}${ending}`)) : undefined;
      const [br, gzip] = [inCoding('.br'), inCoding('.gz')];
      return [
        [
          file,
          {
            body: readFileSync(path.join(folder, file), 'utf8'),
            headers: { 'Content-Type': `${mediaType}; charset=utf-8` },
            freshness: 'immutable',
            compressed: { ...(br && { br }), ...(gzip && { gzip }) },
          },
        ],
      ];
    }),
  );
}
