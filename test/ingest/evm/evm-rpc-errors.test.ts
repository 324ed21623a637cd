/** What nodes and providers say when they reject, word for word, and what we make of it. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { NodeError, RangeTooLargeError } from '../../../src/ingest/engine/faults.ts';
import { openEvmCalls } from '../../../src/ingest/evm/destination-calls.ts';
import type { Hex } from '../../../src/ingest/evm/rpc/chain.ts';
import {
  briefly,
  CONTRACT,
  type FaultyNode,
  failureOf,
  impatient,
  makeSource,
  nameOf,
  openChain,
  range,
  startFaultyNode,
  TOPIC,
  whenAsked,
} from '../../chain/faulty-node.ts';
import { rpcError } from '../../json-rpc-server.ts';
import { logJson } from '../../virtual-chain/endpoint.ts';
import type { VirtualBlock } from '../../virtual-chain/virtual-chain.ts';

describe('a simulated call that a node gives up', () => {
  const call = { from: CONTRACT, to: CONTRACT, data: '0x1234' as Hex };
  const simulate = (nodes: readonly FaultyNode[]) => {
    const stopping = new AbortController();
    onTestFinished(() => stopping.abort());
    const options = { userAgent: 'lanescan/test', signal: stopping.signal, writeLog: () => undefined };
    return openEvmCalls(makeSource(nodes), options).simulate([call]);
  };
  const aborting = async () => {
    const node = await startFaultyNode();
    node.methods.eth_call = () => {
      throw rpcError(-32000, 'execution aborted (timeout = 5s)');
    };
    return node;
  };

  test('is asked of the next: the message did not fail in it', async () => {
    const answering = await startFaultyNode();
    answering.contracts[CONTRACT] = () => '0x01';
    expect((await simulate([await aborting(), answering])).outcomes).toEqual([{ returned: '0x01' }]);
  });

  test('is not known to fail where no other node answers', async () => {
    const failure = await failureOf(simulate([await aborting()]));
    expect(failure).toBeInstanceOf(NodeError);
    expect(failure.message).toMatch(/execution aborted \(timeout = 5s\)/);
  });
});

type Row = readonly [who: string, code: string, third: string, fourth: string];
/** The rows of a table, a line each, with ` | ` between the columns. */
const rowsOf = (table: string) =>
  table
    .trim()
    .split('\n')
    .map((line) => line.trim().split(' | ') as unknown as Row);

