/** Endpoints that fail, answer wrongly and reject calls, over real sockets. */
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { NodeError, RangeTooLargeError, reasonOf } from '../../../src/ingest/engine/faults.ts';
import { createTokenBucket } from '../../../src/ingest/engine/json-rpc/token-bucket.ts';
import type { ChainNode, Hex } from '../../../src/ingest/evm/rpc/chain.ts';
import {
  briefly,
  CONTRACT,
  failureOf,
  impatient,
  makeTinyChain,
  nameOf,
  network,
  openChain,
  openNodes,
  range,
  startFaultyNode,
  TOPIC,
  whenAsked,
} from '../../chain/faulty-node.ts';
import { type Fault, type JsonRpcCall, rpcError } from '../../json-rpc-server.ts';
import { quantity } from '../../virtual-chain/endpoint.ts';
import type { VirtualBlock, VirtualChain } from '../../virtual-chain/virtual-chain.ts';

const blockOf = (chain: VirtualChain, number: number) => chain.block(number) as VirtualBlock;
const hashOf = (chain: VirtualChain, number: number) => blockOf(chain, number).hash;

const WAIT = { timeout: 120_000 };
const expectNodeError = async (work: Promise<unknown>, words: RegExp) => {
  const failure = await failureOf(work);
  expect(failure).toBeInstanceOf(NodeError);
  expect(failure.message).toMatch(words);
};
const lie = async () => {
  throw new NodeError('it lied');
};
/** Rejects the calls of a batch from this one on. */
const rejectingFrom = (first: number, error: object): Fault => ({
  change: (answer) =>
    (answer as { id: number }[]).map((one, index) => (index < first ? one : { id: one.id, error })),
});
const isFine = { healthy: true, failures: 0 };
/** Log lines of a chain, and how long its endpoints were set back for, in seconds. */
const logged = () => {
  const lines: string[] = [];
  const rests = () => lines.flatMap((line) => /set back for ([\d.]+) s/.exec(line)?.[1] ?? []).map(Number);
  return { lines, rests, writeLog: (line: string) => void lines.push(line) };
};
const foreign: Hex = `0x${'ee'.repeat(32)}`;

describe('an endpoint without faults', () => {
  test('is healthy, has every call counted, and keeps its connections', async () => {
    const { node, chain } = await openNodes(1, { batchSize: 4 });
    await chain.run(async (rpc) => {
      expect(rpc.name).toBe(node.host);
      await rpc.blocks([1, 2, 3, 4, 5, 6]);
      await rpc.logs(range);
    });
    const fine = { healthy: true, problem: null, headBlock: 29, failures: 0 };
    expect(chain.health()).toEqual([{ name: node.host, requests: node.calls.length, ...fine }]);
    expect(new Set(node.requests.map(({ headers }) => headers.connection))).toEqual(new Set(['keep-alive']));
  });

  test('is never asked for no topics or no addresses, which would mean any', async () => {
    const { node, chain } = await openNodes(1);
    await chain.run(async (rpc) => {
      expect(await rpc.logs({ ...range, topics: [] })).toEqual([]);
      expect(await rpc.logs({ ...range, addresses: [] })).toEqual([]);
      expect(await rpc.logsOfBlocks([hashOf(node.chain, 29)], [])).toEqual([[]]);
    });
    expect(node.calls.map(({ method }) => method)).not.toContain('eth_getLogs');
  });

  test('gets path and query of its URL, user and password in a header, and no error shows them', async () => {
    const node = await startFaultyNode();
    const url = new URL(`http://us%20er:pass%3Aword@${node.host}/v3/secret-key?token=hidden-token`);
    const chain = openChain([node], { rpc: [url] }, { userAgent: 'lanescan/9' });
    expect(await chain.run(nameOf)).toBe(node.host);
    const [request] = node.requests;
    expect(request?.headers.authorization).toBe(`Basic ${Buffer.from('us er:pass:word').toString('base64')}`);
    expect(request?.headers['user-agent']).toBe('lanescan/9');
    expect(request?.url).toBe('/v3/secret-key?token=hidden-token');
    node.methods.eth_getLogs = () => {
      throw rpcError(-32000, 'nothing for secret-key, hidden-token or pass%3Aword\u001b[31m');
    };
    const { message } = await failureOf(chain.run((rpc) => rpc.logs(range)));
    expect(message).toBe(`${node.host}: eth_getLogs: nothing for …, … or … [31m (-32000)`);
  });
});

