// @module-tag release: tests the lab itself, which every test that uses it does in part
/** The lab itself: what it does on its chains is what the official client sees there. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { encodeFunctionData, type Hex, toEventSelector, toFunctionSelector } from 'viem';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { readSetting } from '../../src/base/settings.ts';
import { networksSetting } from '../../src/ingest/families.ts';
import { labConfiguration } from '../lab/config.ts';
import { drive } from '../lab/driver.ts';
import { deployImpostor } from '../lab/impostor.ts';
import {
  FIRST_FREE_ACCOUNT,
  type Lab,
  type Lane,
  PERMISSIONLESS_AFTER_SECONDS,
  type RawReceipt,
  type SentMessage,
  startLab,
} from '../lab/lab.ts';
import { calculateManualExecProof, EVMChain, silent } from '../lab/sdk-chain.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

const versions = ['1.2', '1.5', '1.6', '2.0'] as const;
const everyLane = versions.flatMap((version) =>
  (['a', 'b'] as const).map((from) => ({ version, from, to: from === 'a' ? 'b' : 'a' })),
);
const isOld = ({ version }: Lane) => version === '1.2' || version === '1.5';

/** Everything that may come before an execution. */
async function prepare(lane: Lane, messages: readonly SentMessage[]): Promise<void> {
  if (lane.version === '2.0') return;
  await lane.commit(messages);
  if (isOld(lane)) await lane.bless(messages);
}

/** What the client finds in the message's transaction. */
async function requestOf(message: SentMessage) {
  const client = await lab.network(message.from).sdk();
  const requests = await client.getMessagesInTx(message.transactionHash);
  const request = requests.find((found) => found.message.messageId === message.messageId);
  if (!request) throw new Error('The client does not find the message.');
  return request;
}

async function statesSeenByClient(lane: Lane, message: SentMessage): Promise<number[]> {
  const client = await lab.network(lane.to).sdk();
  const states: number[] = [];
  const receipts = client.getExecutionReceipts({
    offRamp: message.ramps.offRamp.address,
    messageId: message.messageId,
    sourceChainSelector: lab.network(lane.from).selector,
    startBlock: 1,
  });
  for await (const { receipt } of receipts) states.push(receipt.state);
  return states.sort();
}

