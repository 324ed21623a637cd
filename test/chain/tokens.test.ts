// @module-tag slow: indexes a virtual chain for each kind of token; api/routes/names.test.ts is the quick pass
/** What the indexer makes of tokens: asked once, whatever they answer, and never in the way of messages. */
import { encodeAbiParameters, type Hex, parseAbiParameters, stringToHex, toHex } from 'viem';
import { describe, expect, test } from 'vitest';
import { getDecimals, getName, getSymbol } from '../../src/ingest/evm/contracts/abi.ts';
import { decodeDecimals, decodeText } from '../../src/ingest/evm/token-claims.ts';
import type { Store } from '../../src/store/store.ts';
import { RpcError } from '../json-rpc-server.ts';
import { makeCcipWorld } from '../virtual-chain/ccip-chain.ts';
import { serveWorld } from '../virtual-chain/served-world.ts';
import type { VirtualContract } from '../virtual-chain/virtual-chain.ts';

const word = (number: number | bigint): Hex => toHex(number, { size: 32 });
const text = (value: string): Hex => encodeAbiParameters(parseAbiParameters('string'), [value]);
const rawText = (bytes: Hex): Hex => encodeAbiParameters(parseAbiParameters('bytes'), [bytes]);

describe('answers of contracts', () => {
  test.each<[string, Hex | undefined, string | null]>([
    ['a string', text('LINK'), 'LINK'],
    ['a bytes32', stringToHex('MKR', { size: 32 }), 'MKR'],
    ['a bytes32 without an end', `0x${'41'.repeat(32)}`, `${'A'.repeat(23)}…`],
    ['a megabyte', text('x'.repeat(1_000_000)), `${'x'.repeat(23)}…`],
    ['invalid UTF-8', rawText('0x41ff42'), 'A\ufffdB'],
    ['bidirectional marks', text('USD\u202eC'), 'USD\ufffdC'],
    ['nothing', '0x', null],
    ['a refusal', undefined, null],
    ['an empty string', text(''), null],
    ['a length beyond the answer', `0x${word(32).slice(2)}${word(2n ** 255n).slice(2)}`, null],
    ['an offset elsewhere', `0x${word(64).slice(2)}${word(4).slice(2)}${word(4).slice(2)}`, null],
    ['half a word', `0x${'41'.repeat(16)}`, null],
  ])('%s', (_, answer, symbol) => {
    expect(decodeText(answer, 24)).toBe(symbol);
  });

  test.each<[Hex | undefined, number | null]>([
    [word(18), 18],
    [word(255), 255],
    [word(256), null],
    [word(2n ** 256n - 1n), null],
    ['0x', null],
    ['0x12', null],
    [undefined, null],
    [`0x${'00'.repeat(1_000)}`, null],
  ])('decimals of %s', (answer, decimals) => {
    expect(decodeDecimals(answer)).toBe(decimals);
  });
});

/** The token that messages of the virtual chains transfer and pay with. */
const TOKEN: Hex = '0x00000000000000000000000000000000000070ce';

/** A world whose token answers so; undefined rejects the question. */
async function indexed(answers: Partial<Record<'symbol' | 'name' | 'decimals', () => Hex | undefined>>) {
  const token: VirtualContract = {
    address: TOKEN,
    deployedAt: 1,
    views: {
      [getSymbol.selector]: () => answers.symbol?.(),
      [getName.selector]: () => answers.name?.(),
      [getDecimals.selector]: () => answers.decimals?.(),
    },
  };
  const served = await serveWorld(makeCcipWorld({ blocks: 200, messages: 6, contracts: [token] }));
  await served.index();
  expect(await served.differences()).toEqual([]);
  return { ...served, network: served.world.a.network.selector };
}

async function tokenOf(store: Store, network: string) {
  const { tokens } = await store.tokens({ network, addresses: [TOKEN.slice(2)], limit: 10 });
  return tokens.map(({ symbol, name, decimals, readAt }) => ({
    symbol,
    name,
    decimals,
    isRead: readAt !== null,
  }));
}

describe('a chain is asked about its tokens', () => {
  test('once, and what they claim is kept', async () => {
    let asked = 0;
    const { store, index, network } = await indexed({
      symbol: () => {
        asked++;
        return stringToHex('US\u202eDC', { size: 32 });
      },
      name: () => text(`USD Coin ${'!'.repeat(10_000)}`),
      decimals: () => word(6),
    });
    expect(await tokenOf(store, network)).toEqual([
      { symbol: 'US\ufffdDC', name: expect.stringMatching(/^USD Coin !{54}…$/), decimals: 6, isRead: true },
    ]);
    await index();
    expect(asked).toBe(1);
    // Destination tokens and those of the other chain are known as well, and have no contract there.
    const { tokens, pending } = await store.tokens({ limit: 100 });
    expect(tokens.length).toBeGreaterThan(2);
    expect(pending).toBe(0);
  });

  test('that reject every question, and are then known by their address alone', async () => {
    const { store, network } = await indexed({});
    expect(await tokenOf(store, network)).toEqual([
      { symbol: null, name: null, decimals: null, isRead: true },
    ]);
  });

  test('whose answer no endpoint can give, without harm to messages', async () => {
    const { store, network } = await indexed({
      symbol: () => {
        throw new RpcError({ code: -32603, message: 'internal error' });
      },
    });
    expect(await tokenOf(store, network)).toEqual([
      { symbol: null, name: null, decimals: null, isRead: false },
    ]);
    expect((await store.networkProgress()).map(({ problem }) => problem)).toEqual([null, null]);
  });
});
