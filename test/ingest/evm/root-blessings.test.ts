/** Blessings that no event tells: the commit store itself is asked, and not too often. */
import { encodeAbiParameters, pad } from 'viem';
import { expect, test } from 'vitest';
import type { RangeFact } from '../../../src/domain/facts.ts';
import * as abi from '../../../src/ingest/evm/contracts/abi.ts';
import type { LaneOffRamp } from '../../../src/ingest/evm/contracts/contracts.ts';
import { createRootBlessings } from '../../../src/ingest/evm/message-tasks.ts';
import type { Chain, Hex } from '../../../src/ingest/evm/rpc/chain.ts';
import { fuji, hashOf, makeMessage, makeRange, seenOn } from '../../fixtures.ts';
import { answeringNode } from './answering-node.ts';

const commitStore = pad('0x415', { size: 20 });
const offRamp: LaneOffRamp = {
  address: pad('0x215', { size: 20 }),
  typeAndVersion: 'EVM2EVMOffRamp 1.5.0',
  namedBy: pad('0x100', { size: 20 }),
  role: 'offRamp',
  version: '1.5.0',
  sourceChainSelector: '1',
  onRamp: pad('0x315', { size: 20 }),
  commitStore,
};
const message = makeMessage({ version: '1.5.0' });
const committedAt = (root: string, at: string): RangeFact => ({
  ...makeRange('Committed', message, 1, 1),
  merkleRoot: hashOf(root),
  seen: { ...seenOn(fuji, 100), at },
});
const nowAt = (at: string) => ({ ...seenOn(fuji, 5_000), at });

test('a root that its commit store calls blessed is blessed, by any RMN', async () => {
  const node = answeringNode({
    answer: ({ to, data }) => {
      expect(to).toBe(commitStore);
      const [root] = abi.argumentsOf(abi.isBlessed, data) ?? [];
      return encodeAbiParameters([{ type: 'bool' }], [root === hashOf('blessed')]);
    },
  });
  const chain = { run: <T>(work: (asked: typeof node) => Promise<T>) => work(node) } as unknown as Chain;
  const askBlessings = createRootBlessings(chain);
  const questions = [
    { commit: committedAt('blessed', '2026-01-01T00:00:00.000Z'), offRamp },
    { commit: committedAt('blessed', '2026-01-01T00:00:00.000Z'), offRamp },
    { commit: committedAt('unblessed', '2026-01-01T00:00:00.000Z'), offRamp },
    // Its event is on the way, as a rule.
    { commit: committedAt('young', '2026-01-01T00:55:00.000Z'), offRamp },
  ];
  const seen = nowAt('2026-01-01T01:00:00.000Z');
  expect(await askBlessings(questions, seen, 5_000)).toEqual([
    { kind: 'RootBlessed', merkleRoot: hashOf('blessed') as Hex, seen },
  ]);
  expect(node.batches).toHaveLength(1);
  expect(node.batches[0]).toHaveLength(2);

  expect(await askBlessings(questions, nowAt('2026-01-01T01:04:00.000Z'), 5_000)).toEqual([]);
  expect(node.batches).toHaveLength(1);
  await askBlessings(questions.slice(2), nowAt('2026-01-01T01:11:00.000Z'), 5_000);
  expect(node.batches[1]).toHaveLength(2);
});
