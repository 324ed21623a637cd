// @module-tag slow: a browser; search.test.ts is the quick pass
/** One message: its way, its outlook, what to do, and everything in it, whatever others have put there. */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { serverForAll } from '../api/running-server.ts';
import { evmAddress, fuji, hashOf, makeSnapshot, makeToken, makeVerifier, sepolia } from '../fixtures.ts';
import { copied, eventually, hasChromium, overhang, rowsOf, useBrowser } from './chromium.ts';
import { deliveredMessages, recentMessage } from './recent-messages.ts';

const word = (digits: string) => digits.padStart(64, '0');
const receiver = evmAddress('inside the data');
const failed = recentMessage(1, 5, {
  status: 'FAILED',
  data: `0x${word(receiver.slice(2))}${word('251c')}`,
  tokenAmounts: [
    { ...makeToken(sepolia, fuji, 'LINK'), amount: '1500000000000000000', extraData: `0x${word('12')}` },
    { ...makeToken(sepolia, fuji, 'USDC'), amount: '5527000', extraData: `0x${word('1')}${word('2')}` },
  ],
});
const verified = recentMessage(2, 6, {
  status: 'SUCCESS',
  version: '2.0.0',
  verifiers: {
    items: [
      makeVerifier('Committee', { completedAt: new Date(Date.now() - 330_000).toISOString() }),
      makeVerifier('Second opinion', { isRequired: false }),
    ],
    optionalThreshold: 0,
  },
  executor: { address: evmAddress('executor') },
  fees: {
    fixedFeesDetails: {
      tokenAddress: evmAddress('fee token'),
      totalAmount: '1000',
      items: [
        { contractAddress: evmAddress('a'), feeType: 'VERIFIER', amount: '750' },
        { contractAddress: evmAddress('b'), feeType: 'NETWORK', amount: '250' },
      ],
    },
  },
});
const late = recentMessage(4, 120, { status: 'SENT' });
const shared = recentMessage(5, 9, { status: 'SUCCESS' });
const sharing = recentMessage(6, 9, { status: 'SUCCESS', sendTransactionHash: shared.sendTransactionHash });

const huge = recentMessage(8, 3, { status: 'SUCCESS', data: `0x${'ab'.repeat(100_000)}` });

