/** Chains that lanescan.yaml defines, in the verbs and in what the server says of networks. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { defineNetworks } from '../../../src/domain/networks/networks.ts';
import { startServerForTest } from '../../api/running-server.ts';
import { createTestDatabase, type TestDatabase } from '../../database.ts';
import { makeMessage, sepolia } from '../../fixtures.ts';
import { freshFolder, lanescan } from '../program.ts';

const acme = { name: 'acme-mainnet', chainSelector: '77', chainId: '770077', displayName: 'Acme' } as const;
const message = makeMessage({ sourceNetworkInfo: { ...acme, chainFamily: 'EVM' }, destNetworkInfo: sepolia });
let database: TestDatabase;
let config: string;

beforeAll(async () => {
  database = await createTestDatabase();
  config = path.join(freshFolder(), 'lanescan.yaml');
  writeFileSync(
    config,
    'chains:\n- {name: acme-mainnet, selector: "77", chainId: 770077, displayName: Acme, blockExplorer: "https://acme.example"}\n',
  );
  return () => database.drop();
});
afterEach(() => defineNetworks([]));

const run = (...args: string[]) =>
  lanescan([...args, '--config', config], {
    env: { DATABASE_URL: database.url },
    input: JSON.stringify(message),
  });

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
  const { code, stderr } = await lanescan(['search', '--source', 'acme-mainnet'], {
    env: { DATABASE_URL: database.url },
  });
  expect(code).toBe(2);
  expect(stderr).toMatch(/unknown network, "acme-mainnet"/);
});

test('the server lists a defined chain with its block explorer', async () => {
  defineNetworks([
    {
      name: 'acme-mainnet',
      selector: '77',
      chainId: '770077',
      family: 'EVM',
      displayName: 'Acme',
      blockExplorer: 'https://acme.example',
    },
  ]);
  const server = await startServerForTest([message]);
  const { data } = JSON.parse((await server.ask('/v2/networks')).text) as { data: { name: string }[] };
  expect(data.find(({ name }) => name === 'acme-mainnet')).toMatchObject({
    chainFamily: 'EVM',
    blockExplorer: 'https://acme.example',
    sent: 1,
  });
  expect(data.find(({ name }) => name === 'ethereum-mainnet')).toMatchObject({
    blockExplorer: 'https://etherscan.io',
  });
});
