/** Versions of transactions: those up to 1 are read, newer ones are kept and named, and read when they can be. */
import { expect, test } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { archiveNode, type SolanaProfile } from '../../solana/endpoint/solana-profile.ts';
import { profileOf } from '../../solana/endpoint/solana-profiles.ts';
import {
  configured,
  type Indexed,
  indexOnce,
  judge,
  openStore,
  serve,
  sourceOf,
  storeReceived,
} from './indexed-world.ts';

/** Messages both ways, all in transactions of version 1. */
function makeWorld(): SolanaWorld {
  const world = createSolanaWorld({ versionOneEvery: 1 });
  const { signature } = world.send({ tokens: [7n], isWrapped: true });
  expect(world.cluster.transaction(signature)?.version).toBe(1);
  const messages = [world.receive(), world.receive()] as const;
  world.commit(messages);
  world.execute(messages[0]);
  world.execute(messages[1], { outcome: 'failure' });
  world.settle();
  return world;
}

const complete = { kind: 'complete', reasons: [], differences: [] };
const allNew: SolanaProfile = {
  ...profileOf('transactions-of-a-new-version'),
  transactions: { newVersion: { version: 2, every: 1 } },
};

async function start(world: SolanaWorld): Promise<Store> {
  const store = await openStore();
  await storeReceived(store, world);
  return store;
}

const kept = ({ logLines }: Indexed) => logLines.filter((line) => line.includes('a transaction of version'));

test.each([
  [
    'rejects-version-1',
    profileOf('rejects-version-1'),
    /a transaction of version 1: the endpoint rejects it although versions up to 1 were asked for; use another one\. It is read again at every start/,
  ],
  [
    'a version that is not known here',
    allNew,
    /a transaction of version 2: this Lanescan reads versions up to 1; upgrade it\. It is read again at every start/,
  ],
])(
  '%s: the transactions are kept and named, and read at the next start that can',
  async (_, before, words) => {
    const world = makeWorld();
    const store = await start(world);
    const provider = await serve(world.cluster, before);
    const source = sourceOf(world, [provider], configured(world));
    const refused = await indexOnce(store, source);
    expect((await judge(world, store, refused)).kind).toBe('incomplete and said so');
    expect(kept(refused)[0]).toMatch(words);

    provider.profile = archiveNode;
    const indexed = await indexOnce(store, source);
    expect(await judge(world, store, indexed)).toEqual(complete);
  },
);

test('a transaction that one endpoint rejects for its version is read from another', {
  tags: 'slow',
}, async () => {
  const world = makeWorld();
  const store = await start(world);
  const providers = [await serve(world.cluster, allNew), await serve(world.cluster)];
  const indexed = await indexOnce(store, sourceOf(world, providers));
  expect(await judge(world, store, indexed)).toEqual(complete);
  expect(kept(indexed)).toEqual([]);
});
