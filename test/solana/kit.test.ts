/** The kit itself: a virtual cluster answers as a node does, and its world agrees with itself. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { addBulkNoise } from './bulk-noise.ts';
import { offRampAddresses, routerAddresses } from './ccip-accounts.ts';
import { discriminator } from './ccip-events.ts';
import { createSolanaWorld, type SolanaWorld } from './ccip-world.ts';
import { FINALITY_SLOTS } from './endpoint/node.ts';
import { startSolanaProvider } from './endpoint/provider.ts';
import { type Ask, createAsk } from './endpoint/rpc-client.ts';
import type { SolanaProfile } from './endpoint/solana-profile.ts';
import { toBase64 } from './runtime/bytes.ts';
import { addressOf } from './runtime/program-address.ts';
import { forgeryKinds } from './traffic.ts';
import { sepolia } from './world-options.ts';

const remoteSelector = BigInt(sepolia.network.selector);

async function serve(world: SolanaWorld, profile?: SolanaProfile): Promise<Ask> {
  const provider = await startSolanaProvider(world.cluster, profile ? { profile } : {});
  onTestFinished(() => provider.close());
  return createAsk(provider.url);
}

interface Entry {
  readonly signature: string;
  readonly slot: number;
  readonly err: unknown;
}

/** All signatures of an address, page by page. */
async function walk(
  ask: Ask,
  address: string,
  limit: number,
  config: object = {},
): Promise<readonly Entry[]> {
  const all: Entry[] = [];
  for (;;) {
    const before = all.at(-1)?.signature;
    const page = await ask<Entry[]>('getSignaturesForAddress', address, {
      limit,
      ...config,
      ...(before !== undefined && { before }),
    });
    if (page.length === 0) return all;
    all.push(...page);
  }
}

/** A few of everything, several in one slot. */
function makeTraffic(): SolanaWorld {
  const world = createSolanaWorld();
  for (let round = 0; round < 12; round++) {
    world.send({
      tokens: round % 3 === 0 ? [5n, 6n] : [],
      hasLookup: round % 2 === 0,
      isWrapped: round % 4 === 0,
    });
    world.makeNoise();
    const messages = [world.receive(), world.receive({ tokens: [7n] })];
    world.commit(messages);
    world.cluster.grow(1);
    for (const message of messages)
      world.execute(message, { outcome: round % 5 === 0 ? 'failure' : 'success' });
    world.cluster.grow(round % 3);
  }
  world.settle();
  return world;
}

describe('lists of signatures', () => {
  test('have everything once and newest first, whatever the size of a page', async () => {
    const world = makeTraffic();
    const ask = await serve(world);
    const { router, offRamp } = world.programs;
    for (const address of [router, offRamp]) {
      const whole = await walk(ask, address, 1_000);
      expect(whole.map(({ slot }) => slot)).toEqual(whole.map(({ slot }) => slot).toSorted((a, b) => b - a));
      for (const limit of [1, 3, 7]) expect(await walk(ask, address, limit)).toEqual(whole);
      expect(new Set(whole.map(({ signature }) => signature)).size).toBe(whole.length);
    }
    const sends = (await walk(ask, routerAddresses.destChainState(router, remoteSelector), 5)).map(
      ({ signature }) => signature,
    );
    expect(sends.toReversed()).toEqual(world.truth.sends.map(({ signature }) => signature));
  });

  test('end above `until` and begin below `before`, which may be any signature of the chain', async () => {
    const world = makeTraffic();
    const ask = await serve(world);
    const { router } = world.programs;
    const whole = await walk(ask, router, 1_000);
    const [newest, , third] = whole;
    expect(
      await ask('getSignaturesForAddress', router, { before: newest?.signature, until: third?.signature }),
    ).toEqual(whole.slice(1, 2));
    const other = world.truth.commits[3];
    const below = await ask<Entry[]>('getSignaturesForAddress', router, { before: other?.signature });
    expect(below.every(({ slot }) => slot <= (other?.slot ?? 0))).toBe(true);
    expect(below.length).toBeGreaterThan(0);
  });

  test('show what is final, and say which slot they could not reach', async () => {
    const world = createSolanaWorld();
    const ask = await serve(world);
    const sent = world.send();
    const { router } = world.programs;
    const listed = async (commitment: string) =>
      (await walk(ask, router, 50, { commitment })).some(({ signature }) => signature === sent.signature);
    expect(await listed('finalized')).toBe(false);
    world.cluster.grow(3);
    expect(await listed('confirmed')).toBe(true);
    expect(await ask('getTransaction', sent.signature, { commitment: 'finalized' })).toBeNull();
    const minContextSlot = world.cluster.head;
    const contextSlot = await ask('getSlot');
    await expect(
      ask('getSignaturesForAddress', router, { commitment: 'finalized', minContextSlot }),
    ).rejects.toMatchObject({ fault: { code: -32016, data: { contextSlot } } });
    world.cluster.grow(FINALITY_SLOTS);
    expect(await listed('finalized')).toBe(true);
    expect(await ask('getSignaturesForAddress', router, { minContextSlot })).not.toEqual([]);
  });

  test('reject what a node rejects', async () => {
    const world = makeTraffic();
    const ask = await serve(world);
    const { router } = world.programs;
    const unknown = world.truth.sends[0]?.signature.replace(/.$/, 'z').replace(/^./, '2');
    for (const [config, code] of [
      [{ limit: 1_001 }, -32602],
      [{ commitment: 'processed' }, -32602],
      [{ before: 'abc' }, -32602],
      [{ before: unknown }, -32020],
      [{ until: unknown }, -32020],
    ] as const) {
      await expect(ask('getSignaturesForAddress', router, config)).rejects.toMatchObject({ fault: { code } });
    }
  });
});

