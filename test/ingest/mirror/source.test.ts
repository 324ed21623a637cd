/** What a mirrored server may ask of the mirror: bytes, waiting time, redirects, and the length of a cursor. */
import type { RequestListener } from 'node:http';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ResponseTooLongError } from '../../../src/base/bounded-exchange.ts';
import { createPageReader } from '../../../src/ingest/mirror/pages.ts';
import { createSource, type Source } from '../../../src/ingest/mirror/source.ts';
import { listenWith } from '../../listening.ts';

async function sourceOf(
  listener: RequestListener,
): Promise<{ readonly source: Source; readonly logLines: readonly string[] }> {
  const { href } = await listenWith(listener);
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const logLines: string[] = [];
  const source = createSource({
    url: href,
    requestsPerSecond: 1_000,
    userAgent: 'lanescan/test',
    signal: stop.signal,
    writeLog: (line) => logLines.push(line),
  });
  return { source, logLines };
}

test('an answer of more than 64 MB is not read to its end', { tags: 'slow' }, async () => {
  const megabyte = Buffer.alloc(1024 * 1024, ' ');
  const { source } = await sourceOf((_request, response) => {
    Readable.from(Array<Buffer>(65).fill(megabyte)).pipe(response);
  });
  await expect(source.get('/v2/messages')).rejects.toThrow(new ResponseTooLongError(64 * 1024 * 1024));
});

test('a Retry-After of more than an hour counts as an hour', async () => {
  let requests = 0;
  const { source, logLines } = await sourceOf((_request, response) => {
    requests++;
    response.writeHead(429, { 'Retry-After': '999999' }).end();
  });
  void source.get('/v2/messages').catch(() => undefined);
  await vi.waitFor(() => expect(logLines).toHaveLength(1), { timeout: 120_000 });
  expect(logLines[0]).toMatch(/answered 429 and asks to wait 3600 s$/);
  expect(requests).toBe(1);
});

test('five redirects on the same host are followed, and a sixth is an error with a remedy', async () => {
  const paths: string[] = [];
  const { source } = await sourceOf(({ url = '' }, response) => {
    paths.push(url);
    const left = Number(url.slice(1));
    if (left === 0) response.end('{}');
    else response.writeHead(308, { Location: `/${left - 1}` }).end();
  });
  expect(await source.get('/5')).toMatchObject({ status: 200 });
  await expect(source.get('/6')).rejects.toMatchObject({
    message: expect.stringMatching(/redirects more than 5 times/),
    remedy: expect.any(String),
  });
  expect(paths.join(' ')).toBe('/5 /4 /3 /2 /1 /0 /6 /5 /4 /3 /2 /1');
});

test('a cursor of 100,000 characters is used, and a longer one is refused', async () => {
  const { source } = await sourceOf(({ url = '' }, response) => {
    const length = Number(new URL(url, 'http://source').searchParams.get('length'));
    response.end(JSON.stringify({ data: [], pagination: { cursor: 'c'.repeat(length) } }));
  });
  const readPage = createPageReader(source);
  const read = (length: number) => readPage(null, [['length', String(length)]]);
  expect(await read(100_000)).toMatchObject({ kind: 'page', cursor: 'c'.repeat(100_000) });
  expect(await read(100_001)).toMatchObject({ kind: 'page', cursor: null, problem: /unusable cursor/ });
});
