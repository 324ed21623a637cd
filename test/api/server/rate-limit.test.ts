/** How much one client may ask, who counts as one, and what they are told. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { addressGroup, type TrustProxy } from '../../../src/api/server/client-address.ts';
import { createRateLimiter, type RateLimitOptions } from '../../../src/api/server/rate-limit.ts';
import { readSetting } from '../../../src/base/settings.ts';
import { readConfig } from '../../../src/cli/config/config.ts';
import { settings } from '../../../src/cli/config/settings.ts';
import type { Store } from '../../../src/store/store.ts';
import { configFile } from '../../cli/program.ts';
import { openTestStore } from '../../database.ts';
import { type Answer, expectError, type RunningServer, serveStore } from '../running-server.ts';

let store: Store & { readonly url: string };
beforeAll(async () => {
  store = await openTestStore();
});
afterAll(() => store.close());

async function serve(
  options: Partial<RateLimitOptions> & { readonly trustProxy?: TrustProxy },
): Promise<RunningServer> {
  const server = await serveStore({ ...store, close: async () => undefined }, options);
  onTestFinished(() => server.close());
  return server;
}

/** Slow enough that no token comes back during a test. */
const few = { perSecond: 0.01, burst: 3, loopback: true };
const hash = (key: string) => createHash('sha256').update(key).digest('hex');
const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } });

async function statuses(asked: readonly Promise<Answer>[]): Promise<readonly number[]> {
  return (await Promise.all(asked)).map(({ status }) => status);
}

function expectLimited(answer: Answer): void {
  const { details } = expectError(answer, 429, 'RATE_LIMITED');
  expect(details).toEqual([]);
  expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  expect(answer.headers['cache-control']).toBe('no-store');
}

describe('a bucket', () => {
  const allowedOf = (limiter: ReturnType<typeof createRateLimiter>, count: number) =>
    Array.from({ length: count }, () => limiter.take('192.0.2.1', {})).filter((verdict) => verdict?.isAllowed)
      .length;

  test('lets a burst through, then so many a second, and is full again after a rest', () => {
    let now = 0;
    const limiter = createRateLimiter(
      { rateLimit: { perSecond: 50, burst: 200, loopback: false }, apiKeys: [] },
      () => now,
    );
    const take = (count: number) => allowedOf(limiter, count);
    expect(take(300)).toBe(200);
    now += 1000;
    expect(take(300)).toBe(50);
    now += 10;
    expect(take(2)).toBe(0);
    now += 10;
    expect(take(2)).toBe(1);
    now += 3_600_000;
    expect(take(300)).toBe(200);
    expect(limiter.take('192.0.2.1', {})).toEqual({
      policy: 'address',
      isAllowed: false,
      retryAfterSeconds: 1,
      headers: { 'RateLimit-Policy': '"address";q=200;w=4', RateLimit: '"address";r=0;t=4' },
    });
  });

  test('also loses what was taken elsewhere, may come to owe some, and tells of what is taken here', () => {
    let now = 0;
    const told: string[] = [];
    const key = { name: 'ours', sha256: hash('secret'), perSecond: 1, burst: 2 };
    const limiter = createRateLimiter(
      { rateLimit: { perSecond: 10, burst: 20, loopback: false }, apiKeys: [key] },
      () => now,
      (client) => told.push(client),
    );
    const take = (count: number) => allowedOf(limiter, count);
    expect(take(5)).toBe(5);
    expect(told).toEqual(Array(5).fill('192.0.2.1'));
    limiter.charge([['192.0.2.1', 12]]);
    expect(take(10)).toBe(3);
    limiter.charge([['192.0.2.1', 10]]);
    now += 1000;
    expect(limiter.take('192.0.2.1', {})?.headers.RateLimit).toBe('"address";r=0;t=2');
    now += 100;
    expect(take(10)).toBe(1);
    // However much is taken elsewhere, the debt is that of one burst.
    limiter.charge([['192.0.2.1', 10_000]]);
    now += 2_000;
    expect(take(10)).toBe(0);
    now += 500;
    expect(take(10)).toBe(5);

    const mine = { 'x-api-key': 'secret' };
    expect(limiter.take('192.0.2.2', mine)?.isAllowed).toBe(true);
    const [client = ''] = told.slice(-1);
    limiter.charge([[client, 1]]);
    expect(limiter.take('192.0.2.2', mine)?.isAllowed).toBe(false);
    limiter.charge([['key of nobody', 1]]);
    expect(limiter.take('192.0.2.3', {})?.isAllowed).toBe(true);
  });

  test('is remembered for a bounded number of clients', () => {
    const limiter = createRateLimiter({ rateLimit: few, apiKeys: [] });
    const address = (index: number) => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
    for (let index = 0; index < 60_000; index++) limiter.take(address(index), {});
    expect(limiter.clients).toBe(50_000);
    expect(limiter.take(address(59_999), {})?.headers.RateLimit).toMatch(/;r=1;/);
    expect(limiter.take(address(0), {})?.headers.RateLimit).toMatch(/;r=2;/);
  });

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::9', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ])('of %s is that of %s', (address, group) => {
    expect(addressGroup(address)).toBe(group);
  });
});