test('the times of blocks are those of the cluster, and skipped and future slots have none', async () => {
  const world = makeTraffic();
  const ask = await serve(world);
  const final = await ask<number>('getSlot');
  const skipped = Array.from({ length: 60 }, (_, index) => final - index).filter(world.cluster.isSkipped);
  expect(skipped.length).toBeGreaterThan(0);
  for (const slot of skipped)
    await expect(ask('getBlockTime', slot)).rejects.toMatchObject({ fault: { code: -32007 } });
  const future = final + FINALITY_SLOTS + 50;
  await expect(ask('getBlockTime', future)).rejects.toMatchObject({ fault: { code: -32004 } });
  const [send] = world.truth.sends;
  expect(await ask('getBlockTime', send?.slot)).toBe(send?.blockTime);
});

interface Transaction {
  readonly slot: number;
  readonly version: unknown;
  readonly transaction: { readonly message: { readonly accountKeys: readonly string[] } };
  readonly meta: {
    readonly err: unknown;
    readonly loadedAddresses: { readonly writable: readonly string[]; readonly readonly: readonly string[] };
  };
}

describe('transactions', () => {
  const supported = { maxSupportedTransactionVersion: 0 };

  test('with a lookup table are of version 0 and need a client that knows it', async () => {
    const world = createSolanaWorld();
    const { signature } = world.send({ hasLookup: true });
    world.settle();
    const ask = await serve(world);
    await expect(ask('getTransaction', signature)).rejects.toMatchObject({
      fault: { code: -32015, message: expect.stringContaining('"maxSupportedTransactionVersion": 0') },
    });
    const { version, meta, transaction } = await ask<Transaction>('getTransaction', signature, supported);
    expect(version).toBe(0);
    const state = routerAddresses.destChainState(world.programs.router, remoteSelector);
    expect(meta.loadedAddresses.writable).toContain(state);
    expect(transaction.message.accountKeys).not.toContain(state);
    expect(transaction.message.accountKeys).toContain(world.programs.router);
  });

  test('of version 1 have no lookup tables and need a client that asks for them', async () => {
    const world = createSolanaWorld({ versionOneEvery: 1 });
    const { signature } = world.send();
    world.settle();
    const ask = await serve(world);
    for (const config of [undefined, supported])
      await expect(ask('getTransaction', signature, config)).rejects.toMatchObject({
        fault: { code: -32015, message: expect.stringContaining('Transaction version (1) is not supported') },
      });
    const { version, transaction } = await ask<Transaction>('getTransaction', signature, {
      maxSupportedTransactionVersion: 1,
    });
    expect(version).toBe(1);
    expect(transaction.message).not.toHaveProperty('addressTableLookups');
    expect(transaction.message).toHaveProperty('transactionConfig');
  });

  test('that fail keep their logs and change no account', async () => {
    const world = createSolanaWorld();
    const message = world.receive();
    const commit = world.commit([message]);
    world.cluster.grow(2);
    const failed = world.execute(message, { outcome: 'failure' });
    const report = offRampAddresses.commitReport(world.programs.offRamp, remoteSelector, commit.merkleRoot);
    const statesAt = (slot: number) => {
      const data = world.cluster.account(report, slot)?.data ?? new Uint8Array(89);
      return Buffer.from(data).readBigUInt64LE(73);
    };
    expect(statesAt(world.cluster.head)).toBe(0n);
    expect(world.cluster.transaction(failed?.signature ?? '')?.meta.err).toEqual({
      InstructionError: [1, { Custom: 6001 }],
    });
    world.cluster.grow(2);
    world.execute(message, { isManual: true });
    expect(statesAt(world.cluster.head)).toBe(2n);
    expect(statesAt(failed?.slot ?? 0)).toBe(0n);
    expect(world.truth.executions.map(({ isSuccess }) => isSuccess)).toEqual([false, true]);
  });
});

