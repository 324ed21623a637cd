/** Logs into facts: every event of every version, what may be missing from it, and what nobody expected. */
import fc from 'fast-check';
import {
  concat,
  encodeAbiParameters,
  getAddress,
  keccak256,
  numberToHex,
  pad,
  parseAbiParameters,
  size,
  slice,
  stringToHex,
  toHex,
  zeroAddress,
  zeroHash,
} from 'viem';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { addressFromBytes, zeroAddresses } from '../../../src/domain/addresses.ts';
import { type Fact, isRangeFact, type Sent } from '../../../src/domain/facts.ts';
import { defineNetworks, findNetwork, type Network } from '../../../src/domain/networks/networks.ts';
import { parseMessage } from '../../../src/domain/records/message-parser.ts';
import { NodeError } from '../../../src/ingest/engine/faults.ts';
import * as abi from '../../../src/ingest/evm/contracts/abi.ts';
import { type BatchedCalls, runBatched } from '../../../src/ingest/evm/contracts/batched-calls.ts';
import type { GenuineContract } from '../../../src/ingest/evm/contracts/contracts.ts';
import { createDecoder, type Decoded } from '../../../src/ingest/evm/decode/decoder.ts';
import { extraArgsTags } from '../../../src/ingest/evm/decode/v16.ts';
import type { Block, CallAnswer, ChainLog, ContractCall, Hex } from '../../../src/ingest/evm/rpc/chain.ts';
import { rangePieces } from '../../../src/store/write/lane-facts.ts';
import { encodeEvent } from '../../virtual-chain/ccip-events.ts';
import { answeringNode } from './answering-node.ts';

const networkNamed = (name: string) => findNetwork(name) as Network;
const [here, evm] = [networkNamed('ethereum-testnet-sepolia'), networkNamed('avalanche-testnet-fuji')];
const [svm, canton] = [networkNamed('solana-devnet'), networkNamed('canton-testnet')];
const [aptos, sui] = [networkNamed('aptos-testnet'), networkNamed('sui-testnet')];
const ton = networkNamed('ton-testnet');

const addressOf = (number: number): Hex => pad(numberToHex(number), { size: 20 });
const hashOf = (text: string): Hex => keccak256(stringToHex(text));

// ---- The contracts that are believed

const router = addressOf(0x100);
const genuine = <const C extends object>(typeAndVersion: string, address: number, rest: C) => ({
  typeAndVersion,
  address: addressOf(address),
  namedBy: router,
  ...rest,
});
const toEvm = { role: 'onRamp', destChainSelector: evm.selector } as const;
const fromEvm = { version: '1.5.0', sourceChainSelector: evm.selector, onRamp: addressOf(0x315) } as const;
const contracts = {
  router: genuine('Router 1.2.0', 0x100, { role: 'router', version: null }),
  onRamp12: genuine('EVM2EVMOnRamp 1.2.0', 0x112, { ...toEvm, version: '1.2.0' }),
  onRamp15: genuine('EVM2EVMOnRamp 1.5.0', 0x115, { ...toEvm, version: '1.5.0' }),
  onRamp16: genuine('OnRamp 1.6.0', 0x116, { role: 'onRamp', version: '1.6.0' }),
  onRamp20: genuine('OnRamp 2.0.0', 0x120, { role: 'onRamp', version: '2.0.0' }),
  offRamp15: genuine('EVM2EVMOffRamp 1.5.0', 0x215, {
    ...fromEvm,
    role: 'offRamp',
    commitStore: addressOf(0x415),
  }),
  offRamp16: genuine('OffRamp 1.6.0', 0x216, { role: 'offRamp', version: '1.6.0' }),
  offRamp20: genuine('OffRamp 2.0.0', 0x220, { role: 'offRamp', version: '2.0.0' }),
  commitStore: genuine('CommitStore 1.5.0', 0x415, {
    ...fromEvm,
    role: 'commitStore',
    offRamp: addressOf(0x215),
    rmnProxy: addressOf(0x515),
  }),
  rmn: genuine('RMN 1.5.0', 0x615, { role: 'rmn', version: null }),
} satisfies Record<string, GenuineContract>;
const registry: ReadonlyMap<Hex, GenuineContract> = new Map(
  Object.values(contracts).map((contract) => [contract.address, contract]),
);

// ---- What they emit

const block: Block = {
  number: 1_000,
  hash: hashOf('block'),
  parentHash: hashOf('parent'),
  timestamp: 1_700_000_000,
  logsBloom: '0x',
};

function logOf(
  contract: Pick<GenuineContract, 'address'>,
  event: abi.ContractEvent,
  indexed: readonly unknown[],
  data: readonly unknown[],
): ChainLog {
  return {
    address: contract.address,
    ...encodeEvent(event, indexed, data),
    blockNumber: block.number,
    blockHash: block.hash,
    transactionHash: hashOf('transaction'),
    logIndex: 7,
  };
}

