// @module-tag slow: a browser and a simulated network
/** Addresses on the pages of the demo: each leads to a search or to a block explorer, and to no dead end. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { NetworkList } from '../../src/api/routes/networks-schema.ts';
import type { Message } from '../../src/domain/message.ts';
import type { RunningServer } from '../api/running-server.ts';
import { sepolia, solanaDevnet } from '../fixtures.ts';
import { eventually, hasChromium, rowsOf, useBrowser } from './chromium.ts';
import { searched, startDemo } from './demo-server.ts';

/**
 * Runs in the page: texts that are addresses, whole or shortened, and not within a link. A row of a list is a link to its
 * message; commands and raw records are for copying; chips of filters are the search itself.
 */
const unlinkedAddresses = `((chainIds) => {
  const whole = /0x[0-9a-fA-F]{40}(?![0-9a-fA-F])|\\b[1-9A-HJ-NP-Za-km-z]{32,44}\\b/g;
  const shortened = /(?:0x)?\\w{4}…\\w{4}/;
  const isAddress = (text) => /^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/.test(text);
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!element || element.closest('a[href], pre, .raw, .filters, script, style')) continue;
    const text = node.textContent ?? '';
    for (const match of text.match(whole) ?? []) if (!chainIds.includes(match)) found.push(match);
    if (!shortened.test(text)) continue;
    // Ids and hashes are shortened too; the title has them whole.
    const title = element.closest('[title]')?.getAttribute('title');
    if (title === undefined || title === null || isAddress(title)) found.push(text);
  }
  return found;
})`;

/** Links to searches, with the text of each. */
const searchLinks = (page: Page) =>
  page
    .locator('main a[href^="/?"]')
    .evaluateAll((links) => links.map((link) => `${link.getAttribute('href')} ${link.textContent}`));

