// @module-tag slow: starts a browser of its own
/** Whether somebody keeps the records up to date, as people see it: the word Live, and the banner. */
import { describe, expect, test, vi } from 'vitest';
import type { NetworkInfo } from '../../src/domain/message.ts';
import { type RunningServer, startServerForTest } from '../api/running-server.ts';
import { fuji, sepolia, solanaDevnet } from '../fixtures.ts';
import { queryOnce } from '../postgres.ts';
import { hasChromium, overhang, seriousProblems, useBrowser } from './chromium.ts';
import { deliveredMessages, recentMessage } from './recent-messages.ts';

// Longer than any wait in it, however busy the machine is.
vi.setConfig({ testTimeout: 300_000 });

const onItsWay = recentMessage(1, 3, { status: 'SENT' });
const arrived = recentMessage(2, 5, { status: 'SUCCESS' });
const elsewhere = recentMessage(3, 6, {
  status: 'SENT',
  sourceNetworkInfo: solanaDevnet,
  destNetworkInfo: solanaDevnet,
});
const messages = [onItsWay, arrived, elsewhere, ...deliveredMessages(20)];

/** An indexer works on these networks, as far as anybody can see. */
async function indexing(server: RunningServer, ...networks: readonly NetworkInfo[]): Promise<void> {
  const now = Date.now();
  for (const { chainSelector } of networks) {
    await server.store.index.lease(chainSelector, 'an indexer', 3_600);
    const figures = { headBlock: 100, headAt: now, finalizedBlock: 90, indexedBlock: 100, indexedAt: now };
    await server.store.index.reportProgress(chainSelector, figures, null);
  }
}

/** It was killed so many minutes ago. */
async function dead(
  server: RunningServer,
  minutes: number,
  ...networks: readonly NetworkInfo[]
): Promise<void> {
  const selectors = networks.map(({ chainSelector }) => BigInt.asIntN(64, BigInt(chainSelector)).toString());
  const at = `now() - interval '${minutes} min 5 s'`;
  for (const change of [
    `index_network set seen_at = ${at}, lease_until = ${at}`,
    `network_progress set updated_at = ${at}`,
  ])
    await queryOnce(server.store.url, `update ${change} where selector = any($1)`, [selectors]);
}

describe.skipIf(!hasChromium)('what is known of freshness', () => {
  const browser = useBrowser();

  test('imported records are called that, with their age, and nothing alarms', async () => {
    const server = await startServerForTest(messages);
    const { page } = await browser.open(server);
    await page.getByText(/^Imported (now|\d+ s ago)$/).waitFor();
    expect(await page.locator('.outage').count()).toBe(0);
    expect(await page.getByText('Live', { exact: true }).count()).toBe(0);
  });

  test('Live turns into a warning and a banner when the indexer is dead, without a reload', async () => {
    const server = await startServerForTest(messages);
    await indexing(server, sepolia, fuji);
    const { page } = await browser.open(server);
    await page.getByText('Live', { exact: true }).waitFor();
    expect(await page.locator('.outage').count()).toBe(0);

    await dead(server, 19, sepolia, fuji);
    await page.getByText('Not live: indexing stopped').waitFor();
    expect(await page.locator('.outage p').innerText()).toBe(
      'Indexing stopped 19 minutes ago. New messages and status changes are missing.',
    );
    expect(await page.getByText('Live', { exact: true }).count()).toBe(0);
    expect(await seriousProblems(page, ['color-contrast', 'aria-allowed-role'])).toEqual([]);

    await page.setViewportSize({ width: 360, height: 740 });
    expect(await overhang(page)).toBe(0);
    await page.locator('.outage').getByRole('link', { name: 'Networks' }).click();
    await page.getByText('Stopped: no indexer is alive').first().waitFor();
  });

  test('a message says it where its own networks are concerned, while it is on its way', async () => {
    const server = await startServerForTest(messages);
    await indexing(server, sepolia, fuji, solanaDevnet);
    await dead(server, 125, fuji);
    const { page } = await browser.open(server, `/message/${onItsWay.messageId}`);
    await page.getByText('Indexing of Avalanche Fuji stopped 2 hours ago.').waitFor();
    // It may have arrived since: it is not known to be late.
    await page.locator('.timeline').waitFor();
    expect(await page.getByText(/overdue|longer than it should/i).count()).toBe(0);
    for (const { messageId } of [arrived, elsewhere]) {
      const answered = page.waitForResponse(/indexed=true/);
      await page.goto(`${server.url}/message/${messageId}`);
      await page.locator('.message-head').getByText(messageId).waitFor();
      await answered;
      expect(await page.locator('.outage').count(), messageId).toBe(0);
    }
  });
});
