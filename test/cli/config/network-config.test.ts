/** What `networks` in lanescan.yaml may hold, and the example that comes with the program. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readSetting, type Variables } from '../../../src/base/settings.ts';
import type { EvmSource } from '../../../src/ingest/evm/settings.ts';
import { networksSetting } from '../../../src/ingest/families.ts';
import { operatorErrorOf } from '../../operator-error.ts';

const environment = { RPC: 'https://rpc.example/hidden-key', KEY: 'hidden-key', EMPTY: ' ', BAD: 'hidden' };
/** Variables are written %{NAME} here: the linter takes the real spelling for a template that was forgotten. */
const read = (yaml: string, variables: Variables = environment) =>
  readSetting(networksSetting, parse(yaml.replaceAll('%{', '${')), ['networks'], variables) as EvmSource[];

const ROUTER = '0x0BF3dE8c5D3e8A2B34D2BEeB17ABfCeBaf363A59';
const entry = (more: string, network = 'ethereum-testnet-sepolia') =>
  `- {network: ${network}, rpc: ["%{RPC}"], routers: ["${ROUTER}"], ${more}}`;

test('a network has endpoints with variables filled in, routers in lower case, and defaults for the rest', () => {
  const [source] = read(`
- network: ethereum-testnet-sepolia
  rpc: ["https://rpc.example/v3/%{KEY}", "http://me:you@10.0.0.1:85", "%{RPC}"]
  routers: ["${ROUTER}"]`);
  expect({ ...source, rpc: source?.rpc.map(({ href }) => href) }).toEqual({
    network: expect.objectContaining({ name: 'ethereum-testnet-sepolia', chainId: '11155111' }),
    rpc: [
      'https://rpc.example/v3/hidden-key',
      'http://me:you@10.0.0.1:85/',
      'https://rpc.example/hidden-key',
    ],
    routers: [ROUTER.toLowerCase()],
    start: null,
    finality: 'finalized',
    acceptDeepReorgs: false,
    requestsPerSecond: 20,
    batchSize: 50,
    maxRange: 10_000,
    pollEvery: 2_000,
    verify: 'head',
    verifierResults: null,
  });
});

test('everything can be said', () => {
  const [source] = read(
    entry(
      'start: 5000000, finality: 64, acceptDeepReorgs: true, requestsPerSecond: 0.5, batchSize: 1, maxRange: 10, pollSeconds: 0.25, verify: all, verifierResults: "https://verifier.example/%{KEY}"',
    ),
  );
  expect(source).toMatchObject({
    start: { block: 5_000_000 },
    finality: 64,
    acceptDeepReorgs: true,
    requestsPerSecond: 0.5,
    batchSize: 1,
    maxRange: 10,
    pollEvery: 250,
    verify: 'all',
  });
  expect(source?.verifierResults?.href).toBe('https://verifier.example/hidden-key');
});

test.each([
  ['ethereum-testnet-sepolia'],
  ['Ethereum-Testnet-Sepolia'],
  ['11155111'],
  ['"16015286601757825753"'],
])('a network is named by its name, its chain id or its selector: %s', (name) => {
  expect(read(entry('', name)).map(({ network }) => network.name)).toEqual(['ethereum-testnet-sepolia']);
});

test.each([
  ['start: 0', { block: 0 }],
  ['start: 2024-01-31', { time: Date.UTC(2024, 0, 31) }],
  ['start: "2024-01-31T12:00:00+02:00"', { time: Date.UTC(2024, 0, 31, 10) }],
  ['start: ', null],
])('%s', (more, start) => {
  expect(read(entry(more))[0]?.start).toEqual(start);
});

test('an address may be written in one case, where there is no checksum to check', () => {
  for (const text of [ROUTER, ROUTER.toLowerCase(), `0x${ROUTER.slice(2).toUpperCase()}`]) {
    const [source] = read(entry('').replace(ROUTER, text));
    expect(source?.routers).toEqual([ROUTER.toLowerCase()]);
  }
});

const wrongChecksum = ROUTER.replace('BF3d', 'Bf3d');
const withRouters = (routers: string) => `- {network: 1, rpc: ["%{RPC}"], routers: ${routers}}`;
const withRpc = (rpc: string) => `- {network: 1, rpc: ${rpc}, routers: ["${ROUTER}"]}`;