describe.skipIf(!hasChromium)('an address on a page of the demo', () => {
  const browser = useBrowser();
  let server: RunningServer;
  const messages: Message[] = [];
  let chainIds: readonly string[];
  beforeAll(async () => {
    server = await startDemo();
    for (const query of ['', '&status=FAILED', '&readyForManualExecOnly=true'])
      messages.push(...(await searched(server, `limit=1000${query}`)));
    chainIds = (await server.ask('/v2/networks?active=true'))
      .json<NetworkList>()
      .data.map(({ chainId }) => chainId);
  });
  afterAll(() => server?.close());

  const oneOf = (what: string, isWanted: (message: Message) => boolean) => {
    const found = messages.find(isWanted);
    if (!found) throw new Error(`The demo has no message ${what}.`);
    return found;
  };
  const leftOver = (page: Page) =>
    page.evaluate<readonly string[]>(`${unlinkedAddresses}(${JSON.stringify(chainIds)})`);

  test.each([
    ['/', '.rows .row'],
    ['/?readyForManualExecOnly=true', '.cell-reason'],
    ['/lane', '.matrix-cell'],
    [`/lane/${sepolia.name}/ethereum-testnet-sepolia-base-1`, '.reason-title'],
    ['/network', '.ledger tbody tr'],
    ['/overview', '.chart'],
    ['/failure', '.reason-title'],
  ])('is a link on %s', async (at, ready) => {
    const { page } = await browser.open(server, at);
    await page.locator(ready).first().waitFor();
    await eventually(() => leftOver(page)).toEqual([]);
  });

  test('is a link on the page of every kind of message', async () => {
    const hasToken = ({ tokenAmounts }: Message) => tokenAmounts.length > 0;
    const hasFailed = (message: Message, version: string) =>
      message.status === 'FAILED' && message.version === version && hasToken(message);
    const kinds: Readonly<Record<string, (message: Message) => boolean>> = {
      'that failed at its receiver': ({ status, data }) => status === 'FAILED' && data !== '0x',
      'of 1.5 that failed with a token': (message) => hasFailed(message, '1.5.0'),
      'of 1.6 that failed with a token': (message) => hasFailed(message, '1.6.0'),
      'of 2.0 with a token and verifiers': (message) =>
        message.version === '2.0.0' && message.verifiers !== null && hasToken(message),
      'to Solana with data': ({ destNetworkInfo, data }) => isSolana(destNetworkInfo) && data !== '0x',
      'from Solana': ({ sourceNetworkInfo }) => isSolana(sourceNetworkInfo),
    };
    for (const [what, isWanted] of Object.entries(kinds)) {
      const message = oneOf(what, isWanted);
      const { page } = await browser.open(server, `/message/${message.messageId}`);
      await page.getByRole('heading', { name: 'Fees' }).waitFor();
      if (message.status === 'FAILED' && message.destNetworkInfo.chainFamily === 'EVM')
        await page.locator('.attempts > li').first().waitFor();
      await eventually(async () => [what, await leftOver(page)]).toEqual([what, []]);
    }
  });

  test('leads to messages, or to what it is where it has none', async () => {
    const message = oneOf(
      'of 2.0 that failed with a token',
      ({ status, version, tokenAmounts }) =>
        status === 'FAILED' && version === '2.0.0' && tokenAmounts.length > 0,
    );
    const { page } = await browser.open(server, `/message/${message.messageId}`);
    await page.locator('.attempts > li').first().waitFor();
    await page.getByRole('heading', { name: 'Verifiers' }).waitFor();
    const links = [...new Set(await searchLinks(page))];
    expect(links.length).toBeGreaterThan(8);
    const dead: string[] = [];
    for (const link of links) {
      const query = link.slice(2).split(' ')[0] ?? '';
      if ((await searched(server, `limit=1&${query}`)).length === 0) dead.push(link);
    }
    // Accounts that only execute, and tokens on this end that no message transfers, are said to be just that.
    for (const link of dead) {
      await page.goto(`${server.url}${link.split(' ')[0]}`);
      await page
        .getByText(/No indexed message|It is a known contract/)
        .first()
        .waitFor();
    }
    expect(dead.length).toBeLessThanOrEqual(3);
  });

  test('of a router, an on-ramp, a token for fees or of the destination says so instead of “not found”', async () => {
    const message = oneOf(
      'with a token that pays its fee in another one',
      ({ tokenAmounts, routerAddress, sourceNetworkInfo }) =>
        tokenAmounts.length > 0 && routerAddress !== null && sourceNetworkInfo.chainFamily === 'EVM',
    );
    const { page } = await browser.open(server, `/?q=${message.routerAddress}`);
    await page.getByRole('heading', { name: 'A contract, not an account' }).waitFor();
    await page.getByRole('link', { name: /Router/ }).click();
    await rowsOf(page).first().waitFor();
    expect(new URL(page.url()).searchParams.get('sourceChainSelector')).toBe(
      message.sourceNetworkInfo.chainSelector,
    );
    await page.goto(`${server.url}/?q=${message.onramp}`);
    await page
      .getByRole('link', { name: /On-ramp/ })
      .first()
      .click();
    await rowsOf(page).first().waitFor();
    const paidInOther = oneOf('whose fee is paid in a token that is never transferred', ({ fees }) =>
      messages.every(({ tokenAmounts }) =>
        tokenAmounts.every(
          ({ sourceTokenAddress }) => sourceTokenAddress !== fees.fixedFeesDetails.tokenAddress,
        ),
      ),
    );
    await page.goto(`${server.url}/message/${paidInOther.messageId}`);
    const fees = page.locator('.card', { has: page.getByRole('heading', { name: 'Fees' }) });
    await fees.getByRole('link', { name: paidInOther.fees.fixedFeesDetails.tokenAddress }).click();
    await page.getByText('Fees may be paid in it.').waitFor();
    await page.getByRole('link', { name: /^Show messages from/ }).click();
    await rowsOf(page).first().waitFor();
  });
});

function isSolana({ chainSelector }: Message['sourceNetworkInfo']): boolean {
  return chainSelector === solanaDevnet.chainSelector;
}
