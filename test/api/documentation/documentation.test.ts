/** The page for people at /docs: complete, safe, readable, and its commands work. */
import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { docsPage } from '../../../src/api/documentation/docs-page.ts';
import {
  docsPageScript,
  docsPageStyle,
  EXAMPLE_ORIGIN,
} from '../../../src/api/documentation/docs-page-assets.ts';
import { exampleMessage } from '../../../src/api/documentation/example-message.ts';
import { type OpenApiDocument, openApiDocument } from '../../../src/api/documentation/openapi.ts';
import { createRoutes } from '../../../src/api/routes/routes.ts';
import { errorCatalogue } from '../../../src/domain/errors.ts';
import { searchParameterNames } from '../../../src/domain/filters/search-parameters.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import { makeMessage } from '../../fixtures.ts';
import { expectFreshRequestId, sendBytes, serverForAll, startSimulatedServer } from '../running-server.ts';

const document = openApiDocument(createRoutes('1.2.3'), '1.2.3');
const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1] ?? '');
const unescaped = (text: string) =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

const server = serverForAll([exampleMessage]);
let page: string;
beforeAll(async () => {
  page = (await server.ask('/docs')).text;
});

describe('the page', () => {
  test('is HTML that may load nothing, and run one script', async () => {
    const { status, headers } = await server.ask('/docs');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(headers['x-content-type-options']).toBe('nosniff');
    const policy = String(headers['content-security-policy']).split('; ');
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    // The one script by its hash, and requests to this server only.
    const hash = createHash('sha256').update(docsPageScript).digest('base64');
    expect(policy).toContain(`script-src 'sha256-${hash}'`);
    expect(policy).toContain("connect-src 'self'");
    expect(policy.join(' ').replace("style-src 'unsafe-inline'", '')).not.toMatch(/unsafe|https?:|\*/);
    expectFreshRequestId(headers);
  });

  test('asks nothing from outside, and its one script makes no markup of text', () => {
    const rest = page.replace(`<script>${docsPageScript}</script>`, '');
    expect(rest).not.toBe(page);
    expect(rest).not.toMatch(/<script|<link|<img|<iframe|<object|javascript:|\son\w+=|\ssrc=|\saction=/i);
    expect(docsPageScript).not.toMatch(
      /innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function|https?:/,
    );
    expect(docsPageStyle).not.toMatch(/@import|url\(|<|expression/i);
    for (const target of all(page, /href="([^"]*)"/g)) expect(target).toMatch(/^(#|\/openapi\.json$)/);
  });

  test('has links that lead somewhere, to ids that are unique', () => {
    const ids = all(page, /\sid="([^"]*)"/g);
    expect(new Set(ids).size).toBe(ids.length);
    for (const target of all(page, /href="#([^"]*)"/g)) expect(ids).toContain(target);
    for (const target of all(page, /aria-labelledby="([^"]*)"/g)) expect(ids).toContain(target);
  });

  test('has one h1, no heading that skips a level, and the landmarks', () => {
    const levels = all(page, /<h([1-6])[ >]/g).map(Number);
    expect(levels.filter((level) => level === 1)).toHaveLength(1);
    const steps = levels.map((level, index) => level - (levels[index - 1] ?? 0));
    expect(Math.max(...steps)).toBe(1);
    for (const landmark of ['<html lang="en">', '<header', '<nav aria-label=', '<main', '<footer']) {
      expect(page.split(landmark), landmark).toHaveLength(2);
    }
    expect(page).toContain('name="viewport"');
    for (const tag of ['table', 'section', 'article', 'pre', 'ul', 'tr', 'td', 'code', 'span', 'p', 'a']) {
      const opened = page.match(new RegExp(`<${tag}[ >]`, 'g'))?.length;
      expect(opened, tag).toBe(page.match(new RegExp(`</${tag}>`, 'g'))?.length);
    }
  });

  test('tells of every path, parameter, schema, field, status and error', () => {
    const text = unescaped(page);
    for (const path of Object.keys(document.paths)) expect(text).toContain(path);
    for (const name of searchParameterNames) expect(text).toContain(`<code>${name}</code>`);
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      expect(text).toContain(`id="schema-${name}"`);
      for (const field of Object.keys(schema.properties ?? {}))
        expect(text).toContain(`<code>${field}</code>`);
    }
    const inner = [
      'metadata.logoUrl',
      'verification.timestamp',
      'fixedFeesDetails.items',
      'details[].problem',
    ];
    for (const field of inner) expect(text).toContain(`<code>${field}</code>`);
    for (const status of statuses) expect(text).toContain(status);
    for (const [code, { status }] of Object.entries(errorCatalogue)) {
      expect(page).toMatch(new RegExp(`<code>${code}</code></td>\\s*<td[^>]*>${status}</td>`));
    }
    expect(text).toContain(`CCIPAPIClient.fromUrl('${EXAMPLE_ORIGIN}')`);
    expect(text).toMatch(/integer, 1 to 1000/);
    expect(text).toContain('Default <code>20</code>');
    expect(page).not.toMatch(/undefined|\[object|NaN/);
  });

  test('has commands that work', async () => {
    const commands = all(page, /<pre class="command"[^>]*><code>(.*?)<\/code>/g).map(unescaped);
    expect(commands.length).toBeGreaterThanOrEqual(6);
    for (const command of commands) {
      const [, origin, path = ''] = /^curl '(http:\/\/[^/]+)(\/[^']*)'$/.exec(command) ?? [];
      expect(origin, command).toBe(EXAMPLE_ORIGIN);
      // The cursor of the example stands for one that a page has given.
      if (path.includes('cursor=')) continue;
      expect((await server.ask(path)).status, path).toBe(200);
    }
  });
});

