/** Logs that were cut off: what instructions show is read, what nothing shows is kept and named. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { openTestStore } from '../database.ts';
import { createSolanaWorld, type SolanaWorld } from '../solana/ccip-world.ts';
import { startSolanaProvider } from '../solana/provider.ts';
import { differencesFrom, indexOnce, judge, sourceOf, storeReceived } from './indexed-world.ts';

async function index(world: SolanaWorld) {
  world.settle();
  const provider = await startSolanaProvider(world.cluster);
  onTestFinished(() => provider.close());
  const store: Store = await openTestStore();
  onTestFinished(() => store.close());
  await storeReceived(store, world);
  const source = sourceOf(world, [provider], { offramps: [world.programs.offRamp] });
  return { store, indexed: await indexOnce(store, source) };
}

describe('where the log is cut off before the event', () => {
  test('a send is read from the copy that the router relays, a commit and an execution from their instructions', async () => {
    const world = createSolanaWorld();
    const cut = world.send({ isTruncated: true, tokens: [7n] });
    world.send();
    const messages = [world.receive(), world.receive()];
    world.commit(messages, { isTruncated: true });
    for (const message of messages) world.execute(message, { isTruncated: true });
    expect(cut.trace).toBe('relayed copy');
    const { store, indexed } = await index(world);
    expect(await judge(world, store, indexed)).toEqual({ kind: 'complete', reasons: [], differences: [] });
  });

  test('a send that a router before 1.6.1 did not relay is kept and named', async () => {
    const world = createSolanaWorld({ isRelaying: false });
    world.send();
    const cut = world.send({ isTruncated: true });
    world.send();
    expect(cut.trace).toBe('counter');
    const { store, indexed } = await index(world);
    expect(await differencesFrom(world, store)).toEqual([`message ${cut.messageId} (counter) is missing`]);
    expect(indexed.notices).toEqual(
      expect.arrayContaining([expect.stringContaining('its event was not found: the logs are cut off')]),
    );
  });

  test('an execution whose report is in another account is found by the bits of the commit report', async () => {
    const world = createSolanaWorld();
    const message = world.receive();
    world.commit([message]);
    world.execute(message, { isTruncated: true, isBuffered: true });
    const { store, indexed } = await index(world);
    const { kind, reasons } = await judge(world, store, indexed);
    expect(kind).toBe('incomplete and said so');
    expect(reasons).toEqual(expect.arrayContaining([expect.stringContaining('executions-missing')]));
  });
});

test('lanes whose numbers begin anew are read on, and the change is named', async () => {
  const world = createSolanaWorld();
  world.send();
  world.send();
  world.bumpVersion();
  world.send();
  const { store, indexed } = await index(world);
  expect(await differencesFrom(world, store)).toEqual([]);
  expect(indexed.notices).toEqual(
    expect.arrayContaining([expect.stringContaining('CcipVersionForDestChainVersionBumped')]),
  );
  expect(await store.index.checks.findings(world.network.selector)).toEqual([]);
});
