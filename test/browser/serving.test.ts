/** How the explorer's files are served: cached well, compressed beforehand, in a policy that lets nothing else in. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { expectError, serverForAll, startServerForTest } from '../api/running-server.ts';
import { makeMessage, networkInfo } from '../fixtures.ts';
import { buildExplorer } from './chromium.ts';

const folder = path.resolve(import.meta.dirname, '../../dist/explorer');
const hostile = makeMessage({
  number: 7,
  sourceNetworkInfo: {
    ...networkInfo('ethereum-testnet-sepolia'),
    displayName: '"><script>alert(1)</script>\u202e',
  },
});

beforeAll(buildExplorer);
const server = serverForAll([hostile]);

const assetsIn = (text: string) => [...text.matchAll(/\/assets\/[\w.-]+/g)].map(([asset]) => asset);

describe('the page', () => {
  test.each(['/', '/?status=FAILED', '/overview', '/failure', '/lane', '/lane/a/b', '/network', '//lane/'])(
    'is at %s, asked for anew each time, and costs nothing while it is the same',
    async (at) => {
      const answer = await server.ask(at);
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-cache',
        'cross-origin-opener-policy': 'same-origin',
      });
      expect(answer.text).toContain('<div id="root">');
      const again = await server.ask(at, { headers: { 'If-None-Match': String(answer.headers.etag) } });
      expect({ status: again.status, text: again.text }).toEqual({ status: 304, text: '' });
    },
  );

  test('lets in no script but its own, and no markup made from text', async () => {
    const policy = String((await server.ask('/')).headers['content-security-policy']);
    expect(policy).toMatch(/^default-src 'none'; script-src 'self' 'sha256-[\w+/]+=*'; style-src 'self';/);
    expect(policy).not.toContain('unsafe');
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).toContain("connect-src 'self'");
  });

  test('is nowhere else: what the API does not have stays an error in JSON', async () => {
    const nowhere = [
      '/nothing',
      '/message',
      '/lane/a',
      '/lane/a/b/c',
      '/v2/nothing',
      '/assets',
      '/index.html',
    ];
    for (const at of nowhere) expectError(await server.ask(at), 404, 'NOT_FOUND');
    expectError(await server.ask('/overview', { method: 'POST' }), 405, 'METHOD_NOT_ALLOWED');
    const asJson = { headers: { accept: 'application/json' } };
    expectError(await server.ask('/overview', asJson), 406, 'NOT_ACCEPTABLE');
    expect((await server.ask('/lanes')).headers['content-type']).toMatch(/json/);
  });

  test('has a title and a preview, for a message its own, in which nothing is markup', async () => {
    const general = (await server.ask('/')).text;
    expect(general).toMatch(/<title>Lanescan: where is my cross-chain message\?<\/title>/);
    expect(general).toMatch(/<meta property="og:description" content="[^"]{50,}">/);
    expect(general).toMatch(/<link rel="icon" href="data:image\/svg\+xml/);
    const { text } = await server.ask(`/message/${hostile.messageId}`);
    expect(text).toContain(
      '<title>Sent · &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\u{202e} → Avalanche Fuji · 0x',
    );
    expect(text).toContain('<meta property="og:title" content="Sent · &quot;&gt;');
    expect(text).not.toContain('<script>alert');
    expect(text).not.toContain('\u202e');
  });

  test('answers HEAD like GET', async () => {
    const [get, head] = [await server.ask('/lane'), await server.ask('/lane', { method: 'HEAD' })];
    expect(head.text).toBe('');
    expect(head.headers['content-length']).toBe(get.headers['content-length']);
  });

  test('says so plainly where it was never built, while the API works', async () => {
    const bare = await startServerForTest([], { explorerFolder: '/nowhere' });
    const answer = await bare.ask('/');
    expect(answer.status).toBe(404);
    expect(answer.text).toMatch(/not built yet[\s\S]*npm run build/);
    expect((await bare.ask('/v2/messages')).status).toBe(200);
    expectError(await bare.ask('/overview'), 404, 'NOT_FOUND');
  });
});

describe('assets', () => {
  test('may be kept for ever, and come as they were compressed', async () => {
    const assets = assetsIn((await server.ask('/')).text);
    expect(assets.length).toBeGreaterThan(1);
    for (const asset of assets) {
      const plain = await server.ask(asset);
      expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable');
      expect(plain.headers['content-type']).toMatch(
        asset.endsWith('.css') ? /^text\/css/ : /^text\/javascript/,
      );
      for (const [coding, unpack] of [
        ['br', brotliDecompressSync],
        ['gzip', gunzipSync],
      ] as const) {
        const response = await fetch(`${server.url}${asset}`, { headers: { 'Accept-Encoding': coding } });
        expect(response.headers.get('content-encoding')).toBe(coding);
        const stored = readFileSync(path.join(folder, `${asset}${coding === 'br' ? '.br' : '.gz'}`));
        expect(unpack(stored).toString('utf8')).toBe(await response.text());
      }
      const again = await server.ask(asset, { headers: { 'If-None-Match': String(plain.headers.etag) } });
      expect(again.status).toBe(304);
    }
  });

  test('need less than 150 kB of script to begin with, and the charts are not among it', async () => {
    const initial = assetsIn((await server.ask('/')).text).filter((asset) => asset.endsWith('.js'));
    const bytes = initial.map((asset) => readFileSync(path.join(folder, `${asset}.gz`)).length);
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000);
    const hasCharts = (asset: string) =>
      readFileSync(path.join(folder, asset), 'utf8').includes('chart-plot');
    const scripts = readdirSync(path.join(folder, 'assets')).filter((file) => file.endsWith('.js'));
    expect(scripts.filter((file) => hasCharts(`assets/${file}`))).toHaveLength(1);
    expect(initial.filter(hasCharts)).toEqual([]);
  });

  test('name no other server', () => {
    const files = readdirSync(path.join(folder, 'assets')).filter((file) => /\.(js|css)$/.test(file));
    for (const file of files) {
      const text = readFileSync(path.join(folder, 'assets', file), 'utf8');
      const urls = [...text.matchAll(/https?:\/\/[\w.-]+/g)].map(([url]) => url);
      // Names of namespaces, links in messages for developers, and an example: nothing that is asked for.
      const harmless =
        /^https?:\/\/(www\.w3\.org|react\.dev|reactjs\.org|tanstack\.com|github\.com|other\.example|localhost)$/;
      expect(urls.filter((url) => !harmless.test(url))).toEqual([]);
    }
  });
});
