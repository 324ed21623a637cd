// @module-tag slow: a browser for one walk; test/api/server/base-path.test.ts is the quick pass
/** The explorer below a path: a walk through it asks for nothing outside, and nothing fails. */
import { describe, expect, test } from 'vitest';
import { serverForAll } from '../api/running-server.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { eventually, hasChromium, rowsOf, useBrowser } from './chromium.ts';
import { recentMessage } from './recent-messages.ts';

describe.skipIf(!hasChromium)('below /lanescan', () => {
  const browser = useBrowser();
  const message = makeMessage({ number: 1, status: 'FAILED' });
  const server = serverForAll([message, makeMessage({ number: 2, status: 'SUCCESS' })], {
    basePath: '/lanescan',
  });

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
});
