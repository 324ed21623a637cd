// @module-tag slow: a browser and two chain nodes at once
/** The explorer over real chains in the lab: visitors watch messages, and rescue them with a wallet that signs on its nodes. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDestinations } from '../../src/cli/config/destinations.ts';
import { type RunningServer, serveStore } from '../api/running-server.ts';
import { type FollowingIndexer, follow, labSource } from '../chain/indexing.ts';
import { openTestStore } from '../database.ts';
import { type Lab, type Lane, type SentMessage, startLab } from '../lab/lab.ts';
import {
  eventually,
  hasChromium,
  overhang,
  rowsOf,
  seriousProblems,
  takePictures,
  useBrowser,
} from './chromium.ts';

/** What the wallet's owner does, and what the wallet was asked. */
interface TestWallet {
  chainId: number;
  rejectsNext: boolean;
  /** Names this hash for what it is asked to send, and does not send it. */
  pretends: string | null;
  readonly asked: { readonly method: string; readonly params: readonly unknown[] }[];
}

describe.skipIf(!hasChromium)('over real chains', () => {
  const browser = useBrowser();
  const stopping = new AbortController();
  let lab: Lab;
  let server: RunningServer;
  let indexer: FollowingIndexer;
  beforeAll(async () => {
    lab = await startLab({ versions: ['1.5', '1.6', '2.0'] });
    const store = await openTestStore();
    const destinations = createDestinations({
      sources: lab.networks.map((network) => labSource(network)),
      signal: stopping.signal,
      writeLog: () => undefined,
    });
    server = await serveStore(store, { destinations });
    indexer = follow(store, lab);
    await lab.lane('1.6', 'b').sendOne();
  });
  afterAll(async () => {
    stopping.abort();
    await indexer?.stop();
    await server?.close();
    await lab?.stop();
  });

  /** Announces itself as EIP-6963 says, and forwards to the node of network b. */
  async function installWallet(page: Page, name: string): Promise<TestWallet> {
    const wallet: TestWallet = {
      chainId: lab.b.chainId,
      rejectsNext: false,
      pretends: null,
      asked: [],
    };
    const answer = async (method: string, params: readonly unknown[]): Promise<unknown> => {
      wallet.asked.push({ method, params });
      switch (method) {
        case 'eth_requestAccounts':
          return [lab.b.foundation.bystander];
        case 'eth_chainId':
          return `0x${wallet.chainId.toString(16)}`;
        case 'wallet_switchEthereumChain':
          wallet.chainId = Number((params[0] as { chainId: string }).chainId);
          return null;
        case 'eth_sendTransaction':
          if (wallet.rejectsNext) {
            wallet.rejectsNext = false;
            throw Object.assign(new Error('User rejected the request.'), { code: 4001 });
          }
          return wallet.pretends ?? lab.b.rpc(method, params);
        case 'eth_getTransactionReceipt':
          return lab.b.rpc(method, params);
        default:
          throw new Error(`The wallet has no ${method}.`);
      }
    };
    await page.exposeFunction('askTestWallet', (method: string, params: readonly unknown[] = []) =>
      answer(method, params).then(
        (result) => ({ result }),
        (error: Error & { code?: number }) => ({ error: { code: error.code, message: error.message } }),
      ),
    );
    await page.addInitScript(`(() => {
      const provider = {
        async request({ method, params }) {
          const { result, error } = await window.askTestWallet(method, params);
          if (error) throw Object.assign(new Error(error.message), { code: error.code });
          return result;
        },
      };
      const info = { uuid: '350670db-19fa-4704-a166-e52e178b59d2', name: ${JSON.stringify(name)}, rdns: 'test', icon: 'data:,' };
      const announce = () => window.dispatchEvent(
        new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }));
      window.addEventListener('eip6963:requestProvider', announce);
      announce();
    })()`);
    return wallet;
  }

  const failedMessage = async (lane: Lane, gasLimit?: bigint) => {
    await lane.replaceRamps();
    return failAnother(lane, gasLimit);
  };

  async function failAnother(lane: Lane, gasLimit = 200_000n): Promise<SentMessage> {
    const message = await lane.sendOne({ data: '0x48656c6c6f', gasLimit, tokens: [{ amount: 5n }] });
    if (lane.version !== '2.0') await lane.commit([message]);
    if (lane.version === '1.5') await lane.bless([message]);
    await lane.execute(message, { fail: gasLimit === 200_000n });
    const path = `/v2/messages/${message.messageId}`;
    await eventually(async () => (await server.ask(path)).text).toContain('"status":"FAILED"');
    // Verifier results of 2.0 become complete with what the destination requires.
    await eventually(async () => (await server.ask(`${path}/execution-inputs`)).text).toMatch(
      /"messageBatch"|"verificationComplete":true/,
    );
    return message;
  }

  async function openMessage(
    { messageId }: SentMessage,
    colorScheme: 'light' | 'dark' = 'light',
    walletName = 'Test \u202eWallet',
    from = server,
  ) {
    const { page } = await browser.open(from, '/', { colorScheme });
    const wallet = await installWallet(page, walletName);
    await page.goto(`${from.url}/message/${messageId}`);
    await page.getByRole('heading', { name: 'Rescue with your wallet' }).waitFor();
    return { page, wallet };
  }

  const methods = ({ asked }: TestWallet) => asked.map(({ method }) => method);
  const untilRescued = async (page: Page) => {
    await page.getByRole('heading', { name: 'The execution failed' }).waitFor({ state: 'detached' });
    await eventually(() => page.title()).toMatch(/^Success/);
  };

  test('a 1.5 message is rescued at the second try: the first is declined', async () => {
    const lane = lab.lane('1.5', 'a');
    const message = await failedMessage(lane);
    await lane.refuse([message], false);
    const { page, wallet } = await openMessage(message, 'light', 'Test Wallet');
    await page.getByText('It would succeed now', { exact: true }).waitFor();
    const rescue = page.locator('.rescue');
    await eventually(() => rescue.innerText()).toContain('manuallyExecute');
    const shown = await rescue.innerText();
    expect(shown.toLowerCase()).toContain(message.ramps.offRamp.address.toLowerCase());
    expect(shown).toContain(`chain id ${lab.b.chainId}`);
    expect(shown).not.toMatch(/\u202e|undefined|NaN/);
    expect(await seriousProblems(page)).toEqual([]);

    await takePictures(page, '.callout', 'rescue');
    wallet.rejectsNext = true;
    await page.getByRole('button', { name: /^Send with Test/ }).click();
    await page.getByText('You declined the transaction in your wallet. Nothing was sent.').waitFor();
    expect(methods(wallet)).toEqual(['eth_requestAccounts', 'eth_chainId', 'eth_sendTransaction']);
    await page.getByRole('button', { name: /^Send with Test/ }).click();
    await untilRescued(page);
  });

  test('a 1.6 message is rescued from a wallet that is on the wrong chain, after a switch', async () => {
    const lane = lab.lane('1.6', 'a');
    const message = await failedMessage(lane);
    await lane.refuse([message], false);
    const { page, wallet } = await openMessage(message, 'dark');
    wallet.chainId = lab.a.chainId;
    await page.getByRole('button', { name: /^Send with Test/ }).click();
    await page.getByText(`Your wallet is on chain ${lab.a.chainId}`).waitFor();
    expect(methods(wallet)).not.toContain('eth_sendTransaction');
    expect(await seriousProblems(page)).toEqual([]);
    // The name of a wallet is text of strangers.
    expect(await page.locator('.rescue').innerText()).not.toContain('\u202e');
    await page.getByRole('button', { name: /^Switch to/ }).click();
    await untilRescued(page);
    expect(wallet.chainId).toBe(lab.b.chainId);
    const sent = wallet.asked.find(({ method }) => method === 'eth_sendTransaction');
    expect(sent?.params).toEqual([
      {
        chainId: `0x${lab.b.chainId.toString(16)}`,
        from: lab.b.foundation.bystander,
        to: expect.stringMatching(new RegExp(`^${message.ramps.offRamp.address}$`, 'i')),
        data: expect.stringMatching(/^0x/),
        value: '0x0',
        gas: expect.stringMatching(/^0x/),
      },
    ]);
  });

  test('a 2.0 message that ran out of gas is rescued with the gas limit that the diagnosis found', async () => {
    const message = await failedMessage(lab.lane('2.0', 'a'), 2_000n);
    const { page } = await openMessage(message);
    await page.getByText(/would succeed now with a gas limit of [\d,]+ instead of 2,000/).waitFor();
    expect(await page.getByLabel('Gas limit for the receiver').inputValue()).toMatch(/^\d+0000$/);
    await page.setViewportSize({ width: 390, height: 780 });
    await page.getByRole('button', { name: /^Send with Test/ }).waitFor();
    expect(await overhang(page)).toBe(0);
    await page.getByRole('button', { name: /^Send with Test/ }).click();
    await untilRescued(page);
  });

  test('an execution that would fail is said to, and is sent only on request', async () => {
    const lane = lab.lane('1.6', 'a');
    const message = await failedMessage(lane);
    const { page, wallet } = await openMessage(message);
    await page.getByText('It would fail now', { exact: true }).waitFor();
    await page.getByRole('button', { name: /^Send anyway with Test/ }).click();
    await eventually(() => methods(wallet)).toContain('eth_sendTransaction');
    // The node rejects what would revert, and says why.
    await page
      .locator('.rescue [role="alert"], .rescue [role="status"]:has-text("reverted")')
      .last()
      .waitFor();
    await page.getByRole('heading', { name: 'The execution failed' }).waitFor();
  });

  /** Two messages that are rejected no longer. */
  async function twoHealed(): Promise<readonly [SentMessage, SentMessage]> {
    const lane = lab.lane('1.6', 'a');
    const messages = [await failedMessage(lane), await failAnother(lane)] as const;
    await lane.refuse(messages, false);
    return messages;
  }

  test('what was typed and sent for a message stays with it', async () => {
    const [first, second] = await twoHealed();
    const { page, wallet } = await openMessage(first);
    const gasField = page.getByLabel('Gas limit for the receiver');
    const rescue = page.locator('.rescue');
    await page.getByRole('button', { name: /^Send with Test/ }).waitFor();
    const box = page.getByRole('combobox', { name: /^Search/ });
    await box.fill(second.messageId);
    await box.press('Enter');
    await page.waitForURL(`**/message/${second.messageId}`);
    await gasField.fill('300000');
    await eventually(() => rescue.innerText()).toContain('300,000 for the receiver, instead of 200,000');
    wallet.pretends = `0x${'5e'.repeat(32)}`;
    await page.getByRole('button', { name: /^Send with Test/ }).click();
    await eventually(() => rescue.innerText()).toContain('Sent. It waits');

    await page.goBack();
    await page.waitForURL(`**/message/${first.messageId}`);
    await page.getByRole('button', { name: /^Send with Test/, disabled: false }).waitFor();
    await eventually(() => gasField.inputValue()).toBe('');
    expect(await rescue.innerText()).not.toContain('Sent');
    expect(await rescue.innerText()).not.toContain(wallet.pretends);
    // Whoever comes back to the message that was sent for does not send it once more.
    await page.goForward();
    await page.waitForURL(`**/message/${second.messageId}`);
    await eventually(() => rescue.innerText()).toContain('Sent. It waits');
    await page.getByRole('button', { name: /^Send with Test/, disabled: true }).waitFor();
  });

  test('typing a gas limit asks the server once, when it rests', async () => {
    const [message] = await twoHealed();
    const { page } = await openMessage(message);
    await page.getByRole('button', { name: /^Send with Test/ }).waitFor();
    await page.clock.install();
    await page.reload();
    await page.getByRole('button', { name: /^Send with Test/ }).waitFor();
    const asked: string[] = [];
    page.on('request', (request) => {
      const [, limit] = /manual-execution\?gasLimit=(\d+)/.exec(request.url()) ?? [];
      if (limit !== undefined) asked.push(limit);
    });
    await page.clock.pauseAt(Date.now() + 3_600_000);
    await page.getByLabel('Gas limit for the receiver').pressSequentially('250000');
    // What was typed is not sent before the server has answered to it.
    expect(await page.getByRole('button', { name: /^Send with Test/ }).count()).toBe(0);
    await page.clock.resume();
    await eventually(() => page.locator('.rescue').innerText()).toContain('250,000 for the receiver');
    expect(asked).toEqual(['250000']);
  });

  test('without an endpoint it is sent with gas that was computed, and without gas not at all', async () => {
    const [message] = await twoHealed();
    const unable = await serveStore({ ...server.store, close: async () => undefined });
    try {
      const { page, wallet } = await openMessage(message, 'light', 'Test Wallet', unable);
      await page.getByText('Not tried beforehand', { exact: true }).waitFor();
      await page.getByRole('button', { name: /^Send with Test/ }).waitFor();
      const shown = await page.locator('.rescue').innerText();
      expect(shown).toMatch(/[\d,]{7,} for the transaction, at most .*The gas is computed/);

      let trial: 'fails' | null = null;
      await page.route('**/manual-execution*', async (route) => {
        const response = await route.fetch();
        const body = (await response.json()) as { transaction: object };
        const transaction = { ...body.transaction, gas: null };
        await route.fulfill({
          response,
          json: { ...body, transaction, gasNote: 'Nobody knows it.', trial },
        });
      });
      await page.reload();
      await page.getByText('It is not sent from here, because its gas is not known').waitFor();
      expect(await page.getByRole('button', { name: /^Send/ }).count()).toBe(0);
      // The off-ramp would skip it.
      trial = 'fails';
      await page.reload();
      await page.getByText('It is not sent from here: it would not be executed now.').waitFor();
      expect(await page.getByRole('button', { name: /^Send/ }).count()).toBe(0);
      await page.unroute('**/manual-execution*');

      await page.reload();
      await page.getByRole('button', { name: /^Send with Test/ }).click();
      await untilRescued(page);
      const sent = wallet.asked.find(({ method }) => method === 'eth_sendTransaction');
      expect(sent?.params).toMatchObject([{ gas: expect.stringMatching(/^0x/) }]);
    } finally {
      await unable.close();
    }
  });

  test.each(['1.6', '2.0'] as const)(
    'a message of %s is watched from its sending to its failure and its rescue',
    async (version) => {
      const lane = lab.lane(version, 'a');
      const { page } = await browser.open(server);
      await rowsOf(page).first().waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
      const message = await lane.sendOne({ data: '0x48656c6c6f', tokens: [{ amount: 5n }] });
      await page.getByRole('button', { name: '1 new' }).click();
      // Not always the first row: another message may have been sent in the same second.
      const row = rowsOf(page).filter({ has: page.locator(`.row-link[href*="${message.messageId}"]`) });
      await eventually(() => row.innerText()).toMatch(/^Sent/);
      await row.click({ position: { x: 60, y: 20 } });
      await eventually(() => page.url()).toContain(message.messageId);
      if (version === '1.6') await lane.commit([message]);
      await lane.execute(message, { fail: true });
      await page.getByRole('heading', { name: 'The execution failed' }).waitFor();

      // The proof that this server has is the one that the page offers.
      await page.getByRole('radio', { name: 'Proof from this server' }).check();
      await eventually(() => page.locator('pre').first().innerText()).toContain(server.url);
      await lane.executeByHand(message);
      await page.getByRole('heading', { name: 'The execution failed' }).waitFor({ state: 'detached' });
      await eventually(() => page.title()).toMatch(/^Success/);
    },
  );
});
