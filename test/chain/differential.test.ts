// @module-tag slow: starts chain nodes and compares every message with the official client
import { decodeAbiParameters, getAddress, parseAbi, parseAbiParameters, toHex, zeroAddress } from 'viem';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Executed, Fact, RangeFact, Sent, SentMessage as SentRecord } from '../../src/domain/facts.ts';
import type { Message, NetworkInfo, TokenAmount, Verifiers } from '../../src/domain/message.ts';
import { networkBySelector } from '../../src/domain/networks/networks.ts';
import {
  createDecoder,
  readExecutionThreshold,
  readVerifierPolicy,
} from '../../src/ingest/evm/decode/decoder.ts';
import type { ChainNode, Hex } from '../../src/ingest/evm/rpc/chain.ts';
import { createChain } from '../../src/ingest/evm/rpc/node.ts';
import {
  type Execution,
  type Lab,
  type Lane,
  PERMISSIONLESS_AFTER_SECONDS,
  type SentMessage,
  startLab,
  versions,
} from '../lab/lab.ts';
import { CCIPAPIClient, networkInfo, type SdkRequest } from '../lab/sdk.ts';
import { type SdkMessage, silent } from '../lab/sdk-chain.ts';
import { listenWith } from '../listening.ts';
import { labSource } from './indexing.ts';
import { type History, readHistory } from './lab-history.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab?.stop());

/** All that a network says, and whatever else is asked of its node. */
async function read<T>(
  key: 'a' | 'b',
  ask: (node: ChainNode, decoded: History & { readonly facts: readonly Fact[] }) => Promise<T>,
): Promise<T> {
  const chain = createChain(labSource(lab.network(key)), { userAgent: 'test' });
  onTestFinished(() => chain.close());
  return chain.run(async (node) => {
    const history = await readHistory(node, chain, lab.network(key));
    const { facts, unreadable } = await createDecoder(chain.network).decode(node, history.logs, history.book);
    expect(unreadable).toEqual([]);
    return ask(node, { ...history, facts });
  });
}

const factsOf = (key: 'a' | 'b') => read(key, async (_, { facts }) => facts);

async function sentFacts(messages: readonly SentMessage[]): Promise<readonly Sent[]> {
  const [first] = messages;
  if (!first) throw new Error('There is no message.');
  const facts = await factsOf(first.from);
  return messages.map(({ messageId }) => {
    const found = facts.filter((fact) => fact.kind === 'Sent' && fact.message.messageId === messageId);
    const [fact] = found;
    if (found.length !== 1 || fact?.kind !== 'Sent')
      throw new Error(`${messageId} was told ${found.length} times.`);
    return fact;
  });
}

/** What the client finds in the message's transaction. */
async function requestOf(message: SentMessage): Promise<SdkRequest> {
  const client = await lab.network(message.from).sdk();
  const requests = await client.getMessagesInTx(message.transactionHash);
  const request = requests.find((found) => found.message.messageId === message.messageId);
  if (!request) throw new Error('The client does not find the message.');
  return request;
}

/** A message of the client has whatever its version has. */
interface ClientMessage extends Pick<SdkMessage, 'messageId' | 'sender' | 'receiver' | 'sequenceNumber'> {
  readonly nonce?: bigint;
  readonly data: string;
  readonly feeToken: string;
  readonly feeTokenAmount: bigint;
  readonly gasLimit: bigint;
  readonly ccipReceiveGasLimit: number;
  readonly allowOutOfOrderExecution: boolean;
  readonly finality?: 'finalized' | 'safe' | number;
  /** Up to 1.5. */
  readonly sourceTokenData?: readonly Hex[];
  readonly tokenAmounts: readonly {
    readonly token: string;
    readonly amount: bigint;
    readonly sourcePoolAddress: string;
    readonly destTokenAddress: string;
    readonly extraData: string;
    readonly destGasAmount: bigint;
    /** 2.0. */
    readonly tokenReceiver: string;
  }[];
  readonly receipts: readonly {
    readonly issuer: Hex;
    readonly feeTokenAmount: bigint;
    readonly destGasLimit: bigint;
    readonly extraArgs: string;
  }[];
  readonly verifierBlobs: readonly string[];
}

