/** Versions of transactions: those up to 1 are read, newer ones are kept and named, and read when they can be. */
import { expect, test } from 'vitest';
import type { Indexed } from '../../chain/indexing.ts';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { archiveNode, type SolanaProfile } from '../../solana/endpoint/solana-profile.ts';
import { profileOf } from '../../solana/endpoint/solana-profiles.ts';
import { judge, stage } from './indexed-world.ts';

/** Messages both ways, all in transactions of version 1. */
function makeWorld(): SolanaWorld {
  const world = createSolanaWorld({ versionOneEvery: 1 });
  const { signature } = world.send({ tokens: [7n], isWrapped: true });
  expect(world.cluster.transaction(signature)?.version).toBe(1);
  const messages = [world.receive(), world.receive()] as const;
  world.commit(messages);
  world.execute(messages[0]);
  world.execute(messages[1], { outcome: 'failure' });
  return world;
}

const complete = { kind: 'complete', reasons: [], differences: [] };
const allNew: SolanaProfile = {
  ...profileOf('transactions-of-a-new-version'),
  transactions: { newVersion: { version: 2, every: 1 } },
};

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
    const { store, providers, index } = await stage(world);
    for (const provider of providers) provider.profile = before;
    const rejected = await index();
    expect((await judge(world, store, rejected)).kind).toBe('incomplete and said so');
    expect(kept(rejected)[0]).toMatch(words);

    for (const provider of providers) provider.profile = archiveNode;
    expect(await judge(world, store, await index())).toEqual(complete);
  },
);

test('a transaction that one endpoint rejects for its version is read from another', {
  tags: 'slow',
}, async () => {
  const world = makeWorld();
  const { store, providers, index } = await stage(world, [world.cluster, world.cluster], {});
  if (providers[0]) providers[0].profile = allNew;
  const indexed = await index();
  expect(await judge(world, store, indexed)).toEqual(complete);
  expect(kept(indexed)).toEqual([]);
});