const spelledOf = (number: number) => getAddress(addressOf(number));
const [sender, origin, receiver] = [spelledOf(0xa11ce), spelledOf(0x0419), spelledOf(0xb0b)];
const [token, pool, destToken] = [spelledOf(0x70ce), spelledOf(0x9001), spelledOf(0xde57)];
const feeToken = spelledOf(0xfee);

const evmArgs = concat([
  extraArgsTags.evmV2,
  encodeAbiParameters(parseAbiParameters('uint256, bool'), [200_000n, true]),
]);

/** @param header changes of the header; @param body of the message around it */
function sent16({
  dest = evm,
  sequenceNumber = 5n,
  header = {} as object,
  body = {} as object,
  transfers = [] as readonly { readonly destTokenAddress: Hex; readonly destExecData?: Hex }[],
} = {}): ChainLog {
  const indexed = [BigInt(dest.selector), sequenceNumber];
  const message = {
    header: {
      messageId: hashOf(`message ${sequenceNumber}`),
      sourceChainSelector: BigInt(here.selector),
      destChainSelector: BigInt(dest.selector),
      sequenceNumber,
      nonce: 0n,
      ...header,
    },
    sender,
    data: '0x1234',
    receiver: pad(receiver),
    extraArgs: evmArgs,
    feeToken,
    feeTokenAmount: 10n ** 15n,
    feeValueJuels: 10n ** 17n,
    tokenAmounts: transfers.map((transfer) => ({
      sourcePoolAddress: pool,
      extraData: '0x12',
      amount: 9n,
      destExecData: pad(numberToHex(90_000)),
      ...transfer,
    })),
    ...body,
  };
  return logOf(contracts.onRamp16, abi.ccipMessageSent16, indexed, [message]);
}

function sent15(onRamp: GenuineContract, sourceTokenData: readonly Hex[], source = here.selector): ChainLog {
  const message = {
    sourceChainSelector: BigInt(source),
    sender,
    receiver,
    sequenceNumber: 5n,
    gasLimit: 200_000n,
    strict: false,
    nonce: 3n,
    feeToken,
    feeTokenAmount: 10n ** 15n,
    data: '0x1234',
    tokenAmounts: [{ token, amount: 9n }],
    sourceTokenData,
    messageId: hashOf('message'),
  };
  return logOf(onRamp, abi.ccipSendRequested, [], [message]);
}

/** Bytes behind their length. */
const prefixed = (bytes: Hex, lengthOfLength = 1): Hex =>
  concat([numberToHex(size(bytes), { size: lengthOfLength }), bytes]);

type Message20 = Parameters<typeof encoded20>[0];

function encoded20({
  finality = '0x00000000' as Hex,
  receiver: to = receiver as Hex,
  dest = evm,
  offRamp = addressOf(0x0ff),
  amount = undefined as bigint | undefined,
  version = '0x01' as Hex,
  sourceSelector = here.selector,
  trailing = '0x' as Hex,
} = {}): Hex {
  const transfer =
    amount === undefined
      ? '0x'
      : concat([
          '0x01',
          numberToHex(amount, { size: 32 }),
          ...[pad(pool), pad(token), destToken, to].map((address) => prefixed(address)),
          prefixed('0x12', 2),
        ]);
  return concat([
    version,
    ...[sourceSelector, dest.selector, 5].map((number) => numberToHex(BigInt(number), { size: 8 })),
    ...[500_000, 200_000].map((gas) => numberToHex(gas, { size: 4 })),
    finality,
    zeroHash,
    ...[pad(contracts.onRamp20.address), offRamp, pad(sender), to].map((address) => prefixed(address)),
    ...(['0x', transfer, '0x1234'] as const).map((bytes) => prefixed(bytes, 2)),
    trailing,
  ]);
}

const verifiers = [addressOf(0xc1), addressOf(0xc2)];
const executor = spelledOf(0xe8ec);

function sent20(
  message: Message20 = {},
  options: { readonly messageId?: Hex; readonly receipts?: number; readonly sentAmount?: bigint } = {},
) {
  const encodedMessage = encoded20(message);
  const issuers = [...verifiers, ...(message.amount === undefined ? [] : [pool]), executor, router];
  const receipts = issuers.map((issuer, index) => ({
    issuer,
    destGasLimit: 1_000 * index,
    destBytesOverhead: 0,
    feeTokenAmount: BigInt(10 ** index),
    // The network, last, has no arguments.
    extraArgs: index === issuers.length - 1 ? '0x' : toHex(index + 1, { size: 2 }),
  }));
  return logOf(
    contracts.onRamp20,
    abi.ccipMessageSent20,
    [BigInt((message.dest ?? evm).selector), sender, options.messageId ?? keccak256(encodedMessage)],
    [
      feeToken,
      options.sentAmount ?? 0n,
      encodedMessage,
      receipts.slice(0, options.receipts),
      verifiers.map(() => '0x49ff34ed'),
    ],
  );
}

// ---- Decoding

const text = (words: string) => encodeAbiParameters(parseAbiParameters('string'), [words]);