test.each([
  ['something else than a list', 'a: 1', /networks is not a list/],
  ['an entry without keys', '- sepolia', /networks\[0\] is not a mapping of keys to values/],
  ['an unknown key', entry('finalty: 3'), /networks\[0\]\.finalty is an unknown key.* mean finality\?/],
  ['no network', '- rpc: []', /networks\[0\]\.network is missing/],
  ['an unknown network', entry('', 'ethereum-sepolia'), /network is .* not a known network.*Did you mean/],
  ['a part of a name', entry('', 'sepolia'), /not a known network.*Did you mean ethereum-testnet-sepolia\?/],
  ['another family', entry('', 'aptos-mainnet'), /is aptos-mainnet, .* family APTOS.*Only EVM and SVM/],
  ['a rounded selector', entry('', '16015286601757825753'), /network is a number.*in quotes/],
  ['a network twice', `${entry('')}\n${entry('', '11155111')}`, /networks\[1\] is the same as networks\[0\]/],
  ['no endpoints', '- {network: 1}', /rpc is missing/],
  ['an empty list of endpoints', withRpc('[]'), /rpc has 0 entries.*1 to 10/],
  ['too many endpoints', withRpc(JSON.stringify(Array(11).fill('http://a'))), /rpc has 11 entries/],
  ['an endpoint that is no list', withRpc('"https://hidden"'), /rpc is not a list/],
  ['an endpoint that is no URL', withRpc('["%{BAD}"]'), /networks\[0\]\.rpc\[0\] is not a URL/],
  ['an endpoint of another protocol', withRpc('["https://a", "wss://hidden"]'), /rpc\[1\] begins with wss:/],
  ['a missing variable', withRpc('["https://a/%{NOPE}"]'), /rpc\[0\] needs the variable NOPE/],
  ['an empty variable', withRpc('["%{EMPTY}"]'), /needs the variable EMPTY/],
  ['an endpoint twice', withRpc('["%{RPC}", "https://rpc.example/%{KEY}#x"]'), /rpc\[1\] is the same as/],
  ['no routers', '- {network: 1, rpc: ["%{RPC}"]}', /routers is missing/],
  ['too many routers', withRouters(JSON.stringify(Array(21).fill(ROUTER))), /routers has 21 entries/],
  ['too many networks', JSON.stringify(Array(101).fill({})), /networks has 101 entries.*at most 100/],
  ['an empty list of routers', withRouters('[]'), /routers has 0 entries/],
  ['a router that is a number', withRouters(`[${ROUTER}]`), /routers\[0\] is a number.*in quotes/],
  ['a short router', withRouters('["0x1234"]'), /routers\[0\] is "0x1234".*40 hexadecimal digits/],
  ['a padded router', withRouters(`["0x${'0'.repeat(24)}${ROUTER.slice(2)}"]`), /40 hexadecimal digits/],
  ['a typing error', withRouters(`["${wrongChecksum}"]`), /routers\[0\] is .* do not fit its digits/],
  ['a router twice', withRouters(`["${ROUTER}", "${ROUTER.toLowerCase()}"]`), /routers\[1\] is the same as/],
  ['nobody as a router', withRouters(`["0x${'0'.repeat(40)}"]`), /is the zero address/],
  ['a start in words', entry('start: yesterday'), /start is "yesterday".*block number, a date/],
  ['a start on a day that is none', entry('start: 2024-02-31'), /start is /],
  ['a start before the first block', entry('start: -1'), /start is -1/],
  ['a time without its zone', entry('start: "2024-01-31T12:00:00"'), /start is .* with its zone/],
  ['another tag', entry('finality: latest'), /finality is "latest".*finalized, safe, or a depth/],
  ['another word than true', entry('acceptDeepReorgs: "yes"'), /acceptDeepReorgs is "yes".*true or false/],
  ['too deep a finality', entry('finality: 10001'), /finality is 10001.*0 to 10000/],
  ['no requests at all', entry('requestsPerSecond: 0'), /requestsPerSecond is 0.*from 0\.1/],
  ['half a batch', entry('batchSize: 1.5'), /batchSize is 1.5.* whole number from 1 to 1000/],
  ['a range as text', entry('maxRange: "10"'), /maxRange is "10"/],
  ['a hasty poll', entry('pollSeconds: 0.01'), /pollSeconds is 0.01.* from 0\.05/],
  ['another way to verify', entry('verify: none'), /verify is "none".* head, all or off/],
  ['a verifier that is no URL', entry('verifierResults: x'), /verifierResults is not a URL/],
])('an error about %s has its place, and no keys', async (_what, yaml, expected) => {
  const { message, remedy } = await operatorErrorOf(() => read(yaml));
  expect(`${message} ${remedy}`).toMatch(expected);
  expect(`${message} ${remedy}`).not.toMatch(/hidden/);
});

test('the example is valid, with a variable for the endpoint of each network', () => {
  const text = readFileSync(path.resolve(import.meta.dirname, '../../../lanescan.example.yaml'), 'utf8');
  const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
  const variables = Object.fromEntries(names.map((name) => [name, `https://rpc.example/${name}`]));
  const { networks, ...others } = parse(text) as { networks: unknown };
  expect(others).toEqual({});
  const sources = readSetting(networksSetting, networks, ['networks'], variables) as EvmSource[];
  expect(sources.map(({ network }) => network.name)).toEqual(
    expect.arrayContaining(['ethereum-testnet-sepolia', 'avalanche-testnet-fuji', 'ethereum-mainnet']),
  );
  expect(new Set(names).size).toBe(sources.length);
  // The addresses that are typed in by hand carry their checksums.
  for (const router of text.matchAll(/"(0x[0-9a-fA-F]{40})"/g)) expect(router[1]).toMatch(/[A-F]/);
  // What it shows in the first entry are the defaults.
  const [first, second] = sources;
  const { network: _a, rpc: _b, routers: _c, ...settings } = first ?? {};
  expect(second).toMatchObject(settings);
});
