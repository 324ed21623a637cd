// @module-tag slow: a browser, and an indexed Solana cluster
/** What the explorer and the command line show of Solana: slots instead of blocks, and base58 that can be searched for. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningServer, startServer } from '../api/running-server.ts';
import { lanescan } from '../cli/program.ts';
import { indexOnce, sourceOf, storeReceived } from '../ingest/svm/indexed-world.ts';
import { createSolanaWorld } from '../solana/ccip-world.ts';
import { type SolanaProvider, startSolanaProvider } from '../solana/endpoint/node.ts';
import { messageIdOf } from '../solana/received-messages.ts';
import { eventually, hasChromium, rowsOf, useBrowser } from './chromium.ts';

const grouped = (number: number) => number.toLocaleString('en').replaceAll(',', '[,\u2009\u202f\u00a0 ]?');

describe.skipIf(!hasChromium)('Solana in the explorer', () => {
  const browser = useBrowser();
  const world = createSolanaWorld({ head: 54_321 });
  const sent = world.send({ tokens: [5n] });
  const message = world.receive();
  world.commit([message]);
  world.cluster.grow(2);
  const failed = world.execute(message, { outcome: 'failure' });
  world.settle();
  let server: RunningServer;
  let provider: SolanaProvider;

  beforeAll(async () => {
    server = await startServer();
    provider = await startSolanaProvider(world.cluster);
    await storeReceived(server.store, world);
    await indexOnce(server.store, sourceOf(world, [provider], { offramps: [world.programs.offRamp] }));
  });
  afterAll(async () => {
    await server?.close();
    await provider?.close();
  });

  test('a message from it has a slot and its base58 signature; one to it has attempts in slots', async () => {
    const { page } = await browser.open(server, `/message/${sent.messageId}`);
    await page.getByRole('heading', { name: 'Source' }).waitFor();
    const source = page.locator('.card', {
      has: page.getByRole('heading', { name: 'Source', exact: true }),
    });
    expect(await source.innerText()).toMatch(new RegExp(`Slot\\s+${grouped(sent.slot)}`));
    expect(await source.innerText()).not.toMatch(/^Block$/m);
    expect(
      await source.locator(`[title*="${sent.signature}"], a[href*="${sent.signature}"]`).count(),
    ).not.toBe(0);

    await page.goto(`${server.url}/message/${messageIdOf(message)}`);
    const attempt = page.locator('.attempts');
    await attempt.waitFor();
    expect(await attempt.innerText()).toMatch(new RegExp(`Slot\\s+${grouped(failed?.slot ?? 0)}`));
    expect(await attempt.innerText()).toMatch(/Transaction error\s+\{"InstructionError"/);
    await attempt.getByText(/^The program's log/).click();
    expect(await attempt.locator('pre').innerText()).toMatch(/Program \w+ failed: /);
  });

  test('a search for a signature or a base58 address finds the message', async () => {
    for (const term of [sent.signature, sent.body.sender, failed?.signature ?? '']) {
      const { page } = await browser.open(server, `/?q=${term}`);
      await eventually(() => rowsOf(page).count()).toBe(1);
    }
  });

  test('its progress is told in slots', async () => {
    const { page } = await browser.open(server, '/network');
    const row = page.locator('tr', { hasText: 'Solana Devnet' });
    await row.waitFor();
    expect(await row.innerText()).toMatch(new RegExp(`to slot ${grouped(world.cluster.head).slice(0, 2)}`));
    expect(await row.innerText()).not.toMatch(/\bblocks?\b(?! explorer)/);
  });

  test('the command line shows slots too', async () => {
    const run = async (...args: string[]) =>
      (await lanescan(args, { env: { DATABASE_URL: server.store.url } })).stdout;
    expect(await run('show', sent.messageId)).toMatch(new RegExp(`Slot +${sent.slot}, log \\d+`));
    expect(await run('show', messageIdOf(message))).toMatch(new RegExp(`Slot +${failed?.slot}`));
    for (const term of [sent.signature, sent.body.sender])
      expect(await run('search', term, '--json')).toContain(sent.messageId);
  });
});