/** A chain on which every pool has our token and every on-ramp our router. */
function usualAnswer({ to, data }: ContractCall): CallAnswer {
  if (data === abi.getToken.selector) return pad(token);
  if (data.startsWith(abi.getPoolBySourceToken.selector)) return pad(pool);
  if (data.startsWith(abi.getRouter16.selector)) return concat([pad('0x05'), pad('0x'), pad(router)]);
  if (data.startsWith(abi.getRouter15.selector)) return pad(router);
  if (data.startsWith(abi.getOutboundImplementation.selector)) {
    return to === verifiers[0] ? pad(addressOf(0xcc)) : undefined;
  }
  if (data === abi.typeAndVersion.selector) {
    return text(to === addressOf(0xcc) ? 'CommitteeVerifier 2.0.0' : 'VersionedVerifierResolver 2.0.0');
  }
  return undefined;
}

interface DecodeOptions {
  readonly answer?: (call: ContractCall) => CallAnswer;
  readonly to?: Hex | null;
  readonly input?: Hex;
}

function nodeOf({ answer = usualAnswer, to = router, input = '0x' }: DecodeOptions = {}) {
  return answeringNode({
    answer,
    blocks: [block],
    transaction: (hash) => ({ hash, from: origin.toLowerCase() as Hex, to, input }),
  });
}

const decode = (logs: readonly ChainLog[], options?: DecodeOptions): Promise<Decoded> =>
  createDecoder(here).decode(nodeOf(options), logs, registry);

async function decodeSent(log: ChainLog, options?: DecodeOptions): Promise<Sent> {
  const { facts, unreadable } = await decode([log], options);
  expect(unreadable).toEqual([]);
  const [fact] = facts;
  if (facts.length !== 1 || fact?.kind !== 'Sent') throw new Error('It is not one message.');
  expectStorable(fact);
  return fact;
}

async function reasonFor(log: ChainLog): Promise<string> {
  const { facts, unreadable } = await decode([log]);
  expect(facts).toEqual([]);
  expect(unreadable.map((entry) => entry.log)).toEqual([log]);
  return unreadable[0]?.reason ?? '';
}

const seen = {
  network: here.selector,
  blockNumber: block.number,
  blockHash: block.hash,
  transactionHash: hashOf('transaction'),
  logIndex: 7,
  at: '2023-11-14T22:13:20.000Z',
};

type MessageCase = Parameters<typeof expectFields>;

/** Decodes, and compares the fields that are given, each whole. */
async function expectFields(
  _what: string,
  log: ChainLog,
  fields: Partial<Sent['message']>,
  options?: DecodeOptions,
): Promise<void> {
  expect((await decodeSent(log, options)).message).toEqual(expect.objectContaining(fields));
}

const usualTransfer = {
  sourceTokenAddress: token,
  destTokenAddress: destToken,
  sourcePoolAddress: pool,
  amount: '9',
  extraData: '0x12',
  destGasAmount: '90000',
};

