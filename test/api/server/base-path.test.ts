/** A server below a path of its host: everything is at the prefix, also where a proxy removes it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildExplorer } from '../../browser/chromium.ts';
import { lanescan } from '../../cli/program.ts';
import { makeMessage } from '../../fixtures.ts';
import { expectError, type RunningServer, type SearchBody, startServer } from '../running-server.ts';

const message = makeMessage({ number: 1 });
let server: RunningServer;
beforeAll(async () => {
  buildExplorer();
  server = await startServer([message], { basePath: '/tools/lanescan' });
});
afterAll(() => server.close());

const page = { headers: { accept: 'text/html' } };

test.each(['/tools/lanescan', ''])('the API answers at %j', async (prefix) => {
  const found = await server.ask(`${prefix}/v2/messages?sender=${message.sender}`);
  expect(found.json<SearchBody>().data.map(({ messageId }) => messageId)).toEqual([message.messageId]);
  expect((await server.ask(`${prefix}/v2/messages/${message.messageId}`)).status).toBe(200);
  expect((await server.ask(`${prefix}/messages/`)).status).toBe(200);
  for (const path of ['/readyz', '/healthz', '/metrics'])
    expect((await server.ask(`${prefix}${path}`)).status, path).toBe(200);
  expectError(await server.ask(`${prefix}/v2/messages`, { method: 'POST' }), 405, 'METHOD_NOT_ALLOWED');
});

test.each([
  '/tools/lanescanner/v2/messages',
  '/tools',
  '/lanescan/v2/messages',
  '/TOOLS/lanescan/v2/messages',
])('nothing is at %s', async (path) => {
  const error = expectError(await server.ask(path), 404, 'NOT_FOUND');
  expect(error.message).toBe(
    `There is nothing at ${path}. The paths of this service are listed at /tools/lanescan/docs.`,
  );
});

test('without the slash at its end it is redirected, with its query', async () => {
  const answer = await server.ask('/tools/lanescan?status=FAILED&q=a?b', page);
  expect(answer).toMatchObject({
    status: 308,
    headers: { location: '/tools/lanescan/?status=FAILED&q=a?b', 'x-request-id': expect.any(String) },
  });
  expect((await server.ask('/tools/lanescan')).headers.location).toBe('/tools/lanescan/');
});

test.each(['/tools/lanescan', ''])(
  'pages asked for at %j name their files below the prefix',
  async (prefix) => {
    for (const path of ['/', '/lane', `/message/${message.messageId}`, '/nothing/here']) {
      const { text } = await server.ask(`${prefix}${path}`, page);
      expect(text, path).toContain('<meta name="lanescan-base-path" content="/tools/lanescan">');
      const links = [...text.matchAll(/(?:src|href)="([^"#]+)"/g)].flatMap(([, link = '']) => link);
      const own = links.filter((link) => !link.startsWith('data:'));
      expect(own.length).toBeGreaterThan(2);
      for (const link of own) {
        expect(link).toMatch(/^\/tools\/lanescan\//);
        expect((await server.ask(link)).status, link).toBe(200);
      }
    }
  },
);

test('the documentation names the prefix', async () => {
  const document = await server.ask('/tools/lanescan/openapi.json');
  expect(document.json<{ servers: readonly { url: string }[] }>().servers[0]?.url).toBe('/tools/lanescan');
  const { text } = await server.ask('/tools/lanescan/docs', page);
  expect(text).toContain('href="/tools/lanescan/openapi.json"');
  expect(text).toContain('data-base-path="/tools/lanescan"');
});

test('at the root a page has no prefix, and nothing is redirected', async () => {
  const plain = await startServer([]);
  try {
    const { text } = await plain.ask('/lane', page);
    expect(text).not.toContain('lanescan-base-path');
    expect(text).toMatch(/src="\/assets\/index-/);
    expectError(await plain.ask('/tools/lanescan'), 404, 'NOT_FOUND');
  } finally {
    await plain.close();
  }
});

test('commands read with --url that has the prefix', async () => {
  for (const slash of ['', '/']) {
    const url = `${server.url}/tools/lanescan${slash}`;
    expect(await lanescan(['show', message.messageId, '--url', url])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(message.messageId),
    });
  }
});
