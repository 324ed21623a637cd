/**
 * The EVM end of a Solana world's lanes, as a virtual chain: an on-ramp that sent every message that the world received, and
 * an off-ramp that commits and executes what the world has sent. It shows the world as it is when it is made.
 */
import {
  encodeAbiParameters,
  getAddress,
  type Hex,
  keccak256,
  numberToHex,
  pad,
  parseAbiParameters,
  stringToHex,
  toFunctionSelector,
  zeroAddress,
} from 'viem';
import * as abi from '../../src/ingest/evm/contracts/abi.ts';
import { commitReport16, encodeAnswer, encodeEvent, executionState16 } from '../virtual-chain/ccip-events.ts';
import {
  createVirtualChain,
  type EventSeries,
  transactionHashOf,
  type VirtualChain,
  type VirtualContract,
} from '../virtual-chain/virtual-chain.ts';
import { merkleRoot, type SentBody } from './ccip-hashes.ts';
import type { SolanaWorld } from './ccip-world.ts';
import { type EvmMessage, extraArgsOf, messageIdOf, tokensOf } from './received-messages.ts';
import { fromHex, pubkey, toHex } from './runtime/bytes.ts';
import type { TrueSend } from './truth.ts';
import type { Remote } from './world-options.ts';

export interface EvmCounterpart {
  readonly chain: VirtualChain;
  readonly router: Hex;
  readonly onRamp: Hex;
  readonly offRamp: Hex;
  /** The transaction that sent a message to Solana. */
  sendTransactionOf(message: EvmMessage): Hex;
  /** The transaction that executed a message from Solana; undefined where it waits. */
  receiptOf(send: TrueSend): Hex | undefined;
  readonly roots: readonly EvmRoot[];
}

/** A root of messages from Solana, committed on the EVM chain. */
export interface EvmRoot {
  readonly minSeqNr: bigint;
  readonly maxSeqNr: bigint;
  readonly merkleRoot: Hex;
}

const FIRST_EVENT_BLOCK = 20;
const SPARE_BLOCKS = 40;
const MESSAGES_PER_ROOT = 4;
const series = { onRampSet: 1, offRampAdded: 2, sends: 3, commits: 4, executions: 5 } as const;
const router: Hex = '0x0000000000000000000000000000000000e00100';
const offRamp: Hex = '0x0000000000000000000000000000000000e02000';

export function createEvmCounterpart(world: SolanaWorld, remote: Remote): EvmCounterpart {
  const { network, onRamp } = remote;
  const chainId = Number(network.chainId);
  const selector = BigInt(network.selector);
  const solana = BigInt(world.network.selector);
  const messages = world.received.filter(({ sourceChainSelector }) => sourceChainSelector === selector);
  const sends = world.truth.sends.filter(({ body }) => body.header.destChainSelector === selector);
  const roots = rootsOf(world, sends);
  const committed = Number(roots.at(-1)?.maxSeqNr ?? 0n);
  // The last one that is committed waits for its execution.
  const executed = sends.slice(0, Math.max(0, committed - 1));

  const at = <T>(
    id: number,
    emitter: Hex,
    topic: Hex,
    facts: readonly T[],
    encode: (fact: T) => { readonly topics: readonly Hex[]; readonly data: Hex },
    first = FIRST_EVENT_BLOCK,
  ): EventSeries => ({
    id,
    emitter,
    topic,
    count: facts.length,
    blockOf: (index) => first + index,
    eventOf: (index) => encode(facts[index] as T),
  });
  const afterCommits = FIRST_EVENT_BLOCK + roots.length;
  const chain = createVirtualChain({
    network,
    head: afterCommits + messages.length + executed.length + SPARE_BLOCKS,
    series: [
      at(
        series.onRampSet,
        router,
        abi.onRampSet.topic,
        [onRamp],
        (ramp) => encodeEvent(abi.onRampSet, [solana], [ramp]),
        5,
      ),
      at(
        series.offRampAdded,
        router,
        abi.offRampAdded.topic,
        [offRamp],
        (ramp) => encodeEvent(abi.offRampAdded, [solana], [ramp]),
        6,
      ),
      at(series.sends, onRamp, abi.ccipMessageSent16.topic, messages, messageSent),
      at(series.commits, offRamp, abi.commitReportAccepted.topic, roots, (root) =>
        commitReport16({
          ...root,
          sourceChainSelector: solana,
          onRamp: toHex(pubkey(world.programs.router)),
        }),
      ),
      at(
        series.executions,
        offRamp,
        abi.executionStateChanged16.topic,
        executed,
        ({ body, messageId }) => executionState16(solana, body.header.sequenceNumber, messageId as Hex),
        afterCommits,
      ),
    ],
    contracts: contractsOf({ remote, selector, solana, roots, solanaRouter: world.programs.router }),
  });
  return {
    chain,
    router,
    onRamp,
    offRamp,
    roots,
    sendTransactionOf: (message) => transactionHashOf(chainId, series.sends, messages.indexOf(message)),
    receiptOf(send) {
      const index = executed.indexOf(send);
      return index < 0 ? undefined : transactionHashOf(chainId, series.executions, index);
    },
  };
}