describe.each(everyLane)('$version from $from to $to', ({ version, from }) => {
  const lane = () => lab.lane(version, from);

  test('the client decodes every kind of message as it was sent', async () => {
    const { foundation, accounts } = lab.network(from);
    const [demo, coin] = foundation.tokens;
    const both = [{ amount: 10n ** 18n }, { token: coin.address, amount: 5_000_000n }];
    const messages = [
      await lane().sendOne({ data: '0x1234' }),
      await lane().sendOne({ outOfOrder: false, feeToken: 'link' }),
      // Without gas and data, receivers are not called; 1.2 would call them all the same.
      await lane().sendOne({
        tokens: version === '2.0' ? both.slice(1) : both,
        gasLimit: version === '1.2' ? 100_000n : 0n,
      }),
      await lane().sendOne({ via: 'contract', tokens: [{ token: demo.address, amount: 7n }] }),
      ...(await lane().send({ count: 3, data: (index) => `0x0${index}`, feeToken: 'link' })),
    ];
    for (const message of messages) {
      const request = await requestOf(message);
      expect(request.message).toEqual(message.decoded);
      expect(request.lane).toMatchObject({
        version: `${version}.0`,
        sourceChainSelector: lab.network(from).selector,
        destChainSelector: lab.network(lane().to).selector,
      });
      expect(request.lane.onRamp.toLowerCase()).toBe(message.ramps.onRamp.address);
      expect(request.message.sequenceNumber).toBe(message.sequenceNumber);
      expect(request.message.sender.toLowerCase()).toBe(message.sender);
      expect(request.message.receiver.toLowerCase()).toBe(message.receiver);
      expect(request.tx.from.toLowerCase()).toBe(message.origin);
      expect(request.log.index).toBe(message.logIndex);
    }
    const numbers = messages.map(({ sequenceNumber }) => sequenceNumber);
    expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0n) + BigInt(index)));
    const [, , , byContract, ...batch] = messages;
    expect(byContract?.sender).toBe(foundation.batchSender.address);
    expect(accounts).toContain(byContract?.origin);
    expect(new Set(batch.map(({ transactionHash }) => transactionHash)).size).toBe(1);
    expect(messages[1]?.decoded.feeToken).toBe(messages[4]?.decoded.feeToken);
    expect(messages[0]?.decoded.feeToken).not.toBe(messages[1]?.decoded.feeToken);
    expect(messages[1]?.nonce === 0n).toBe(version === '2.0');
    expect(messages[0]?.nonce === 0n).toBe(version !== '1.2');
    await prepare(lane(), messages);
    for (const message of messages) expect((await lane().execute(message)).state).toBe('success');
  });

  test('a message that fails succeeds by hand, and the client sees both', async () => {
    const messages = await lane().send({ count: 2, data: '0xdead' });
    const [good, bad] = messages as [SentMessage, SentMessage];
    await prepare(lane(), messages);
    const first = await lane().execute(good);
    const second = await lane().execute(bad, { fail: true });
    expect([first.state, second.state]).toEqual(['success', 'failure']);
    expect(second.returnData).toContain(bad.messageId.slice(2));
    expect(await statesSeenByClient(lane(), bad)).toEqual([3]);
    // A second failure leaves no trace, for the contracts revert; only 1.2 writes it down again.
    const again = lane().executeByHand(bad, { fail: true });
    if (version === '1.2') expect((await again).state).toBe('failure');
    else await expect(again).rejects.toThrow(`Refused(${bad.messageId})`);
    const third = await lane().executeByHand(bad);
    expect(third.state).toBe('success');
    expect(EVMChain.decodeReceipt(third.log)).toMatchObject({
      messageId: bad.messageId,
      [version === '2.0' ? 'messageNumber' : 'sequenceNumber']: bad.sequenceNumber,
      state: 2,
    });
    expect(await statesSeenByClient(lane(), good)).toEqual([2]);
    expect(await statesSeenByClient(lane(), bad)).toEqual(version === '1.2' ? [2, 3, 3] : [2, 3]);
  });

  test('the client executes a failed message by hand itself', async () => {
    const messages = await lane().send({ count: 3, tokens: [{ amount: 3n }] });
    const [, bad] = messages as [SentMessage, SentMessage, SentMessage];
    await prepare(lane(), messages);
    // On 1.2 all have their order.
    await lane().execute(messages[0] as SentMessage);
    await lane().execute(bad, { fail: true });
    await lane().refuse([bad], false);
    const request = await requestOf(bad);
    const network = lab.network(lane().to);
    const client = await network.sdk();
    const input =
      version === '2.0'
        ? {
            encodedMessage: request.message.encodedMessage as string,
            verifications: await lane()
              .verifierResults(bad)
              .then(({ ccvs, results }) =>
                ccvs.map((destAddress, index) => ({ destAddress, ccvData: results[index] })),
              ),
          }
        : {
            message: request.message,
            offchainTokenData: request.message.tokenAmounts.map(() => undefined),
            ...calculateManualExecProof(
              messages.map(({ decoded }) => decoded),
              request.lane,
              bad.messageId,
              lane().commitOf(bad)?.merkleRoot,
              { logger: silent },
            ),
          };
    const offRamp = bad.ramps.offRamp.address;
    const { receipt } = await client.execute({
      offRamp,
      input: { ...request.lane, offRamp, ...input },
      wallet: await network.sdkWallet(),
    });
    expect(receipt).toMatchObject({ messageId: bad.messageId, state: 2 });
    await lane().execute(messages[2] as SentMessage);
  });
});

test.each(['1.2', '1.5', '1.6'] as const)('the client finds the commit of a %s message', async (version) => {
  const lane = lab.lane(version);
  const messages = await lane.send({ count: 3 });
  const commit = await lane.commit(messages);
  const [message] = messages as [SentMessage];
  const client = await lab.network(lane.to).sdk();
  const { report, log } = await client.getVerifications({
    offRamp: message.ramps.offRamp.address,
    request: await requestOf(message),
    startBlock: 1,
  });
  expect(report).toMatchObject({
    merkleRoot: commit.merkleRoot,
    minSeqNr: commit.minSequenceNumber,
    maxSeqNr: commit.maxSequenceNumber,
  });
  expect(log.transactionHash).toBe(commit.transactionHash);
  if (isOld(lane)) {
    await expect(lane.execute(message)).rejects.toThrow(/RootNotCommitted|NotBlessed|ManualExecution/);
    const [blessing] = await lane.bless(messages);
    expect(blessing?.log.topics[0]).toBe(
      toEventSelector('TaggedRootBlessed(uint32,(address,bytes32),uint16)'),
    );
  }
  for (const message of messages) await lane.execute(message);
});

