// @module-tag slow: indexes a virtual cluster for each gap; profiles.test.ts is the quick pass
/** History that an endpoint leaves out is noticed by the programs' own accounts, named, and read again elsewhere. */

import { expect, test } from 'vitest';
import type { Message } from '../../../src/domain/message.ts';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { profileOf } from '../../solana/endpoint/solana-profiles.ts';
import { messageIdOf } from '../../solana/received-messages.ts';
import { addressOf } from '../../solana/runtime/bytes.ts';
import { sepolia } from '../../solana/world-options.ts';
import { committedOnSepolia, indexOnce, indexWorld, lookElsewhere, serve, stage } from './indexed-world.ts';

test.each([
  ['messages-missing', (world: SolanaWorld) => world.truth.sends[1]?.signature],
  ['commits-missing', (world: SolanaWorld) => world.truth.commits[1]?.signature],
  ['executions-missing', (world: SolanaWorld) => world.truth.executions[1]?.signature],
])('a transaction that a list leaves out is %s, and is found at another endpoint', async (kind, hidden) => {
  const world = createSolanaWorld();
  for (let round = 0; round < 3; round++) {
    world.send();
    const message = world.receive();
    world.commit([message]);
    world.execute(message);
    world.cluster.grow(3);
  }
  const findings = await lookElsewhere(world, hidden(world));
  expect(findings.map((finding) => finding.kind)).toContain(kind);
});

test('slots that an endpoint has pruned are on the ledger of failures, until an archive has them', async () => {
  const world = createSolanaWorld();
  const early = world.send();
  world.cluster.grow(400);
  const late = world.send();
  const { store, source, providers, index, differences } = await stage(world);
  for (const provider of providers) provider.profile = profileOf('pruned-in-silence');
  const { statuses, logLines } = await index();
  expect(statuses[0]?.worker?.failedRanges).toBeGreaterThan(0);
  expect(logLines).toEqual(expect.arrayContaining([expect.stringMatching(/cannot be read yet/)]));
  expect(await store.findMessage(late.messageId.slice(2))).toBeDefined();
  expect(await store.findMessage(early.messageId.slice(2))).toBeUndefined();

  const rpc = [...source.rpc, (await serve(world.cluster)).url];
  await indexOnce(store, { ...source, rpc }, { timing: { repairMinMs: 10, repairMaxMs: 50 } });
  expect(await differences()).toEqual([]);
});

test('an indexer that starts again goes on where it was, without reading everything twice', async () => {
  const world = createSolanaWorld();
  for (let round = 0; round < 20; round++) {
    world.send();
    world.cluster.grow(2);
  }
  const { providers, index, differences } = await indexWorld(world);
  const [provider] = providers;
  provider?.resetCounts();
  world.send();
  world.settle();
  await index();
  expect(await differences()).toEqual([]);
  expect(provider?.callsByMethod.get('getTransaction')).toBeLessThan(10);
});

test('manual execution opens with the delay of the off-ramp, for a failed message too', async () => {
  const world = createSolanaWorld({ manualExecutionAfterSeconds: 60 });
  const [failed, waiting] = [world.receive(), world.receive()];
  world.commit([failed, waiting]);
  world.execute(failed, { outcome: 'failure' });
  const { store, index } = await indexWorld(world);
  const readyOf = async (message: typeof failed) => {
    const found = await store.findMessage(messageIdOf(message).slice(2));
    const { status, readyForManualExecution } = JSON.parse(found?.record ?? '{}') as Message;
    return [status, readyForManualExecution];
  };
  expect(await readyOf(failed)).toEqual(['FAILED', false]);
  expect(await readyOf(waiting)).toEqual(['COMMITTED', false]);
  world.cluster.grow(300);
  await index();
  expect(await readyOf(failed)).toEqual(['FAILED', true]);
  expect(await readyOf(waiting)).toEqual(['COMMITTED', true]);
  world.execute(failed, { isManual: true });
  world.settle();
  await index();
  expect(await readyOf(failed)).toEqual(['SUCCESS', false]);
});

test('a lane of a router that is not configured, and that was committed elsewhere, is named', async () => {
  const world = createSolanaWorld();
  world.send();
  const other = addressOf('another router');
  const { store, index, findings } = await stage(world);
  await store.apply([committedOnSepolia(world, { to: 3, onramp: other })]);
  await index();
  expect(await findings()).toMatchObject([
    { kind: 'onramp-unknown', subject: `${other} ${sepolia.network.selector}` },
  ]);
});
