// @module-tag slow: a browser for one page; test/api/documentation/documentation.test.ts is the quick pass
/** /docs in a browser: its forms send requests and show the answers, under its strict policy. */
import { describe, expect, test } from 'vitest';
import { serverForAll } from '../api/running-server.ts';
import { makeMessage } from '../fixtures.ts';
import { eventually, hasChromium, overhang, seriousProblems, useBrowser } from './chromium.ts';

describe.skipIf(!hasChromium)('/docs', () => {
  const browser = useBrowser();
  const message = makeMessage({ number: 1, status: 'FAILED' });
  const server = serverForAll([message, makeMessage({ number: 2, status: 'SUCCESS' })]);

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
