/** A server below a path of its host: everything is at the prefix, also where a proxy removes it. */
import { beforeAll, expect, test } from 'vitest';
import { buildExplorer } from '../../browser/chromium.ts';
import { makeMessage } from '../../fixtures.ts';
import { expectError, type SearchBody, serverForAll, startServerForTest } from '../running-server.ts';

const message = makeMessage({ number: 1 });
beforeAll(buildExplorer);
const server = serverForAll([message], { basePath: '/tools/lanescan' });

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

test('at the root a page has no prefix, and nothing is redirected', async () => {
  const plain = await startServerForTest();
  const { text } = await plain.ask('/lane', page);
  expect(text).not.toContain('lanescan-base-path');
  expect(text).toMatch(/src="\/assets\/index-/);
  expectError(await plain.ask('/tools/lanescan'), 404, 'NOT_FOUND');
});
