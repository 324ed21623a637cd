/**
 * Two virtual chains joined by CCIP 1.6 lanes in both directions: routers, ramps that replace each other over time,
 * messages spread over the whole height, commits and executions, and events of contracts that no router named.
 *
 * Everything follows from a few numbers, so that a test can compare a store with `expectedMessages`.
 */
import {
  encodeAbiParameters,
  numberToHex,
  pad,
  parseAbiParameters,
  toFunctionSelector,
  zeroAddress,
} from 'viem';
import { findNetwork, type Network } from '../../src/domain/networks/networks.ts';
import * as abi from '../../src/ingest/evm/contracts/abi.ts';
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';
import { commitReport16, encodeAnswer, encodeEvent, executionState16, messageSent16 } from './ccip-events.ts';
import {
  composeHash,
  createVirtualChain,
  type EventSeries,
  transactionHashOf,
  type VirtualChain,
  type VirtualContract,
  type VirtualEvent,
} from './virtual-chain.ts';

export interface CcipWorldOptions {
  /** Events are in the blocks up to here. */
  readonly blocks: number;
  /** The highest block of both chains at first; `blocks` where it is left out. */
  readonly head?: number;
  /** In each direction. */
  readonly messages: number;
  /** The block of the routers. The first ramps follow ten blocks later. */
  readonly deployedAt?: number;
  /** How many ramps have followed each other, in both directions; only the last ones are in use at the end. */
  readonly ramps?: number;
  readonly messagesPerRoot?: number;
  /** Logs with the topic of a message, of a contract that no router named, on chain `a`. */
  readonly foreign?: readonly ForeignLogs[];
  /** What the ramps of chain `a` call themselves. */
  readonly onRampType?: string;
  readonly offRampType?: string;
  /** Seconds between blocks. */
  readonly blockSeconds?: number;
  /** Further events and contracts of chain `a`. Ids of series from `FIRST_FREE_SERIES` on are free. */
  readonly series?: readonly EventSeries[];
  readonly contracts?: readonly VirtualContract[];
}

export type ForeignLogs =
  | { readonly block: number; readonly logs: number }
  /** In the block of chain `a` with its n-th message, counted from 0. */
  | { readonly message: number; readonly logs: number }
  /** One log in every n-th block. */
  | { readonly everyBlocks: number };

export interface CcipWorld {
  /** The chain that the test is about, and its counterpart. Both send and execute. */
  readonly a: CcipChain;
  readonly b: CcipChain;
}

export interface CcipChain extends VirtualChain {
  readonly router: Hex;
  readonly onRamps: readonly Hex[];
  readonly offRamps: readonly Hex[];
  /** The block with the n-th message of this chain, counted from 0. */
  blockOfMessage(index: number): number;
}

/** Ids below are the kit's own. */
export const FIRST_FREE_SERIES = 1_000_000;
const ROUTER_SERIES = 1;
const FOREIGN_SERIES = 100;
const RAMP_SERIES = 1_000;
const SENDS = 0;
const COMMITS = 1;
const EXECUTIONS = 2;
const SERIES_PER_RAMP = 3;

const MESSAGE_MARK = 0x6e55;
const ROOT_MARK = 0x1007;
const FIRST_RAMP_AFTER_BLOCKS = 10;

const addressOf = (number: number): Hex => pad(numberToHex(number), { size: 20 });
const pool = addressOf(0x9001);
const token = addressOf(0x70ce);
const impostor = addressOf(0xbad);
const receiver = addressOf(0xb0b);

/** Two networks of the built-in table. */
export const networkA = findNetwork('geth-testnet') as Network;
export const networkB = findNetwork('ethereum-testnet-sepolia') as Network;

/** One pair of ramps in use: when, and how many messages went through it. */
interface Era {
  readonly number: number;
  readonly from: number;
  /** Not included. */
  readonly to: number;
  readonly messages: number;
  /** Index of its first message among all of its chain. */
  readonly firstMessage: number;
  /** The block of a slot. */
  blockOf(slot: number): number;
}

type Plan = ReturnType<typeof planOf>;