function clientNetwork(selector: bigint): NetworkInfo {
  const { name, chainId, family } = networkInfo(selector);
  return {
    name,
    chainSelector: String(selector),
    chainId: String(chainId),
    chainFamily: family as NetworkInfo['chainFamily'],
    displayName: networkBySelector(String(selector))?.displayName ?? null,
  };
}

/** The record as the client would write it. */
async function clientRecord(sent: SentMessage): Promise<SentRecord> {
  const { message: anyMessage, lane, log, tx } = await requestOf(sent);
  const message = anyMessage as unknown as ClientMessage;
  const client = await lab.network(sent.from).sdk();
  const is20 = sent.version === '2.0';
  const nonce = message.nonce ?? null;
  const [router, executor] = is20 ? message.receipts.toReversed() : [];
  return {
    messageId: message.messageId,
    origin: tx.from,
    sender: message.sender,
    receiver: message.receiver,
    sourceNetworkInfo: clientNetwork(lane.sourceChainSelector),
    destNetworkInfo: clientNetwork(lane.destChainSelector),
    sendTransactionHash: tx.hash,
    sendTimestamp: new Date(tx.timestamp * 1_000).toISOString(),
    nonce: nonce === null ? null : String(nonce),
    sequenceNumber: String(message.sequenceNumber),
    onramp: lane.onRamp,
    routerAddress: await client.getRouterForOnRamp(lane.onRamp, lane.destChainSelector),
    sendBlockNumber: log.blockNumber,
    sendLogIndex: log.index,
    data: message.data,
    tokenAmounts: await clientTransfers(sent, message),
    extraArgs: is20
      ? clientExtraArgs20(message)
      : {
          gasLimit: String(message.gasLimit),
          allowOutOfOrderExecution: sent.version === '1.6' ? message.allowOutOfOrderExecution : nonce === 0n,
        },
    version: lane.version,
    finality: typeof message.finality === 'number' ? message.finality : 0,
    verifiers: is20 ? await clientVerifiers(sent, message) : null,
    executor: executor ? { address: executor.issuer } : null,
    fees: {
      fixedFeesDetails: {
        tokenAddress: message.feeToken,
        totalAmount: String(message.feeTokenAmount),
        ...(router && {
          items: message.receipts.map(({ issuer, feeTokenAmount }, index) => {
            const last = message.receipts.length - 1;
            const others = index < message.verifierBlobs.length ? 'VERIFIER' : 'TOKEN_POOL';
            return {
              contractAddress: issuer,
              feeType: index === last ? 'NETWORK' : index === last - 1 ? 'EXECUTOR' : others,
              amount: String(feeTokenAmount),
            };
          }),
        }),
      },
    },
  };
}

/** The arguments in effect, as the receipts have them. */
function clientExtraArgs20(message: ClientMessage): Message['extraArgs'] {
  const { finality = 'finalized', receipts, verifierBlobs, tokenAmounts } = message;
  const verifiers = receipts.slice(0, verifierBlobs.length);
  const executor = receipts.at(-2);
  const config = typeof finality === 'number' ? finality : finality === 'safe' ? 0x10000 : 0;
  return {
    gasLimit: String(message.ccipReceiveGasLimit),
    allowOutOfOrderExecution: true,
    requestedFinalityConfig: toHex(config, { size: 4 }),
    ccvs: verifiers.map(({ issuer }) => issuer),
    ccvArgs: verifiers.map(({ extraArgs }) => extraArgs),
    executor: executor?.issuer ?? '',
    executorArgs: executor?.extraArgs ?? '',
    tokenReceiver: tokenAmounts[0]?.tokenReceiver ?? message.receiver,
    tokenArgs: tokenAmounts.length > 0 ? (receipts[verifierBlobs.length]?.extraArgs ?? '') : '0x',
  };
}