/** Contiguous from 1; the last message is not committed yet. */
function rootsOf(world: SolanaWorld, sends: readonly TrueSend[]): readonly EvmRoot[] {
  const roots: EvmRoot[] = [];
  for (let from = 0; from < sends.length - 1; from += MESSAGES_PER_ROOT) {
    const batch = sends.slice(from, Math.min(from + MESSAGES_PER_ROOT, sends.length - 1));
    roots.push({
      minSeqNr: BigInt(from + 1),
      maxSeqNr: BigInt(from + batch.length),
      merkleRoot: toHex(merkleRoot(batch.map(({ body }) => fromHex(evmLeaf(world.programs.router, body))))),
    });
  }
  return roots;
}

const receivedTokens = parseAbiParameters([
  'Token[] tokens',
  'struct Token { bytes sourcePoolAddress; address destTokenAddress; uint32 destGasAmount; bytes extraData; uint256 amount; }',
]);

/** The leaf of a message from Solana to an EVM chain. */
export function evmLeaf(solanaRouter: string, body: SentBody): Hex {
  const { header, extraArgs } = body;
  const lane = keccak256(
    encodeAbiParameters(parseAbiParameters('bytes32, uint64, uint64, bytes32'), [
      keccak256(stringToHex('Any2EVMMessageHashV1')),
      header.sourceChainSelector,
      header.destChainSelector,
      keccak256(toHex(pubkey(solanaRouter))),
    ]),
  );
  const gasLimit = BigInt(toHex(extraArgs.slice(4, 20).reverse()));
  const fixed = keccak256(
    encodeAbiParameters(parseAbiParameters('bytes32, address, uint64, uint256, uint64'), [
      toHex(header.messageId),
      toHex(body.receiver.slice(12)),
      header.sequenceNumber,
      gasLimit,
      header.nonce,
    ]),
  );
  const tokens = body.tokenAmounts.map((token) => ({
    sourcePoolAddress: toHex(pubkey(token.sourcePoolAddress)),
    destTokenAddress: toHex(token.destTokenAddress.slice(12)),
    destGasAmount: Number(BigInt(toHex(token.destExecData))),
    extraData: toHex(token.extraData),
    amount: token.amount,
  }));
  return keccak256(
    encodeAbiParameters(parseAbiParameters('bytes32, bytes32, bytes32, bytes32, bytes32, bytes32'), [
      pad('0x'),
      lane,
      fixed,
      keccak256(toHex(pubkey(body.sender))),
      keccak256(toHex(body.data)),
      keccak256(encodeAbiParameters(receivedTokens, [tokens])),
    ]),
  );
}