export function makeCcipWorld(options: CcipWorldOptions): CcipWorld {
  const plan = planOf(options);
  const { foreign = [], series = [], contracts = [], blocks, head = blocks, blockSeconds } = options;
  const sideA = sideOf(plan, networkA, networkB, 0x10, 0x20, options);
  const sideB = sideOf(plan, networkB, networkA, 0x20, 0x10, {});
  const foreignSeries = foreign.map((logs, index) => seriesOfForeign(logs, index, plan, blocks));
  const common = { head, ...(blockSeconds !== undefined && { blockSeconds }) };
  const chainOf = (
    network: Network,
    side: Side,
    more: Pick<CcipWorldOptions, 'series' | 'contracts'>,
  ): CcipChain => {
    const chain = createVirtualChain({
      ...common,
      network,
      series: [...side.series, ...(more.series ?? [])],
      contracts: [...side.contracts, ...(more.contracts ?? [])],
    });
    // Getters of the chain stay alive.
    return Object.defineProperties(chain, {
      router: { value: side.router },
      onRamps: { value: side.onRamps },
      offRamps: { value: side.offRamps },
      blockOfMessage: { value: (index: number) => sendBlockOf(plan, index) },
    }) as CcipChain;
  };
  return {
    a: chainOf(networkA, sideA, { series: [...foreignSeries, ...series], contracts }),
    b: chainOf(networkB, sideB, {}),
  };
}

/** Every message that chain `from` has sent to chain `to`, as the chains are now. */
export function* expectedMessages(from: CcipChain, to: CcipChain) {
  const chainId = Number(from.network.chainId);
  for (const [era, onramp] of from.onRamps.entries()) {
    const sends = seriesWith(from, seriesId(era, SENDS));
    const executions = seriesWith(to, seriesId(era, EXECUTIONS));
    for (let index = 0; index < sends.count && sends.blockOf(index) <= from.head; index++) {
      yield {
        messageId: messageIdOf(chainId, era, index + 1),
        sequenceNumber: String(index + 1),
        onramp,
        receiver,
        sourceChainSelector: from.network.selector,
        sendBlockNumber: sends.blockOf(index),
        sendTransactionHash: transactionHashOf(chainId, sends.id, index),
        /** Null where it is not executed at the height of the other chain. */
        receiptTransactionHash:
          index < executions.count && executions.blockOf(index) <= to.head
            ? transactionHashOf(Number(to.network.chainId), executions.id, index)
            : null,
      };
    }
  }
}

function planOf(options: CcipWorldOptions) {
  const { blocks, messages, ramps = 1, deployedAt = 1, messagesPerRoot = 10 } = options;
  const first = deployedAt + FIRST_RAMP_AFTER_BLOCKS;
  const length = Math.floor((blocks + 1 - first) / ramps);
  if (length < 8) throw new RangeError(`${blocks} blocks are too few for ${ramps} ramps.`);
  let given = 0;
  const eras = Array.from({ length: ramps }, (_, number): Era => {
    const from = first + number * length;
    const to = number === ramps - 1 ? blocks + 1 : from + length;
    const firstMessage = given;
    const own = Math.floor(((number + 1) * messages) / ramps) - given;
    given += own;
    const slots = own + messagesPerRoot + 2;
    // The first two blocks set the ramps, the last one replaces them.
    const blockOf = (slot: number) => from + 2 + Math.floor((slot * (to - from - 4)) / slots);
    return { number, from, to, messages: own, firstMessage, blockOf };
  });
  return { eras, deployedAt, messagesPerRoot };
}

/** A message has one slot, its root half a slot behind the last message of the root, its execution one more. */
const sendSlot = (index: number) => index + 1;
const rootSlot = (firstOfNext: number) => firstOfNext + 0.5;
const executionSlot = (index: number, messagesPerRoot: number) => index + messagesPerRoot + 1.5;

function sendBlockOf({ eras }: Plan, message: number): number {
  const era = eras.findLast(({ firstMessage, messages }) => messages > 0 && firstMessage <= message);
  if (!era || message >= era.firstMessage + era.messages)
    throw new RangeError(`There is no message ${message}.`);
  return era.blockOf(sendSlot(message - era.firstMessage));
}

type Side = ReturnType<typeof sideOf>;

const seriesId = (era: number, kind: number) => RAMP_SERIES + era * SERIES_PER_RAMP + kind;
const onRampAddress = (side: number, era: number) => addressOf(side * 0x1_0000 + 0x1000 + era);
const offRampAddress = (side: number, era: number) => addressOf(side * 0x1_0000 + 0x2000 + era);