describe('over HTTP', () => {
  test('a client is told its limit and what is left, and beyond it gets 429 with Retry-After', async () => {
    const server = await serve({ rateLimit: few });
    for (const [path, left] of [
      ['/v2/messages', 2],
      ['/nothing', 1],
      ['/v2/messages?limit=0', 0],
    ] as const) {
      const { headers } = await server.ask(path);
      expect(headers['ratelimit-policy']).toBe('"address";q=3;w=300');
      expect(headers.ratelimit).toBe(`"address";r=${left};t=${(3 - left) * 100}`);
    }
    for (const path of ['/v2/messages', '/nothing', '/docs', '/metrics']) {
      const answer = await server.ask(path);
      expectLimited(answer);
      expect(answer.headers.ratelimit).toMatch(/^"address";r=0;t=\d+$/);
      expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(100);
    }
    expectLimited(await server.ask('/v2/messages', { method: 'POST' }));
  });

  test('what the machinery around asks, and preflights, are never limited', async () => {
    const server = await serve({ rateLimit: { ...few, burst: 1 } });
    await server.ask('/v2/messages');
    expectLimited(await server.ask('/v2/messages'));
    for (const path of ['/healthz', '/readyz']) {
      const answer = await server.ask(path);
      expect(answer.status).toBe(200);
      expect(answer.headers).not.toHaveProperty('ratelimit');
    }
    expect((await server.ask('/v2/messages', { method: 'OPTIONS' })).status).toBe(204);
  });

  test('by default this machine has no limit, and others 200 at once', { tags: 'slow' }, async () => {
    const server = await serve({ trustProxy: 1 });
    const local = await statuses(
      Array.from({ length: 250 }, () => server.ask('/openapi.json', { method: 'HEAD' })),
    );
    expect(new Set(local)).toEqual(new Set([200]));
    let limited: Awaited<ReturnType<typeof server.ask>>[] = [];
    // On a machine so busy that it answers fewer than are allowed, nobody is rejected; another client tries again.
    for (let client = 10; limited.length === 0 && client < 15; client++) {
      const started = Date.now();
      const remote = await Promise.all(
        Array.from({ length: 400 }, () => server.ask('/nothing', from(`192.0.2.${client}`))),
      );
      const allowed = remote.filter(({ status }) => status === 404).length;
      expect(allowed).toBeGreaterThanOrEqual(200);
      expect(allowed).toBeLessThanOrEqual(201 + Math.ceil((Date.now() - started) / 20));
      limited = remote.filter(({ status }) => status === 429);
      expect(limited.length).toBe(400 - allowed);
    }
    expect(limited[0]?.headers['ratelimit-policy']).toBe('"address";q=200;w=4');
    expect((await server.ask('/nothing', from('192.0.2.8'))).status).toBe(404);
    expect((await server.ask('/metrics')).text).toContain(
      `lanescan_http_refusals_total{reason="rate_limit"} ${limited.length}`,
    );
  });

  test('no limit is a setting too', async () => {
    const server = await serve({ rateLimit: false });
    const { status, headers } = await server.ask('/v2/messages');
    expect(status).toBe(200);
    expect(headers).not.toHaveProperty('ratelimit');
  });
});

