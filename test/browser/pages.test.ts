// @module-tag slow: every page in a browser, in every width and theme; search.test.ts is the quick pass
/** Every page on the demo's network: what it shows, on every width, in both themes, for everybody, and fast. */
import type { Page, Request } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningServer, startServerForTest } from '../api/running-server.ts';
import { fuji, sepolia, solanaDevnet } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';
import { eventually, hasChromium, overhang, rowsOf, seriousProblems, useBrowser } from './chromium.ts';
import { searched, startDemo } from './demo-server.ts';
import { deliveredMessages, recentMessage } from './recent-messages.ts';

const lane = `/lane/${sepolia.name}/${fuji.name}`;

describe.skipIf(!hasChromium)('on the demo’s network', () => {
  const browser = useBrowser();
  let server: RunningServer;
  /** One of each version of CCIP that has failed, since each is rescued in its own way. */
  let failedMessages: readonly string[];
  let verifiedMessage: string;
  let solanaMessage: string;
  beforeAll(async () => {
    server = await startDemo();
    const idOf = async (query: string) => (await searched(server, `limit=1&${query}`))[0]?.messageId ?? '';
    const failed = await searched(server, 'limit=100&status=FAILED&readyForManualExecOnly=true');
    failedMessages = ['1.5.0', '1.6.0', '2.0.0'].map(
      (version) => failed.find((message) => message.version === version)?.messageId ?? '',
    );
    expect(failedMessages).not.toContain('');
    verifiedMessage = await idOf('status=VERIFIED,VERIFYING');
    solanaMessage = await idOf(`destChainSelector=${solanaDevnet.chainSelector}`);
  });
  afterAll(() => server.close());

  /** Each page with what shows that it is there. */
  const pages = (): readonly (readonly [path: string, sign: string])[] => [
    ['/', '.rows .row-link'],
    [`/?status=FAILED&sourceChainSelector=${sepolia.chainSelector}`, '.rows .row-link'],
    ...failedMessages.map((messageId) => [`/message/${messageId}`, '.timeline'] as const),
    [`/message/${verifiedMessage}`, '.verifiers'],
    [`/message/${solanaMessage}`, '.timeline'],
    ['/lane', '.matrix-cell'],
    [lane, '.chart'],
    ['/network', '.ledger'],
    ['/overview', '.reasons'],
    ['/failure', '.reasons'],
    ['/?readyForManualExecOnly=true', '.cell-reason'],
    ['/?status=SENT&sentBefore=2020-01-01T00:00:00Z', '.notice'],
  ];
  const visit = async (page: Page, [path, sign]: readonly [string, string]) => {
    await page.goto(server.url + path);
    await page.locator(sign).first().waitFor();
    await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
  };

  test('a message of every version prints on one page, also one that failed', async () => {
    for (const messageId of [...failedMessages, verifiedMessage, solanaMessage]) {
      const { page } = await browser.open(server, `/message/${messageId}`);
      await page.getByRole('heading', { name: 'Fees' }).waitFor();
      if (failedMessages.includes(messageId)) await page.locator('.attempts > li').first().waitFor();
      for (const format of ['A4', 'Letter']) {
        const sheets = (await page.pdf({ format })).toString('latin1').match(/\/Type\s*\/Page\b/g);
        expect([messageId, format, sheets?.length]).toEqual([messageId, format, 1]);
      }
    }
  });

  test('every page says that the data is simulated, has no serious problem for axe, and fits windows from 320 to 1920 px', {
    timeout: 900_000,
  }, async () => {
    const { page } = await browser.open(server);
    for (const [path, sign] of pages()) {
      await page.emulateMedia({ colorScheme: 'light' });
      await page.setViewportSize({ width: 1280, height: 800 });
      await visit(page, [path, sign]);
      await page.getByText('Simulated data.').waitFor();
      await eventually(() => page.title()).toMatch(/^\S.* · Lanescan \(simulated data\)$/);
      expect([path, await seriousProblems(page)]).toEqual([path, []]);
      // Only colours differ.
      await page.emulateMedia({ colorScheme: 'dark' });
      expect([path, await seriousProblems(page, ['color-contrast'])]).toEqual([path, []]);
      for (const width of [320, 375, 768, 800, 1040, 1280, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        expect({ path, width, overhang: await overhang(page) }).toEqual({ path, width, overhang: 0 });
      }
    }
    await page.setViewportSize({ width: 375, height: 800 });
    await visit(page, ['/', '.rows .row-link']);
    await page.getByRole('button', { name: 'Source' }).click();
    await page.getByRole('option').first().waitFor();
    expect(await seriousProblems(page)).toEqual([]);
  });

  test('the theme follows the system until somebody chooses, and remembers', async () => {
    const { page } = await browser.open(server, '/', { colorScheme: 'dark' });
    const ground = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    const dark = await ground();
    await page.getByRole('button', { name: /Change to light/ }).click();
    const light = await ground();
    expect(light).toBe('rgb(255, 255, 255)');
    expect(dark).not.toBe(light);
    await page.reload();
    expect(await ground()).toBe(light);
    await page.getByRole('button', { name: /Change to dark/ }).click();
    expect(await ground()).toBe(dark);
    await page.getByRole('button', { name: /Change to as the system/ }).click();
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await ground()).toBe(light);
  });

  test('rows are there after one round of requests, and nothing moves after they came', async () => {
    const { page } = await browser.open(server);
    await rowsOf(page).first().waitFor();
    // Whatever the speed of the machine: the request for the rows waits for no answer but that of the stream.
    const events: string[] = [];
    const pathOf = (url: string) => new URL(url).pathname;
    // The page before may still ask and get answers: what counts begins with the navigation.
    const asked = new Set<Request>();
    page.on('request', (request) => {
      if (request.isNavigationRequest()) {
        asked.clear();
        events.length = 0;
      }
      asked.add(request);
      events.push(`asked ${pathOf(request.url())}`);
    });
    page.on('response', (response) => {
      if (asked.has(response.request())) events.push(`answered ${pathOf(response.url())}`);
    });
    await page.goto(`${server.url}/`);
    await rowsOf(page).first().waitFor();
    const askedAt = events.indexOf('asked /v2/messages');
    expect(askedAt).toBeGreaterThan(0);
    const before = new Set(events.slice(0, askedAt).filter((event) => event.startsWith('answered /v2')));
    before.delete('answered /v2/messages/stream');
    expect([...before]).toEqual([]);
    await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
    // All shifts of the layout up to now are buffered; an empty frame later all of them are reported.
    const shifts = await page.evaluate<number>(
      `new Promise((done) => { let sum = 0; new PerformanceObserver((list) => { for (const { value } of list.getEntries()) sum += value; }).observe({ type: 'layout-shift', buffered: true }); requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(sum)))); })`,
    );
    expect(shifts).toBeLessThan(0.05);
  });

  test('of a thousand rows only those in sight are drawn, also after scrolling', async () => {
    const { page } = await browser.open(server, '/?limit=1000');
    await eventually(() => rowsOf(page).count()).toBe(1000);
    await page.evaluate(`new Promise((done) => {
      let frames = 0;
      const step = () => { scrollBy(0, 120); if (++frames < 40) requestAnimationFrame(step); else done(); };
      requestAnimationFrame(step);
    })`);
    const drawn = await page
      .locator('.rows .row-link')
      .evaluateAll(
        (links) => links.filter((link) => link.checkVisibility({ contentVisibilityAuto: true })).length,
      );
    expect(drawn).toBeLessThan(300);
  });

  test('lanes are a matrix and a table in any order, and lead to one lane', async () => {
    const { page } = await browser.open(server, '/lane');
    await page.locator('.matrix-cell').first().waitFor();
    await page.getByRole('columnheader', { name: '99 %' }).getByRole('link').click();
    await eventually(() => new URL(page.url()).search).toBe('?sort=p99');
    await page.getByRole('link', { name: /^Ethereum Sepolia → Avalanche Fuji: / }).click();
    await page.waitForURL(`**${lane}`);
    await page.getByText(/^1…[\d,]+: none missing$/).waitFor();
    await eventually(() => page.locator('.chart').count()).toBe(3);
    expect(await page.locator('.chart table').first().innerText()).toMatch(/Delivered\s+In flight\s+Failed/);
    await page.getByRole('link', { name: 'All of this lane' }).click();
    await eventually(() => rowsOf(page).count()).toBeGreaterThan(0);
  });

  test('the overview leads from its numbers to the messages behind them', async () => {
    const { page } = await browser.open(server, '/overview');
    await page.getByRole('link', { name: 'Show them' }).click();
    await rowsOf(page).first().waitFor();
    expect(new URL(page.url()).search).toBe('?readyForManualExecOnly=true');
    await page.goBack();
    await page.getByRole('radio', { name: '7 days' }).check();
    await eventually(() => page.locator('.chart tbody tr').count()).toBe(7);
    await page.locator('.chart-plot svg').hover();
    expect(await page.locator('.chart-reading').innerText()).toMatch(/\d+ \w{3}/);
  });
});