function sideOf(
  plan: Plan,
  network: Network,
  other: Network,
  ownNumber: number,
  otherNumber: number,
  types: { readonly onRampType?: string | undefined; readonly offRampType?: string | undefined },
) {
  const { eras, deployedAt, messagesPerRoot } = plan;
  const router = addressOf(ownNumber * 0x1_0000 + 0x100);
  const onRamps = eras.map(({ number }) => onRampAddress(ownNumber, number));
  const offRamps = eras.map(({ number }) => offRampAddress(ownNumber, number));
  const [own, remote] = [BigInt(network.selector), BigInt(other.selector)];

  const routerEvents = [
    { event: abi.onRampSet, at: eras.map(({ from, number }) => [from, onRamps[number]] as const) },
    { event: abi.offRampAdded, at: eras.map(({ from, number }) => [from + 1, offRamps[number]] as const) },
    {
      event: abi.offRampRemoved,
      at: eras.slice(0, -1).map(({ to, number }) => [to - 1, offRamps[number]] as const),
    },
  ].map(
    ({ event, at }, index): EventSeries => ({
      id: ROUTER_SERIES + index,
      topic: event.topic,
      emitter: router,
      count: at.length,
      blockOf: (nth) => (at[nth] as readonly [number, Hex])[0],
      eventOf: (nth) => encodeEvent(event, [remote], [(at[nth] as readonly [number, Hex])[1]]),
    }),
  );

  const rampSeries = eras.flatMap((era) => {
    const { number, messages } = era;
    const emits = (kind: number, emitter: Hex | undefined, topic: Hex) => ({
      id: seriesId(number, kind),
      emitter: emitter as Hex,
      topic,
    });
    const rootEnd = (root: number) => Math.min(messages, (root + 1) * messagesPerRoot);
    return [
      {
        ...emits(SENDS, onRamps[number], abi.ccipMessageSent16.topic),
        count: messages,
        blockOf: (index: number) => era.blockOf(sendSlot(index)),
        eventOf: messageEvents(network, other, number),
      },
      {
        ...emits(COMMITS, offRamps[number], abi.commitReportAccepted.topic),
        count: Math.ceil(messages / messagesPerRoot),
        blockOf: (root: number) => era.blockOf(rootSlot(rootEnd(root))),
        eventOf: (root: number) =>
          commitReport16({
            sourceChainSelector: remote,
            onRamp: onRampAddress(otherNumber, number),
            minSeqNr: BigInt(root * messagesPerRoot + 1),
            maxSeqNr: BigInt(rootEnd(root)),
            merkleRoot: composeHash(ROOT_MARK, Number(other.chainId), number, root),
          }),
      },
      {
        ...emits(EXECUTIONS, offRamps[number], abi.executionStateChanged16.topic),
        count: messages,
        blockOf: (index: number) => era.blockOf(executionSlot(index, messagesPerRoot)),
        eventOf: (index: number) =>
          executionState16(remote, BigInt(index + 1), messageIdOf(Number(other.chainId), number, index + 1)),
      },
    ];
  });

  const currentOf = (ramps: readonly Hex[], block: number, shift: number) =>
    ramps[eras.findLastIndex(({ from }) => from + shift <= block)];
  const words = (text: string) => encodeAnswer(abi.typeAndVersion, [text]);
  const routerContract: VirtualContract = {
    address: router,
    deployedAt,
    views: {
      [abi.typeAndVersion.selector]: () => words('Router 1.2.0'),
      [abi.getOnRamp.selector]: (args, { block }) =>
        encodeAnswer(abi.getOnRamp, [
          BigInt(args) === remote ? (currentOf(onRamps, block, 0) ?? zeroAddress) : zeroAddress,
        ]),
      [abi.getOffRamps.selector]: (_, { block }) => {
        const offRamp = currentOf(offRamps, block, 1);
        return encodeAnswer(abi.getOffRamps, [offRamp ? [{ sourceChainSelector: remote, offRamp }] : []]);
      },
    },
  };
  const rampContracts = eras.flatMap(({ number, from }): readonly VirtualContract[] => {
    const deployed = Math.max(deployedAt, from - FIRST_RAMP_AFTER_BLOCKS / 2);
    const staticConfig = () => encodeAnswer(abi.getStaticConfig, [own]);
    return [
      {
        address: onRamps[number] as Hex,
        deployedAt: deployed,
        views: {
          [abi.typeAndVersion.selector]: () => words(types.onRampType ?? 'OnRamp 1.6.0'),
          [abi.getStaticConfig.selector]: staticConfig,
          [abi.getRouter16.selector]: (args, { countOf }) =>
            encodeAnswer(
              abi.getRouter16,
              BigInt(args) === remote
                ? [BigInt(countOf(seriesId(number, SENDS))), false, router]
                : [0n, false, zeroAddress],
            ),
          [selectorOf('getExpectedNextSequenceNumber(uint64)')]: (args, { countOf }) =>
            uint(BigInt(args) === remote ? BigInt(countOf(seriesId(number, SENDS)) + 1) : 1n),
        },
      },
      {
        address: offRamps[number] as Hex,
        deployedAt: deployed,
        views: {
          [abi.typeAndVersion.selector]: () => words(types.offRampType ?? 'OffRamp 1.6.0'),
          [abi.getStaticConfig.selector]: staticConfig,
          [abi.getThreshold16.selector]: () => encodeAnswer(abi.getThreshold16, [zeroAddress, 28_800]),
          [selectorOf('getSourceChainConfig(uint64)')]: (args, { countOf }) => {
            const roots = countOf(seriesId(number, COMMITS));
            const committed = Math.min(eras[number]?.messages ?? 0, roots * messagesPerRoot);
            const isKnown = BigInt(args) === remote;
            return encodeAbiParameters(sourceChainConfig, [
              {
                router: isKnown ? router : zeroAddress,
                isEnabled: isKnown,
                minSeqNr: isKnown ? BigInt(committed + 1) : 0n,
                isRMNVerificationDisabled: isKnown,
                onRamp: isKnown ? pad(onRampAddress(otherNumber, number)) : '0x',
              },
            ]);
          },
        },
      },
    ];
  });
  const poolContract: VirtualContract = {
    address: pool,
    deployedAt: 0,
    views: { [abi.getToken.selector]: () => encodeAnswer(abi.getToken, [token]) },
  };
  return {
    router,
    onRamps,
    offRamps,
    series: [...routerEvents, ...rampSeries],
    contracts: [routerContract, poolContract, ...rampContracts],
  };
}