test('the RMN signs a root of 1.6, and unsigned ones are taken before and after', async () => {
  const lane = lab.lane('1.6', 'b');
  const seen: unknown[] = [];
  for (const blessed of [false, true, true, false]) {
    const message = await lane.sendOne();
    const { log, merkleRoot } = await lane.commit([message], { blessed });
    const [root] = EVMChain.decodeCommits(log) ?? [];
    expect(root?.merkleRoot).toBe(merkleRoot);
    const receipt = await lab.a.rpc<RawReceipt>('eth_getTransactionReceipt', [log.transactionHash]);
    const [event] = message.ramps.offRamp.events(receipt, 'CommitReportAccepted');
    const roots = [event?.args.blessedMerkleRoots, event?.args.unblessedMerkleRoots];
    seen.push(roots.map((list) => (list as unknown[]).length));
    expect((await lane.execute(message)).state).toBe('success');
  }
  expect(seen).toEqual([
    [0, 1],
    [1, 0],
    [1, 0],
    [0, 1],
  ]);
});

test('messages with an order wait for their turn', async () => {
  const lane = lab.lane('1.6');
  const messages = await lane.send({ count: 2, outOfOrder: false });
  const [first, second] = messages as [SentMessage, SentMessage];
  expect(second.nonce).toBe(first.nonce + 1n);
  await lane.commit(messages);
  await expect(lane.execute(second)).rejects.toThrow('not its turn');
  await lane.execute(first);
  expect((await lane.execute(second)).state).toBe('success');
});

test.each(['1.2', '1.5', '1.6'] as const)(
  'anybody executes on %s once enough time has passed',
  async (version) => {
    const lane = lab.lane(version, 'b');
    const message = await lane.sendOne();
    await prepare(lane, [message]);
    await expect(lane.executeByHand(message)).rejects.toThrow('ManualExecutionNotYetEnabled');
    await lab.travel(PERMISSIONLESS_AFTER_SECONDS + 1);
    expect((await lane.executeByHand(message)).state).toBe('success');
  },
);

test('2.0: sender and receiver ask for a second verifier, a depth of blocks, and a pool takes its share', async () => {
  const lane = lab.lane('2.0');
  const { tokens } = lab.a.foundation;
  const message = await lane.sendOne({
    receiver: lab.b.foundation.strictReceiver.address,
    verifiers: 2,
    finality: 12,
    tokens: [{ token: tokens[1].address, amount: 1_000_000n }],
  });
  expect(message.decoded).toMatchObject({
    tokenAmountBeforeTokenPoolFees: 1_000_000n,
    tokenAmounts: [{ amount: 998_000n }],
    finality: 12,
  });
  const issuers = (message.args.receipts as { issuer: string }[]).map(({ issuer }) => issuer.toLowerCase());
  const contracts = lab.a.contracts['2.0'] ?? {};
  expect(issuers).toEqual([
    contracts.verifier,
    contracts.secondVerifier,
    contracts.coinPool,
    contracts.executorProxy,
    contracts.router,
  ]);
  const { ccvs, results } = await lane.verifierResults(message);
  expect(ccvs).toEqual([lab.b.contracts['2.0']?.verifier, lab.b.contracts['2.0']?.secondVerifier]);
  expect(new Set(results).size).toBe(2);
  expect((await lane.execute(message, { fail: true })).state).toBe('failure');
  expect((await lane.execute(message)).state).toBe('success');
});

describe('forks', () => {
  test('what happened since the fork is gone, and the new branch is another and longer', async () => {
    const lane = lab.lane('1.6');
    const fork = await lab.a.fork();
    const message = await lane.sendOne();
    await lab.a.mine(2);
    const { orphaned, kept } = await fork.abandon();
    expect(orphaned).toHaveLength(3);
    expect(orphaned[0]).toBe(message.blockHash);
    expect(kept).toEqual([]);
    expect(await lab.a.blockNumber()).toBe(fork.blockNumber + 4);
    expect((await lab.a.block(message.blockNumber)).hash).not.toBe(message.blockHash);
    expect(await lab.a.rpc('eth_getTransactionReceipt', [message.transactionHash])).toBeNull();
    const next = await lane.sendOne();
    expect(next.sequenceNumber).toBe(message.sequenceNumber);
    await prepare(lane, [next]);
    await lane.execute(next);
  });

  test('chosen transactions find their way into the new branch', async () => {
    const lane = lab.lane('2.0', 'b');
    const fork = await lab.b.fork();
    const lost = await lane.sendOne({ data: '0x01' });
    const kept = await lane.sendOne({ data: '0x02' });
    const { kept: receipts } = await fork.abandon({
      keep: ({ hash }) => hash === kept.transactionHash,
      blocks: 5,
    });
    expect(await lab.b.blockNumber()).toBe(fork.blockNumber + 5);
    const [event] = kept.ramps.onRamp.events(receipts[0] ?? expect.fail(), 'CCIPMessageSent');
    const again = EVMChain.decodeMessage(event?.log ?? expect.fail());
    expect(again?.sequenceNumber).toBe(lost.sequenceNumber);
    expect(receipts[0]?.blockHash).not.toBe(kept.blockHash);
  });

  test('the clock does not go back with the chain', async () => {
    const fork = await lab.a.fork();
    await lab.a.travel(100);
    const before = Number((await lab.a.block('latest')).timestamp);
    await fork.abandon();
    await lab.a.mine(50);
    const after = Number((await lab.a.block('latest')).timestamp);
    expect(after).toBeGreaterThanOrEqual(before);
    expect(after).toBeLessThan(before + 50);
  });
});