describe('behind a proxy', () => {
  test('two servers on one database do not share counts: a client gets the limit of each', async () => {
    const limited = { rateLimit: few, trustProxy: 1 };
    for (const server of [await serve(limited), await serve(limited)]) {
      const ask = () => server.ask('/v2/messages', from('192.0.2.77'));
      expect(await statuses([ask(), ask(), ask()])).toEqual([200, 200, 200]);
      expectLimited(await ask());
    }
  });

  const left = async (server: RunningServer, forwarded: string) =>
    /r=(\d+)/.exec(String((await server.ask('/nothing', from(forwarded))).headers.ratelimit))?.[1];

  test('X-Forwarded-For counts for nothing unless trustProxy is set; the log says so once', async () => {
    const server = await serve({ rateLimit: few });
    expect([await left(server, '192.0.2.1'), await left(server, '192.0.2.2')]).toEqual(['2', '1']);
    expect(server.log.filter((line) => line.includes('trustProxy'))).toHaveLength(1);
  });

  /** What is left to the client after a request that came with each of these, one after the other. */
  const added = {
    '192.0.2.1': 2,
    '192.0.2.2': 2,
    '203.0.113.9, 192.0.2.1': 1,
    '203.0.113.10,198.51.100.7, 192.0.2.1': 0,
    '2001:db8::1': 2,
    '2001:db8::ffff': 1,
    '::ffff:192.0.2.2': 1,
  };
  const noAddresses = { a: 2, '<b>': 1, '1.2.3.4.5': 0 };
  const passed = { '192.0.2.1, 10.0.0.1': 2, '192.0.2.1, 10.0.0.2': 1, '192.0.2.3, 10.0.0.2': 2 };
  test.each<[claim: string, TrustProxy, leftAfter: Readonly<Record<string, number>>]>([
    ['one hop: the address that it has added is the client, what comes before is hearsay', 1, added],
    ['its address: the same', ['127.0.0.1'], added],
    ['its network: the same', ['127.0.0.0/8', '10.0.0.0/8'], added],
    ['one hop: what is no address does not make a client', 1, noAddresses],
    ['two hops: it looks past both', 2, passed],
  ])('trusted by %s', async (_claim, trustProxy, leftAfter) => {
    const server = await serve({ rateLimit: few, trustProxy });
    for (const [forwarded, count] of Object.entries(leftAfter))
      expect(await left(server, forwarded), forwarded).toBe(String(count));
    if (leftAfter !== added) return;
    const requests = server.log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    const clients = requests.map(({ client }) => client);
    expect(clients.slice(0, 3)).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.1']);
  });
});

describe('an API key', () => {
  const apiKeys = [
    { name: 'partner', sha256: hash('correct horse'), perSecond: 0.01, burst: 5 },
    { name: 'other', sha256: hash('battery'), perSecond: 0.01, burst: 7 },
  ];

  test('has a limit of its own, in either header, wherever it comes from', async () => {
    const server = await serve({ rateLimit: { ...few, burst: 1 }, apiKeys, trustProxy: 1 });
    const partner = { 'X-API-Key': 'correct horse' };
    for (const [headers, left] of [
      [{ Authorization: 'Bearer battery' }, 6],
      [{ 'X-API-Key': 'battery', 'X-Forwarded-For': '192.0.2.1' }, 5],
      ...[4, 3, 2, 1, 0].map((left) => [partner, left] as const),
    ] as const) {
      const answer = await server.ask('/nothing', { headers });
      expect(answer.headers['ratelimit-policy']).toBe(`"key";${left > 4 ? 'q=7;w=700' : 'q=5;w=500'}`);
      expect(answer.headers.ratelimit).toMatch(new RegExp(`^"key";r=${left};`));
    }
    expectLimited(await server.ask('/nothing', { headers: partner }));
    expect((await server.ask('/nothing')).status).toBe(404);
  });

  test('that nobody knows is served like none', async () => {
    const server = await serve({ rateLimit: few, apiKeys });
    for (const [headers, left] of [
      [{ Authorization: 'Bearer wrong' }, 2],
      [{ Authorization: 'Basic battery', 'X-API-Key': 'x'.repeat(10_000) }, 1],
      [{ 'X-API-Key': hash('battery') }, 0],
    ] as const) {
      const answer = await server.ask('/v2/messages', { headers });
      expect(answer.status).toBe(200);
      expect(answer.headers.ratelimit).toMatch(new RegExp(`^"address";r=${left};`));
    }
  });

  test('stands neither in the log nor in the metrics', async () => {
    const server = await serve({ apiKeys });
    await server.ask('/v2/messages', { headers: { Authorization: 'Bearer battery' } });
    await server.ask('/v2/messages', { headers: { 'X-API-Key': 'correct horse' } });
    const { text } = await server.ask('/metrics');
    for (const secret of ['battery', 'correct horse', hash('battery'), 'partner']) {
      expect(text).not.toContain(secret);
      expect(server.log.join('')).not.toContain(secret);
    }
  });
});

