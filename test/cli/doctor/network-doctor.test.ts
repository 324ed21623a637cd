// @module-tag slow: starts the program many times, and waits for endpoints that are silent
/** What `lanescan doctor` finds out about the networks to index, from nodes of every kind. */
import { encodeAbiParameters } from 'viem';
import { expect, test } from 'vitest';
import {
  CONTRACT,
  type FaultyNode,
  makeTinyChain,
  network,
  startFaultyNode,
} from '../../chain/faulty-node.ts';
import { provideTestDatabase } from '../../database.ts';
import { rpcError } from '../../json-rpc-server.ts';
import { configFile, lanescanOn } from '../program.ts';

const database = provideTestDatabase();

const typeAndVersion = (words: string) => () => encodeAbiParameters([{ type: 'string' }], [words]);

async function startNode(chain = makeTinyChain(2_500)): Promise<FaultyNode> {
  const node = await startFaultyNode({ chain });
  node.contracts[CONTRACT] = typeAndVersion('Router 1.2.0');
  return node;
}

/** With these settings of a network. */
const doctor = (settings: string) => {
  const config = configFile(`networks:\n  - {network: 1337, ${settings}}\n`);
  return lanescanOn(database, 'doctor', '--port', '0', '--config', config);
};

async function examine(nodes: readonly FaultyNode[], more = '', routers: readonly string[] = [CONTRACT]) {
  const rpc = nodes.map(({ host }, index) => `http://user:hush-hush@${host}/hush-hush?key=hush-${index}`);
  const places = `rpc: ${JSON.stringify(rpc)}, routers: ${JSON.stringify(routers)}`;
  const { code, stdout, stderr } = await doctor(`${places}, requestsPerSecond: 1000, ${more}`);
  expect(stdout + stderr).not.toContain('hush');
  const lines = stdout.split('\n').filter((line) => line.includes(network.name) || line.startsWith('  →'));
  return { code, text: lines.join('\n').replaceAll(nodes[0]?.host ?? '', 'NODE') };
}

test('a good endpoint is shown with all it can do', async () => {
  const node = await startNode();
  const { code, text } = await examine([node], 'start: 700, maxRange: 2000, batchSize: 20');
  expect(text).toMatch(
    /^✓ geth-testnet at NODE: head 2499, \d+ s old, final up to 2496, logs of 2,000 blocks at once, batches of 20, logs from block 700 on, state of every block\n✓ geth-testnet: router 0x(c0){20} is Router 1\.2\.0$/,
  );
  expect(code).toBe(0);
});

test('a start by date is found on the chain', async () => {
  const chain = makeTinyChain(2_500);
  const { text } = await examine(
    [await startNode(chain)],
    `start: "${new Date((chain.block(1_234)?.timestamp ?? 0) * 1000).toISOString()}"`,
  );
  expect(text).toContain('logs from block 1234 on');
});

test('what an endpoint does not take is told, and what to do about it', async () => {
  const node = await startNode(makeTinyChain(2_500, Date.now() - 3 * 3_600_000));
  node.misbehave = (calls) => (calls.length > 1 ? { status: 400, body: 'no' } : undefined);
  node.methods.eth_getLogs = ([filter]) => {
    const { fromBlock, toBlock } = filter as { fromBlock: string; toBlock: string };
    if (Number(fromBlock) < 1_000) throw rpcError(4444, 'pruned history unavailable');
    if (Number(toBlock) - Number(fromBlock) > 49)
      throw rpcError(-32614, 'eth_getLogs is limited to a 50 range');
    return [];
  };
  node.methods.eth_getBalance = ([, tag]) => {
    if (Number(tag) < 2_300) throw rpcError(-32000, 'missing trie node');
    return '0x0';
  };
  const { code, text } = await examine([node], 'start: 700, finality: 5');
  expect(text.split('\n')).toEqual([
    '✓ geth-testnet at NODE: head 2499, 3 h old, final up to 2494, logs of 50 blocks at once, no batches, state of the newest 100 blocks or more',
    '! geth-testnet at NODE: the newest block is 3 h old',
    expect.stringMatching(/^ {2}→ The node may have fallen behind/),
    '! geth-testnet at NODE: eth_getLogs: it does not have that part of history: pruned history unavailable (4444)',
    '  → Use an endpoint with the whole history, or a later `start`.',
    '! geth-testnet at NODE: it gives logs of 50 blocks at once, and history is long',
    expect.stringMatching(/^ {2}→ Use an endpoint or a plan with a longer range/),
    expect.stringMatching(/^✓ geth-testnet: router .* is Router 1\.2\.0$/),
  ]);
  expect(code).toBe(0);
});