test('transactions of several lanes share a block', async () => {
  const lanes = [lab.lane('1.5'), lab.lane('1.6'), lab.lane('2.0')];
  const messages = await lab.a.inOneBlock(3, () => Promise.all(lanes.map((lane) => lane.sendOne())));
  expect(new Set(messages.map(({ blockHash }) => blockHash)).size).toBe(1);
  for (const message of messages) {
    const lane = lab.laneOf(message);
    await prepare(lane, [message]);
    await lane.execute(message);
  }
});

test.each(versions)('the routers of %s replace ramps and say so', async (version) => {
  const lane = lab.lane(version, 'b');
  const old = await lane.sendOne();
  const since = { source: await lab.b.blockNumber(), dest: await lab.a.blockNumber() };
  const { before, after } = await lane.replaceRamps({ keepOffRamp: true });
  expect(lane.ramps).toBe(after);
  await prepare(lane, [old]);
  expect((await lane.execute(old)).state).toBe('success');
  await lane.removeOffRamp(before);
  const message = await lane.sendOne();
  expect(message.sequenceNumber).toBe(1n);
  expect(message.ramps.onRamp.address).not.toBe(before.onRamp.address);
  await prepare(lane, [message]);
  expect((await lane.execute(message)).state).toBe('success');
  const eventsOf = async (network: typeof lab.a, fromBlock: number) => {
    const filter = { address: network.routers[version], fromBlock: `0x${(fromBlock + 1).toString(16)}` };
    const logs = await network.rpc<{ topics: string[]; data: string }[]>('eth_getLogs', [filter]);
    const names = new Map(
      ['OnRampSet', 'OffRampAdded', 'OffRampRemoved'].map((name) => [
        toEventSelector(`${name}(uint64,address)`) as string,
        name,
      ]),
    );
    return logs.flatMap(({ topics: [topic = ''], data }) => {
      const name = names.get(topic);
      return name === undefined ? [] : [[name, `0x${data.slice(-40)}`]];
    });
  };
  expect(await eventsOf(lab.b, since.source)).toEqual([['OnRampSet', after.onRamp.address]]);
  expect(await eventsOf(lab.a, since.dest)).toEqual([
    ['OffRampAdded', after.offRamp.address],
    ['OffRampRemoved', before.offRamp.address],
  ]);
  expect(lab.b.contracts[version]?.onRamp).toBe(after.onRamp.address);
});

test('an impostor emits perfect copies and answers like the contract it copies', async () => {
  const lane = lab.lane('1.6');
  const message = await lane.sendOne();
  await prepare(lane, [message]);
  await lane.execute(message);
  const impostor = await deployImpostor(lab.a);
  const { onRamp } = message.ramps;
  await impostor.imitate(onRamp, [{ functionName: 'getDestChainConfig', args: [lab.b.selector] }]);
  const { logs } = await impostor.repeat([message.log, message.log]);
  expect(logs.map(({ address, topics, data }) => ({ address, topics, data }))).toEqual(
    [message.log, message.log].map(({ topics, data }) => ({ address: impostor.address, topics, data })),
  );
  const ask = (to: string, data: string) => lab.a.rpc<`0x${string}`>('eth_call', [{ to, data }, 'latest']);
  for (const question of ['typeAndVersion()', 'getStaticConfig()']) {
    const selector = toFunctionSelector(question);
    expect(await ask(impostor.address, selector)).toBe(await ask(onRamp.address, selector));
  }
  const question = encodeFunctionData({
    abi: onRamp.abi,
    functionName: 'getDestChainConfig',
    args: [lab.b.selector],
  });
  expect(await ask(impostor.address, question)).toBe(await ask(onRamp.address, question));
  await expect(ask(impostor.address, toFunctionSelector('ccipReceive()'))).rejects.toThrow();
});