describe('the settings', () => {
  const read = (text: string, environment = {}) => readConfig({ config: configFile(text) }, environment);
  const readApiKeys = (value: unknown) => readSetting(settings.apiKeys, value, ['apiKeys']);
  const key = { name: 'a', sha256: hash('k'), perSecond: 1, burst: 2 };

  test('come from lanescan.yaml, with the documented defaults', () => {
    expect(read('')).toMatchObject({
      rateLimit: { perSecond: 50, burst: 200, loopback: false },
      apiKeys: [],
      trustProxy: false,
    });
    expect(read('rateLimit: {perSecond: 0.5, loopback: true}\ntrustProxy: ["10.0.0.0/8"]')).toMatchObject({
      rateLimit: { perSecond: 0.5, burst: 200, loopback: true },
      trustProxy: ['10.0.0.0/8'],
    });
    expect(read('rateLimit: {burst: 9}').rateLimit).toMatchObject({ perSecond: 50, burst: 9 });
    expect(read('rateLimit: false').rateLimit).toBe(false);
    const proxies = (text: string) => read('trustProxy: 1', { LANESCAN_TRUST_PROXY: text }).trustProxy;
    expect(['2', '10.0.0.0/8, ::1'].map(proxies)).toEqual([2, ['10.0.0.0/8', '::1']]);
    expect(readApiKeys([{ ...key, sha256: key.sha256.toUpperCase() }])).toEqual([key]);
  });

  test('a wrong one is named with what it takes; a key in place of its hash is not repeated', () => {
    expect(() => read('rateLimit: {perSecond: lots}')).toThrow(/^rateLimit\.perSecond in \S+:1 is "lots"\.$/);
    expect(() => read('rateLimit: {perSecond: .nan}')).toThrow(/^rateLimit\.perSecond in /);
    const withKey = 'apiKeys: [{name: a, sha256: my-secret-key, perSecond: 1, burst: 1}]';
    expect(() => read(withKey)).toThrow(/^apiKeys\[0\]\.sha256 in \S+:1 is not valid\.$/);
    expect(() => read('apiKey: []')).toThrow(/^apiKey in \S+:1 is an unknown key/);
  });

  test.each([
    ...[50, { burst: '9' }, { loopback: 1 }].map((rateLimit) => ({ rateLimit })),
    ...['', 'localhost', ['10.0.0.0/33'], ['::/129'], ['1.2.3.4/']].map((trustProxy) => ({ trustProxy })),
    { apiKeys: {} },
    { apiKeys: [{ ...key, sha256: 'plain' }] },
    { apiKeys: [key, key] },
    { apiKeys: [key, { ...key, name: 'b' }] },
    { apiKeys: [{ ...key, key: 'k' }] },
    { apiKeys: [{ name: 'a', sha256: hash('k') }] },
  ])('and nothing else (more in cli/config/settings-documents.test.ts): %j', (setting) => {
    expect(() => read(JSON.stringify(setting))).toThrow(/^(rateLimit|trustProxy|apiKeys)\S* in \S+:1 /);
  });
});