test('a finalized tag that is not known must be mended', async () => {
  const node = await startNode();
  node.finalityDepth = Number.NaN;
  const { code, text } = await examine([node]);
  expect(text).toMatch(
    /✗ geth-testnet at NODE: eth_getBlockByNumber: it knows no finalized block; .*\n {2}→ Set `finality` to a depth/,
  );
  expect(code).toBe(1);
});

test('one endpoint of several may be down; none that answers is a fault', async () => {
  const [dead, foreign, good] = [await startNode(), await startFaultyNode({ chainId: 5 }), await startNode()];
  await dead.down();
  const { code, text } = await examine([dead, foreign, good]);
  expect(text).toMatch(
    /! geth-testnet at NODE: eth_chainId, eth_getBlockByNumber: no connection \(ECONNREFUSED\)/,
  );
  expect(text).toMatch(/! geth-testnet at \S+: it is a node of chain 5, and geth-testnet is chain 1337/);
  expect(text).toMatch(/✓ geth-testnet at \S+: head 2499/);
  expect(code).toBe(0);
  const alone = await examine([dead]);
  expect(alone.text).toMatch(/✗ geth-testnet at NODE: .*ECONNREFUSED.*\n {2}→ Check its URL and its key\./);
  expect(alone.text).toMatch(/✗ geth-testnet: no endpoint can be used/);
  expect(alone.code).toBe(1);
});

test('an endpoint that is silent does not hold up the others for long', async () => {
  const [silent, good] = [await startNode(), await startNode()];
  silent.misbehave = () => 'hang';
  const { text } = await examine([silent, good]);
  expect(text).toMatch(/! geth-testnet at NODE: .*: no answer within 5 s/);
  expect(text).toMatch(/✓ geth-testnet at \S+: head 2499/);
  // It was asked once.
  expect(silent.requests).toHaveLength(1);
});

test('a router must be there, call itself one, and be the same for all endpoints', async () => {
  const [first, second] = [await startNode(), await startNode()];
  const [missing = '', pool = '', disputed = ''] = ['11', '22', '33'].map((byte) => `0x${byte.repeat(20)}`);
  for (const node of [first, second]) node.contracts[pool] = typeAndVersion('TokenPool 1.5.0\u001b[2J');
  first.contracts[disputed] = typeAndVersion('Router 1.2.0');
  const { code, text } = await examine([first, second], '', [CONTRACT, missing, pool, disputed]);
  expect(text).toMatch(/✓ geth-testnet: router 0x(c0){20} is Router 1\.2\.0/);
  expect(text).toMatch(/✗ geth-testnet: router 0x(11){20}: there is no contract\n {2}→ Check `routers`/);
  expect(text).toMatch(/✗ geth-testnet: router 0x(22){20} calls itself TokenPool 1\.5\.0\\u\{1b\}\[2J/);
  expect(text).toMatch(/✗ geth-testnet: router 0x(33){20}: NODE and \S+ disagree about it/);
  expect(code).toBe(1);
});

test('a mistake in `networks` is reported like any other', async () => {
  const { code, stdout } = await doctor(`rpc: ["\${NOWHERE_RPC}"], routers: ["${CONTRACT}"]`);
  expect(stdout).toMatch(
    /✗ Networks: networks\[0\]\.rpc\[0\] in .* needs the variable NOWHERE_RPC.*\n {2}→ Set it/,
  );
  expect(code).toBe(1);
});
