// @module-tag slow: indexes a virtual cluster for each kind of cut; program-logs.test.ts is the quick pass
/** Logs that were cut off: what instructions show is read, what nothing shows is kept and named. */
import { describe, expect, test } from 'vitest';
import { discriminator } from '../../solana/ccip-events.ts';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import { addressOf, concat, fromHex } from '../../solana/runtime/bytes.ts';
import { customFailure, type Step } from '../../solana/runtime/runtime.ts';
import { differencesFrom, indexWorld, judge } from './indexed-world.ts';

describe('where the log is cut off before the event', () => {
  test('messages of any length are read, also those whose event never fits into a log', async () => {
    const world = createSolanaWorld();
    const sends = [2_900, 3_000, 7_000, 9_500].map((bytes) =>
      world.send({
        data: `0x${'5a'.repeat(bytes)}`,
        tokens: [7n],
        isWrapped: true,
        isTruncated: bytes < 4_000,
      }),
    );
    expect(sends.map(({ trace }) => trace)).toEqual(sends.map(() => 'relayed copy'));
    const indexed = await indexWorld(world);
    expect(await judge(world, indexed.store, indexed)).toEqual({
      kind: 'complete',
      reasons: [],
      differences: [],
    });
  });

  test('a send that a router before 1.6.1 did not relay is kept and named', async () => {
    const world = createSolanaWorld({ isRelaying: false });
    world.send();
    const cut = world.send({ isTruncated: true });
    world.send();
    expect(cut.trace).toBe('counter');
    const indexed = await indexWorld(world);
    expect(await differencesFrom(world, indexed.store)).toEqual([
      `message ${cut.messageId} (counter) is missing`,
    ]);
    expect(indexed.logLines).toEqual(
      expect.arrayContaining([expect.stringContaining('its event was not found: the logs are cut off')]),
    );
  });

  test('an execution whose report is in another account is found by the bits of the commit report', async () => {
    const world = createSolanaWorld();
    const message = world.receive();
    world.commit([message]);
    world.execute(message, { isTruncated: true, isBuffered: true });
    const indexed = await indexWorld(world);
    const { kind, reasons } = await judge(world, indexed.store, indexed);
    expect(kind).toBe('incomplete and said so');
    expect(reasons).toEqual(expect.arrayContaining([expect.stringContaining('executions-missing')]));
  });
});

test('events of CCIP 2.0, which a program emits to itself, are kept and named; imitations are not', async () => {
  const world = createSolanaWorld();
  const { router, offRamp } = world.programs;
  const emitted = (name: string): Uint8Array =>
    concat(fromHex('e445a52e51cb9a1d'), discriminator('event', name), new Uint8Array(40));
  const land = (program: string, callee: string, name: string, ...later: readonly Step[]) =>
    world.cluster.land({
      feePayer: addressOf('sender'),
      instructions: [
        {
          program,
          accounts: [{ address: router }, { address: offRamp }],
          steps: [{ call: { program: callee, data: emitted(name) } }, ...later],
        },
      ],
    });
  const sent = land(router, router, 'CCIPMessageSentV2');
  land(offRamp, offRamp, 'ExecutionStateChangedV2');
  land(addressOf('forger'), addressOf('forger'), 'CCIPMessageSentV2');
  land(addressOf('forger'), router, 'CCIPMessageSentV2');
  land(router, router, 'CCIPMessageSentV2', { fails: customFailure(6_001) });
  const indexed = await indexWorld(world);
  const unreadable = (program: string) =>
    indexed.store.index.checks.unreadableLogs(world.network.selector, program);
  expect([await unreadable(router), await unreadable(offRamp)]).toEqual([1, 1]);
  expect(indexed.logLines.join('\n')).toMatch(
    new RegExp(`of block ${sent.slot} .*V2: events of CCIP 2\\.0 cannot be decoded yet`),
  );
  expect(await differencesFrom(world, indexed.store)).toEqual([]);
});
