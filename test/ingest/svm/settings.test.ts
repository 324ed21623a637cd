/** What a Solana network in lanescan.yaml may hold. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readSetting } from '../../../src/base/settings.ts';
import { networksSetting } from '../../../src/ingest/families.ts';
import { operatorErrorOf } from '../../operator-error.ts';

const ROUTER = 'Ccip842gzYHhvdDkSyi2YVCoAWPbYJoApMFzSxQroE9C';
const OFF_RAMP = 'offqSMQWgQud6WJz694LRzkeN5kMYpCHTpXQr3Rkcjm';
const read = (keys: string) =>
  readSetting(
    networksSetting,
    parse(`- {network: solana-devnet, rpc: ["https://rpc.example/key"], ${keys}}`),
    ['networks'],
  );

test('a Solana network has routers, may name off-ramps, and has defaults for the rest', () => {
  expect(read(`routers: ["${ROUTER}"], offramps: ["${OFF_RAMP}"], start: 381057057`)).toEqual([
    {
      network: expect.objectContaining({ name: 'solana-devnet', family: 'SVM' }),
      rpc: [new URL('https://rpc.example/key')],
      routers: [ROUTER],
      offramps: [OFF_RAMP],
      start: { block: 381_057_057 },
      requestsPerSecond: 20,
      batchSize: 50,
      pollEvery: 2_000,
    },
  ]);
  expect(read(`routers: ["${ROUTER}"]`)).toMatchObject([{ offramps: [], start: null }]);
});

test.each([
  ['no router', 'start: 1', /routers is missing/],
  [
    'an address of another family',
    'routers: ["0x0BF3dE8c5D3e8A2B34D2BEeB17ABfCeBaf363A59"]',
    /routers\[0\] is ".*a program id/,
  ],
  ['the address of nothing', `routers: ["${'1'.repeat(32)}"]`, /routers\[0\] is ".*a program id/],
  [
    'the same router twice',
    `routers: ["${ROUTER}", "${ROUTER}"]`,
    /routers\[1\] is the same as networks\[0\]\.routers\[0\]/,
  ],
  ['an empty list of off-ramps', `routers: ["${ROUTER}"], offramps: []`, /offramps has 0 entries/],
  ['off-ramps that are no list', `routers: ["${ROUTER}"], offramps: x`, /offramps is not a list/],
  [
    'a key of EVM networks',
    `routers: ["${ROUTER}"], finality: 64`,
    /networks\[0\]\.finality is an unknown key/,
  ],
])('%s is rejected with its place', async (_, keys, expected) => {
  const { message, remedy } = await operatorErrorOf(() => read(keys));
  expect(`${message} ${remedy}`).toMatch(expected);
});