async function clientTransfers(sent: SentMessage, message: ClientMessage): Promise<TokenAmount[]> {
  const client = await lab.network(sent.from).sdk();
  const selector = lab.network(lab.laneOf(sent).to).selector;
  const addressIn = (bytes: Hex) => decodeAbiParameters(parseAbiParameters('address'), bytes)[0];
  return Promise.all(
    message.tokenAmounts.map(async (transfer, index): Promise<TokenAmount> => {
      const { token, sourcePoolAddress, destTokenAddress, extraData } = transfer;
      const amount = String(transfer.amount);
      const data = message.sourceTokenData?.[index] ?? '0x';
      if (sent.version === '1.2')
        return {
          sourceTokenAddress: token,
          destTokenAddress: zeroAddress,
          sourcePoolAddress: await sent.ramps.onRamp.read<Hex>('getPoolBySourceToken', [selector, token]),
          amount,
          extraData: data,
          destGasAmount: null,
        };
      if (sent.version === '1.5') {
        const [told] = decodeAbiParameters(
          parseAbiParameters('(bytes pool, bytes token, bytes extraData, uint64 gas)'),
          data,
        );
        return {
          sourceTokenAddress: token,
          destTokenAddress: addressIn(told.token),
          sourcePoolAddress: addressIn(told.pool),
          amount,
          extraData: told.extraData,
          destGasAmount: String(told.gas),
        };
      }
      const poolReceipt = message.receipts?.[message.verifierBlobs.length];
      return {
        sourceTokenAddress: await client.getTokenForTokenPool(sourcePoolAddress),
        destTokenAddress,
        sourcePoolAddress,
        amount,
        extraData,
        destGasAmount: String(sent.version === '1.6' ? transfer.destGasAmount : poolReceipt?.destGasLimit),
      };
    }),
  );
}

const verifierAbi = parseAbi([
  'function typeAndVersion() view returns (string)',
  'function getOutboundImplementation(uint64 destChainSelector, bytes extraArgs) view returns (address)',
]);

async function clientVerifiers(sent: SentMessage, message: ClientMessage): Promise<Verifiers> {
  const network = lab.network(sent.from);
  const selector = lab.network(lab.laneOf(sent).to).selector;
  const issuers = message.receipts.slice(0, message.verifierBlobs.length).map(({ issuer }) => issuer);
  return {
    optionalThreshold: 0,
    items: await Promise.all(
      issuers.map(async (issuer) => {
        const implementation = await network
          .contract(issuer, verifierAbi)
          .read<Hex>('getOutboundImplementation', [selector, '0x']);
        const words = await network.contract(implementation, verifierAbi).read<string>('typeAndVersion');
        return {
          sourceAddress: issuer,
          destAddress: zeroAddress,
          metadata: { name: words.split(' ')[0] ?? '' },
          isRequired: true,
          status: 'PENDING' as const,
          verification: null,
        };
      }),
    ),
  };
}

/** With and without tokens, ordered or not, by accounts and contracts, alone and in company. */
async function sendAll(lane: Lane): Promise<readonly SentMessage[]> {
  const { tokens } = lab.network(lane.from).foundation;
  const isOne = lane.version === '2.0';
  const sent = [
    await lane.send({ data: '0x' }),
    await lane.send({ data: '0x1234', outOfOrder: false, gasLimit: 123_456n }),
    await lane.send({ tokens: [{ amount: 5n }], feeToken: 'link', outOfOrder: false }),
    await lane.send({ via: 'contract', data: `0x${'ab'.repeat(1_000)}` }),
    await lane.send({
      count: 3,
      data: (index) => `0x0${index}`,
      tokens: isOne
        ? [{ token: tokens[1].address, amount: 7n }]
        : [{ amount: 6n }, { token: tokens[1].address, amount: 7n }],
    }),
    ...(isOne
      ? [await lane.send({ finality: 'safe' }), await lane.send({ verifiers: 1, finality: 3, data: '0x03' })]
      : []),
  ];
  return sent.flat();
}

async function executionsSeenByClient(lane: Lane, { messageId }: SentMessage) {
  const client = await lab.network(lane.to).sdk();
  const seen: (readonly [state: number, transactionHash: string, at: string])[] = [];
  const receipts = client.getExecutionReceipts({
    offRamp: lane.ramps.offRamp.address,
    messageId,
    sourceChainSelector: lab.network(lane.from).selector,
    startBlock: 1,
  });
  for await (const { receipt, log, timestamp } of receipts) {
    seen.push([receipt.state, log.transactionHash, new Date(timestamp * 1_000).toISOString()]);
  }
  return seen.sort(([, , a], [, , b]) => (a < b ? -1 : 1));
}

