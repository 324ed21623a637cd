// @module-tag slow: a browser; search.test.ts is the quick pass
/** Why messages failed, in the explorer: beside the rows that need action, by reason, and on the page of a lane. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { serverForAll } from '../api/running-server.ts';
import { encodeError, encodeText, inReceiver, inToken, rateLimit } from '../fixtures/revert-data.ts';
import { fuji, makeExecuted, makeExecutionDetails, makeMessage, makeSent, sepolia } from '../fixtures.ts';
import { eventually, hasChromium, rowsOf, useBrowser } from './chromium.ts';

const HOSTILE = '<img src=x onerror=alert(1)>\u202e';
const paused = inReceiver(encodeError('EnforcedPause()'));
const returnData = [
  ...[paused, paused, inToken(rateLimit(3_600n))],
  ...[encodeText(HOSTILE), inReceiver(encodeError('CursedByRMN()'))],
];

describe.skipIf(!hasChromium)('messages that failed', () => {
  const browser = useBrowser();
  const server = serverForAll([], { failureReportMaxAgeMs: 0 });
  let failed: readonly Message[];
  beforeAll(async () => {
    const now = Date.now();
    failed = returnData.map((_, index) =>
      makeMessage({ number: index + 1, sendTimestamp: new Date(now - index - 1).toISOString() }),
    );
    for (const [index, message] of failed.entries()) {
      const block = 5000 + index;
      await server.store.apply([
        makeSent(message),
        makeExecuted(message, false, block),
        makeExecutionDetails(message, returnData[index] ?? '0x', block),
      ]);
    }
    const delivered = makeMessage({ number: 9, sendTimestamp: new Date(now).toISOString() });
    await server.store.apply([makeSent(delivered), makeExecuted(delivered, true, 6000)]);
  });

  test('show their reasons beside the rows that need action, and nowhere else', async () => {
    const { page } = await browser.open(server, '/');
    await eventually(() => rowsOf(page).count()).toBe(6);
    expect(await page.locator('.cell-reason').count()).toBe(0);
    await page.getByRole('button', { name: 'Needs action' }).click();
    await eventually(() => page.locator('.cell-reason').count()).toBe(5);
    const reasons = await page.locator('.cell-reason').allInnerTexts();
    expect(reasons.slice(0, 3)).toEqual([
      'The receiver says: the called contract is paused.',
      'The receiver says: the called contract is paused.',
      "The token or its pool says: the token pool's rate limit is used up: 5 smallest units were available.",
    ]);
    // A receiver does not speak for CCIP.
    expect(reasons[4]).toMatch(/^The receiver reverted with CursedByRMN\(\)\. Any contract can use the name/);
    // The text of a contract is text, and what would turn it around is shown as a mark.
    expect(reasons[3]).toContain('<img src=x onerror=alert(1)>');
    expect(reasons[3]).not.toContain('\u202e');
    await page.getByRole('link', { name: 'Grouped by reason' }).click();
    await page.getByRole('heading', { name: 'Failed messages' }).waitFor();
  });

  test('are grouped by reason on a page of their own, which leads to them', async () => {
    const { page } = await browser.open(server, '/overview');
    await page.getByRole('link', { name: 'All reasons' }).click();
    await page.waitForURL('**/failure');
    await page.getByRole('heading', { name: 'Why they failed' }).waitFor();
    await eventually(() => page.locator('.reason-title').allInnerTexts()).toEqual([
      'The receiver says: the called contract is paused',
      "The token or its pool says: the token pool's rate limit is used up",
      expect.stringContaining('<img src=x onerror=alert(1)>'),
      'The receiver reverted with CursedByRMN',
    ]);
    const first = page.locator('.reasons > li').first();
    expect(await first.innerText()).toMatch(/2\s*40 %/);
    expect(await first.innerText()).toContain("The receiver's owner has to act");
    expect(await page.locator('.figures').innerText()).toMatch(/Failed\s+5\s+of 6 messages/);
    expect(await page.locator('.chart table tr').last().innerText()).toMatch(/5 of 6\s+83.3 %/);
    await page.getByRole('radio', { name: '7 days' }).check();
    await page.waitForURL('**/failure?days=7');
    await eventually(() => page.locator('.chart tbody tr').count()).toBe(7);
    await first.locator('.reason-messages a').first().click();
    await page.waitForURL(`**/message/${failed[0]?.messageId}`);
    await page.getByText('The receiver says: the called contract is paused.').first().waitFor();
    await page.getByText('the receiver, which may claim anything').first().waitFor();
  });

  test('are a share and a list of reasons on the page of their lane', async () => {
    const { page } = await browser.open(server, `/lane/${sepolia.name}/${fuji.name}`);
    await page.getByText(/^83(\.3)? % in 30 days/).waitFor();
    await eventually(() => page.locator('.reason-title').count()).toBe(4);
    await page.getByRole('link', { name: 'Failed messages' }).click();
    await eventually(() => page.locator('.cell-reason').count()).toBe(5);
    // An address in a row leads to its messages.
    await page
      .getByRole('link', { name: /0x[\w…]+/ })
      .filter({ has: page.locator('code') })
      .first()
      .click();
    await eventually(() => new URL(page.url()).search).toMatch(/^\?sender=0x/);
  });

  test('have attempts that a reorganisation removed, told as such', async () => {
    const [message] = failed;
    if (!message) throw new Error('No message');
    await server.store.apply([makeExecuted(message, false, 7000)], [makeExecuted(message, false, 5000).seen]);
    const { page } = await browser.open(server, `/message/${message.messageId}`);
    await page.getByText('A reorganisation removed this attempt').waitFor();
    await eventually(() => page.locator('.attempts > li').count()).toBe(2);
    await eventually(() => page.locator('.attempts > .removed').count()).toBe(1);
  });
});