describe('a message of 1.6', () => {
  const account = hashOf('account');
  const base58 = (bytes: Hex) => addressFromBytes(bytes.slice(2), 'SVM')?.text as string;
  const svmArgs = (computeUnits: number, bitmap: bigint, accounts: readonly Hex[]) => {
    const args = { computeUnits, accountIsWritableBitmap: bitmap, allowOutOfOrderExecution: true };
    const encoded = encodeAbiParameters(abi.svmExtraArgsV1, [{ ...args, tokenReceiver: account, accounts }]);
    return concat([extraArgsTags.svmV1, encoded]);
  };
  const bodyToSvm = { receiver: zeroHash, extraArgs: svmArgs(1_000, 5n, [account, zeroHash]) };
  const toSvm = sent16({ dest: svm, body: bodyToSvm, transfers: [{ destTokenAddress: account }] });
  const shortReceiver = { receiver: addressOf(1) };
  const firstForm = concat([extraArgsTags.evmV1, pad(numberToHex(300_000))]);
  const untold = { sourceTokenAddress: zeroAddress, destTokenAddress: zeroAddress, destGasAmount: null };
  const suiArgs = encodeAbiParameters(abi.suiExtraArgsV1, [
    { gasLimit: 7n, allowOutOfOrderExecution: true, tokenReceiver: account, receiverObjectIds: [account] },
  ]);

  test.each<MessageCase>([
    [
      'to SVM has that family’s addresses and arguments',
      toSvm,
      {
        receiver: '1'.repeat(32),
        extraArgs: {
          computeUnits: 1_000,
          accountIsWritableBitmap: '5',
          allowOutOfOrderExecution: true,
          tokenReceiver: base58(account),
          accounts: [base58(account), '1'.repeat(32)],
        },
        tokenAmounts: [{ ...usualTransfer, destTokenAddress: base58(account) }],
      },
    ],
    [
      'to Sui has the members of its arguments behind those of EVM’s',
      sent16({ dest: sui, body: { receiver: account, extraArgs: concat([extraArgsTags.suiV1, suiArgs]) } }),
      {
        receiver: account,
        extraArgs: {
          gasLimit: '7',
          allowOutOfOrderExecution: true,
          tokenReceiver: account,
          receiverObjectIds: [account],
        },
      },
    ],
    [
      'to Aptos has its receiver',
      sent16({ dest: aptos, body: { receiver: account } }),
      { receiver: account },
    ],
    [
      'to TON has the receiver as that family spells it',
      sent16({ dest: ton, body: { receiver: concat(['0xffffffff', account]) } }),
      { receiver: `-1:${account.slice(2)}` },
    ],
    [
      'with arguments of the first form is ordered by its nonce',
      sent16({ body: { extraArgs: firstForm }, header: { nonce: 4n } }),
      { extraArgs: { gasLimit: '300000', allowOutOfOrderExecution: false }, nonce: '4' },
    ],
    [
      'shows the zero address for a token that a pool tells falsely or not at all',
      sent16({ transfers: [{ destTokenAddress: '0x1234', destExecData: '0x' }] }),
      { tokenAmounts: [{ ...usualTransfer, ...untold }] },
      { answer: (call) => (call.data === abi.getToken.selector ? undefined : usualAnswer(call)) },
    ],
    ...[undefined, zeroHash, concat([zeroHash, zeroHash, zeroHash])].map(
      (answer): MessageCase => [
        `has no router where the on-ramp answers ${answer}`,
        sent16(),
        { routerAddress: null },
        { answer: () => answer },
      ],
    ),
  ])('%s', expectFields);

  it('to SVM keeps the receiver and the arguments that an execution by hand needs', async () => {
    const { execution } = await decodeSent(toSvm);
    expect(execution).toMatchObject({ message: { ...bodyToSvm, receiver: '1'.repeat(32) } });
  });

  test.each([
    ['a malformed receiver', { body: { receiver: '0x1234' } }, /its receiver 0x1234 is no EVM address/],
    ['a receiver that is no address of 20 bytes', { body: { receiver: hashOf('x') } }, /no EVM address/],
    ['a receiver of another family', { dest: svm, body: shortReceiver }, /no SVM address/],
    ['a receiver of 20 bytes on Canton', { dest: canton, body: shortReceiver }, /no CANTON address/],
    ['arguments of an unknown form', { body: { extraArgs: '0xdeadbeef00' } }, /tag 0xdeadbeef/],
    ['no arguments', { body: { extraArgs: '0x' } }, /tag 0x,/],
    ['arguments that break off', { body: { extraArgs: '0x181dcf1000' } }, /CCIPMessageSent: \S/],
    ['SVM’s arguments for EVM', { body: { extraArgs: svmArgs(1, 0n, []) } }, /tokenReceiver/],
    ['another source', { header: { sourceChainSelector: 5n } }, /names 5 as its source; ethereum-testnet-/],
    ['an unknown destination', { dest: { ...evm, selector: '5' } }, /selector 5 of the destination/],
    ['two numbers', { header: { sequenceNumber: 6n } }, /different lanes or numbers/],
    ['a gigantic payload', { body: { data: `0x${'00'.repeat(1_000_001)}` } }, /\$\.data/],
  ] as const)('with %s is handed back with the reason', async (_, message, reason) => {
    expect(await reasonFor(sent16(message))).toMatch(reason);
  });

  it('to a chain that is not built in is read once the chain is defined', async () => {
    const dest: Network = { ...evm, selector: '77', name: 'acme-mainnet', chainId: '770077' };
    expect(await reasonFor(sent16({ dest }))).toMatch(/selector 77 of the destination is unknown.*`chains`/);
    defineNetworks([dest]);
    onTestFinished(() => defineNetworks([]));
    const { message } = await decodeSent(sent16({ dest }));
    expect(message.destNetworkInfo).toMatchObject({ name: 'acme-mainnet', chainSelector: '77' });
  });
});

describe('a message of 1.2 and 1.5', () => {
  it('has in 1.2 the zero address for a pool that is retired', async () => {
    const { message } = await decodeSent(sent15(contracts.onRamp12, ['0xbeef']), { answer: () => undefined });
    const untold = { destTokenAddress: zeroAddress, sourcePoolAddress: zeroAddress, destGasAmount: null };
    expect(message.tokenAmounts).toEqual([{ ...usualTransfer, ...untold, extraData: '0xbeef' }]);
  });

  it('is handed back where its token data or its source are not what they should be', async () => {
    const addresses = { sourcePoolAddress: pad(pool), destTokenAddress: pad(destToken) };
    const tokenData = encodeAbiParameters(abi.sourceTokenData, [
      { ...addresses, extraData: '0x12', destGasAmount: 90_000n },
    ]);
    expect(await reasonFor(sent15(contracts.onRamp15, []))).toMatch(/not as many token data as tokens/);
    expect(await reasonFor(sent15(contracts.onRamp15, ['0xbeef']))).toMatch(/CCIPSendRequested: \S/);
    expect(await reasonFor(sent15(contracts.onRamp15, [tokenData], '5'))).toMatch(/names 5 as its source/);
  });
});

