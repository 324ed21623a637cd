// @module-tag slow: a browser; search.test.ts is the quick pass
/** What happens while somebody looks: new messages, and a server that goes away and comes back. */

import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { createServer } from '../../src/api/server/server.ts';
import { serverForAll, serveStore, TEST_VERSION } from '../api/running-server.ts';
import { openTestStore } from '../database.ts';
import { makeSnapshot } from '../fixtures.ts';
import { eventually, hasChromium, rowsOf, useBrowser } from './chromium.ts';
import { deliveredMessages, recentMessage } from './recent-messages.ts';

describe.skipIf(!hasChromium)('while somebody looks', () => {
  const browser = useBrowser();
  const server = serverForAll(deliveredMessages(40));

  test('new messages wait in a pill and move no row; rows that are shown change where they stand', async () => {
    const moving = recentMessage(1, 1, { status: 'SENT' });
    await server.store.apply([makeSnapshot(moving)]);
    const { page } = await browser.open(server);
    await page.getByText(/^Imported/).waitFor();
    const third = rowsOf(page).nth(2);
    const before = { text: await third.innerText(), box: await third.boundingBox() };

    await server.store.apply([makeSnapshot({ ...moving, status: 'COMMITTED' })]);
    await eventually(() => rowsOf(page).first().innerText()).toMatch(/^Committed/);
    await server.store.apply([2, 3].map((number) => makeSnapshot(recentMessage(number, 0))));
    await page.getByRole('button', { name: '2 new' }).waitFor();
    expect(await rowsOf(page).count()).toBe(25);
    expect(await third.boundingBox()).toEqual(before.box);
    expect((await third.innerText()).split('\n')[0]).toBe(before.text.split('\n')[0]);

    await page.getByRole('button', { name: '2 new' }).click();
    await eventually(() => rowsOf(page).nth(2).innerText()).toMatch(/^Committed/);
    await page.getByText(/^Imported/).waitFor();
  });

  test('a filtered list is told only of what matches, also when it comes to match', async () => {
    const message = recentMessage(5, 0);
    const { page } = await browser.open(server, '/?status=SUCCESS');
    await page.getByText(/^Imported/).waitFor();
    await server.store.apply([makeSnapshot(message), makeSnapshot(recentMessage(6, 0))]);
    await page.waitForTimeout(300);
    expect(await page.locator('.pill').count()).toBe(0);
    const executed = {
      status: 'SUCCESS',
      receiptTimestamp: new Date().toISOString(),
      receiptTransactionHash: message.sendTransactionHash,
      deliveryTime: 1,
    } as const;
    await server.store.apply([makeSnapshot({ ...message, ...executed })]);
    await page.getByRole('button', { name: '1 new' }).waitFor();
  });

  test('a server that goes away is said to be away; when it is back, everything goes on', async () => {
    const store = await openTestStore();
    await store.apply(deliveredMessages(30).map(makeSnapshot));
    const first = await serveStore({ ...store, close: async () => undefined });
    const { page, forgive } = await browser.open(first);
    forgive(/ERR_|Failed to (load|fetch)/);
    await page.getByText(/^Imported/).waitFor();
    // The other pages have come in the background by then.
    await page.waitForTimeout(1_500);
    await first.close();
    await page.getByText('The server cannot be reached.').waitFor();
    expect(await rowsOf(page).count()).toBe(25);
    // Another page that needs it is there, but empty, and says why.
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('alert').getByText('The server cannot be reached').waitFor();
    await page.goBack();

    const missed = recentMessage(20, 0);
    await store.apply([makeSnapshot(missed)]);
    const second = createServer({ store, version: TEST_VERSION, log: pino({ level: 'silent' }) });
    await second.listen({ port: first.port, host: '127.0.0.1', listenTextResolver: () => '' });
    try {
      await page.getByText('The server cannot be reached.').waitFor({ state: 'detached' });
      await eventually(() => page.locator(`.row-link[href$="${missed.messageId}"]`).count()).toBe(1);
      await page.getByText(/^Imported/).waitFor();
    } finally {
      await second.close();
      await store.close();
    }
  });
});
