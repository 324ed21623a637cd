/** Finding messages: the box, the filters, the pages, all in the URL. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { serverForAll, startServerForTest } from '../api/running-server.ts';
import { evmAddress, fuji, hashOf, makeSnapshot, makeToken, sepolia, solanaDevnet } from '../fixtures.ts';
import { copied, eventually, hasChromium, rowsOf, useBrowser } from './chromium.ts';
import { deliveredMessages, recentMessage } from './recent-messages.ts';

const token = makeToken(sepolia, fuji, 'LINK');
const wallet = evmAddress('wallet');
const failed = recentMessage(1, 5, { status: 'FAILED' });
const carrier = recentMessage(2, 6, {
  status: 'SUCCESS',
  tokenAmounts: [{ ...token, amount: '47674000000000000000', extraData: `0x${'12'.padStart(64, '0')}` }],
});
const toSolana = recentMessage(3, 7, { destNetworkInfo: solanaDevnet, status: 'COMMITTED' });
const ofWallet = [1, 2].map((number) => recentMessage(10 + number, 8, { origin: wallet, status: 'SUCCESS' }));
const messages = [failed, carrier, toSolana, ...ofWallet, ...deliveredMessages(60)];

describe.skipIf(!hasChromium)('the search', () => {
  const browser = useBrowser();
  const server = serverForAll(messages);
  beforeAll(async () => {
    const bytes = token.sourceTokenAddress.slice(2).toLowerCase();
    const claims = { symbol: 'LINK', name: null, decimals: 18 };
    await server.store.index.tokens.write(sepolia.chainSelector, [{ bytes, claims, dueInMs: 1e9 }]);
  });

  const box = (page: Page) => page.getByRole('combobox', { name: /^Search/ });
  const type = async (page: Page, text: string) => {
    await page.keyboard.press('/');
    await box(page).fill(text);
  };
  const shown = (page: Page) => new URL(page.url()).search;

  test('shows the newest messages: status in words, networks, short hashes, amounts, how long ago', async () => {
    const { page } = await browser.open(server);
    await rowsOf(page).nth(24).waitFor();
    expect(await rowsOf(page).count()).toBe(25);
    const [first, second] = [rowsOf(page).nth(0), rowsOf(page).nth(1)];
    await eventually(() => first.innerText()).toMatch(/Failed\s+Needs action\s+[A-Z]{2}\s+Ethereum Sepolia/);
    expect(await first.locator('.cell-time time').innerText()).toBe('5 min');
    expect(await first.locator('time').getAttribute('title')).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/);
    await eventually(() => second.locator('.cell-tokens').innerText()).toMatch(/^47\.674 LINK 0x/);
    expect(await page.title()).toBe('Newest messages · Lanescan');
  });

  test('takes a message id, a transaction of either side or an address, and goes straight to a single hit', async () => {
    const { page } = await browser.open(server);
    for (const text of [
      failed.messageId.toUpperCase().replace('0X', '0x'),
      failed.sendTransactionHash,
      failed.receiptTransactionHash ?? '',
      `  ${token.sourcePoolAddress} `,
    ]) {
      await type(page, text);
      await page.keyboard.press('Enter');
      const wanted = text.includes(token.sourcePoolAddress) ? carrier : failed;
      await page.waitForURL(`**/message/${wanted.messageId}`);
    }
    await type(page, wallet.toLowerCase());
    await page.keyboard.press('Enter');
    await page.waitForURL(/\?address=0x/);
    await eventually(() => rowsOf(page).count()).toBe(2);
  });

  test('takes networks, lanes and statuses by name', { tags: 'slow' }, async () => {
    const { page } = await browser.open(server);
    await type(page, 'solana dev');
    await page.getByRole('option', { name: /Solana Devnet To/ }).click();
    await eventually(() => shown(page)).toBe(`?destChainSelector=${solanaDevnet.chainSelector}`);
    await eventually(() => rowsOf(page).count()).toBe(1);
    await type(page, 'sepolia to fuji');
    await page.keyboard.press('Enter');
    await eventually(() => shown(page)).toBe(
      `?sourceChainSelector=${sepolia.chainSelector}&destChainSelector=${fuji.chainSelector}`,
    );
    await type(page, 'fail');
    await page.keyboard.press('Enter');
    await eventually(() => shown(page)).toBe('?status=FAILED');
  });

  test('takes what lists and other websites show, symbols and contracts', { tags: 'slow' }, async () => {
    const { page } = await browser.open(server);
    const { messageId: id, onramp, routerAddress } = carrier;
    const address = carrier.tokenAmounts[0]?.sourceTokenAddress;
    const texts = [`${id.slice(0, 6)}…${id.slice(-4)}`, id.slice(2, 12), `https://ccip.chain.link/msg/${id}`];
    for (const text of texts) {
      await type(page, text);
      await page
        .getByRole('option', { name: /Message/ })
        .first()
        .click();
      await page.waitForURL(`**/message/${id}`);
      await page.goto(server.url);
    }
    await type(page, 'link');
    await page.getByRole('option', { name: /LINK.*Ethereum Sepolia Token/ }).click();
    await eventually(() => shown(page)).toContain(`sourceTokenAddress=${address}`);
    await eventually(() => page.locator('.cell-tokens').first().innerText()).toMatch(/^47\.674 LINK 0x/);
    await type(page, 'sepolia');
    await page.getByRole('option', { name: /Ethereum Sepolia From or to/ }).click();
    await eventually(() => shown(page)).toBe(`?chainSelector=${sepolia.chainSelector}`);
    for (const contract of [onramp, routerAddress ?? '']) {
      await type(page, contract);
      await page.keyboard.press('Enter');
      await eventually(() => shown(page)).toMatch(new RegExp(`sourceChainSelector=${sepolia.chainSelector}`));
      await page.goto(server.url);
    }
    await page.goto(`${server.url}/message/${id}`);
    const link = page.getByRole('link', { name: 'Open the token at sepolia.etherscan.io' }).first();
    expect(await link.getAttribute('href')).toBe(`https://sepolia.etherscan.io/token/${address}`);
    expect(await link.getAttribute('rel')).toBe('noopener noreferrer');
    const sheet = (await page.pdf({ format: 'A4' })).toString('latin1');
    expect(sheet.match(/\/Type\s*\/Page\b/g)).toHaveLength(1);
  });

  test('of one filter that finds nothing says so, and of several that they do not go together', {
    tags: 'slow',
  }, async () => {
    const { page } = await browser.open(server, `/?sourceTokenAddress=${evmAddress('nobody')}`);
    await page.getByText('No indexed message transfers this token').waitFor();
    await page.goto(`${server.url}/?sender=${evmAddress('nobody')}`);
    await page.getByText('No indexed message was sent by this address').waitFor();
    await page.goto(`${server.url}/?sender=${evmAddress('nobody')}&status=FAILED`);
    await page.getByText('none matches all of them').waitFor();
  });

  test('says what it takes to who types something else', { tags: 'slow' }, async () => {
    const { page } = await browser.open(server);
    await type(page, 'what is this');
    await page.getByText(/Nothing here goes by this/).waitFor();
    expect(await box(page).getAttribute('aria-invalid')).toBe('true');
    await page.keyboard.press('Enter');
    expect(shown(page)).toBe('');
  });

  test('filters by chips that live in the URL, and the back button takes them away again', async () => {
    const { page } = await browser.open(server);
    await page.getByRole('button', { name: 'Source' }).click();
    await page.getByRole('combobox', { name: /Find a network/ }).fill('11155111');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Clear Source' }).waitFor();
    await page.getByRole('button', { name: 'Status' }).click();
    await page.getByRole('checkbox', { name: 'Failed' }).check();
    await page.getByRole('checkbox', { name: 'Success' }).check();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Needs action' }).click();
    await eventually(() => rowsOf(page).count()).toBe(1);
    expect(shown(page)).toBe(
      `?sourceChainSelector=${sepolia.chainSelector}&status=FAILED,SUCCESS&readyForManualExecOnly=true`,
    );
    await page.goBack();
    await eventually(() => rowsOf(page).count()).toBe(25);
    await page.goBack();
    await eventually(() => shown(page)).toMatch(/status=FAILED$/);
    await page.goForward();
    await page.reload();
    await page.getByText('Failed, Success').waitFor();
    await page.getByRole('button', { name: 'Clear all' }).click();
    await eventually(() => shown(page)).toBe('');
  });

  test('filters by sender, receiver, token and time', { tags: 'slow' }, async () => {
    const { page } = await browser.open(server);
    await page.getByRole('button', { name: 'Token' }).click();
    const field = page.getByRole('textbox', { name: 'Token address' });
    await field.fill('no address');
    await page.keyboard.press('Enter');
    await page.getByText('Not a valid address of any chain family.').waitFor();
    await field.fill(token.sourceTokenAddress.toLowerCase());
    await page.keyboard.press('Enter');
    await eventually(() => rowsOf(page).count()).toBe(1);
    await page.getByRole('button', { name: 'Clear Token' }).click();
    await page.getByRole('button', { name: 'Time' }).click();
    await page.getByRole('button', { name: 'Last hour' }).click();
    await eventually(() => shown(page)).toMatch(/^\?sentAfter=\d{4}-\d\d-\d\dT\d\d:\d\d:00Z$/);
    for (const [label, name] of [
      ['Sender', 'sender'],
      ['Receiver', 'receiver'],
    ] as const) {
      await page.getByRole('button', { name: label, exact: true }).click();
      await page.getByRole('textbox', { name: `${label} address` }).fill(failed[name]);
      await page.getByRole('button', { name: 'Apply' }).click();
      await eventually(() => shown(page)).toContain(`${name}=${failed[name]}`);
    }
  });

  test('goes through pages both ways without repeating or leaving out a message', async () => {
    const { page } = await browser.open(server);
    const labels = async () => {
      await eventually(() => page.locator('.rows[data-stale="true"]').count()).toBe(0);
      return page
        .locator('.row-link')
        .evaluateAll((links) => links.map((link) => String(link.getAttribute('href'))));
    };
    await rowsOf(page).first().waitFor();
    const first = await labels();
    const seen = [...first];
    for (const size of [25, 15]) {
      await page.getByRole('link', { name: 'Older' }).click();
      await eventually(async () => (await labels())[0]).not.toBe(seen.at(-25));
      await eventually(() => rowsOf(page).count()).toBe(size);
      seen.push(...(await labels()));
    }
    expect(new Set(seen).size).toBe(messages.length);
    expect(await page.getByRole('link', { name: 'Older' }).count()).toBe(0);
    const deep = page.url();
    await page.getByRole('link', { name: 'Newer' }).click();
    await page.getByRole('link', { name: 'Newer' }).click();
    await eventually(labels).toEqual(first);
    expect(shown(page)).toBe('');
    // Somebody else, with the link alone.
    const other = await browser.open(server, new URL(deep).pathname + new URL(deep).search);
    await eventually(() => rowsOf(other.page).count()).toBe(15);
    await other.page.getByRole('link', { name: 'Newest', exact: true }).click();
    await eventually(() => rowsOf(other.page).count()).toBe(25);
  });

  test('exports what is shown, and gives it as curl and as SDK code', { tags: 'slow' }, async () => {
    const { page } = await browser.open(server, '/?status=FAILED');
    await rowsOf(page).first().waitFor();
    await page.getByRole('button', { name: 'Export' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: /^CSV/ }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/^lanescan-messages-.*\.csv$/);
    expect(download.url()).toBe(`${server.url}/v2/messages/export?format=csv&status=FAILED`);
    await page.getByRole('button', { name: 'API' }).click();
    await page.getByRole('button', { name: 'Copy curl' }).click();
    expect(await copied(page)).toBe(`curl '${server.url}/v2/messages?status=FAILED&limit=25'`);
    await page.getByRole('button', { name: 'Copy @chainlink/ccip-sdk' }).click();
    expect(await copied(page)).toContain(`CCIPAPIClient.fromUrl('${server.url}')`);
    expect(await copied(page)).toContain("['FAILED'].includes(message.status)");
  });

  test('copies a hash from a row without leaving the list', { tags: 'slow' }, async () => {
    const { page } = await browser.open(server);
    await rowsOf(page).first().hover();
    await rowsOf(page).first().getByRole('button', { name: 'Copy message id' }).click();
    await page.getByRole('button', { name: 'Copied message id' }).waitFor();
    expect(await copied(page)).toBe(failed.messageId);
    expect(new URL(page.url()).pathname).toBe('/');
  });

  test('is done with the keyboard alone', { tags: 'slow' }, async () => {
    const { page } = await browser.open(server);
    await rowsOf(page).first().waitFor();
    for (const key of ['j', 'j', 'j', 'k']) await page.keyboard.press(key);
    await page.keyboard.press('Enter');
    await page.getByText(carrier.messageId, { exact: true }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/message/${carrier.messageId}`);
    await page.keyboard.press('Escape');
    await rowsOf(page).first().waitFor();
    expect(new URL(page.url()).pathname).toBe('/');
    await page.keyboard.press('/');
    await page.keyboard.type('failed');
    await page.keyboard.press('Enter');
    await eventually(() => rowsOf(page).count()).toBe(1);
    await page.reload();
    await rowsOf(page).first().waitFor();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content');
  });

  test('tells nothing found from wrong input, and offers the way out of each', { tags: 'slow' }, async () => {
    const missing = await browser.open(server, `/?q=${hashOf('unknown')}`);
    await missing.page.getByRole('heading', { name: 'Not found here' }).waitFor();
    await missing.page.getByText(/No network is indexed here: records come from imports only/).waitFor();
    const none = await browser.open(server, '/?status=BLESSED');
    await none.page.getByRole('heading', { name: 'No message matches' }).waitFor();
    const wrong = await browser.open(server, '/?status=FALED&limit=0');
    await wrong.page.getByRole('heading', { name: 'This search cannot be understood' }).waitFor();
    expect(await wrong.page.getByRole('alert').innerText()).toContain('did you mean FAILED?');
    await wrong.page.getByRole('link', { name: 'Search without status, limit' }).click();
    await rowsOf(wrong.page).first().waitFor();
    const damaged = await browser.open(server, '/?cursor=nonsense');
    await damaged.page.getByRole('link', { name: 'Show the newest' }).click();
    await rowsOf(damaged.page).first().waitFor();
    wrong.forgive(/400/);
    damaged.forgive(/400/);
  });
});

describe.skipIf(!hasChromium)('an empty Lanescan', () => {
  const browser = useBrowser();

  test('says how to fill it, and shows the first message by itself', { tags: 'slow' }, async () => {
    const server = await startServerForTest([]);
    const { page } = await browser.open(server);
    await page.getByRole('heading', { name: 'No messages yet' }).waitFor();
    expect(await page.locator('.ways code').allInnerTexts()).toContain('lanescan import records.ndjson.gz');
    await page.getByText('Connected: nothing imported yet').waitFor();
    await server.store.apply([makeSnapshot(failed)]);
    await eventually(() => rowsOf(page).count()).toBe(1);
  });
});