describe('a message of 2.0', () => {
  const argsInEffect = {
    gasLimit: '200000',
    allowOutOfOrderExecution: true,
    requestedFinalityConfig: '0x00000005',
    ccvs: verifiers.map((verifier) => getAddress(verifier)),
    ccvArgs: ['0x0001', '0x0002'],
    executor,
    executorArgs: '0x0004',
    tokenReceiver: receiver,
    tokenArgs: '0x0003',
  } as const;

  test.each<MessageCase>([
    [
      'has the extra arguments in effect from its receipts',
      sent20({ finality: '0x00000005', amount: 8n }),
      { finality: 5, extraArgs: argsInEffect as never },
    ],
    [
      'has the name of a resolver for a verifier that tells no implementation',
      sent20(),
      {
        verifiers: expect.objectContaining({
          items: ['CommitteeVerifier', 'VersionedVerifierResolver'].map((name) =>
            expect.objectContaining({ metadata: expect.objectContaining({ name }) }),
          ),
        }),
      },
    ],
    [
      'has what the token pool kept of the amount',
      sent20({ amount: 990n }, { sentAmount: 1_000n }),
      {
        fees: expect.objectContaining({
          bpsFeeDetails: [{ contractAddress: pool, tokenAddress: token, amount: '10', bps: 100 }],
        }),
      },
    ],
    [
      'has no share of a token pool that kept nothing',
      sent20({ amount: 990n }, { sentAmount: 990n }),
      { fees: expect.not.objectContaining({ bpsFeeDetails: expect.anything() }) },
    ],
    [
      'has no transfer where the pool has kept everything, and all its fees',
      sent20({ amount: 0n }),
      {
        tokenAmounts: [],
        fees: expect.objectContaining({
          fixedFeesDetails: expect.objectContaining({ items: Array(5).fill(expect.anything()) }),
        }),
      },
    ],
  ])('%s', expectFields);

  it('to Canton has the hashes of the receiving party and of the off-ramp as that family spells them', async () => {
    const party = hashOf('Alice::1220');
    const offRamp = hashOf('offramp');
    const { message, execution } = await decodeSent(sent20({ dest: canton, receiver: party, offRamp }));
    expect(message).toMatchObject({
      receiver: party,
      destNetworkInfo: { name: 'canton-testnet', chainFamily: 'CANTON' },
      verifiers: { items: [{ destAddress: zeroAddresses.CANTON }, { destAddress: zeroAddresses.CANTON }] },
    });
    expect(execution).toMatchObject({ offramp: offRamp });
  });

  test.each([
    ['a name of its own making', text('<script>alert(1)</script> 1.0')],
    ['an endless name', text(`${'V'.repeat(5_000)} 1.0.0`)],
    ['something that is no text', '0x1234'],
    ['nothing', undefined],
  ] as const)('calls a verifier that answers with %s just that', async (_, answer) => {
    const { message } = await decodeSent(sent20(), {
      answer: ({ data }) => (data === abi.typeAndVersion.selector ? answer : undefined),
    });
    expect(message.verifiers?.items.map(({ metadata }) => metadata.name)).toEqual(['Verifier', 'Verifier']);
  });

  test.each([
    ['another id', sent20({}, { messageId: hashOf('x') }), /not the hash of its message/],
    ['another source', sent20({ sourceSelector: '5' }), /names 5 as its source/],
    ['an encoding of the future', sent20({ version: '0x02' }), /encoding version 2/],
    ['bytes behind its end', sent20({ trailing: '0x00' }), /bytes behind its end/],
    ['a receipt too few', sent20({}, { receipts: 3 }), /3 receipts for 2 verifiers and no token/],
    ['a malformed receiver', sent20({ receiver: '0x1234' }), /no EVM address/],
  ])('with %s is handed back with the reason', async (_, log, reason) => {
    expect(await reasonFor(log)).toMatch(reason);
  });
});

