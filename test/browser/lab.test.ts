// @module-tag slow: a browser and two chain nodes at once; indexer.test.ts and search.test.ts are the quick passes of each
/** The explorer over real chains: contracts in the lab, the indexer reading them, and somebody who looks. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningServer, serveStore } from '../api/running-server.ts';
import { type FollowingIndexer, follow } from '../chain/indexing.ts';
import { openTestStore } from '../database.ts';
import { type Lab, startLab } from '../lab/lab.ts';
import { eventually, hasChromium, rowsOf, useBrowser } from './chromium.ts';

describe.skipIf(!hasChromium)('over real chains', () => {
  const browser = useBrowser();
  let lab: Lab;
  let store: Awaited<ReturnType<typeof openTestStore>>;
  let server: RunningServer;
  let indexer: FollowingIndexer;
  beforeAll(async () => {
    lab = await startLab({ versions: ['1.6', '2.0'] });
    store = await openTestStore();
    server = await serveStore(store);
    indexer = follow(store, lab);
    await lab.lane('1.6', 'b').sendOne();
  }, 180_000);
  afterAll(async () => {
    await indexer?.stop();
    await server?.close();
    await lab?.stop();
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

  test('networks tell how far they have been read', async () => {
    const { page } = await browser.open(server, '/network');
    const heads = await Promise.all(lab.networks.map((network) => network.blockNumber()));
    for (const head of heads) {
      await eventually(() => page.locator('main').innerText()).toContain(head.toLocaleString('en'));
    }
    expect(await page.locator('main').innerText()).not.toMatch(/NaN|undefined|null/);
  });
});