/** A server that knows nothing but the inputs of one execution. */
async function serveInputs(body: object): Promise<string> {
  const { origin } = await listenWith((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(body));
  });
  return origin;
}

const everyLane = versions.flatMap((version) => (['a', 'b'] as const).map((from) => ({ version, from })));

/** Only where the version knows the matter; nothing is skipped. */
const testIf = (isKnown: boolean) => (name: string, run: () => Promise<void>) => {
  if (isKnown) test(name, run);
};

// The tests of a lane follow each other: what one has sent, the next executes.
describe.each(everyLane)('on the lane of $version from $from', ({ version, from }) => {
  const isCommitted = version !== '2.0';
  const sent: SentMessage[] = [];
  const lastOne = () => sent.at(-1) as SentMessage;

  test('every field of every message is what the client reads', async () => {
    sent.push(...(await sendAll(lab.lane(version, from))));
    const facts = await sentFacts(sent);
    for (const [index, message] of sent.entries()) {
      expect(facts[index]?.message).toEqual(await clientRecord(message));
    }
    const records = facts.map(({ message }) => message);
    expect(records.filter(({ sender, origin }) => sender !== origin)).toHaveLength(4);
    expect(records.some(({ tokenAmounts }) => tokenAmounts.length === (isCommitted ? 2 : 1))).toBe(true);
    expect(new Set(records.map(({ sendTransactionHash }) => sendTransactionHash)).size).toBe(sent.length - 2);
    if (version === '2.0') expect(records.map(({ finality }) => finality)).toContain(3);
    if (version === '1.5' || version === '1.6') {
      expect(new Set(records.map(({ nonce }) => nonce === '0'))).toEqual(new Set([true, false]));
    }
  });

  testIf(isCommitted)('the commit and its blessing are those that the client finds', async () => {
    const lane = lab.lane(version, from);
    const isOld = version !== '1.6';
    const commit = await lane.commit(sent, { blessed: !isOld && from === 'a' });
    if (isOld) await lane.bless(sent);
    const client = await lab.network(lane.to).sdk();
    const { report, log } = await client.getVerifications({
      offRamp: lane.ramps.offRamp.address,
      request: await requestOf(lastOne()),
      startBlock: 1,
    });
    const facts = (await factsOf(lane.to)).filter(
      (fact) => 'merkleRoot' in fact && fact.merkleRoot === commit.merkleRoot,
    );
    const committed: Partial<RangeFact> = {
      kind: 'Committed',
      lane: {
        sourceChainSelector: String(report.sourceChainSelector),
        destChainSelector: String(lab.network(lane.to).selector),
        onramp: report.onRampAddress,
      },
      fromSequenceNumber: String(report.minSeqNr),
      toSequenceNumber: String(report.maxSeqNr),
      merkleRoot: report.merkleRoot,
      offramp: getAddress(lane.ramps.offRamp.address),
      seen: expect.objectContaining({ transactionHash: log.transactionHash }),
    };
    expect(facts).toEqual([
      committed,
      ...(commit.isBlessed ? [{ ...committed, kind: 'Blessed' }] : []),
      ...(isOld ? [expect.objectContaining({ kind: 'RootBlessed' })] : []),
    ]);
    expect(report).toMatchObject({ minSeqNr: sent[0]?.sequenceNumber, maxSeqNr: lastOne().sequenceNumber });
  });

  test('executions and failures are those that the client finds', async () => {
    const lane = lab.lane(version, from);
    const executed: Execution[] = [];
    for (const message of sent.slice(0, -1)) executed.push(await lane.execute(message));
    executed.push(await lane.execute(lastOne(), { fail: true }), await lane.executeByHand(lastOne()));
    const facts = await factsOf(lane.to);
    for (const message of sent) {
      const told = facts.filter((fact) => fact.kind === 'Executed' && fact.messageId === message.messageId);
      const plain = (told as Executed[]).map(({ success, seen }) => [
        success ? 2 : 3,
        seen.transactionHash,
        seen.at,
      ]);
      expect(plain).toEqual(await executionsSeenByClient(lane, message));
      expect(plain.map(([, transactionHash]) => transactionHash)).toEqual(
        executed
          .filter((execution) => execution.message === message)
          .map(({ transactionHash }) => transactionHash),
      );
    }
    expect(executed.at(-2)?.state).toBe('failure');
  });

  testIf(isCommitted)('the client proves any message of a root from what we keep for it', async () => {
    const lane = lab.lane(version, from);
    const batch = (await sentFacts(sent)).map(({ execution }) => {
      if (!execution || !('message' in execution)) throw new Error('Nothing was kept for an execution.');
      return execution.message;
    });
    const url = await serveInputs({
      offramp: lane.ramps.offRamp.address,
      onramp: getAddress(lane.ramps.onRamp.address),
      sourceChainSelector: String(lab.network(lane.from).selector),
      destChainSelector: String(lab.network(lane.to).selector),
      version: `${version}.0`,
      merkleRoot: lane.commitOf(lastOne())?.merkleRoot,
      messageBatch: batch,
    });
    for (const { messageId, decoded } of sent) {
      const client = new CCIPAPIClient(url, { logger: silent });
      const input = await client.getExecutionInput(messageId);
      // All that the client itself reads from the event is there again.
      expect(input.message).toMatchObject(decoded);
      expect(input.merkleRoot).toBe(lane.commitOf(lastOne())?.merkleRoot);
    }
  });

  testIf(!isCommitted)('verifications and the encoded message are those of the execution', async () => {
    const lane = lab.lane(version, from);
    const facts = await sentFacts(sent);
    const told = await factsOf(lane.to);
    for (const [index, message] of sent.entries()) {
      const { ccvs, results } = await lane.verifierResults(message);
      const completed = told.filter(
        (fact) => fact.kind === 'VerifierCompleted' && fact.messageId === message.messageId,
      );
      // The last one was executed twice, with the same results.
      const attempts = message === lastOne() ? 2 : 1;
      const expected = ccvs.map((ccv, place) => ({ verifier: getAddress(ccv), data: results[place] }));
      expect(completed).toMatchObject(Array.from({ length: attempts }, () => expected).flat());
      expect(facts[index]?.execution).toEqual({
        encodedMessage: message.args.encodedMessage,
        offramp: getAddress(lane.ramps.offRamp.address),
      });
    }
  });

  testIf(!isCommitted)('what anybody can make fail with false results tells of no verification', async () => {
    const lane = lab.lane(version, from);
    const message = await lane.sendOne({ data: '0x04' });
    const { ccvs, results } = await lane.verifierResults(message);
    const forged = results.map((result) => `${result.slice(0, -8)}deadbeef`);
    const { bystander } = lab.network(lane.to).foundation;
    await lane.ramps.offRamp.send('execute', [message.args.encodedMessage, ccvs, forged, 0], {
      from: bystander,
    });
    const told = (await factsOf(lane.to)).filter(
      (fact) => 'messageId' in fact && fact.messageId === message.messageId,
    );
    expect(told).toMatchObject([{ kind: 'Executed', success: false }, { kind: 'ExecutionDetails' }]);
  });

  test('thresholds and verifier policies are those of the off-ramp', async () => {
    const lane = lab.lane(version, from);
    const { offRamp } = lane.ramps;
    await read(lane.to, async (node, { book }) => {
      const contract = book.get(offRamp.address);
      if (!contract) throw new Error('The off-ramp is not in the book.');
      expect(await readExecutionThreshold(node, contract)).toBe(
        isCommitted ? PERMISSIONLESS_AFTER_SECONDS : undefined,
      );
      if (isCommitted) return;
      const { strictReceiver } = lab.network(lane.to).foundation;
      const strict = await lane.sendOne({ receiver: strictReceiver.address });
      for (const { args } of [lastOne(), strict]) {
        const encodedMessage = args.encodedMessage as Hex;
        const [required, optional, threshold] = await offRamp.read<[Hex[], Hex[], number]>(
          'getCCVsForMessage',
          [encodedMessage],
        );
        expect([required.length, optional.length]).toEqual(args === strict.args ? [1, 1] : [1, 0]);
        expect(await readVerifierPolicy(node, offRamp.address, encodedMessage)).toEqual({
          required,
          optional,
          optionalThreshold: threshold,
        });
      }
      expect(await readVerifierPolicy(node, offRamp.address, '0x1234')).toBeUndefined();
    });
  });
});