describe('an execution', () => {
  const messageId = keccak256(encoded20());
  const of15 = (state: number, data: Hex = '0x') =>
    logOf(contracts.offRamp15, abi.executionStateChanged15, [5n, messageId], [state, data]);
  const lane = [5n, 5n, messageId];
  const of16 = (state: number, data: Hex = '0x') =>
    logOf(contracts.offRamp16, abi.executionStateChanged16, lane, [zeroHash, state, data, 77n]);
  const executed20 = (state: number, data: Hex = '0x') =>
    logOf(contracts.offRamp20, abi.executionStateChanged20, lane, [state, data]);
  const results: readonly Hex[] = ['0x49ff34ed01', '0x49ff34ed02'];
  const call = (encodedMessage: Hex): Hex =>
    abi.callOf(abi.execute20, contracts.offRamp20.address, encodedMessage, verifiers, results, 0).data;
  const direct = { to: contracts.offRamp20.address, input: call(encoded20()) };
  const completed = verifiers.map((verifier, index) => ({
    kind: 'VerifierCompleted',
    messageId,
    verifier: getAddress(verifier),
    data: results[index],
    seen,
  }));
  const executed = (success: boolean) => ({ kind: 'Executed', messageId, success, seen });

  const outcomes = (facts: readonly Fact[]) => facts.filter(({ kind }) => kind !== 'ExecutionDetails');
  const [endless, kept]: readonly Hex[] = [`0x${'ab'.repeat(100_000)}`, `0x${'ab'.repeat(4_096)}`];

  test.each([
    ['of 1.5 that succeeded', of15(2), []],
    ['of 1.5 that failed', of15(3), [{ returnData: '0x', gasUsed: null, caller: origin }]],
    ['with words', of15(3, '0x1234'), [{ returnData: '0x1234', gasUsed: null, caller: origin }]],
    ['of 1.6 that succeeded', of16(2), [{ returnData: '0x', gasUsed: '77', caller: null }]],
    ['of 1.6 that failed', of16(3, '0x12'), [{ returnData: '0x12', gasUsed: '77', caller: origin }]],
    ['of 2.0', executed20(2), [{ returnData: '0x', gasUsed: null, caller: origin }]],
    ['with endless words', of16(3, endless), [{ returnData: kept, gasUsed: '77', caller: origin }]],
  ])('%s leaves the return data, the gas and, where it failed, the caller', async (_, log, details) => {
    const found = (await decode([log])).facts.filter(({ kind }) => kind === 'ExecutionDetails');
    expect(found).toEqual(
      details.map((detail) => ({ kind: 'ExecutionDetails', messageId, ...detail, seen })),
    );
  });

  it('tells of the end of a message, not of its middle', async () => {
    for (const log of [of15, of16, executed20]) {
      expect((await decode([log(0), log(1)])).facts).toEqual([]);
      expect(outcomes((await decode([log(2), log(3)])).facts)).toEqual([executed(true), executed(false)]);
      expect(await reasonFor(log(4))).toMatch(/4 is no execution state/);
    }
  });

  it('of 2.0 shows the verifiers’ results where its transaction calls the off-ramp', async () => {
    expect(outcomes((await decode([executed20(2)], direct)).facts)).toEqual([executed(true), ...completed]);
    for (const other of [
      { ...direct, to: router },
      { ...direct, to: null },
      { ...direct, input: call(encoded20({ amount: 1n })) },
      { ...direct, input: `${direct.input.slice(0, 200)}` as Hex },
      { ...direct, input: '0x' as const },
    ]) {
      expect(outcomes((await decode([executed20(2)], other)).facts)).toEqual([executed(true)]);
    }
  });

  it('of 2.0 that failed shows them only where it failed behind the verification', async () => {
    const tokenError = (words: Hex) =>
      concat(['0x9fe2f95a', encodeAbiParameters(parseAbiParameters('address, bytes'), [token, words])]);
    const receiverError = concat(['0x0a8d6e8c', encodeAbiParameters(parseAbiParameters('bytes'), ['0x'])]);
    for (const [returnData, isVerified] of [
      [receiverError, true],
      [tokenError('0x1234'), true],
      // Contracts cut off what others say at length.
      [slice(tokenError(`0x${'12'.repeat(500)}`), 0, 132), true],
      [tokenError('0x'), false],
      [slice(tokenError('0x1234'), 0, 90), false],
      ['0x9fe2f95a', false],
      ['0x', false],
      ['0x518d2ac5', false],
    ] as const) {
      const { facts } = await decode([executed20(3, returnData)], direct);
      expect(outcomes(facts)).toEqual([executed(false), ...(isVerified ? completed : [])]);
    }
  });
});