/** The event with which an on-ramp sends a message to Solana. */
export function messageSent(message: EvmMessage) {
  const { sourceChainSelector, destChainSelector, sequenceNumber } = message;
  const body = {
    header: {
      messageId: messageIdOf(message),
      sourceChainSelector,
      destChainSelector,
      sequenceNumber,
      nonce: 0n,
    },
    sender: message.sender,
    data: message.data,
    receiver: toHex(pubkey(message.receiver)),
    extraArgs: extraArgsOf(message),
    feeToken: message.feeToken,
    feeTokenAmount: message.feeTokenAmount,
    feeValueJuels: message.feeValueJuels,
    tokenAmounts: tokensOf(message),
  };
  return encodeEvent(abi.ccipMessageSent16, [destChainSelector, sequenceNumber], [body]);
}

interface Lane {
  readonly remote: Remote;
  readonly selector: bigint;
  readonly solana: bigint;
  readonly solanaRouter: string;
  readonly roots: readonly EvmRoot[];
}

const sourceChainConfig = parseAbiParameters([
  'Config config',
  'struct Config { address router; bool isEnabled; uint64 minSeqNr; bool isRMNVerificationDisabled; bytes onRamp; }',
]);
const selectorOf = (signature: string): Hex => toFunctionSelector(`function ${signature}`);
const MANUAL_EXECUTION_AFTER_SECONDS = 28_800;

/** The views that an indexer asks. */
function contractsOf({ remote, selector, solana, solanaRouter, roots }: Lane): readonly VirtualContract[] {
  const { onRamp } = remote;
  const words = (text: string) => encodeAnswer(abi.typeAndVersion, [text]);
  const isLane = (args: Hex) => BigInt(args) === solana;
  const staticConfig = () => encodeAnswer(abi.getStaticConfig, [selector]);
  const uint = (value: bigint): Hex => pad(numberToHex(value));
  const pools = ['0', '1', '2'].map(
    (index): VirtualContract => ({
      address: `0x${'9'.repeat(39)}${index}`,
      deployedAt: 0,
      views: {
        [abi.getToken.selector]: () =>
          encodeAnswer(abi.getToken, [getAddress(`0x${'7'.repeat(39)}${index}`)]),
      },
    }),
  );
  return [
    {
      address: router,
      deployedAt: 1,
      views: {
        [abi.typeAndVersion.selector]: () => words('Router 1.2.0'),
        [abi.getOnRamp.selector]: (args) =>
          encodeAnswer(abi.getOnRamp, [isLane(args) ? onRamp : zeroAddress]),
        [abi.getOffRamps.selector]: () =>
          encodeAnswer(abi.getOffRamps, [[{ sourceChainSelector: solana, offRamp }]]),
      },
    },
    {
      address: onRamp,
      deployedAt: 2,
      views: {
        [abi.typeAndVersion.selector]: () => words('OnRamp 1.6.0'),
        [abi.getStaticConfig.selector]: staticConfig,
        [abi.getRouter16.selector]: (args, { countOf }) =>
          encodeAnswer(
            abi.getRouter16,
            isLane(args) ? [BigInt(countOf(series.sends)), false, router] : [0n, false, zeroAddress],
          ),
        [selectorOf('getExpectedNextSequenceNumber(uint64)')]: (args, { countOf }) =>
          uint(isLane(args) ? BigInt(countOf(series.sends) + 1) : 1n),
      },
    },
    {
      address: offRamp,
      deployedAt: 2,
      views: {
        [abi.typeAndVersion.selector]: () => words('OffRamp 1.6.0'),
        [abi.getStaticConfig.selector]: staticConfig,
        [abi.getThreshold16.selector]: () =>
          encodeAnswer(abi.getThreshold16, [zeroAddress, MANUAL_EXECUTION_AFTER_SECONDS]),
        [selectorOf('getSourceChainConfig(uint64)')]: (args, { countOf }) =>
          encodeAbiParameters(sourceChainConfig, [
            {
              router: isLane(args) ? router : zeroAddress,
              isEnabled: isLane(args),
              minSeqNr: isLane(args) ? (roots[countOf(series.commits) - 1]?.maxSeqNr ?? 0n) + 1n : 0n,
              isRMNVerificationDisabled: true,
              onRamp: isLane(args) ? toHex(pubkey(solanaRouter)) : '0x',
            },
          ]),
      },
    },
    ...pools,
  ];
}