test('the driver keeps every lane busy, and a seed always does the same', async () => {
  const before = new Map(lab.lanes.map((lane) => [lane, lane.ramps]));
  const tallies = await drive(lab, {
    seed: 'a test',
    messagesPerSecond: Number.POSITIVE_INFINITY,
    rounds: 8,
  });
  expect(tallies.size).toBe(8);
  for (const [lane, tally] of tallies) {
    expect(tally.sent, lane.name).toBeGreaterThan(0);
    expect(tally.succeeded + tally.failed, lane.name).toBeGreaterThan(0);
    expect(lane.ramps).toBe(before.get(lane));
  }
  expect(Object.fromEntries([...tallies].map(([{ name }, { sent }]) => [name, sent]))).toMatchInlineSnapshot(`
    {
      "1.2 a→b": 12,
      "1.2 b→a": 15,
      "1.5 a→b": 9,
      "1.5 b→a": 14,
      "1.6 a→b": 11,
      "1.6 b→a": 10,
      "2.0 a→b": 11,
      "2.0 b→a": 11,
    }
  `);
});

test('the driver goes on whatever others do to its messages, and takes theirs along', async () => {
  const heads = new Map(
    await Promise.all(
      lab.lanes.map(async (lane) => {
        const head = await lab.network(lane.from).rpc<Hex>('eth_blockNumber');
        return [lane, Number(head) + 1] as const;
      }),
    ),
  );
  let isDriven = true;
  const executed = new Set<string>();
  /** Executes by hand what it finds, over and over, and sends messages of its own. */
  const meddle = async (lane: Lane) => {
    const from = lab.network(lane.from).accounts[FIRST_FREE_ACCOUNT];
    await lane.sendOne({ ...(from && { from }), data: '0xfeed' });
    while (isDriven) {
      for (const message of await lane.sentSince(heads.get(lane) ?? 0)) {
        // Whatever the contracts refuse is what a user would be refused.
        const done = await lane.executeByHand(message).catch(() => undefined);
        if (done?.state === 'success') executed.add(message.messageId);
        if (!isDriven) return;
      }
    }
  };
  const meddling = Promise.allSettled(lab.lanes.map(meddle));
  const tallies = await drive(lab, {
    seed: 'meddled with',
    messagesPerSecond: Number.POSITIVE_INFINITY,
    rounds: 12,
  }).finally(() => {
    isDriven = false;
  });
  await meddling;
  expect(tallies.size).toBe(8);
  expect(executed.size).toBeGreaterThan(0);
  for (const [lane, { sent, commits }] of tallies) {
    const messages = await lane.sentSince(heads.get(lane) ?? 0);
    // One more than the driver sent.
    expect(messages, lane.name).toHaveLength(sent + 1);
    if (lane.version !== '2.0') expect(commits, lane.name).toBeGreaterThan(0);
  }
});

test('the configuration names both networks and all their routers', () => {
  const { networks } = parse(labConfiguration(lab, { rpc: { a: ['http://one'], b: ['http://two'] } }));
  const sources = readSetting(networksSetting, networks, ['networks']);
  expect(sources).toMatchObject([
    { network: { name: lab.a.name }, routers: Object.values(lab.a.routers), finality: 5 },
    { network: { name: lab.b.name }, routers: Object.values(lab.b.routers), finality: 5 },
  ]);
  expect(sources.map(({ network }) => network.selector)).toEqual(
    lab.networks.map(({ selector }) => String(selector)),
  );
  expect(sources.flatMap(({ rpc }) => rpc).map(({ host }) => host)).toEqual(['one', 'two']);
  expect(Object.keys(lab.a.routers)).toEqual(versions);
});

test('a node ends with the process that started it, however that ends', async () => {
  const nodes = path.resolve(import.meta.dirname, '../lab/nodes.ts');
  const program = `
    import { startNode } from ${JSON.stringify(nodes)};
    const { pid } = await startNode({ chainId: 1337 });
    process.stdout.write(String(pid));
    setInterval(() => undefined, 1000);`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', program];
  const starter = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void starter.kill('SIGKILL'));
  const [said] = await once(starter.stdout.setEncoding('utf8'), 'data');
  const pid = Number(said);
  expect(isRunning(pid)).toBe(true);
  starter.kill('SIGKILL');
  await expect.poll(() => isRunning(pid), { timeout: 120_000 }).toBe(false);
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
