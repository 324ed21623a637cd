/** Bodies in the coding that the client likes best, each with a validator of its own. */
import { Readable } from 'node:stream';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { acceptsGzipStream, chooseCoding, gzipStream } from '../../../src/api/server/compression.ts';
import { makeMessage } from '../../fixtures.ts';
import { serverForAll } from '../running-server.ts';

const messages = Array.from({ length: 20 }, (_, number) => makeMessage({ number }));
const server = serverForAll(messages);

const askIn = (path: string, acceptEncoding: string, method = 'GET', more = {}) =>
  server.ask(path, { method, headers: { 'Accept-Encoding': acceptEncoding, ...more } });

const decoders = { br: brotliDecompressSync, gzip: gunzipSync };

describe('a body above a kilobyte', () => {
  test.each(['/v2/messages', '/openapi.json', '/docs'])(
    '%s comes compressed, and is the same',
    async (path) => {
      const { text, headers } = await server.ask(path);
      for (const coding of ['br', 'gzip'] as const) {
        const answer = await askIn(path, coding);
        expect(answer.headers).toMatchObject({ 'content-encoding': coding, vary: 'Accept-Encoding' });
        expect(decoders[coding](answer.bytes).toString()).toBe(text);
        expect(answer.bytes.length).toBeLessThan(text.length / 3);
        expect(answer.headers['content-length']).toBe(String(answer.bytes.length));
        expect(answer.headers.etag).toBe(`${headers.etag?.slice(0, -1)}-${coding}"`);
        const again = await askIn(path, coding, 'GET', { 'If-None-Match': answer.headers.etag });
        expect({ status: again.status, tag: again.headers.etag, length: again.bytes.length }).toEqual({
          status: 304,
          tag: answer.headers.etag,
          length: 0,
        });
        expect(again.headers).not.toHaveProperty('content-encoding');
      }
    },
  );

  test('HEAD tells the coding and the validator of GET', async () => {
    const get = await askIn('/v2/messages', 'br');
    const head = await askIn('/v2/messages', 'br', 'HEAD');
    expect(head.bytes.length).toBe(0);
    for (const name of ['content-encoding', 'etag', 'vary', 'content-type', 'cache-control']) {
      expect(head.headers[name], name).toBe(get.headers[name]);
    }
    expect(head.headers).not.toHaveProperty('content-length');
  });
});

test('a small body, and an error, come as they are', async () => {
  for (const path of ['/healthz', '/v2/messages?limit=0', '/nothing']) {
    const { headers, bytes } = await askIn(path, 'br, gzip');
    expect(headers).not.toHaveProperty('content-encoding');
    expect(() => JSON.parse(bytes.toString())).not.toThrow();
  }
});

describe('the choice', () => {
  test.each([
    [undefined, undefined],
    ['', undefined],
    ['identity', undefined],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['br', 'br'],
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip;q=1.0, br;q=0.5', 'gzip'],
    ['gzip;q=0.5,br;q=0.8', 'br'],
    ['br;q=0, gzip', 'gzip'],
    ['br;q=0, gzip;q=0.000', undefined],
    ['*', 'br'],
    ['*;q=0', undefined],
    ['br;q=0, *', 'gzip'],
    ['identity;q=1, gzip;q=0.5', undefined],
    ['identity;q=0.5, gzip;q=0.5', 'gzip'],
    ['deflate, zstd', undefined],
    ['gzip;q=nonsense', undefined],
    ['gzip;q=2', undefined],
    [', ,;;,gzip', 'gzip'],
  ])('for %j is %s', (header, expected) => {
    expect(chooseCoding(header, 5_000)).toBe(expected);
  });

  test('below a kilobyte is nothing, unless nothing is rejected', () => {
    expect(chooseCoding('br', 999)).toBeUndefined();
    expect(chooseCoding('br', 1_000)).toBe('br');
    expect(chooseCoding('identity;q=0, gzip', 10)).toBe('gzip');
    expect(chooseCoding('*;q=0, br', 10)).toBe('br');
  });

  test('for a stream is gzip or nothing', () => {
    expect(['gzip', 'br, gzip', '*', 'br', 'gzip;q=0', undefined].map(acceptsGzipStream)).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

describe('a stream', () => {
  test('fails when its source does, and ends its source when its reader goes', async () => {
    const failing = gzipStream(
      new Readable({
        read() {
          this.destroy(new Error('gone'));
        },
      }),
    );
    await expect(failing.toArray()).rejects.toThrow();
    const source = new Readable({ read: () => undefined });
    const closed = new Promise((resolve) => source.once('close', resolve));
    gzipStream(source).destroy();
    await closed;
    expect(source.destroyed).toBe(true);
  });

  test('of an export is zipped for who takes it, and complete', async () => {
    const path = '/v2/messages/export?format=ndjson';
    const plain = await askIn(path, 'identity');
    expect(plain.headers).not.toHaveProperty('content-encoding');
    const zipped = await askIn(path, 'gzip, br');
    expect(zipped.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
    expect(gunzipSync(zipped.bytes).equals(plain.bytes)).toBe(true);
    expect(plain.bytes.toString().trimEnd().split('\n')).toHaveLength(messages.length);
    const head = await askIn(path, 'gzip', 'HEAD');
    expect({ status: head.status, bytes: head.bytes.length }).toEqual({ status: 200, bytes: 0 });
  });
});