describe('a commit', () => {
  const root = (changes: object = {}) => ({
    sourceChainSelector: BigInt(evm.selector),
    onRampAddress: pad(addressOf(0x316)),
    minSeqNr: 3n,
    maxSeqNr: 4n,
    merkleRoot: hashOf('root'),
    ...changes,
  });
  const prices = { tokenPriceUpdates: [], gasPriceUpdates: [] };
  const report = (blessed: readonly object[], unblessed: readonly object[]) =>
    logOf(contracts.offRamp16, abi.commitReportAccepted, [], [blessed, unblessed, prices]);
  const reportOf15 = (min: bigint, max: bigint, merkleRoot = hashOf('root')) =>
    logOf(
      contracts.commitStore,
      abi.reportAccepted,
      [],
      [{ priceUpdates: prices, interval: { min, max }, merkleRoot }],
    );

  it('of 1.6 names the on-ramp as the source’s family spells it', async () => {
    const { facts } = await decode([
      report([], [root({ sourceChainSelector: BigInt(svm.selector), onRampAddress: zeroHash })]),
      report([], [root({ sourceChainSelector: BigInt(aptos.selector), onRampAddress: hashOf('x') })]),
    ]);
    expect(facts.filter(isRangeFact).map(({ lane }) => lane.onramp)).toEqual([
      '1'.repeat(32),
      `${hashOf('x')}::onramp`,
    ]);
    for (const fact of facts.filter(isRangeFact)) expect(rangePieces(fact)).toHaveLength(1);
  });

  it('of 1.6 keeps the good roots of a report that has others too', async () => {
    const { facts, unreadable } = await decode([
      report(
        [root({ sourceChainSelector: 5n })],
        [root(), root({ onRampAddress: '0x12' }), root({ minSeqNr: 5n })],
      ),
    ]);
    const lane = { sourceChainSelector: evm.selector, destChainSelector: here.selector };
    expect(facts).toEqual([
      {
        kind: 'Committed',
        lane: { ...lane, onramp: spelledOf(0x316) },
        fromSequenceNumber: '3',
        toSequenceNumber: '4',
        merkleRoot: hashOf('root'),
        offramp: getAddress(contracts.offRamp16.address),
        seen,
      },
    ]);
    expect(unreadable.map(({ reason }) => reason)).toEqual([
      expect.stringMatching(/selector 5 of the source.*on-ramp 0x12 is no EVM address.*numbers 5 to 4/),
    ]);
  });

  it('of prices alone tells nothing', async () => {
    const { facts, unreadable } = await decode([report([], []), reportOf15(0n, 0n, zeroHash)]);
    expect([...facts, ...unreadable]).toEqual([]);
  });

  it('takes as many messages as the store does, and no more', async () => {
    const widest = 256n * 4_096n;
    for (const log of [
      (max: bigint) => reportOf15(1n, max),
      (max: bigint) => report([], [root({ minSeqNr: 1n, maxSeqNr: max })]),
    ]) {
      const [fact] = (await decode([log(widest)])).facts;
      if (!fact || !isRangeFact(fact)) throw new Error('It is no commit.');
      expect(rangePieces(fact)).toHaveLength(4_096);
      expect(() => rangePieces({ ...fact, toSequenceNumber: String(widest + 1n) })).toThrow();
      expect(await reasonFor(log(widest + 1n))).toMatch(/numbers 1 to 1048577, which no root can/);
    }
  });

  it('is blessed by the RMN where it is of a commit store that we know', async () => {
    const blessing = (commitStore: Hex) =>
      logOf(contracts.rmn, abi.taggedRootBlessed, [1], [{ commitStore, root: hashOf('root') }, 2]);
    const { facts, unreadable } = await decode([
      blessing(contracts.commitStore.address),
      blessing(addressOf(0x999)),
      blessing(contracts.offRamp15.address),
    ]);
    expect(facts).toEqual([{ kind: 'RootBlessed', merkleRoot: hashOf('root'), seen }]);
    expect(unreadable).toEqual([]);
  });
});

test('a root that its commit store or 1.6 off-ramp removes is told', async () => {
  for (const emitter of [contracts.commitStore, contracts.offRamp16]) {
    const { facts, unreadable } = await decode([logOf(emitter, abi.rootRemoved, [], [hashOf('root')])]);
    expect(unreadable).toEqual([]);
    expect(facts).toEqual([{ kind: 'RootRemoved', merkleRoot: hashOf('root'), seen }]);
  }
  expect(await reasonFor(logOf(contracts.offRamp20, abi.rootRemoved, [], [hashOf('root')]))).toMatch(
    /OffRamp 2.0.0 has no event such as RootRemoved/,
  );
});

describe('the decoder', () => {
  it('counts what contracts say that nobody named, and passes over how contracts are named', async () => {
    const spoofed = { ...sent16(), address: addressOf(0xbad) };
    const named = logOf(contracts.router, abi.onRampSet, [5n], [addressOf(1)]);
    expect(await decode([spoofed, sent16(), named, spoofed])).toMatchObject({
      facts: [{ kind: 'Sent' }],
      unreadable: [],
      untrusted: 2,
    });
  });

  it('hands back what a genuine contract of another kind says', async () => {
    for (const { address, typeAndVersion } of [contracts.onRamp15, contracts.offRamp16, contracts.router]) {
      expect(await reasonFor({ ...sent16(), address })).toBe(
        `CCIPMessageSent: ${typeAndVersion} has no event such as CCIPMessageSent`,
      );
    }
  });

  it('asks once for all messages, and never again for what does not change', async () => {
    const decoder = createDecoder(here);
    const logs = Array.from({ length: 50 }, (_, index) =>
      sent16({ sequenceNumber: BigInt(index), transfers: [{ destTokenAddress: destToken }] }),
    );
    const first = nodeOf();
    expect((await decoder.decode(first, logs, registry)).facts).toHaveLength(50);
    expect(first.batches.map((batch) => batch.length)).toEqual([2]);
    const second = nodeOf();
    expect((await decoder.decode(second, logs, registry)).facts).toHaveLength(50);
    expect(second.batches.map((batch) => batch.map(({ data }) => data.slice(0, 10)))).toEqual([
      [abi.getRouter16.selector],
    ]);
  });

  it('loses no answer that is waited for when its cache is full and cleared', async () => {
    function* tokenOf(to: Hex): BatchedCalls<CallAnswer> {
      const [answer] = yield [abi.callOf(abi.getToken, to)];
      return answer;
    }
    const full = Array.from({ length: 10_000 }, (_, index) => `${addressOf(index)}${abi.getToken.selector}`);
    const cache = new Map(full.map((key) => [key, pad(token)]));
    const findings = await runBatched(nodeOf(), [tokenOf(addressOf(1)), tokenOf(addressOf(20_000))], cache);
    expect(findings).toEqual([{ result: pad(token) }, { result: pad(token) }]);
    expect(cache.size).toBe(1);
  });

  it('asks for no header that it is given', async () => {
    const node = { ...nodeOf(), blocks: () => Promise.reject(new Error('It asked.')) };
    const blocks = new Map([[block.hash, block]]);
    const { facts } = await createDecoder(here).decode(node, [sent16()], registry, blocks);
    expect(facts).toMatchObject([{ message: { sendTimestamp: seen.at }, seen }]);
    await expect(createDecoder(here).decode(node, [sent16()], registry)).rejects.toThrow('It asked.');
  });

  it('blames the node for a log of a block that it does not have', async () => {
    const log = { ...sent16(), blockHash: hashOf('another block') };
    await expect(decode([log])).rejects.toThrow(NodeError);
    const late = answeringNode({ blocks: [{ ...block, timestamp: 1e15 }] });
    const execution = logOf(contracts.offRamp15, abi.executionStateChanged15, [5n, hashOf('x')], [2, '0x']);
    await expect(createDecoder(here).decode(late, [execution], registry)).rejects.toThrow(NodeError);
  });

  it('fails with a node that fails', async () => {
    const fault = new NodeError('It does not answer.');
    const node = { ...nodeOf(), calls: () => Promise.reject(fault) };
    await expect(createDecoder(here).decode(node, [sent16()], registry)).rejects.toBe(fault);
  });

  it('survives whatever a contract emits', { tags: 'slow' }, async () => {
    let told = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyLog(), { minLength: 1, maxLength: 8 }),
        anyAnswer(),
        async (logs, answer) => {
          const { facts, unreadable, untrusted } = await decode(logs, {
            answer,
            to: contracts.offRamp20.address,
          });
          told += facts.length;
          expect(untrusted).toBe(0);
          expect(unreadable.every(({ reason }) => reason.length > 0 && reason.length < 600)).toBe(true);
          for (const fact of facts) expectStorable(fact);
        },
      ),
      { numRuns: 3_000 },
    );
    expect(told).toBeGreaterThan(500);
  });
});