const sourceChainConfig = parseAbiParameters([
  'Config config',
  'struct Config { address router; bool isEnabled; uint64 minSeqNr; bool isRMNVerificationDisabled; bytes onRamp; }',
]);

const selectorOf = (signature: string): Hex => toFunctionSelector(`function ${signature}`);
const uint = (value: bigint): Hex => encodeAbiParameters(parseAbiParameters('uint64'), [value]);

/** Sequence numbers and message ids are put into an encoding made once: a chain may have very many messages. */
function messageEvents(network: Network, other: Network, era: number): (index: number) => VirtualEvent {
  const placeholder = { messageId: `0x${'fe'.repeat(32)}` as Hex, sequenceNumber: 0xfeed_face_cafe_beefn };
  const common = {
    ...placeholder,
    sourceChainSelector: BigInt(network.selector),
    destChainSelector: BigInt(other.selector),
    sender: addressOf(0xa11ce),
    receiver,
    feeToken: token,
  };
  const templates = [
    messageSent16(common),
    messageSent16({ ...common, tokens: [{ pool, destToken: addressOf(0xde57), amount: 5n }] }),
  ];
  const wordOf = (value: bigint) => value.toString(16).padStart(64, '0');
  return (index) => {
    const { topics, data } = templates[index % templates.length] as VirtualEvent;
    const sequenceNumber = wordOf(BigInt(index + 1));
    const messageId = messageIdOf(Number(network.chainId), era, index + 1);
    return {
      topics: [...topics.slice(0, 2), `0x${sequenceNumber}`] as readonly Hex[],
      data: data
        .replace(placeholder.messageId.slice(2), messageId.slice(2))
        .replace(wordOf(placeholder.sequenceNumber), sequenceNumber) as Hex,
    };
  };
}

export function messageIdOf(chainId: number, era: number, sequenceNumber: number): Hex {
  return composeHash(MESSAGE_MARK, chainId, era, sequenceNumber);
}

function seriesOfForeign(foreign: ForeignLogs, index: number, plan: Plan, blocks: number): EventSeries {
  const event = messageSent16({
    messageId: `0x${'66'.repeat(32)}`,
    sourceChainSelector: BigInt(networkA.selector),
    destChainSelector: BigInt(networkB.selector),
    sequenceNumber: 1n,
    sender: impostor,
    receiver: impostor,
    feeToken: token,
  });
  const common = {
    id: FOREIGN_SERIES + index,
    topic: abi.ccipMessageSent16.topic,
    emitter: impostor,
    eventOf: () => event,
  };
  if ('everyBlocks' in foreign) {
    const { everyBlocks } = foreign;
    return { ...common, count: Math.floor(blocks / everyBlocks), blockOf: (nth) => (nth + 1) * everyBlocks };
  }
  const block = 'block' in foreign ? foreign.block : sendBlockOf(plan, foreign.message);
  return { ...common, count: foreign.logs, blockOf: () => block };
}

function seriesWith(chain: CcipChain, id: number): EventSeries {
  const found = chain.series.find((series) => series.id === id);
  if (!found) throw new Error(`The chain has no series ${id}.`);
  return found;
}