describe('wordings of RPC errors', () => {
  const rejecting = async (method: string, code: string, message: string) => {
    const node = await startFaultyNode();
    const chain = openChain([node]);
    await chain.run(nameOf);
    node.methods[method] = () => {
      throw rpcError(Number(code), message);
    };
    return { node, chain };
  };

  /** Who, code, how many blocks it says it would take of 20,000 asked for, and the message. */
  const tooLarge = rowsOf(`
    Alchemy | -32602 | 64 | Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x10, 0x4f]
    Alchemy, old | -32602 | 2000 | Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range
    Alchemy, free | -32600 | 10 | Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x1180fca, 0x1180fd3]. Upgrade to PAYG for expanded block range.
    Alchemy, slow | -32000 | 489 | Query timeout exceeded. Consider reducing your block range. Based on your parameters and the response size limit, this block range should work: [0x5223c98, 0x5223e80]
    Infura | -32005 | any | query returned more than 10000 results
    Infura, with a range | -32005 | 100 | query returned more than 10000 results. Try with this block range [0x1, 0x64].
    Infura, new | -32602 | 10000 | range 1000000 exceeds limit of 10000
    Infura, slow | -32005 | any | query timeout exceeded
    QuickNode | -32614 | 10000 | eth_getLogs is limited to a 10,000 range
    QuickNode, free | -32615 | 5 | eth_getLogs is limited to a 5 range
    Ankr | -32600 | any | block range is too wide
    Ankr, large | -32000 | any | Response is too big
    Moonbeam | -32603 | 1024 | block range is too wide (maximum 1024)
    publicnode, BNB | -32701 | 5000 | exceed maximum block range: 5000
    Cloudflare | -32047 | 800 | Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800
    Pocket | -32064 | 10000 | You cannot query logs for more than 10000 blocks at once.
    Coinbase | -32000 | 1000 | please limit the query to at most 1000 blocks
    an unnamed gateway | -32000 | 1000 | Block range too large: maximum allowed is 1000 blocks
    dRPC | 35 | 10000 | ranges over 10000 blocks are not supported on freetier
    BlastAPI | -32600 | 1000 | eth_getLogs is limited to a 1,000 blocks range
    BlockPI | -32602 | 1024 | eth_getLogs is limited to 1024 block range. Please check the parameter requirements at https://docs.blockpi.io
    BNB Chain | -32005 | any | limit exceeded
    Avalanche | -32000 | 2048 | requested too many blocks from 0 to 20000, maximum is set to 2048
    Base | -32000 | any | block range too large
    cdk-erigon | -32005 | 1000 | block range too large, max range: 1000
    Morph | -32000 | 5000 | block range is larger than max block range, block range = 5120, max block range = 5000
    reth | -32602 | any | query exceeds max block range 100000
    reth, short | -32602 | 1000 | query exceeds max block range 1000
    reth, many | -32602 | 500 | query exceeds max results 20000, retry with the range 100-599
    reth, large | -32008 | any | Response is too big
    Tenderly | -32005 | any | more than 20000 results
    Candle | -32600 | any | block range too high
    Chainstack | -32600 | any | Block range limit exceeded. See more details at https://docs.chainstack.com
    thirdweb | -32005 | 1000 | Log response size exceeded. Maximum allowed number of requested blocks is 1000
    thirdweb, in short | -32005 | any | Request exceeds defined limit.
    zkSync | -32602 | 2 | Query returned more than 10000 results. Try with this block range [0x2, 0x3].
    1RPC | -32602 | 10000 | eth_getLogs is limited to 0 - 10000 blocks range
    Nethermind, many | -32005 | any | Too many logs requested. Max logs per response is 20000.
    Arbitrum gateway | -32020 | any | backend response too large
    Arbitrum | -32000 | any | logs matched by query exceeds limit of 10000
    Tenderly, in short | -32602 | 2000 | invalid params: range 9009594 is bigger than range limit 2000
    Conflux | -32016 | 1000 | Error processing request: Filter error: The gap between from_epoch and to_epoch is larger than max_gap (from: 71160000, to: 71252840, max_gap: 1000)
    Arc | -32012 | 500 | block limit exceeded (maximum: 500)
    the code of Arc alone | -32012 | any | no
    no words that we know | -32000 | any | nope
    no words at all | -32603 | any | Internal error
    geth, slow | -32002 | any | request timed out
    Go, slow | -32000 | any | context deadline exceeded
    the code alone | -32005 | any | no
  `);

  test.each(tooLarge)('%s (%s), of which %s are accepted: %s', async (_who, code, accepted, message) => {
    const { chain, node } = await rejecting('eth_getLogs', code, message);
    const reject = node.methods.eth_getLogs as (params: readonly unknown[]) => unknown;
    node.methods.eth_getLogs = (params) => {
      const [{ fromBlock, toBlock }] = params as [{ fromBlock: Hex; toBlock: Hex }];
      return fromBlock === toBlock ? [] : reject(params);
    };
    const failure = await failureOf(chain.run((rpc) => rpc.logs({ ...range, toBlock: 19_999 })));
    expect(failure).toBeInstanceOf(RangeTooLargeError);
    expect((failure as RangeTooLargeError).acceptedBlocks).toBe(
      accepted === 'any' ? undefined : Number(accepted),
    );
    expect(chain.health()[0]).toMatchObject({ healthy: true, failures: 0 });
  });

  test('rejecting even one block is a fault, for there is nothing shorter', async () => {
    const { chain } = await rejecting('eth_getLogs', '-32005', 'query returned more than 10000 results');
    const one = await failureOf(chain.run((rpc) => rpc.logs({ ...range, toBlock: 0 })));
    expect(one).toBeInstanceOf(NodeError);
  });

  test('an HTTP status around the same words does not hide them', async () => {
    const node = await startFaultyNode();
    const chain = openChain([node]);
    await chain.run(nameOf);
    for (const status of [400, 403, 413, 500]) {
      const body =
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32614,"message":"eth_getLogs is limited to a 7 range"}}';
      node.misbehave = whenAsked('eth_getLogs', { status, body });
      expect(await failureOf(chain.run((rpc) => rpc.logs(range)))).toMatchObject({ acceptedBlocks: 7 });
    }
  });

  test.each(['hang', 'stall', { status: 504 }] as const)(
    'no answer in time for logs (%s) is the question where the node lives, and the node where it does not',
    { tags: 'slow' },
    async (misbehaviour) => {
      const node = await startFaultyNode();
      const chain = openChain([node], {}, { timing: impatient });
      await chain.run(nameOf);
      node.misbehave = whenAsked('eth_getLogs', misbehaviour);
      expect(await failureOf(chain.run((rpc) => rpc.logs(range)))).toBeInstanceOf(RangeTooLargeError);
      expect(chain.health()[0]).toMatchObject({ healthy: true, failures: 0 });
      node.misbehave = () => misbehaviour;
      expect(await failureOf(chain.run((rpc) => rpc.logs(range)))).toBeInstanceOf(NodeError);
    },
  );

  test('more logs than anybody should hold in memory are asked for in parts', { tags: 'slow' }, async () => {
    const node = await startFaultyNode();
    const chain = openChain([node], {}, { timing: { ...briefly, answerMs: 20_000, bodyMs: 20_000 } });
    await chain.run(nameOf);
    const [log] = node.chain.logs({ from: 0, to: 0 });
    const huge = { ...logJson(log as never), data: `0x${'00'.repeat(17 * 1024 * 1024)}` };
    node.methods.eth_getLogs = () => [huge];
    const failure = await failureOf(chain.run((rpc) => rpc.logs(range)));
    expect(failure).toBeInstanceOf(RangeTooLargeError);
    expect(failure.message).toMatch(/a response of more than 33554432 bytes/);
  });

  test.each(
    rowsOf(`
    Alchemy | 429 | Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message.
    Alchemy, month | -32600 | Monthly capacity limit exceeded. Visit https://dashboard.alchemy.com/settings/billing to upgrade your scaling policy
    Infura | -32005 | daily request count exceeded, request rate limited
    Infura, second | -32005 | project ID request rate exceeded
    QuickNode | -32007 | 50/second request limit reached - reduce calls per second or upgrade your account at quicknode.com
    QuickNode, day | -32003 | daily request limit reached - upgrade your account at quicknode.com
    Ankr | -32090 | Too many requests, reason: call rate limit exhausted, retry in 10s
    dRPC | 15 | Too many request, try again later
    BlastAPI | -32098 | You've reached your rate limit. Upgrade for more throughput.
    publicnode | -32000 | rate limit exceeded
    Chainstack | -32005 | You've exceeded the RPS limit available on the current plan.
    OnFinality | -32029 | Too Many Requests, Please apply an OnFinality API key or contact us to receive a higher rate limit
    LlamaNodes | -32000 | origin rate limited
    Cloudflare | 429 | You are being rate limited
    Tatum | -32000 | You have exceeded your quota
    `),
  )('%s (%s): %s — is about the rate', async (_who, code, message) => {
    const { node, chain } = await rejecting('eth_getLogs', code, message);
    const before = node.calls.length;
    const failure = await failureOf(chain.run((rpc) => rpc.logs(range)));
    expect(failure).toBeInstanceOf(NodeError);
    expect(failure.message).toMatch(/it wants fewer requests/);
    // Asked again after a pause; but not where the pause that it wants is too long.
    const asked = node.calls.length - before;
    if (/retry in 10s/.test(message)) expect(asked).toBe(1);
    else expect(asked).toBeGreaterThan(1);
  });

  test.each(
    rowsOf(`
    geth | 3 | execution reverted: not allowed
    geth, without a reason | -32000 | execution reverted
    geth, an invalid opcode | -32000 | invalid opcode: INVALID
    geth, too long | -32000 | execution aborted (timeout = 5s)
    geth, too much | -32000 | out of gas
    Nethermind | -32015 | VM execution error.
    OpenEthereum | -32015 | VM execution error: Reverted 0x
    Besu | -32000 | Execution reverted
    Hardhat | -32603 | VM Exception while processing transaction: reverted with reason string 'no'
    Ganache | -32000 | VM Exception while processing transaction: revert
    reth | -32003 | out of gas: gas required exceeds: 50000000
    Avalanche | -32000 | stack underflow (0 <=> 2)
    code 3 alone | 3 | whatever the contract says: method not found
    `),
  )('%s (%s): %s — is the contract', async (_who, code, message) => {
    const { chain } = await rejecting('eth_call', code, message);
    const call = { to: CONTRACT, data: '0x' as Hex };
    expect(await chain.run((rpc) => rpc.calls([call]))).toEqual([undefined]);
    expect(await chain.run((rpc) => rpc.calls([call, call]))).toEqual([undefined, undefined]);
    expect(chain.health()[0]).toMatchObject({ healthy: true, failures: 0 });
  });

  test.each(
    rowsOf(`
    geth | -32000 | missing trie node 1234 (path ) state 0x1234 is not available | does not have that part of history
    Nethermind | -32002 | No state available for block 17 | does not have that part of history
    Erigon | -32000 | old data not available due to pruning | does not have that part of history
    publicnode | -32602 | Archive requests require a personal token | does not have that part of history
    geth, 4444 | 4444 | pruned history unavailable | does not have that part of history
    geth, behind | -32000 | header not found | header not found
    a proxy | -32603 | Internal error | Internal error
    nobody | -32000 | no backends available for method | no backends
    `),
  )('%s (%s): %s — is the node, not the contract', async (_who, code, message, expected) => {
    const { chain } = await rejecting('eth_call', code, message);
    const failure = await failureOf(chain.run((rpc) => rpc.calls([{ to: CONTRACT, data: '0x' }])));
    expect(failure).toBeInstanceOf(NodeError);
    expect(failure.message).toMatch(expected);
  });

  test.each(
    rowsOf(`
    geth | -32601 | the method eth_getBlockReceipts does not exist/is not available
    Alchemy | -32600 | Unsupported method: eth_getBlockReceipts on ETH_SEPOLIA
    dRPC | -32601 | method is not available
    1RPC | -32000 | rpc method is not whitelisted
    a free plan | -32000 | eth_getBlockReceipts is not available on the Free plan
    Nethermind, old | -32004 | not here
    one that takes numbers only | -32602 | invalid argument 0: hex number > 64 bits
    `),
  )('%s (%s): %s — there are no receipts of whole blocks', async (_who, code, message) => {
    const { node, chain } = await rejecting('eth_getBlockReceipts', code, message);
    const { hash } = node.chain.block(node.chain.head) as VirtualBlock;
    const count = () => node.calls.filter(({ method }) => method === 'eth_getBlockReceipts').length;
    expect(await chain.run((rpc) => rpc.receiptLogs([hash], [TOPIC]))).toBeUndefined();
    expect(await chain.run((rpc) => rpc.receiptLogs([hash], [TOPIC]))).toBeUndefined();
    expect(count()).toBe(1);
    expect(chain.health()[0]).toMatchObject({ healthy: true, failures: 0 });
  });

  test.each(
    rowsOf(`
    Infura | -32002 | invalid project id
    Ankr | -32000 | Unauthorized: You must authenticate your request with an API key.
    Alchemy | -32600 | Must be authenticated!
    Polygon | -32051 | API key disabled, reason: tenant disabled
    `),
  )('%s (%s): %s — it does not let us in, and is left alone', async (_who, code, message) => {
    const { chain } = await rejecting('eth_getLogs', code, message);
    const failure = await failureOf(chain.run((rpc) => rpc.logs(range)));
    expect(failure.message).toMatch(/it does not let us in/);
    // Its rest is longer than anybody waits.
    expect((await failureOf(chain.run(nameOf))).message).toBe(failure.message);
  });

  test.each(
    rowsOf(`
    geth | -32602 | block range extends beyond current head block
    geth, old | -32000 | invalid block range params
    Nethermind | -32001 | One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found.
    Avalanche | -32000 | cannot query unfinalized data: requested block after last accepted block
    a proxy | -32603 | Internal error
    without logs | -32601 | the method eth_getLogs does not exist/is not available
    `),
  )('%s (%s): %s — no shorter range would help', async (_who, code, message) => {
    const { chain } = await rejecting('eth_getLogs', code, message);
    const failure = await failureOf(chain.run((rpc) => rpc.logs(range)));
    expect(failure).toBeInstanceOf(NodeError);
  });

  test.each(
    rowsOf(`
    geth | -32000 | unknown block
    Erigon | -32000 | block not found: 0x1234
    Besu | -39001 | Unknown block
    a proxy | -32000 | header for hash not found
    `),
  )('%s (%s): %s — a block that is not known by its hash is no fault', async (_who, code, message) => {
    const { chain } = await rejecting('eth_getBlockByHash', code, message);
    expect(await chain.run((rpc) => rpc.blockByHash(`0x${'12'.repeat(32)}`))).toBeUndefined();
  });
});