describe('finality', () => {
  test.each([
    ['finalized', 26],
    ['safe', 26],
    [0, 29],
    [5, 24],
    [1000, 0],
  ] as const)('%s is block %s of a chain whose head is 29', async (finality, number) => {
    const { node, chain } = await openNodes(1, { finality });
    const found = await chain.run(async (rpc) => rpc.finalized(await rpc.head()));
    expect(found).toMatchObject({ number, hash: hashOf(node.chain, number) });
  });

  test('never passes the head that was read before it', async () => {
    const { node, chain } = await openNodes(1);
    node.finalityDepth = 0;
    const found = await chain.run(async (rpc) => {
      const head = await rpc.head();
      node.chain.grow(3);
      return rpc.finalized(head);
    });
    expect(found.number).toBe(29);
  });

  test.each([
    ['no block', undefined],
    ['geth without a consensus client', [-32000, 'finalized block not found']],
    ['Besu and Erigon', [-39001, 'Unknown block']],
    ['a node before the merge', [-32602, 'invalid argument 0: hex string without 0x prefix']],
    ['Rootstock', [-32602, 'unsupported block tag: finalized']],
  ] as const)('that a node does not know (%s) is an error with the remedy', async (_who, error) => {
    const { node, chain } = await openNodes(1);
    node.methods.eth_getBlockByNumber = ([tag]) => {
      if (tag === 'finalized') {
        if (error) throw rpcError(error[0], error[1]);
        return null;
      }
      const { number, timestamp, ...rest } = blockOf(node.chain, node.chain.head);
      return { ...rest, number: quantity(number), timestamp: quantity(timestamp) };
    };
    const finalized = chain.run(async (rpc) => rpc.finalized(await rpc.head()));
    await expectNodeError(finalized, /knows no finalized block; configure a depth .*`finality: 64`/);
  });
});

