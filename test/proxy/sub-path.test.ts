// @module-tag slow: starts a server and a proxy several times
/** Lanescan below a path of a site, behind the documented configurations of nginx and Caddy. */
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { readStream, until } from '../api/live/live-server.ts';
import { buildProgram, lanescan } from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { startServer } from './lanescan-servers.ts';
import { isInstalled, startSubPathProxy } from './proxies.ts';

const page = { headers: { Accept: 'text/html' }, redirect: 'manual' } as const;

beforeAll(buildProgram);

describe.each(['nginx', 'caddy'] as const)('%s', (name) => {
  test.skipIf(!isInstalled(name)).each([
    ['passes the prefix on', false],
    ['removes the prefix', true],
  ])('%s', async (_how, isPrefixRemoved) => {
    const store = await openTestStore();
    onTestFinished(() => store.close());
    const message = makeMessage({ number: 1 });
    await store.apply([makeSnapshot(message)]);
    const server = await startServer(store.url, { LANESCAN_BASE_PATH: '/lanescan' });
    const proxy = await startSubPathProxy(name, server.port, isPrefixRemoved);
    const url = `${proxy.url}/lanescan`;
    const get = (path: string) => fetch(`${url}${path}`, page);

    expect(await (await fetch(`${proxy.url}/v2/messages`)).text()).toContain('another site');
    const bare = await get('');
    expect([301, 308]).toContain(bare.status);
    expect(new URL(bare.headers.get('location') ?? '', proxy.url).href).toBe(`${url}/`);

    for (const path of ['/', `/message/${message.messageId}`, '/docs']) {
      const answer = await get(path);
      expect(answer.status, path).toBe(200);
      const links = [...(await answer.text()).matchAll(/ (?:src|href)="(\/[^"]*)"/g)];
      expect(links.length).toBeGreaterThan(0);
      for (const [, link = ''] of links) {
        expect(link).toMatch(/^\/lanescan\//);
        expect((await fetch(`${proxy.url}${link}`)).status, link).toBe(200);
      }
    }
    const document = await fetch(`${url}/openapi.json`);
    expect(await document.json()).toMatchObject({ servers: [{ url: '/lanescan' }] });
    if (name === 'caddy' || !isPrefixRemoved) expect((await get('/metrics')).status).toBe(403);

    expect(await lanescan(['search', '--url', url])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(message.messageId),
    });

    const reader = await readStream(`${url}/v2/messages/stream`);
    await store.apply([makeSnapshot(makeMessage({ number: 2 }))]);
    await until(() => reader.hasReached(2));
  });
});