const hexOf = (constraints: fc.IntArrayConstraints) =>
  fc.uint8Array(constraints).map((bytes): Hex => `0x${Buffer.from(bytes).toString('hex')}`);

/** A log like those we read, with another emitter, other topics, or some of its bytes changed or missing. */
function anyLog(): fc.Arbitrary<ChainLog> {
  const samples = [
    sent15(contracts.onRamp12, ['0xbeef']),
    sent15(contracts.onRamp15, ['0xbeef']),
    sent16({ transfers: [{ destTokenAddress: destToken }] }),
    sent20({ amount: 8n }),
    logOf(contracts.offRamp15, abi.executionStateChanged15, [5n, hashOf('x')], [2, '0x']),
    logOf(contracts.offRamp16, abi.executionStateChanged16, [5n, 5n, hashOf('x')], [zeroHash, 2, '0x', 0n]),
    logOf(contracts.offRamp20, abi.executionStateChanged20, [5n, 5n, hashOf('x')], [3, '0x9fe2f95a']),
  ];
  const word = hexOf({ minLength: 32, maxLength: 32 });
  const emitters = fc.constantFrom(...Object.values(contracts).map(({ address }) => address));
  return fc
    .record({
      sample: fc.constantFrom(...samples),
      address: fc.option(emitters, { freq: 4, nil: undefined }),
      topics: fc.array(word, { maxLength: 4 }),
      isRetold: fc.boolean(),
      noise: hexOf({ maxLength: 400 }),
      /** Where which bytes of the data become which others. */
      changes: fc.array(
        fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), hexOf({ minLength: 1, maxLength: 32 })),
        { maxLength: 4 },
      ),
      kept: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    .map(({ sample, address, topics, isRetold, noise, changes, kept }): ChainLog => {
      let digits = sample.data.slice(2);
      for (const [place, bytes] of changes) {
        const start = 2 * Math.floor((place * digits.length) / 2);
        digits = digits.slice(0, start) + bytes.slice(2) + digits.slice(start + bytes.length - 2);
      }
      if (changes.length === 4) digits = digits.slice(0, 2 * Math.floor((kept * digits.length) / 2));
      return {
        ...sample,
        address: address ?? sample.address,
        topics: isRetold ? sample.topics : [sample.topics[0] ?? zeroHash, ...topics],
        data: changes.length === 0 && !isRetold ? noise : `0x${digits}`,
      };
    });
}

function anyAnswer(): fc.Arbitrary<(call: ContractCall) => CallAnswer> {
  return fc.oneof(
    fc.constant(usualAnswer),
    hexOf({ maxLength: 200 }).map((answer) => (): CallAnswer => (answer === '0x' ? undefined : answer)),
  );
}

function expectStorable(fact: Fact): void {
  expect(JSON.parse(JSON.stringify(fact))).toEqual(fact);
  if (isRangeFact(fact)) expect(rangePieces(fact).length).toBeGreaterThan(0);
  if (fact.kind !== 'Sent') return;
  const outcome = { status: 'SENT', readyForManualExecution: false };
  expect(parseMessage({ ...fact.message, ...outcome })).toMatchObject({ ok: true, message: fact.message });
}