describe('failures of the transport', () => {
  type Failure = readonly [name: string, misbehaviour: Fault, problem: RegExp];
  const silences: readonly Failure[] = [
    ['no answer', 'hang', /no answer within 4 s/],
    ['half an answer and silence', 'stall', /no whole answer within 4 s/],
  ];
  const elsewhere = { location: 'http://elsewhere.example/' };
  const failures: readonly Failure[] = [
    ['a connection that is reset', 'reset', /no connection \(.*(ECONNRESET|SOCKET)/],
    ['half an answer and the end', 'cut', /no connection \(.*(terminated|SOCKET|ECONNRESET)/],
    ['half an answer as if it were whole', 'truncate', /an answer that is no JSON/],
    ['a redirect', { status: 302, headers: elsewhere }, /HTTP 302: it redirects/],
    ['a page of HTML', { status: 200, body: '<html>' }, /an answer that is no JSON/],
    ['a wrong key', { status: 401, body: 'no' }, /HTTP 401: it does not let us in/],
    ['a gateway without a node', { status: 502, body: '<html>' }, /HTTP 502/],
    ['a gateway that waited', { status: 504, body: '' }, /HTTP 504/],
  ];

  const isNoticed = async (fault: Fault, expected: RegExp, timing = briefly) => {
    const { nodes, chain } = await openNodes(2, {}, { timing });
    const [bad, good] = nodes;
    expect(await chain.run(nameOf)).toBe(bad.host);
    bad.misbehave = () => fault;
    expect(await chain.run(nameOf)).toBe(good.host);
    expect(chain.health()).toMatchObject([
      { name: bad.host, healthy: false, problem: expect.stringMatching(expected) },
      { healthy: true, failures: 0 },
    ]);
    expect(chain.health()[0]?.failures).toBeGreaterThan(0);
    await expectNodeError(openChain([bad], {}, { timing }).run(nameOf), expected);
  };
  const title = '%s moves the work to the next endpoint, and is a NodeError where there is none';
  test.each(failures)(title, (_, ...failure) => isNoticed(...failure));
  test.each(silences)(title, { tags: 'slow' }, (_, ...failure) => isNoticed(...failure, impatient));

  test('a connection that is reset once is tried again at once, and nobody is blamed', async () => {
    const { node, chain } = await openNodes(1);
    await chain.run(nameOf);
    let resets = 1;
    node.misbehave = () => (resets-- > 0 ? 'reset' : undefined);
    await chain.run(nameOf);
    expect(chain.health()[0]).toMatchObject(isFine);
  });

  test('an endpoint that is down is set back, and comes back when it is up', async () => {
    const { lines, writeLog } = logged();
    const { nodes, chain } = await openNodes(2, {}, { writeLog });
    const [first, second] = nodes;
    expect(await chain.run(nameOf)).toBe(first.host);
    await first.down();
    expect(await chain.run(nameOf)).toBe(second.host);
    await first.up();
    await vi.waitFor(async () => expect(await chain.run(nameOf)).toBe(first.host), WAIT);
    expect(lines).toEqual([
      expect.stringMatching(new RegExp(`^${first.host}: .*ECONNREFUSED.*; set back for`)),
      `${first.host} is back`,
    ]);
  });

  test('a contract that keeps the node busy beyond all patience, again and again, rejects; the others are answered', {
    tags: 'slow',
  }, async () => {
    const { node, chain } = await openNodes(1, {}, { timing: impatient });
    const hostile = `0x${'99'.repeat(20)}` as Hex;
    node.methods.eth_call = ([call]) => `0x${(call as { to: string }).to.slice(2)}`;
    const isToHostile = ({ params }: JsonRpcCall) =>
      (params[0] as { to?: string } | undefined)?.to === hostile;
    node.misbehave = (calls) => (calls.some(isToHostile) ? 'hang' : undefined);
    const others = [1, 2, 3].map((digit) => `0x${`0${digit}`.repeat(20)}` as Hex);
    const asked = [...others, hostile].map((to) => ({ to, data: '0x01' as const }));
    // At first it may be the node that is slow.
    for (let time = 1; time <= 2; time++)
      await expect(chain.run((rpc) => rpc.calls(asked))).rejects.toThrow('no answer within 4 s');
    expect(await chain.run((rpc) => rpc.calls(asked))).toEqual([...others, undefined]);
    // From now on it is not asked any more.
    const known = node.requests.length;
    expect(await chain.run((rpc) => rpc.calls(asked.slice(-1)))).toEqual([undefined]);
    const later = node.requests.slice(known).flatMap(({ calls }) => calls);
    expect(later.map(({ method }) => method)).not.toContain('eth_call');
  });

  test('a node that has fallen back behind what it showed is not believed that there is no contract', async () => {
    const { nodes, chain } = await openNodes(2);
    const [fallen, good] = nodes;
    const height = await chain.run(async (rpc) => (await rpc.head()).number);
    good.methods.eth_call = () => '0x01';
    fallen.methods.eth_call = () => '0x';
    const asked = [{ to: `0x${'01'.repeat(20)}` as Hex, data: '0x01' as const }];
    expect(await chain.run((rpc) => rpc.calls(asked))).toEqual([undefined]);
    fallen.chain.grow(-1);
    expect(await chain.run((rpc) => rpc.calls(asked))).toEqual(['0x01']);
    expect(chain.health()[0]?.problem).toContain(`its state is of block ${height - 1}`);
  });

  test('while one is silent, work on another goes on without waiting for it', { tags: 'slow' }, async () => {
    const { nodes, chain } = await openNodes(2, {}, { timing: { ...briefly, answerMs: 60_000 } });
    const [silent, good] = nodes;
    silent.misbehave = () => 'hang';
    // Were the silent one waited for, this would take a minute a time.
    for (let i = 0; i < 5; i++) expect(await chain.run(nameOf)).toBe(good.host);
  });

  test('rests grow with every failure, and many failures at once are one', async () => {
    const { rests, writeLog } = logged();
    const timing = { ...briefly, firstPauseMs: 40, longestPauseMs: 320, maxWaitMs: 5_000 };
    const { chain } = await openNodes(1, {}, { random: () => 1, timing, writeLog });
    /** Fails as many pieces of work as are given, once all of them are under way. */
    const fail = async (count: number) => {
      let underWay = 0;
      const lieTogether = async () => {
        underWay++;
        await vi.waitFor(() => expect(underWay).toBe(count), WAIT);
        await lie();
      };
      await Promise.all(Array.from({ length: count }, () => failureOf(chain.run(lieTogether))));
    };
    await fail(3);
    for (let i = 0; i < 4; i++) await fail(1);
    expect(rests()).toEqual([0, 0.1, 0.2, 0.3, 0.3]);
  });

  test.each(['header not found', 'history has been pruned for this block'])(
    'rests do not grow beyond a moment where it answers but rejects: %s',
    async (words) => {
      const { rests, writeLog } = logged();
      const timing = { ...briefly, firstPauseMs: 100, longestPauseMs: 10_000, maxWaitMs: 5_000 };
      const { node, chain } = await openNodes(1, {}, { random: () => 1, timing, writeLog });
      node.methods.eth_getLogs = () => {
        throw rpcError(-32000, words);
      };
      for (let i = 0; i < 4; i++)
        await failureOf(chain.run((rpc) => rpc.logs({ fromBlock: 1, toBlock: 1, topics: [TOPIC] })));
      expect(rests()).toEqual([0.1, 0.2, 0.2, 0.2]);
    },
  );

  test('the end of everything ends a request, a wait for the rate and a rest at once', async () => {
    const [silent, slow, resting] = (await openNodes(3)).nodes;
    const stopping = new AbortController();
    const hour = 3_600_000;
    const timing = { ...briefly, answerMs: hour, maxWaitMs: hour, firstPauseMs: hour, longestPauseMs: hour };
    const options = { timing, signal: stopping.signal };
    const chains = [
      openChain([silent], {}, options),
      openChain([slow], { requestsPerSecond: 0.001 }, options),
      openChain([resting], {}, options),
    ] as const;
    silent.misbehave = () => 'hang';
    await failureOf(chains[2].run(lie));
    const failures = chains.map((chain) => failureOf(chain.run(nameOf)));
    await delay(50);
    stopping.abort(new Error('stop it'));
    for (const failure of await Promise.all(failures)) expect(failure).not.toBeInstanceOf(NodeError);
    for (const chain of chains) expect((await failureOf(chain.run(nameOf))).message).toBe('stop it');
  });

  test('a closed chain answers nothing any more', async () => {
    const { chain } = await openNodes(1);
    await chain.run(nameOf);
    chain.close();
    expect((await failureOf(chain.run(nameOf))).message).toMatch(/are closed/);
  });
});

describe('choosing an endpoint', () => {
  test.each<[string, { chainId?: number }, Fault | undefined, string]>([
    ['of another network', { chainId: 1 }, undefined, `of chain 1, and ${network.name} is chain 1337`],
    ['that rejects the key', {}, { status: 401, body: 'no' }, 'it does not let us in'],
  ])('one %s gets no work, says why, and is left alone for 5 minutes', async (_what, options, fault, why) => {
    const [bad, good] = [await startFaultyNode(options), await startFaultyNode()];
    bad.misbehave = () => fault;
    const { rests, writeLog } = logged();
    // Other failures would be forgotten after a millisecond.
    const timing = { ...briefly, firstPauseMs: 1, longestPauseMs: 1, longestRetryAfterMs: 600_000 };
    const chain = openChain([bad, good], {}, { timing, writeLog });
    expect(await chain.run(nameOf)).toBe(good.host);
    await vi.waitFor(() => expect(rests()).toContain(300), WAIT);
    expect(chain.health()[0]?.problem).toContain(why);
    const asked = bad.calls.length;
    const probes = ['eth_chainId', 'eth_getBlockByNumber'];
    expect(bad.calls.filter(({ method }) => !probes.includes(method))).toEqual([]);
    for (let i = 0; i < 5; i++) {
      await delay(5);
      expect(await chain.run(nameOf)).toBe(good.host);
    }
    expect(bad.calls.length).toBe(asked);
  });

  test('of a long text that a node answers with, at most 300 characters are shown and stored', async () => {
    const { node, chain } = await openNodes(1, { batchSize: 1 });
    const error = { code: -32000, message: 'far too long '.repeat(1_000) };
    node.misbehave = () => ({ change: (answer) => ({ ...(answer as object), result: undefined, error }) });
    const failure = await failureOf(chain.run(nameOf));
    expect(failure.message).toContain('far too long far too long');
    expect(failure.message.length).toBeLessThanOrEqual(300);
    expect(reasonOf(new NodeError('x'.repeat(301)))).toBe('x'.repeat(300));
  });

  test('says again who it is after every failure', async () => {
    const { node, chain } = await openNodes(1);
    await chain.run(nameOf);
    node.misbehave = () => ({ status: 500, body: '' });
    await failureOf(chain.run(nameOf));
    node.misbehave = () => undefined;
    node.chainId = 5;
    await expectNodeError(chain.run(nameOf), /it is a node of chain 5/);
  });

  test('one that is behind our position is passed over, without blame, until it has caught up', async () => {
    const [stale, good] = [await startFaultyNode({ chain: makeTinyChain(20) }), await startFaultyNode()];
    const chain = openChain([stale, good]);
    expect(await chain.run(nameOf)).toBe(stale.host);
    expect(await chain.run(nameOf, 25)).toBe(good.host);
    const problem = `${stale.host}: its head 19 is behind block 25`;
    expect(chain.health()[0]).toMatchObject({ healthy: false, problem, headBlock: 19, failures: 0 });
    // Where all are behind, that is said.
    await expectNodeError(openChain([stale]).run(nameOf, 25), new RegExp(problem));
    expect(await chain.run(nameOf, 10)).toBe(stale.host);
    stale.chain.grow(8);
    await vi.waitFor(async () => expect(await chain.run(nameOf, 25)).toBe(stale.host), WAIT);
    expect(chain.health()[0]).toMatchObject({ healthy: true, headBlock: 27 });
  });

  test('work that finds fault with a node is given to the next one, once each, and the last error is thrown', async () => {
    const { nodes, chain } = await openNodes(3);
    await chain.run(nameOf);
    const heads = () => chain.health().map(({ headBlock }) => headBlock);
    await vi.waitFor(() => expect(heads()).toEqual([29, 29, 29]), WAIT);
    const seen: string[] = [];
    const failure = await failureOf(
      chain.run(async (rpc) => {
        seen.push(rpc.name);
        throw new NodeError(`${rpc.name} lied`);
      }),
    );
    expect(seen).toEqual(nodes.map(({ host }) => host));
    expect(failure.message).toBe(`${nodes[2].host} lied`);
    expect(chain.health().map(({ failures }) => failures)).toEqual([1, 1, 1]);
  });

  test.each([new RangeTooLargeError('shorter', 5), new Error('the database is away')])(
    'another error of the work passes through and blames nobody: %s',
    async (error) => {
      const { chain } = await openNodes(2);
      expect(await failureOf(chain.run(() => Promise.reject(error)))).toBe(error);
      expect(chain.health()).toMatchObject([isFine, isFine]);
    },
  );

  test('a second opinion comes from another endpoint, or from none', async () => {
    const { nodes, chain } = await openNodes(3);
    const [first, second, third] = nodes;
    const opinions = await chain.run(async (rpc) => [
      await chain.secondOpinion(rpc, nameOf),
      await chain.secondOpinion(rpc, async (other) => {
        if (other.name === second.host) throw new NodeError('it lied');
        return nameOf(other);
      }),
    ]);
    expect(opinions).toEqual([second.host, third.host]);
    expect(chain.health().map(({ failures }) => failures)).toEqual([0, 1, 0]);
    const alone = openChain([first]);
    expect(await alone.run((rpc) => alone.secondOpinion(rpc, nameOf))).toBeUndefined();
  });

  test('an opinion is not waited for until an endpoint that is silent has run out of time', {
    tags: 'slow',
  }, async () => {
    const { nodes, chain } = await openNodes(2, {}, { timing: { ...briefly, answerMs: 60_000 } });
    nodes[1].misbehave = () => 'hang';
    expect(await chain.run((rpc) => chain.secondOpinion(rpc, nameOf))).toBeUndefined();
  });

  test('two endpoints of one host are told apart', async () => {
    const node = await startFaultyNode();
    const chain = openChain([node], { rpc: [new URL('/one', node.url), new URL('/two', node.url)] });
    expect(chain.health().map(({ name }) => name)).toEqual([node.host, `${node.host} (2)`]);
  });
});

describe('answers that cannot be believed', () => {
  type Json = Record<string, unknown>;
  /** Changes the whole answer, its results, its block, or its first log. */
  const answer = (change: (answer: Json) => unknown): Fault => ({ change: (given) => change(given as Json) });
  const answers = (change: (answers: Json[]) => unknown): Fault => ({
    change: (given) => change(given as Json[]),
  });
  const result = (change: (result: never) => unknown): Fault => ({
    change: (given) => {
      const changed = (one: { result: never }) => ({ ...one, result: change(one.result) });
      return Array.isArray(given) ? given.map(changed) : changed(given as { result: never });
    },
  });
  const block = (change: Json) => result((given: Json) => ({ ...given, ...change }));
  const logs = (change: (logs: Json[]) => unknown) => result(change as never);
  const firstLog = (change: Json) => logs(([first, ...rest]) => [{ ...first, ...change }, ...rest]);

  const tiny = makeTinyChain(30);
  const hash = hashOf(tiny, 3);
  const otherTransaction = { ...blockOf(tiny, 0).transactions[0], input: '0x' };
  const otherContract = `0x${'dd'.repeat(20)}`;
  const soon = quantity(Math.floor(Date.now() / 1000) + 7200);

  type Question = readonly [method: string, ask: (rpc: ChainNode) => Promise<unknown>];
  const ofRange: Question = ['eth_getLogs', (rpc) => rpc.logs({ ...range, addresses: [CONTRACT] })];
  const ofBlock: Question = ['eth_getLogs', (rpc) => rpc.logsOfBlocks([hash], [TOPIC])];
  const numbered: Question = ['eth_getBlockByNumber', (rpc) => rpc.blocks([4])];
  const newest: Question = ['eth_getBlockByNumber', (rpc) => rpc.head()];
  const three: Question = ['eth_getBlockByNumber', (rpc) => rpc.blocks([1, 2, 3])];
  const byHash: Question = ['eth_getBlockByHash', (rpc) => rpc.blockByHash(hash)];
  const receipts: Question = ['eth_getBlockReceipts', (rpc) => rpc.receiptLogs([hash], [TOPIC])];
  const sent: Question = ['eth_getTransactionByHash', (rpc) => rpc.transactions([foreign])];
  const called: Question = ['eth_call', (rpc) => rpc.calls([{ to: CONTRACT, data: '0x' }])];

  const otherBlocks = (given: Json[]) => given.map((receipt) => ({ ...receipt, blockHash: foreign }));
  const wrongId = (given: Json[]) => given.map((one, index) => (index === 1 ? { ...one, id: 999 } : one));
  const oneHash = ([one, two]: Json[]) => [one, { ...two, blockHash: one?.blockHash }];
  const twoHashes = ([one]: Json[]) => [one, { ...one, logIndex: '0x5', blockHash: foreign }];

  test.each<readonly [what: string, question: Question, fault: Fault, problem: RegExp]>([
    ['the id of another call', ofRange, answer((given) => ({ ...given, id: 7777 })), /another call/],
    ['an id that is text', ofRange, answer((given) => ({ ...given, id: String(given.id) })), /another call/],
    ['no result', ofRange, answer(({ id }) => ({ id })), /without a result/],
    ['a list where one answer is due', ofRange, answer((given) => [given]), /another call/],
    ['null', ofRange, answer(() => null), /no JSON-RPC/],
    ['a number for logs', ofRange, result(() => 5), /no list of logs/],
    ['null for logs', ofRange, result(() => null), /no list of logs/],
    ['a log outside the range', ofRange, firstLog({ blockNumber: '0x15' }), /21, outside 0 to 20/],
    ['a log of another contract', ofRange, firstLog({ address: otherContract }), /0xdd.* was not asked for/],
    ['a log with another topic', ofRange, firstLog({ topics: [foreign] }), /topic that was not asked for/],
    ['a log without topics', ofRange, firstLog({ topics: [] }), /topic that was not asked for/],
    ['a log twice', ofRange, logs((given) => [given[0], ...given]), /log 0 of block 0 twice/],
    ['a log that was removed', ofRange, firstLog({ removed: true }), /a log that was removed/],
    ['two hashes for one block', ofRange, logs(twoHashes), /two hashes for block 0/],
    ['one hash for two blocks', ofRange, logs(oneHash), /two hashes for block/],
    ['a log of a pending block', ofRange, firstLog({ blockHash: null }), /no blockHash of a log/],
    ['a log with half an address', ofRange, firstLog({ address: '0xc0c0' }), /no address of a log/],
    ['a log with odd data', ofRange, firstLog({ data: '0x123' }), /no data of a log/],
    ['a log with a number in decimal', ofRange, firstLog({ blockNumber: 3 }), /no blockNumber of a log/],
    ['a log of another block', ofBlock, firstLog({ blockHash: foreign }), /a log of another block/],
    ['a block of another number', numbered, block({ number: '0x5' }), /block 5 instead of 4/],
    ['no block', numbered, result(() => null), /it has no block 4/],
    ['a block without a bloom', numbered, block({ logsBloom: '0x00' }), /no logsBloom/],
    ['an absurd number', newest, block({ number: `0x${'f'.repeat(16)}` }), /no number of a block/],
    ['a head in the future', newest, block({ timestamp: soon }), /in the future/],
    ['fewer answers than calls', three, answers((given) => given.slice(1)), /2 answers to a batch of 3/],
    ['one answer twice', three, answers(([first, second]) => [first, second, first]), /no JSON-RPC/],
    ['one wrong id among the answers', three, answers(wrongId), /no JSON-RPC/],
    ['a block of another hash', byHash, block({ hash: foreign }), /instead of/],
    ['receipts of another block', receipts, logs(otherBlocks), /a receipt of another block/],
    ['no receipts', receipts, result(() => null), /it has no receipts/],
    ['no transaction', sent, result(() => null), /it has no transaction/],
    ['another transaction', sent, result(() => otherTransaction), /transaction 0x.* instead of 0xee/],
    ['an answer of a contract that is no hex', called, result(() => 'yes'), /no bytes/],
  ])(
    '%s is the fault of the node, and the next one is asked',
    async (_what, [method, ask], fault, problem) => {
      const { nodes, chain } = await openNodes(2);
      const [liar, honest] = nodes;
      await chain.run(nameOf);
      await vi.waitFor(() => expect(chain.health()[1]?.headBlock).toBe(29), WAIT);
      liar.misbehave = whenAsked(method, fault);
      const asked: string[] = [];
      await chain.run(async (rpc) => {
        asked.push(rpc.name);
        // What it makes of the honest one's answer is not at issue.
        return rpc.name === honest.host ? undefined : ask(rpc);
      });
      expect(asked).toEqual([liar.host, honest.host]);
      expect(chain.health()[0]).toMatchObject({ healthy: false, problem: expect.stringMatching(problem) });
    },
  );

  test('batches are matched by their ids, in whatever order the answers come', async () => {
    const { node, chain } = await openNodes(1);
    await chain.run(nameOf);
    node.misbehave = () => ({ change: (answer) => (Array.isArray(answer) ? [...answer].reverse() : answer) });
    const found = await chain.run((rpc) => rpc.blocks([9, 1, 5]));
    expect(found.map(({ number }) => number)).toEqual([9, 1, 5]);
  });
});

describe('rates', () => {
  /** A bucket whose clock and timers stand still until they are moved. */
  const stillBucket = (perSecond: number) => {
    vi.useFakeTimers({ now: 0, toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { signal } = new AbortController();
    setMaxListeners(0, signal);
    const bucket = createTokenBucket(perSecond);
    const take = (count: number, isBulk = false) => bucket.take(count, isBulk, signal);
    return { bucket, take };
  };

  test('a second holds as many calls as are allowed, after a first burst of as many', async () => {
    const { take } = stillBucket(20);
    const sent: number[] = [];
    // Twenty callers that each ask for batches of five without a pause, for ten seconds.
    const ask = async () => {
      while (Date.now() < 10_000) {
        await take(5);
        for (let call = 0; call < 5; call++) sent.push(Date.now());
      }
    };
    const callers = Array.from({ length: 20 }, ask);
    await vi.advanceTimersByTimeAsync(20_000);
    await Promise.all(callers);
    const inTime = sent.filter((at) => at < 10_000);
    expect(inTime.length).toBeLessThanOrEqual(20 * (10 + 1) + 5);
    expect(inTime.length).toBeGreaterThanOrEqual(20 * 10);
    for (const start of sent) {
      const inSecond = sent.filter((at) => at >= start && at < start + 1000).length;
      expect(inSecond).toBeLessThanOrEqual(40);
    }
  });

  test('calls go in the order asked for, bulk after all others, and a pause holds for all', async () => {
    const { bucket, take } = stillBucket(2);
    const gone: (readonly [string, number])[] = [];
    const ask = (name: string, count: number, isBulk: boolean) =>
      take(count, isBulk).then(() => gone.push([name, Date.now()]));
    for (const name of ['bulk 1', 'bulk 2', 'bulk 3']) void ask(name, 1, true);
    void ask('head', 1, false);
    void ask('batch', 2, false);
    await vi.advanceTimersByTimeAsync(400);
    bucket.pause(700);
    bucket.pause(100);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(gone).toEqual([
      ['bulk 1', 0],
      ['bulk 2', 0],
      ['head', 1100],
      ['batch', 1600],
      ['bulk 3', 2100],
    ]);
  });

  test('bulk gets its share where others would take the whole rate', async () => {
    const { take } = stillBucket(10);
    const gone = { urgent: 0, bulk: 0 };
    const askOnAndOn = async (kind: keyof typeof gone) => {
      while (Date.now() < 20_000) {
        await take(1, kind === 'bulk');
        gone[kind]++;
      }
    };
    const callers = (['bulk', 'urgent', 'urgent', 'urgent'] as const).map(askOnAndOn);
    await vi.advanceTimersByTimeAsync(30_000);
    await Promise.all(callers);
    expect(gone.urgent + gone.bulk).toBeGreaterThanOrEqual(200);
    expect(gone.bulk / (gone.urgent + gone.bulk)).toBeCloseTo(0.2, 1);
  });

  test('who waits when everything ends is told so, and nobody waits behind it', async () => {
    const { bucket, take } = stillBucket(1);
    const ending = new AbortController();
    await take(1);
    const first = bucket.take(1, false, ending.signal);
    const second = take(1).then(() => Date.now());
    ending.abort(new Error('the end'));
    await expect(first).rejects.toThrow('the end');
    await expect(bucket.take(1, false, ending.signal)).rejects.toThrow('the end');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await second).toBe(1_000);
  });

  test('many requests under way are no leak of listeners', async () => {
    const { chain } = await openNodes(1);
    const warnings: string[] = [];
    const warn = ({ name }: Error) => warnings.push(name);
    process.on('warning', warn);
    onTestFinished(() => void process.off('warning', warn));
    await Promise.all(Array.from({ length: 30 }, () => chain.run(nameOf)));
    // A warning is emitted in the next turn.
    await delay(10);
    expect(warnings).toEqual([]);
  });

  test('a batch is no larger than what a second allows, and each of its calls counts', async () => {
    const { node, chain } = await openNodes(1, { requestsPerSecond: 25, batchSize: 50 });
    const numbers = Array.from({ length: 24 }, (_, i) => i);
    const began = performance.now();
    await chain.run((rpc) => rpc.blocks(numbers));
    const seconds = (performance.now() - began) / 1000;
    expect(Math.max(...node.requests.map(({ batch }) => batch))).toBeLessThanOrEqual(25);
    expect(node.calls.length).toBe(26);
    expect(node.calls.length).toBeLessThanOrEqual(25 * (seconds + 1));
    expect(chain.health()[0]?.requests).toBe(26);
  });

  test('429 with Retry-After is waited for, and is no failure', async () => {
    const { node, chain } = await openNodes(1, {}, { timing: { ...briefly, maxWaitMs: 5_000 } });
    await chain.run(nameOf);
    let rpcErrors = 1;
    let rejectedAt = 0;
    let servedAt = 0;
    node.misbehave = () => {
      if (rpcErrors-- > 0) {
        rejectedAt = performance.now();
        return { status: 429, headers: { 'retry-after': '1' }, body: 'slow down' };
      }
      servedAt = performance.now();
      return undefined;
    };
    const two = await Promise.all([chain.run(nameOf), chain.run(nameOf)]);
    expect(two).toEqual([node.host, node.host]);
    expect(servedAt - rejectedAt).toBeGreaterThanOrEqual(990);
    expect(chain.health()[0]).toMatchObject(isFine);
  });

  test('a Retry-After beyond our patience sends the work elsewhere, and is bounded', async () => {
    const { lines, writeLog } = logged();
    const { nodes, chain } = await openNodes(2, {}, { writeLog });
    const [busy, free] = nodes;
    await chain.run(nameOf);
    busy.misbehave = () => ({ status: 429, headers: { 'retry-after': '999999' } });
    expect(await chain.run(nameOf)).toBe(free.host);
    expect(lines[0]).toMatch(/it wants fewer requests; lower requestsPerSecond; set back for 60\.0 s/);
    const asked = busy.calls.length;
    for (let i = 0; i < 5; i++) await chain.run(nameOf);
    expect(busy.calls.length).toBe(asked);
  });

  test('a node that rejects without an end is left after a few attempts', async () => {
    const { node, chain } = await openNodes(1);
    await chain.run(nameOf);
    const before = node.calls.length;
    node.misbehave = () => ({ status: 429, headers: { 'retry-after': '0' } });
    await expectNodeError(chain.run(nameOf), /it wants fewer requests/);
    expect(node.calls.length - before).toBeLessThan(15);
  });

  test('calls of a batch that are rejected for their rate are asked again, and only those', async () => {
    const { node, chain } = await openNodes(1, {}, { timing: { ...briefly, maxWaitMs: 5_000 } });
    await chain.run(nameOf);
    node.calls.length = 0;
    const tooFast = { code: 429, message: 'Your app has exceeded its compute units per second capacity.' };
    let requests = 0;
    node.misbehave = () => (requests++ === 0 ? rejectingFrom(3, tooFast) : undefined);
    const found = await chain.run((rpc) => rpc.blocks([5, 6, 7, 8, 9]));
    expect(found.map(({ number }) => number)).toEqual([5, 6, 7, 8, 9]);
    expect(node.calls.map(({ params }) => Number(params[0]))).toEqual([5, 6, 7, 8, 9, 8, 9]);
    expect(chain.health()[0]).toMatchObject(isFine);
  });
});

describe('batches', () => {
  const error = (code: number, message: string, more: object = {}) => ({
    status: 200,
    body: JSON.stringify({ ...more, error: { code, message } }),
  });
  const noId = { jsonrpc: '2.0', id: null };
  const drpc = { code: 31, message: 'Batch of more than 3 requests are not allowed on free tier' };
  const inFirst: Fault = {
    change: (answer) => [
      { id: (answer as { id: number }[])[0]?.id, error: { code: -32600, message: 'batch too large' } },
    ],
  };
  /** Who rejects batches of more calls than how many, and how. */
  const rejections: readonly (readonly [string, number, Fault])[] = [
    ['not taken at all', 1, { status: 400, body: 'Bad Request' }],
    ['not taken, by an error without an id', 1, error(-32600, 'Invalid Request', noId)],
    ['"batch requests are not supported"', 1, error(-32000, 'batch requests are not supported')],
    [
      'Erigon: at most 4, and it says so',
      4,
      error(-32000, 'batch limit 4 exceeded: 16 requests given', noId),
    ],
    ['dRPC: at most 3, in each answer', 3, rejectingFrom(0, drpc)],
    ['dRPC: at most 3, in one error', 3, { status: 500, body: JSON.stringify([drpc]) }],
    ['geth: "batch too large"', 2, inFirst],
    ['too long for a proxy', 5, { status: 413, body: '<html>' }],
  ];

  test.each(rejections)('%s: smaller ones are sent from then on', async (_who, largest, fault) => {
    const { node, chain } = await openNodes(1, { batchSize: 16 });
    node.misbehave = (calls) => (calls.length > largest ? fault : undefined);
    const numbers = Array.from({ length: 30 }, (_, i) => 29 - i);
    const read = () => chain.run((rpc) => rpc.blocks(numbers));
    expect((await read()).map(({ number }) => number)).toEqual(numbers);
    node.requests.length = 0;
    expect((await read()).map(({ number }) => number)).toEqual(numbers);
    const sizes = node.requests.map(({ calls }) => calls.length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(largest);
    // No more rejections.
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(numbers.length);
    expect(chain.health()[0]).toMatchObject(isFine);
  });

  test('one call goes out as an object, not as a list', async () => {
    const { node, chain } = await openNodes(1, { batchSize: 1 });
    await chain.run((rpc) => rpc.blocks([1, 2, 3]));
    expect(new Set(node.requests.map(({ batch }) => batch))).toEqual(new Set([0]));
  });

  test('a contract that speaks of batches and rates changes nothing', async () => {
    const { node, chain } = await openNodes(1);
    node.contracts[CONTRACT] = () => {
      throw rpcError(3, 'execution reverted: batch of more than 1 too many requests, rate limit');
    };
    const calls = Array.from({ length: 5 }, () => ({ to: CONTRACT, data: '0x' as Hex }));
    expect(await chain.run((rpc) => rpc.calls(calls))).toEqual(calls.map(() => undefined));
    // Once more, together with the height at which they reject.
    expect(node.requests.map(({ batch }) => batch)).toEqual([2, 5, 6]);
  });

  test('answers beyond the size of a batch are asked for alone (geth)', async () => {
    const { node, chain } = await openNodes(1);
    await chain.run(nameOf);
    const tooLarge = { code: -32003, message: 'response too large' };
    node.misbehave = (calls) => (calls.length === 1 ? undefined : rejectingFrom(2, tooLarge));
    const found = await chain.run((rpc) => rpc.blocks([4, 5, 6, 7]));
    expect(found.map(({ number }) => number)).toEqual([4, 5, 6, 7]);
  });
});
