/** Tokens, labels, block explorers and the lookup over HTTP, with names that are hostile. */
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { LabelList, Lookup, TokenList } from '../../../src/api/routes/names-schema.ts';
import type { NetworkList } from '../../../src/api/routes/networks-schema.ts';
import { readSetting } from '../../../src/base/settings.ts';
import { parseAddress } from '../../../src/domain/addresses.ts';
import { defineLabels } from '../../../src/domain/names/labels.ts';
import {
  explorersSetting,
  labelsSetting,
  tokensSetting,
} from '../../../src/domain/names/name-definitions.ts';
import { defineTokens } from '../../../src/domain/names/tokens.ts';
import { defineBlockExplorers } from '../../../src/domain/networks/block-explorers.ts';
import {
  evmAddress,
  fuji,
  makeMessage,
  makeSnapshot,
  makeToken,
  sepolia,
  solanaDevnet,
} from '../../fixtures.ts';
import { serverForAll } from '../running-server.ts';

const message = makeMessage({ number: 7, tokenAmounts: [makeToken(sepolia, fuji, 'LINK')] });
const token = message.tokenAmounts[0]?.sourceTokenAddress ?? '';
const feeToken = message.fees.fixedFeesDetails.tokenAddress;
const bytesOf = (address: string) => parseAddress(address, 'EVM')?.bytes ?? '';
const FAKE = '<b>USDC</b>';

const server = serverForAll([message]);
beforeAll(async () => {
  await server.store.index.tokens.discover();
  await server.store.index.tokens.write(sepolia.chainSelector, [
    { bytes: bytesOf(token), claims: { symbol: 'LINK', name: 'ChainLink', decimals: 18 }, dueInMs: 1e9 },
    { bytes: bytesOf(feeToken), claims: { symbol: FAKE, name: null, decimals: 6 }, dueInMs: 1e9 },
  ]);
});
afterEach(() => {
  defineTokens([]);
  defineLabels([]);
  defineBlockExplorers(new Map());
});

const ask = async <T>(path: string) => (await server.ask(path)).json<T>();

describe('tokens', () => {
  test('are listed with what is not answered yet, and found by network, address and symbol', async () => {
    const all = await ask<TokenList>('/v2/tokens');
    expect(all).toMatchObject({ total: 3, pending: 1 });
    expect(await ask('/v2/tokens?symbol=link')).toMatchObject({
      data: [{ address: token, symbol: 'LINK', decimals: 18, source: 'chain', networkName: sepolia.name }],
      total: 1,
    });
    expect(await ask(`/v2/tokens?address=${feeToken.toLowerCase()},${token}`)).toMatchObject({ total: 2 });
    expect(await ask(`/v2/tokens?chainSelector=${fuji.chainSelector}`)).toMatchObject({
      data: [{ symbol: null, readAt: null }],
      pending: 1,
    });
    expect(await ask('/v2/tokens?limit=1')).toMatchObject({ data: [{}], total: 3 });
  });

  test('of lanescan.yaml replace what a contract claims, member by member', async () => {
    const defined = [{ network: 'sepolia', address: feeToken, symbol: 'GOOD' }];
    defineTokens(readSetting(tokensSetting, defined, ['tokens']));
    expect(await ask('/v2/tokens?symbol=good')).toMatchObject({
      data: [{ address: feeToken, symbol: 'GOOD', decimals: 6, source: 'operator' }],
      total: 1,
    });
    const claimed = await ask<TokenList>(`/v2/tokens?symbol=${encodeURIComponent(FAKE)}`);
    expect(claimed.data).toEqual([]);
  });

  test.each([
    `address=${Array.from({ length: 101 }, (_, index) => evmAddress(index)).join(',')}`,
    'address=nonsense',
    `symbol=${'x'.repeat(25)}`,
    'symbol=%00',
    'limit=0',
  ])('%s is rejected', async (query) => {
    expect((await server.ask(`/v2/tokens?${query}`)).status).toBe(400);
  });
});

test('networks have the pages of their block explorer, as lanescan.yaml changes them', async () => {
  const urls = async () => {
    const { data } = await ask<NetworkList>('/v2/networks?active=true');
    return data.map(({ explorerUrls }) => explorerUrls?.transaction ?? null);
  };
  expect(await urls()).toEqual(['https://testnet.snowtrace.io/tx/{}', 'https://sepolia.etherscan.io/tx/{}']);
  const own = { [fuji.name]: 'none', sepolia: 'https://own.example/x/' };
  defineBlockExplorers(readSetting(explorersSetting, own, ['explorers']));
  expect(await urls()).toEqual([null, 'https://own.example/x/tx/{}']);
  const hostile = { sepolia: 'javascript:alert(1)' };
  expect(() => readSetting(explorersSetting, hostile, ['explorers'])).toThrow(
    'explorers.sepolia is "javascript:',
  );
});

