/** What pages of other origins may do, and what browsers are told besides. */
import { describe, expect, test } from 'vitest';
import { makeMessage } from '../../fixtures.ts';
import { expectError, expectFreshRequestId, sendBytes, serverForAll } from '../running-server.ts';

const message = makeMessage();
const paths = [
  '/v2/messages',
  '/messages',
  `/v2/messages/${message.messageId}`,
  '/openapi.json',
  '/docs',
  '/readyz',
];

const server = serverForAll([message]);

describe('a page of another origin', () => {
  test('may read every answer, errors too, and the headers that matter', async () => {
    const headers = { Origin: 'https://app.example' };
    const answers = [
      ...(await Promise.all(paths.map((path) => server.ask(path, { headers })))),
      await server.ask('/nothing', { headers }),
      await server.ask('/v2/messages?limit=0', { headers }),
      await server.ask('/v2/messages/%zz', { headers }),
      await server.ask('/v2/messages', { method: 'POST', headers }),
      await server.ask(`/${'x'.repeat(100_000)}`, { headers }),
      await sendBytes(server.port, 'no HTTP\r\n\r\n'),
    ];
    for (const answer of answers) {
      expect(answer.headers['access-control-allow-origin']).toBe('*');
      expect(answer.headers['access-control-expose-headers']?.split(', ')).toEqual(
        expect.arrayContaining([
          'X-Request-ID',
          'ETag',
          'Link',
          'RateLimit',
          'RateLimit-Policy',
          'Retry-After',
          'X-Lanescan-Simulated',
        ]),
      );
      expect(answer.headers['cross-origin-resource-policy']).toBe('cross-origin');
      expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
      expect(String(answer.headers.vary ?? '')).not.toMatch(/origin/i);
    }
  });

  test('may not read /metrics', async () => {
    const { status, headers } = await server.ask('/metrics', { headers: { Origin: 'https://app.example' } });
    expect(status).toBe(200);
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect(headers['cross-origin-resource-policy']).toBe('same-origin');
  });

  test('gets its preflight answered on every path there is, for the methods that read and any header', async () => {
    for (const path of [...paths, '/', '//v2//messages/', '/v2/messages?limit=5']) {
      const answer = await server.ask(path, {
        method: 'OPTIONS',
        headers: {
          Origin: 'https://app.example',
          'Access-Control-Request-Method': 'GET',
          // What the ecosystem's SDK sends from a browser.
          'Access-Control-Request-Headers': 'content-type,x-sdk-version,authorization',
          'Access-Control-Request-Private-Network': 'true',
        },
      });
      expect({ status: answer.status, text: answer.text }).toEqual({ status: 204, text: '' });
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET, HEAD, OPTIONS',
        'access-control-allow-headers': '*, Authorization',
        'access-control-max-age': '86400',
        allow: 'GET, HEAD, OPTIONS',
      });
      expect(answer.headers).not.toHaveProperty('access-control-allow-private-network');
      expectFreshRequestId(answer.headers);
    }
    expectError(await server.ask('/nothing', { method: 'OPTIONS' }), 404, 'NOT_FOUND');
  });
});

test('every answer keeps browsers from guessing, framing and telling', async () => {
  for (const path of [...paths, '/metrics', '/nothing', '/']) {
    const { headers } = await server.ask(path);
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
    });
    expect(headers['content-security-policy']).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
    // TLS is the proxy's, and so is the promise to keep it.
    expect(headers).not.toHaveProperty('strict-transport-security');
  }
  expect((await server.ask('/docs')).headers['cross-origin-opener-policy']).toBe('same-origin');
});
