/**
 * The kit itself: a virtual cluster answers as a node does, and its encodings are those of libraries and of the programs'
 * layouts. `message-hashes.test.ts` holds them to published values, `official-client.test.ts` to the official client.
 */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base58 } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { addresses } from './ccip-accounts.ts';
import { executionStateChanged } from './ccip-events.ts';
import { merkleProof, merkleRoot } from './ccip-hashes.ts';
import { createSolanaWorld, type SolanaWorld } from './ccip-world.ts';
import { FINALITY_SLOTS } from './endpoint/node.ts';
import { startSolanaProvider } from './endpoint/provider.ts';
import { sentVector } from './published-vectors.ts';
import { fromBase58, fromHex, toBase58, toHex } from './runtime/bytes.ts';
import { sepolia } from './world-options.ts';

const remoteSelector = BigInt(sepolia.network.selector);

/** Asks a world's endpoint directly; rejects with the error of the answer. */
type Ask = <T = unknown>(method: string, ...params: readonly unknown[]) => Promise<T>;

async function serve(world: SolanaWorld): Promise<Ask> {
  const provider = await startSolanaProvider(world.cluster);
  onTestFinished(() => provider.close());
  return async (method, ...params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const response = await fetch(provider.url, { method: 'POST', body });
    const { result, error } = (await response.json()) as { result: never; error?: object };
    if (error) throw error;
    return result;
  };
}

interface Entry {
  readonly signature: string;
  readonly slot: number;
}

/** All signatures of an address, page by page. */
async function walk(ask: Ask, address: string, limit: number, config: object = {}) {
  const all: Entry[] = [];
  for (;;) {
    const before = all.at(-1)?.signature;
    const paging = { limit, ...config, ...(before !== undefined && { before }) };
    const page = await ask<Entry[]>('getSignaturesForAddress', address, paging);
    if (page.length === 0) return all;
    all.push(...page);
  }
}

/** A few of everything, several in one slot. */
function makeTraffic(): SolanaWorld {
  const world = createSolanaWorld();
  for (let round = 0; round < 12; round++) {
    world.send({ tokens: round % 3 === 0 ? [5n, 6n] : [], hasLookup: round % 2 === 0 });
    world.makeNoise();
    const message = world.receive({ tokens: [7n] });
    world.commit([message]);
    world.cluster.grow(1);
    world.execute(message, { outcome: round % 5 === 0 ? 'failure' : 'success' });
    world.cluster.grow(round % 3);
  }
  world.settle();
  return world;
}

describe('lists of signatures', () => {
  test('have everything once and newest first, whatever the size of a page, between `before` and `until`', async () => {
    const world = makeTraffic();
    const ask = await serve(world);
    const { router, offRamp } = world.programs;
    for (const address of [router, offRamp]) {
      const whole = await walk(ask, address, 1_000);
      expect(whole.map(({ slot }) => slot)).toEqual(whole.map(({ slot }) => slot).toSorted((a, b) => b - a));
      for (const limit of [1, 7]) expect(await walk(ask, address, limit)).toEqual(whole);
      expect(new Set(whole.map(({ signature }) => signature)).size).toBe(whole.length);
      const [newest, , third] = whole;
      const between = { before: newest?.signature, until: third?.signature };
      expect(await ask('getSignaturesForAddress', address, between)).toEqual(whole.slice(1, 2));
    }
    const sends = await walk(ask, addresses.destChainState(router, remoteSelector), 5);
    expect(sends.toReversed().map(({ signature }) => signature)).toEqual(
      world.truth.sends.map(({ signature }) => signature),
    );
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
    await expect(ask('getSignaturesForAddress', router, { minContextSlot })).rejects.toMatchObject({
      code: -32016,
      data: { contextSlot },
    });
    world.cluster.grow(FINALITY_SLOTS);
    expect(await listed('finalized')).toBe(true);
  });
});

test('an endpoint rejects what a node rejects', async () => {
  const world = makeTraffic();
  const { signature } = world.send({ hasLookup: true });
  world.settle();
  const ask = await serve(world);
  const { router } = world.programs;
  const final = await ask<number>('getSlot');
  const skipped = Array.from({ length: 60 }, (_, index) => final - index).filter(world.cluster.isSkipped);
  expect(skipped.length).toBeGreaterThan(0);
  const unknown = signature.replace(/.$/, 'z').replace(/^./, '2');
  for (const [code, method, ...params] of [
    [-32602, 'getSignaturesForAddress', router, { limit: 1_001 }],
    [-32602, 'getSignaturesForAddress', router, { commitment: 'processed' }],
    [-32602, 'getSignaturesForAddress', router, { before: 'abc' }],
    [-32020, 'getSignaturesForAddress', router, { before: unknown }],
    [-32020, 'getSignaturesForAddress', router, { until: unknown }],
    [-32007, 'getBlockTime', skipped[0]],
    [-32004, 'getBlockTime', final + FINALITY_SLOTS + 50],
    // Of version 0, as it has a lookup table.
    [-32015, 'getTransaction', signature],
    [-32601, 'noSuchMethod'],
  ] as const)
    await expect(ask(method, ...params), JSON.stringify([method, params])).rejects.toMatchObject({ code });
  const [send] = world.truth.sends;
  expect(await ask('getBlockTime', send?.slot)).toBe(send?.blockTime);
});

test('a failed execution changes no account, and a later one does', () => {
  const world = createSolanaWorld();
  const message = world.receive();
  const commit = world.commit([message]);
  world.cluster.grow(2);
  const failed = world.execute(message, { outcome: 'failure' });
  world.cluster.grow(2);
  world.execute(message, { isManual: true });
  const report = addresses.commitReport(world.programs.offRamp, remoteSelector, commit.merkleRoot);
  const statesAt = (slot: number) => Buffer.from(world.cluster.account(report, slot)?.data ?? []).at(73);
  expect([failed?.slot ?? 0, world.cluster.head].map(statesAt)).toEqual([0, 2]);
  expect(world.truth.executions.map(({ isSuccess }) => isSuccess)).toEqual([false, true]);
});

test('base58 agrees with @scure/base for bytes of every length', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      expect(toBase58(bytes)).toBe(base58.encode(bytes));
      expect(fromBase58(base58.encode(bytes))).toEqual(bytes);
    }),
  );
});

test('an execution event has 89 bytes, and the state last', () => {
  const encoded = executionStateChanged(sentVector.body.header, new Uint8Array(32).fill(7), 'success');
  expect([encoded.length, encoded[88]]).toEqual([89, 2]);
});

test('a proof leads from every leaf to the root', () => {
  for (const count of [1, 2, 3, 5, 8]) {
    const leaves = Array.from({ length: count }, (_, index) => new Uint8Array(32).fill(index + 1));
    for (const [index, leaf] of leaves.entries()) {
      const node = merkleProof(leaves, index).reduce((below: Uint8Array, sibling) => {
        const pair = [below, sibling].sort(Buffer.compare);
        return keccak_256(Buffer.concat([fromHex(`${'00'.repeat(31)}01`), ...pair]));
      }, leaf);
      expect(toHex(node)).toBe(toHex(merkleRoot(leaves)));
    }
  }
});
