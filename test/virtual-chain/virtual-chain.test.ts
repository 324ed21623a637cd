/** The kit itself: a virtual chain is a consistent chain. */
import { describe, expect, test } from 'vitest';
import * as abi from '../../src/ingest/evm/contracts/abi.ts';
import { expectedMessages, makeCcipWorld } from './ccip-chain.ts';

describe('a virtual chain', () => {
  test('links every block to the one below, across a reorganization', () => {
    const { a } = makeCcipWorld({ blocks: 300, messages: 29 });
    const before = a.block(250);
    a.reorganize({ fork: 240 });
    for (let number = 1; number <= a.head; number++) {
      expect(a.block(number)?.parentHash).toBe(a.block(number - 1)?.hash);
    }
    expect(a.head).toBe(301);
    expect(a.block(250)?.hash).not.toBe(before?.hash);
    expect(a.block(240)?.hash).toBe(a.blockByHash(a.block(241)?.parentHash ?? '0x')?.hash);
    expect(a.blockByHash(before?.hash ?? '0x')).toEqual(before);
  });

  test('answers the same logs for a range, for its parts and for its blocks', () => {
    const { a } = makeCcipWorld({ blocks: 400, messages: 29, ramps: 3, foreign: [{ message: 7, logs: 20 }] });
    const all = a.logs({ from: 0, to: a.head });
    const numbers = Array.from({ length: a.head + 1 }, (_, number) => number);
    expect(numbers.flatMap((number) => a.logs({ from: number, to: number }))).toEqual(all);
    expect(numbers.flatMap((number) => a.logsOfBlock(a.block(number)?.hash ?? '0x'))).toEqual(all);
    expect(all.filter(({ topics }) => topics[0] === abi.ccipMessageSent16.topic)).toHaveLength(29 + 20);
  });

  test('has ten million blocks without holding them', () => {
    const { a, b } = makeCcipWorld({ blocks: 10_000_000, messages: 200_000, ramps: 4 });
    expect(a.block(9_999_999)?.parentHash).toBe(a.block(9_999_998)?.hash);
    const place = a.blockOfMessage(123_456);
    expect(a.logs({ from: place, to: place, topics: [abi.ccipMessageSent16.topic] }).length).toBeGreaterThan(
      0,
    );
    const [first] = expectedMessages(a, b);
    expect(first?.sendBlockNumber).toBe(a.blockOfMessage(0));
  });

  test('counts in its views what its logs show, at every height', () => {
    const { a, b } = makeCcipWorld({ blocks: 300, messages: 29 });
    const [onRamp = '0x'] = a.onRamps;
    const view = abi.callOf(abi.getRouter16, onRamp, BigInt(b.network.selector));
    for (const height of [50, 150, 300]) {
      const sent = a.logs({ from: 0, to: height, topics: [abi.ccipMessageSent16.topic] }).length;
      const [sequenceNumber] = abi.answerOf(abi.getRouter16, a.call(view.to, view.data, height)) ?? [];
      expect(sequenceNumber).toBe(BigInt(sent));
    }
    expect(a.call(view.to, view.data, 0)).toBeUndefined();
  });
});