test('accounts count at every slot what was sent and committed up to it', () => {
  const world = makeTraffic();
  const { router, offRamp } = world.programs;
  const counterAt = (address: string, slot: number) =>
    Number(Buffer.from(world.cluster.account(address, slot)?.data ?? []).readBigUInt64LE(17));
  for (let slot = 1_005; slot <= world.cluster.head; slot += 7) {
    const upTo = ({ slot: own }: { readonly slot: number }) => own <= slot;
    expect(counterAt(routerAddresses.destChainState(router, remoteSelector), slot)).toBe(
      world.truth.sends.filter(upTo).length,
    );
    expect(counterAt(offRampAddresses.sourceChainState(offRamp, remoteSelector), slot)).toBe(
      1 + Math.max(0, ...world.truth.commits.filter(upTo).map(({ maxSeqNr }) => Number(maxSeqNr))),
    );
  }
});

test('forgeries are in the lists of the programs, and not in the truth', async () => {
  const world = createSolanaWorld();
  const forged = forgeryKinds.map((kind) => world.forge(kind));
  world.settle();
  const ask = await serve(world);
  const { router, offRamp } = world.programs;
  const listed = [...(await walk(ask, router, 1_000)), ...(await walk(ask, offRamp, 1_000))];
  for (const { signature } of forged) expect(listed.map((entry) => entry.signature)).toContain(signature);
  expect(world.truth).toEqual({ sends: [], commits: [], executions: [] });
  const lines = forged.flatMap(({ meta }) => meta.logMessages);
  expect(lines.some((line) => line.startsWith('Program return: ') && line.endsWith(' successAAA=='))).toBe(
    true,
  );
  const prefix = `Program data: ${toBase64(discriminator('event', 'CCIPMessageSent')).slice(0, 10)}`;
  expect(lines.filter((line) => line.startsWith(prefix)).length).toBeGreaterThanOrEqual(4);
});

test('accounts are found by program, size and content, and several calls go in one request', async () => {
  const world = createSolanaWorld();
  world.settle();
  const provider = await startSolanaProvider(world.cluster);
  onTestFinished(() => provider.close());
  const ask = createAsk(provider.url);
  const { router, offRamp } = world.programs;
  const markers = await ask<{ pubkey: string; account: { owner: string; data: [string, string] } }[]>(
    'getProgramAccounts',
    router,
    { encoding: 'base64', filters: [{ dataSize: 8 }] },
  );
  expect(markers.map(({ pubkey }) => pubkey)).toEqual([
    routerAddresses.allowedOffRamp(router, remoteSelector, offRamp),
  ]);
  const response = await fetch(provider.url, {
    method: 'POST',
    body: JSON.stringify([
      { jsonrpc: '2.0', id: 'a', method: 'getGenesisHash' },
      { jsonrpc: '2.0', id: 'b', method: 'noSuchMethod' },
      {
        jsonrpc: '2.0',
        id: 'c',
        method: 'getMultipleAccounts',
        params: [[routerAddresses.config(router), addressOf('nothing')], { encoding: 'base64' }],
      },
    ]),
  });
  const slot = await ask('getSlot');
  expect(await response.json()).toMatchObject([
    { id: 'a', result: world.network.chainId },
    { id: 'b', error: { code: -32601 } },
    { id: 'c', result: { context: { slot }, value: [{ owner: router }, null] } },
  ]);
});

test('a million signatures of noise are served from any place without being held', async () => {
  const world = createSolanaWorld();
  addBulkNoise(world, { count: 1_000_000, perSlot: 50 });
  const last = world.send();
  world.settle();
  const ask = await serve(world);
  const { router } = world.programs;
  const [newest, ...rest] = await ask<Entry[]>('getSignaturesForAddress', router, { limit: 1_000 });
  expect(newest?.signature).toBe(last.signature);
  expect(rest).toHaveLength(999);
  // Half a million below the newest.
  const [middle, ...older] = world.cluster.signaturesFor(router, { upTo: 11_000, limit: 4 });
  const below = await ask<Entry[]>('getSignaturesForAddress', router, {
    before: middle?.signature,
    limit: 3,
  });
  expect(below.map(({ signature }) => signature)).toEqual(older.map(({ signature }) => signature));
  const noise = await ask<Transaction>('getTransaction', middle?.signature, {
    maxSupportedTransactionVersion: 0,
  });
  expect(noise.transaction.message.accountKeys).toContain(router);
  expect(noise.meta.err).toBeNull();
  expect(noise.slot).toBe(middle?.slot);
});
