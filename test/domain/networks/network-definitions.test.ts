/** The `chains` of lanescan.yaml: what they may hold, and that a defined network is known like one of the table. */
import { afterEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readSetting } from '../../../src/base/settings.ts';
import { chainsSetting } from '../../../src/domain/networks/network-definitions.ts';
import {
  defineNetworks,
  findNetwork,
  knownNetworks,
  networkBySelector,
  networks,
} from '../../../src/domain/networks/networks.ts';
import { networksSetting } from '../../../src/ingest/families.ts';
import { operatorErrorOf } from '../../operator-error.ts';

const read = (yaml: string) => readSetting(chainsSetting, parse(yaml), ['chains']);
const acme = (more = '') => `- {name: acme-mainnet, selector: "77", chainId: 770077, ${more}}`;

afterEach(() => defineNetworks([]));

describe('a defined chain', () => {
  test('has the family EVM and its own name to show unless told otherwise', () => {
    const name = 'acme-mainnet';
    expect(read(acme())).toEqual([
      { name, selector: '77', chainId: '770077', family: 'EVM', displayName: name },
    ]);
  });

  test('may say everything', () => {
    const names = { name: 'acme-sol', displayName: 'Acme Sol', family: 'SVM' };
    const ids = { selector: '78', chainId: '9uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY' };
    const blockExplorer = 'https://explorer.acme.example/sol';
    const given = [{ ...names, ...ids, blockExplorer: `${blockExplorer}/` }];
    expect(read(JSON.stringify(given))).toEqual([{ ...names, ...ids, blockExplorer }]);
  });

  test('is found by name, selector and chain id, listed in order, and can be indexed', () => {
    const defined = read(acme('displayName: Acme'));
    expect(findNetwork('acme-mainnet')).toBeUndefined();
    defineNetworks(defined);
    for (const text of ['acme-mainnet', 'ACME-Mainnet', '77', '770077']) {
      expect(findNetwork(text)).toEqual(defined[0]);
    }
    expect(networkBySelector('077')).toEqual(defined[0]);
    const names = knownNetworks().map(({ name }) => name);
    expect(names).toEqual([...networks.map(({ name }) => name), 'acme-mainnet'].sort());
    const router = '0x0BF3dE8c5D3e8A2B34D2BEeB17ABfCeBaf363A59';
    const entry = { network: 'acme-mainnet', rpc: ['http://127.0.0.1:1'], routers: [router] };
    const [source] = readSetting(networksSetting, [entry], ['networks']);
    expect(source?.network).toEqual(defined[0]);
    defineNetworks([]);
    expect(findNetwork('acme-mainnet')).toBeUndefined();
  });

  test('may be one that the table has come to know, and then has the operator’s words', () => {
    const [known] = networks.filter(({ name }) => name === 'robinhood-mainnet');
    const yaml = `- {name: hood, selector: "${known?.selector}", chainId: ${known?.chainId}, displayName: Hood}`;
    defineNetworks(read(yaml));
    expect(findNetwork(known?.chainId ?? '')).toMatchObject({ name: 'hood', displayName: 'Hood' });
    expect(knownNetworks()).toHaveLength(networks.length);
  });
});

const defined = (name: string, selector: string, chainId: number) =>
  `- {name: ${name}, selector: "${selector}", chainId: ${chainId}}`;
test.each([
  ['something else than a list', 'a: 1', /chains is not a list/],
  ['an entry without keys', '- acme', /chains\[0\] is not a mapping of keys to values/],
  ['an unknown key', acme('chainid: 5'), /chains\[0\]\.chainid is an unknown key.*Did you mean chainId\?/],
  ['no name', '- {selector: "77"}', /chains\[0\]\.name is missing/],
  ['a name in capitals', '- {name: ACME, selector: "77", chainId: 1}', /name is "ACME"/],
  ['a name of digits', '- {name: "123", selector: "77", chainId: 1}', /name is "123"/],
  ['no selector', '- {name: acme, chainId: 1}', /selector is missing/],
  ['a selector without quotes', '- {name: acme, selector: 77, chainId: 1}', /selector .* in quotes/],
  ['too large a selector', defined('acme', '18446744073709551616', 1), /from 1 to 18446744073709551615/],
  ['no chain id', '- {name: acme, selector: "77"}', /chainId is missing.*eth_chainId/],
  ['a chain id in words', '- {name: acme, selector: "77", chainId: acme}', /chainId is "acme"/],
  ['an unknown family', acme('family: COSMOS'), /family is "COSMOS".*one of EVM, SVM/],
  ['an empty display name', acme('displayName: ""'), /displayName is ""/],
  ['a block explorer that is no website', acme('blockExplorer: "javascript:alert(1)"'), /blockExplorer/],
  ['a block explorer with a password', acme('blockExplorer: "https://a:b@c.example"'), /blockExplorer/],
  [
    'another selector',
    defined('acme', '5009297550715157269', 9),
    /which is ethereum-mainnet \(EVM chain 1\)/,
  ],
  ['a known name', defined('ethereum-mainnet', '77', 9), /name is .* already means ethereum-mainnet/],
  ['the chain id of another chain', defined('acme', '77', 1), /chainId is .* already means ethereum-mainnet/],
  ['a selector that is a chain id', '- {name: acme, selector: "1", chainId: 77}', /already means ethereum/],
  ['a chain twice', `${acme()}\n${acme()}`, /chains\[1\]\.selector is 77, which already means acme-mainnet/],
])('%s is rejected with its place', async (_, yaml, reason) => {
  const { message, remedy } = await operatorErrorOf(() => read(yaml));
  expect(`${message} ${remedy}`).toMatch(reason);
});
