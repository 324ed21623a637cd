/** Chains that lanescan.yaml defines, in the verbs and in what the server says of networks. */
import { afterEach, expect, test } from 'vitest';
import { defineNetworks } from '../../../src/domain/networks/networks.ts';
import { startServerForTest } from '../../api/running-server.ts';
import { provideTestDatabase } from '../../database.ts';
import { makeMessage, sepolia } from '../../fixtures.ts';
import { configFile, lanescan, lanescanOn } from '../program.ts';

const acme = { name: 'acme-mainnet', chainSelector: '77', chainId: '770077', displayName: 'Acme' } as const;
const message = makeMessage({ sourceNetworkInfo: { ...acme, chainFamily: 'EVM' }, destNetworkInfo: sepolia });
const blockExplorer = 'https://acme.example';
const definition = `{name: acme-mainnet, selector: "77", chainId: 770077, displayName: Acme, blockExplorer: "${blockExplorer}"}`;
const config = configFile(`chains:\n- ${definition}\n`);
const database = provideTestDatabase();
afterEach(() => defineNetworks([]));

const run = (...args: string[]) => {
  const env = { DATABASE_URL: database.url };
  return lanescan([...args, '--config', config], { env, input: JSON.stringify(message) });
};

test('a search by the name of a defined chain finds its messages', async () => {
  const imported = await run('import', '-');
  expect(imported.code, imported.stderr).toBe(0);
  for (const name of ['acme-mainnet', 'Acme', '770077', '77']) {
    const { code, stdout, stderr } = await run('search', '--source', name, '--json');
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ messageId: message.messageId });
  }
  const { stdout } = await run('lanes', '--source', 'acme-mainnet', '--json');
  expect(JSON.parse(stdout)).toMatchObject({ sourceNetworkInfo: acme });
});

test('without its definition the name is unknown', async () => {
  const { code, stderr } = await lanescanOn(database, 'search', '--source', 'acme-mainnet');
  expect(code).toBe(2);
  expect(stderr).toMatch(/unknown network, "acme-mainnet"/);
});

test('the server lists a defined chain with its block explorer', async () => {
  const { chainSelector: selector, ...names } = acme;
  defineNetworks([{ ...names, selector, family: 'EVM', blockExplorer }]);
  const server = await startServerForTest([message]);
  const { data } = JSON.parse((await server.ask('/v2/networks')).text) as { data: { name: string }[] };
  const named = (wanted: string) => data.find(({ name }) => name === wanted);
  expect(named('acme-mainnet')).toMatchObject({ chainFamily: 'EVM', blockExplorer, sent: 1 });
  expect(named('ethereum-mainnet')).toMatchObject({ blockExplorer: 'https://etherscan.io' });
});