const found = async (text: string) => (await ask<Lookup>(`/v2/lookup?text=${encodeURIComponent(text)}`)).data;
/** As the list shows it. */
const shortened = (text: string, first = 6) => `${text.slice(0, first)}…${text.slice(-4)}`;

describe('a text is looked up', () => {
  const id = message.messageId;

  test.each([
    ['shortened', shortened(id)],
    ['with dots', `${id.slice(2, 8)}...${id.slice(-4)}`],
    ['by its beginning', id.slice(0, 9)],
  ])('a message id %s', async (_, text) => {
    expect(await found(text)).toEqual([
      { kind: 'message', value: id, name: null, chainSelector: null, remoteChainSelector: null },
    ]);
  });

  const onSolana = makeMessage({ number: 8, sourceNetworkInfo: solanaDevnet, destNetworkInfo: fuji });
  test.each([
    ['EVM', message, 6],
    ['Solana', onSolana, 4],
  ])('a sender and a transaction of %s as the list shows them', async (_family, sent, first) => {
    await server.store.apply([makeSnapshot(sent)]);
    const { sender, sendTransactionHash: hash } = sent;
    expect(await found(shortened(sender, first))).toMatchObject([{ kind: 'address', value: sender }]);
    expect(await found(shortened(hash))).toMatchObject([{ kind: 'transaction', value: hash }]);
    const elsewhere = sender.endsWith('2') ? '3' : '2';
    expect(await found(`${shortened(sender, first).slice(0, -1)}${elsewhere}`)).toEqual([]);
  });

  test('a symbol, a fee token, an on-ramp and a router', async () => {
    const [source, dest] = [sepolia.chainSelector, fuji.chainSelector];
    expect(await found('LINK')).toMatchObject([{ kind: 'token', value: token, chainSelector: source }]);
    expect(await found(feeToken)).toMatchObject([{ kind: 'token', name: FAKE, chainSelector: source }]);
    expect(await found(message.onramp.slice(2))).toMatchObject([
      { kind: 'onRamp', chainSelector: source, remoteChainSelector: dest },
    ]);
    const url = `https://sepolia.etherscan.io/address/${message.routerAddress}#code`;
    expect(await found(url)).toMatchObject([{ kind: 'router', chainSelector: source }]);
  });

  test.each(['nobody knows this', '%', '_', "' or 1=1 --", '0xffffff', '…', `https://${'x'.repeat(1_000)}`])(
    '%s is nothing',
    async (text) => {
      expect(await found(text)).toEqual([]);
    },
  );

  test('a label, by its name or its address', async () => {
    const labels = [{ address: message.sender, name: 'Treasury <1>' }];
    defineLabels(readSetting(labelsSetting, labels, ['labels']));
    const match = { kind: 'label', value: message.sender, name: 'Treasury <1>' };
    expect(await found('treas')).toMatchObject([match]);
    expect(await found(message.sender)).toMatchObject([match]);
    expect(await ask<LabelList>('/v2/labels')).toMatchObject({ total: 1, data: [{ name: 'Treasury <1>' }] });
  });
});

test('browsers get pages with status 404, and programs JSON', async () => {
  const browser = { headers: { accept: 'text/html,*/*;q=0.8' } };
  for (const path of ['/nope', `/message/0x${'1'.repeat(64)}`, '/message/nonsense']) {
    const page = await server.ask(path, browser);
    expect([path, page.status, page.headers['content-type']]).toEqual([
      path,
      404,
      'text/html; charset=utf-8',
    ]);
  }
  expect((await server.ask(`/message/${message.messageId}`, browser)).status).toBe(200);
  expect((await server.ask('/nope')).json()).toMatchObject({ error: 'NOT_FOUND' });
  expect((await server.ask('/v2/nope', browser)).json()).toMatchObject({ error: 'NOT_FOUND' });
  expect((await server.ask('/robots.txt')).text).toContain('Disallow: /v2/');
  expect((await server.ask('/favicon.ico')).headers['content-type']).toContain('image/svg+xml');
});
