// @module-tag slow: a browser; test/api/documentation/documentation.test.ts and api/server/base-path.test.ts are the quick pass
/** /docs in a browser: its forms send requests and show the answers, under its strict policy. And the explorer below a path. */
import { describe, expect, test } from 'vitest';
import { serverForAll } from '../api/running-server.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { eventually, hasChromium, overhang, rowsOf, seriousProblems, useBrowser } from './chromium.ts';
import { recentMessage } from './recent-messages.ts';

const message = makeMessage({ number: 1, status: 'FAILED' });
const messages = [message, makeMessage({ number: 2, status: 'SUCCESS' })];

describe.skipIf(!hasChromium)('/docs', () => {
  const browser = useBrowser();
  const server = serverForAll(messages);

  test('a form sends the fields that were filled in, and shows the answer as text; the examples are for this server', async () => {
    const { page } = await browser.open(server, '/docs');
    const commands = await page.locator('pre.command').allInnerTexts();
    expect(commands.length).toBeGreaterThan(3);
    for (const command of commands) expect(command).toContain(`curl '${server.url}/v2/`);
    const form = page.locator('form[data-path="/v2/messages"]');
    await form.getByLabel('status', { exact: true }).fill('FAILED');
    await form.getByLabel('limit', { exact: true }).fill('1');
    await form.getByRole('button').click();
    const answer = form.locator('output');
    await eventually(() => answer.innerText()).toContain(message.messageId);
    expect(await answer.innerText()).toMatch(/^GET \/v2\/messages\?status=FAILED&limit=1\n200 OK\n/);

    const one = page.locator('form[data-path="/v2/messages/{messageId}"]');
    await one.getByLabel('messageId', { exact: true }).fill(message.messageId);
    await one.getByRole('button').click();
    await eventually(() => one.locator('output').innerText()).toContain('"status": "FAILED"');
  });

  test('a rejected request is shown with its reason', async () => {
    const { page, forgive } = await browser.open(server, '/docs');
    forgive(/status of 400/);
    const form = page.locator('form[data-path="/v2/messages"]');
    await form.getByLabel('limit', { exact: true }).fill('<b>0</b>');
    await form.getByRole('button').click();
    const answer = form.locator('output');
    await eventually(() => answer.innerText()).toContain('limit takes a whole number from 1 to 1000');
    expect(await answer.innerText()).toContain('400 Bad Request');
  });

  test('axe finds no serious problem, and no width is too narrow', async () => {
    const { page } = await browser.open(server, '/docs');
    expect(await seriousProblems(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await seriousProblems(page, ['color-contrast'])).toEqual([]);
    for (const width of [320, 768, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      expect({ width, overhang: await overhang(page) }).toEqual({ width, overhang: 0 });
    }
  });
});

describe.skipIf(!hasChromium)(
  'the explorer below /lanescan asks for nothing outside, and nothing fails',
  () => {
    const browser = useBrowser();
    const server = serverForAll(messages, { basePath: '/lanescan' });

    test('one can search, open a message, reload it, go to the lanes and to the documentation', async () => {
      // The browser is watched: a request outside this URL, or one that fails, fails the test.
      const url = `${server.url}/lanescan`;
      const { page } = await browser.open({ url });
      expect(page.url()).toBe(`${url}/`);
      // The stream of changes is open.
      await page.getByText(/^Imported/).waitFor();
      expect(await rowsOf(page).count()).toBe(2);
      await server.store.apply([makeSnapshot(recentMessage(3, 0))]);
      await page.getByRole('button', { name: '1 new' }).waitFor();

      const box = page.getByRole('combobox', { name: /^Search/ });
      await box.fill(message.messageId);
      await box.press('Enter');
      await page.waitForURL(`${url}/message/${message.messageId}`);
      const title = page.getByRole('heading', { level: 1 });
      await eventually(() => title.count()).toBe(1);
      expect(await page.content()).toContain(`--api ${url}`);
      await page.reload();
      await eventually(() => title.count()).toBe(1);
      expect(page.url()).toBe(`${url}/message/${message.messageId}`);

      await page.getByRole('link', { name: 'Lanes', exact: true }).click();
      await page.waitForURL(`${url}/lane`);
      await eventually(() => page.locator('a[href^="/lanescan/lane/"]').count()).toBeGreaterThan(0);

      await page.getByRole('link', { name: 'API documentation' }).click();
      await page.waitForURL(`${url}/docs`);
      const form = page.locator('form[data-path="/v2/messages"]');
      await form.getByLabel('status', { exact: true }).fill('FAILED');
      await form.getByRole('button').click();
      await eventually(() => form.locator('output').innerText()).toContain(message.messageId);
      const commands = await page.locator('pre.command').allInnerTexts();
      for (const command of commands) expect(command).toContain(`curl '${url}/v2/`);
    });
  },
);