test('every operation that ends has a form with its parameters', () => {
  const forms = all(page, /<form class="try" data-path="([^"]*)"/g);
  const finite = Object.keys(document.paths).filter((path) => !/stream|export/.test(path));
  expect(forms.toSorted()).toEqual(finite.toSorted());
  const [, search = ''] = /<form [^>]*data-path="\/v2\/messages"(.*?)<\/form>/s.exec(page) ?? [];
  expect(all(search, /<input [^>]*name="([^"]*)"/g)).toEqual([...searchParameterNames]);
  expect(all(search, /<label for="([^"]*)"/g)).toEqual(all(search, /<input id="([^"]*)"/g));
});

test('whatever stands in the document is shown as text', () => {
  const hostile = `<script>alert("1")</script>'"><img src=x onerror=alert(1)>\`<b>\``;
  const operation = document.paths['/v2/messages']?.get;
  if (!operation) throw new Error('The search is not in the document');
  const poisoned: OpenApiDocument = {
    ...document,
    info: { ...document.info, title: hostile, version: hostile, description: hostile },
    paths: {
      [`/${hostile}`]: {
        get: {
          ...operation,
          summary: hostile,
          description: hostile,
          parameters: [
            {
              name: hostile,
              in: 'query',
              required: false,
              description: hostile,
              example: hostile,
              schema: { type: hostile, default: hostile, enum: [hostile], pattern: hostile },
            },
          ],
        },
      },
    },
    components: {
      ...document.components,
      schemas: { [hostile]: { description: hostile, properties: { [hostile]: { type: hostile } } } },
    },
  };
  for (const isSimulated of [true, false]) {
    const whole = docsPage(poisoned, isSimulated);
    const text = whole.replace(`<script>${docsPageScript}</script>`, '');
    expect(text).not.toBe(whole);
    expect(text).not.toMatch(/<script|<img|<b>/);
    expect(text).toContain('&lt;script&gt;alert(&quot;1&quot;)');
    // No attribute ends early: without the quoted values, only what the page itself writes is left of a tag.
    const tags = text.replace(/<style>.*?<\/style>/s, '').replace(/="[^"]*"/g, '');
    for (const tag of all(tags, /<([^<>]*)>/g)) expect(tag).toMatch(/^\/?!?[a-z0-9]+( [a-z-]+)*$/);
  }
});

describe('a store of simulated data', () => {
  test('says so on every response, whatever it is', async () => {
    const message = makeMessage();
    const demo = await startSimulatedServer([message]);
    onTestFinished(() => demo.close());
    const found = ['/v2/messages', `/messages/${message.messageId}`, '/healthz', '/readyz', '/docs', '/'];
    const tooLong = [40_000, 100_000].map((length) => `/${'x'.repeat(length)}`);
    const others = ['/openapi.json', '/v2/messages?limit=0', '/nothing', '/v2/messages/%zz', ...tooLong];
    const asked = [
      ...[...found, ...others].map((path) => demo.ask(path)),
      demo.ask('/v2/messages', { method: 'HEAD' }),
      demo.ask('/v2/messages', { method: 'POST' }),
      demo.ask('/v2/messages', { headers: { accept: 'image/png' } }),
      sendBytes(demo.port, 'no HTTP\r\n\r\n'),
      sendBytes(demo.port, 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n'),
      sendBytes(demo.port, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n'),
    ];
    for (const { status, headers } of await Promise.all(asked)) {
      expect({ status, simulated: headers['x-lanescan-simulated'] }).toEqual({ status, simulated: 'true' });
      expectFreshRequestId(headers);
    }
  });

  test('which a real one is not', async () => {
    for (const path of ['/v2/messages', '/nothing', '/docs', '/readyz']) {
      const { headers } = await server.ask(path);
      expect(headers).not.toHaveProperty('x-lanescan-simulated');
    }
    expect(page).not.toContain('class="banner"');
    const ready = { status: 'ready', simulated: false };
    expect((await server.ask('/readyz')).json<unknown>()).toMatchObject(ready);
  });
});