describe.skipIf(!hasChromium)('where chains are indexed', () => {
  const browser = useBrowser();

  test('networks show how far they are, what is wrong, and when that was told', async () => {
    const server = await startServerForTest([
      recentMessage(1, 3, { sequenceNumber: '1', status: 'SUCCESS' }),
      recentMessage(2, 2, { sequenceNumber: '5', status: 'SUCCESS' }),
      ...deliveredMessages(3),
    ]);
    const client = await connectTo(server.store.url);
    const tell = (selector: string, ...values: readonly unknown[]) =>
      client.query(
        `insert into network_progress (selector, head_block, head_at, finalized_block, indexed_block, indexed_at,
                                       updated_at, problem, owed_blocks, failed_ranges, failed_blocks, oldest_failure_at)
         values ($1, 1000, now(), 930, $2, now(), now() - $3::interval, $4, $5, $6, $7, now() - interval '10 min')`,
        [BigInt.asIntN(64, BigInt(selector)).toString(), ...values],
      );
    await tell(sepolia.chainSelector, 990, '2 s', null, 12_345, 2, 300);
    await tell(fuji.chainSelector, 400, '20 min', 'Every endpoint <b>refuses</b>.', 0, 0, 0);
    await client.end();

    const { page } = await browser.open(server, '/network');
    const [first, second] = [page.locator('tbody tr').nth(0), page.locator('tbody tr').nth(1)];
    await second.waitFor();
    expect(await first.innerText()).toMatch(
      /Avalanche Fuji[\s\S]*Stopped: no indexer is alive[\s\S]*to block 400 of 1,000[\s\S]*There is a problem with an endpoint[\s\S]*20 min ago/,
    );
    expect(await second.innerText()).toMatch(
      /At the head, with gaps behind it\s+to block 990 of 1,000, final to 930\s+12,345 blocks of its history still to be read\s+2 ranges \(300 blocks\) could not be read/,
    );
    expect(await page.getByText('2 networks indexed, 1 not well.').count()).toBe(1);
    await page.getByRole('link', { name: /^All \d+ known networks$/ }).click();
    await eventually(() => page.locator('tbody tr').count()).toBeGreaterThan(200);

    await page.goto(`${server.url}${lane}`);
    await page.getByText(/missing, in \d ranges?/).waitFor();
    expect(await page.locator('.incomplete').innerText()).toMatch(/2–4/);
    await page.goto(`${server.url}/?q=0x${'ab'.repeat(32)}`);
    await page.getByText(/Avalanche Fuji: indexed to block 400/).waitFor();
  });
});