describe.skipIf(!hasChromium)('the page of a message', () => {
  const browser = useBrowser();
  const server = serverForAll([failed, verified, late, shared, sharing, huge, ...deliveredMessages(20)]);

  const openMessage = async ({ messageId }: Pick<Message, 'messageId'>, options = {}) => {
    const opened = await browser.open(server, `/message/${messageId}`, options);
    await opened.page.getByRole('heading', { name: 'Source' }).waitFor();
    return opened;
  };
  const timeline = (page: Page) => page.getByRole('list', { name: /What happened/ });

  test('of one that failed says what is wrong and gives the exact command', async () => {
    const { page, forgive } = await openMessage(failed);
    expect(await page.title()).toMatch(/^Failed · Ethereum Sepolia → Avalanche Fuji · 0x/);
    const callout = page.getByRole('region', { name: 'The execution failed' });
    expect(await callout.innerText()).toContain(
      'the receiver reverted, or the gas limit of 200,000 was too low',
    );
    expect(await callout.innerText()).toContain('Its tokens are safe');
    await callout.getByRole('button', { name: 'Copy ccip-cli' }).click();
    expect(await copied(page)).toContain(
      `ccip-cli manual-exec ${failed.sendTransactionHash} \\\n  --log-index 3`,
    );
    await callout.getByRole('radio', { name: 'SDK' }).check();
    expect(await callout.locator('pre').innerText()).toContain(
      'await dest.execute({ offRamp, input, wallet, gasLimit: 500000 });',
    );
    await callout.getByRole('radio', { name: 'Proof from this server' }).check();
    expect(await callout.locator('pre').innerText()).toContain(
      `EVMChain.fromUrl(DEST_RPC, { apiClient: '${server.url}' });\nawait dest.execute({ messageId: '${failed.messageId}'`,
    );
    await callout.getByText(/This server has no proof for this message/).waitFor();
    forgive(/404/);
  });

  test('shows tokens with their decimals where they are known, and data as what it looks like', async () => {
    const { page } = await openMessage(failed);
    const tokens = page.locator('.card', { hasText: '2 transfers' });
    expect(await tokens.innerText()).toMatch(
      /1\.5\s+18 decimals as the source pool says: 1,500,000,000,000,000,000 smallest units/,
    );
    expect(await tokens.innerText()).toMatch(/5,527,000 smallest units; decimals not known/);
    const data = page.locator('.card', { has: page.getByRole('heading', { name: 'Data', exact: true }) });
    expect((await data.locator('.abi').innerText()).toLowerCase()).toBe(
      `address\n${receiver}\nuint256\n9500`,
    );
    await data.getByRole('radio', { name: 'Hex' }).check();
    expect(await data.innerText()).toContain(failed.data ?? '');
  });

  test('of a lane with verifiers shows them, the executor and the parts of the fee', async () => {
    const { page } = await openMessage(verified);
    expect(await page.getByText('1 of 1 required done, 0 of 1 optional (0 needed)').count()).toBe(1);
    expect(await page.locator('.verifiers').innerText()).toMatch(
      /Committee\s+required[\s\S]*completed[\s\S]*Second opinion\s+optional\s+pending/,
    );
    expect(await page.locator('.fee-chart').innerText()).toMatch(
      /Verifier\s+75 %\s+750[\s\S]*Network\s+25 %\s+250/,
    );
    await page.getByText('Raw record').click();
    await page.getByRole('button', { name: 'Copy record' }).click();
    expect(JSON.parse(await copied(page))).toEqual(verified);
  });

  test('leads from its addresses and hashes to the search for them, and back', async () => {
    const { page } = await openMessage(shared);
    await page.getByRole('link', { name: shared.sendTransactionHash }).click();
    await eventually(() => rowsOf(page).count()).toBe(2);
    await page.goBack();
    await page.getByRole('heading', { name: 'Source' }).waitFor();
    await page.getByRole('button', { name: 'Copy sender' }).click();
    expect(await copied(page)).toBe(shared.sender);
  });

  test('follows its message live to the end, with what to expect meanwhile', async () => {
    // Sent just now, for what is expected of it changes by the minute.
    const fresh = recentMessage(3, 0, { status: 'SENT' });
    await server.store.apply([makeSnapshot(fresh)]);
    const { page } = await openMessage(fresh);
    expect(await timeline(page).innerText()).toMatch(
      /^Sent\s[\s\S]*Finalized\s+to come[\s\S]*Executed\s+to come/,
    );
    await page.getByText(/About \d+ s to go; half of this lane’s messages take 1 m/).waitFor();
    const executed = {
      ...fresh,
      status: 'SUCCESS' as const,
      receiptTransactionHash: hashOf('receipt of the fresh one'),
      receiptTimestamp: new Date(Date.parse(fresh.sendTimestamp) + 42_000).toISOString(),
      deliveryTime: 42_000,
    };
    await server.store.apply([makeSnapshot(executed)]);
    // Its card and the list of attempts both have it.
    await page.getByRole('link', { name: executed.receiptTransactionHash }).first().waitFor();
    await eventually(() => timeline(page).innerText()).toMatch(/Executed[\s\S]*\+42 s/);
    await eventually(() => page.title()).toMatch(/^Success/);
  });

  test('of one that is overdue says what it waits for', async () => {
    const { page } = await openMessage(late);
    await page.getByText('It waits for Ethereum Sepolia to finalize the block that contains it.').waitFor();
    await page.getByText(/Overdue: 99 of 100 messages on this lane take less than/).waitFor();
  });

  test('that is not known waits for it, and a transaction that was taken for one leads to its message', async () => {
    const coming = recentMessage(9, 0);
    const unknown = await browser.open(server, `/message/${coming.messageId}`);
    await unknown.page.getByRole('heading', { name: 'Message not found yet' }).waitFor();
    await server.store.apply([makeSnapshot(coming)]);
    await unknown.page.getByRole('heading', { name: 'Source' }).waitFor();
    const transaction = await browser.open(server, `/message/${failed.sendTransactionHash}`);
    await transaction.page.waitForURL(`**/message/${failed.messageId}`);
    unknown.forgive(/404/);
    transaction.forgive(/404/);
    const wrong = await browser.open(server, '/message/0x12');
    await wrong.page.getByRole('heading', { name: 'This is not a message id' }).waitFor();
    wrong.forgive(/404/);
  });

  test('takes a hundred kilobytes of data calmly: a part is shown, all of it copied', async () => {
    const { page } = await openMessage(huge, { viewport: { width: 375, height: 800 } });
    expect((await page.locator('main').innerText()).length).toBeLessThan(10_000);
    await page.getByRole('button', { name: 'Copy data' }).click();
    expect((await copied(page)).length).toBe(200_002);
    await page.getByRole('button', { name: 'Show all 200,002 characters' }).click();
    await page.getByRole('button', { name: 'Show less' }).waitFor();
    expect(await overhang(page)).toBeLessThanOrEqual(0);
  });
});
