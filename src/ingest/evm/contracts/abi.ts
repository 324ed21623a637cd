/**
 * The events and views of the contracts, as far as we read them.
 *
 * Selectors and topics are computed once, when the program loads: the library would hash the signature again at every
 * call, which takes longer than the decoding. Of a structure of fixed size the ABI lays the members out as if they were
 * values of their own, so that a view which returns one is declared by the members up to the last that we want; that
 * is also what lets one declaration serve versions that differ only behind them.
 */
import {
  concat,
  encodeAbiParameters,
  type ParseAbiParameters,
  parseAbiParameters,
  slice,
  toEventSelector,
  toFunctionSelector,
} from 'viem';
import type { CallAnswer, ChainLog, ContractCall, Hex } from '../rpc/chain.ts';
import { compileDecoder, type Decode, type Params, type Values } from './abi-decoder.ts';

export type { Params, Values } from './abi-decoder.ts';

type Arguments<P extends Params> = Parameters<typeof encodeAbiParameters<P>>[1];

/** Parameters as Solidity writes them, followed by the structures that they mention. */
type Written = string | readonly string[];
type Parsed<W extends Written> = W extends ''
  ? readonly []
  : ParseAbiParameters<W> extends infer P extends Params
    ? P
    : never;

function parse<const W extends Written>(written: W): Parsed<W> {
  // The library's types want the literal itself, which a generic function does not have.
  return (written === '' ? [] : parseAbiParameters(written as string)) as Parsed<W>;
}

// ---- Events

export interface ContractEvent<I extends Params = Params, D extends Params = Params> {
  readonly name: string;
  readonly topic: Hex;
  readonly indexed: I;
  readonly data: D;
  readonly decodeIndexed: Decode<I>;
  readonly decodeData: Decode<D>;
}

const topics: Hex[] = [];
/** The topic of every event that means something to us: of all that are declared here. */
export const watchedTopics: readonly Hex[] = topics;

/** All our events have their indexed parameters in front of the others. */
function declareEvent<const I extends Written, const D extends Written>(
  name: string,
  indexed: I,
  data: D,
): ContractEvent<Parsed<I>, Parsed<D>> {
  const parsed = { indexed: parse(indexed), data: parse(data) };
  const inputs = [...parsed.indexed.map((input) => ({ ...input, indexed: true })), ...parsed.data];
  const topic = toEventSelector({ type: 'event', name, inputs });
  topics.push(topic);
  const decodeIndexed = compileDecoder(parsed.indexed);
  return { name, topic, ...parsed, decodeIndexed, decodeData: compileDecoder(parsed.data) };
}

/** The values of an event, the indexed ones first. Throws where the log does not have its shape. */
export function readEvent<I extends Params, D extends Params>(
  event: ContractEvent<I, D>,
  log: ChainLog,
): readonly [Values<I>, Values<D>] {
  const topics = log.topics.slice(1);
  if (topics.length !== event.indexed.length) {
    throw new Error(
      `${event.name} has ${event.indexed.length} indexed values; this log has ${topics.length}`,
    );
  }
  // Indexed values are single words, so that the topics in a row are their ABI encoding.
  return [event.decodeIndexed(concat(topics)), event.decodeData(log.data)];
}

/** CCIP 1.2 and 1.5, which share their events. */
export const ccipSendRequested = declareEvent('CCIPSendRequested', '', [
  'Message message',
  'struct Message { uint64 sourceChainSelector; address sender; address receiver; uint64 sequenceNumber; uint256 gasLimit; bool strict; uint64 nonce; address feeToken; uint256 feeTokenAmount; bytes data; TokenAmount[] tokenAmounts; bytes[] sourceTokenData; bytes32 messageId; }',
  'struct TokenAmount { address token; uint256 amount; }',
]);
const priceUpdates = [
  'struct PriceUpdates { TokenPrice[] tokenPriceUpdates; GasPrice[] gasPriceUpdates; }',
  'struct TokenPrice { address sourceToken; uint224 usdPerToken; }',
  'struct GasPrice { uint64 destChainSelector; uint224 usdPerUnitGas; }',
] as const;
export const reportAccepted = declareEvent('ReportAccepted', '', [
  'Report report',
  'struct Report { PriceUpdates priceUpdates; Interval interval; bytes32 merkleRoot; }',
  'struct Interval { uint64 min; uint64 max; }',
  ...priceUpdates,
]);
export const taggedRootBlessed = declareEvent('TaggedRootBlessed', 'uint32 configVersion', [
  'TaggedRoot taggedRoot, uint16 accumulatedWeight',
  'struct TaggedRoot { address commitStore; bytes32 root; }',
]);
/** Of a commit store, and of a 1.6 off-ramp: a root that was not blessed is taken back. */
export const rootRemoved = declareEvent('RootRemoved', '', 'bytes32 root');
export const executionStateChanged15 = declareEvent(
  'ExecutionStateChanged',
  'uint64 sequenceNumber, bytes32 messageId',
  'uint8 state, bytes returnData',
);

export const ccipMessageSent16 = declareEvent(
  'CCIPMessageSent',
  'uint64 destChainSelector, uint64 sequenceNumber',
  [
    'Message message',
    'struct Message { Header header; address sender; bytes data; bytes receiver; bytes extraArgs; address feeToken; uint256 feeTokenAmount; uint256 feeValueJuels; TokenTransfer[] tokenAmounts; }',
    'struct Header { bytes32 messageId; uint64 sourceChainSelector; uint64 destChainSelector; uint64 sequenceNumber; uint64 nonce; }',
    'struct TokenTransfer { address sourcePoolAddress; bytes destTokenAddress; bytes extraData; uint256 amount; bytes destExecData; }',
  ],
);
export const commitReportAccepted = declareEvent('CommitReportAccepted', '', [
  'Root[] blessedMerkleRoots, Root[] unblessedMerkleRoots, PriceUpdates priceUpdates',
  'struct Root { uint64 sourceChainSelector; bytes onRampAddress; uint64 minSeqNr; uint64 maxSeqNr; bytes32 merkleRoot; }',
  ...priceUpdates,
]);
export const executionStateChanged16 = declareEvent(
  'ExecutionStateChanged',
  'uint64 sourceChainSelector, uint64 sequenceNumber, bytes32 messageId',
  'bytes32 messageHash, uint8 state, bytes returnData, uint256 gasUsed',
);

export const ccipMessageSent20 = declareEvent(
  'CCIPMessageSent',
  'uint64 destChainSelector, address sender, bytes32 messageId',
  [
    'address feeToken, uint256 tokenAmountBeforeTokenPoolFees, bytes encodedMessage, Receipt[] receipts, bytes[] verifierBlobs',
    'struct Receipt { address issuer; uint32 destGasLimit; uint32 destBytesOverhead; uint256 feeTokenAmount; bytes extraArgs; }',
  ],
);
export const executionStateChanged20 = declareEvent(
  'ExecutionStateChanged',
  'uint64 sourceChainSelector, uint64 messageNumber, bytes32 messageId',
  'uint8 state, bytes returnData',
);

/** A router names a ramp, and the chain at the other end. */
export const onRampSet = declareEvent('OnRampSet', 'uint64 chainSelector', 'address ramp');
export const offRampAdded = declareEvent('OffRampAdded', 'uint64 chainSelector', 'address ramp');
export const offRampRemoved = declareEvent('OffRampRemoved', 'uint64 chainSelector', 'address ramp');
export const armSet = declareEvent('ARMSet', '', 'address arm');

// ---- Functions

export interface ContractFunction<I extends Params = Params, O extends Params = Params> {
  readonly selector: Hex;
  readonly inputs: I;
  readonly outputs: O;
  readonly decodeInputs: Decode<I>;
  readonly decodeOutputs: Decode<O>;
}

function declareFunction<const I extends Written, const O extends Written>(
  name: string,
  inputs: I,
  outputs: O,
): ContractFunction<Parsed<I>, Parsed<O>> {
  const parsed = { inputs: parse(inputs), outputs: parse(outputs) };
  const selector = toFunctionSelector({ type: 'function', name, stateMutability: 'view', ...parsed });
  const decodeInputs = compileDecoder(parsed.inputs);
  return { selector, ...parsed, decodeInputs, decodeOutputs: compileDecoder(parsed.outputs) };
}

export function callOf<I extends Params>(
  callee: ContractFunction<I>,
  to: Hex,
  ...args: Arguments<I>
): ContractCall {
  const encoded = callee.inputs.length === 0 ? '0x' : encodeAbiParameters(callee.inputs, args);
  return { to: lowerCase(to), data: concat([callee.selector, encoded]) };
}

/** What a contract answered; undefined where it rejected or said something else. */
export function answerOf<O extends Params>(
  callee: ContractFunction<Params, O>,
  answer: CallAnswer,
): Values<O> | undefined {
  if (answer === undefined) return undefined;
  try {
    return callee.decodeOutputs(answer);
  } catch {
    return undefined;
  }
}

/** The arguments with which a transaction calls a function; undefined where it calls another. */
export function argumentsOf<I extends Params>(
  callee: ContractFunction<I>,
  input: Hex,
): Values<I> | undefined {
  if (!input.startsWith(callee.selector)) return undefined;
  try {
    return callee.decodeInputs(slice(input, 4));
  } catch {
    return undefined;
  }
}

export function lowerCase(hex: Hex): Hex {
  return hex.toLowerCase() as Hex;
}

export const typeAndVersion = declareFunction('typeAndVersion', '', 'string');

/** Routers. */
export const getOnRamp = declareFunction('getOnRamp', 'uint64 destChainSelector', 'address');
export const getOffRamps = declareFunction('getOffRamps', '', [
  'OffRamp[] offRamps',
  'struct OffRamp { uint64 sourceChainSelector; address offRamp; }',
]);

/** Static configurations: what a contract was deployed with. The first word is the chain's own selector from 1.6 on. */
export const getStaticConfig = declareFunction('getStaticConfig', '', 'uint64 chainSelector');
export const getOnRampConfig15 = declareFunction(
  'getStaticConfig',
  '',
  'address linkToken, uint64 chainSelector, uint64 destChainSelector',
);
export const getOffRampConfig15 = declareFunction(
  'getStaticConfig',
  '',
  'address commitStore, uint64 chainSelector, uint64 sourceChainSelector, address onRamp',
);
export const getCommitStoreConfig = declareFunction(
  'getStaticConfig',
  '',
  'uint64 chainSelector, uint64 sourceChainSelector, address onRamp, address rmnProxy',
);
/** Of a commit store: by vote, by a legacy RMN behind the present one, or because all of its roots are blessed for good. */
export const isBlessed = declareFunction('isBlessed', 'bytes32 root', 'bool');
export const getArm = declareFunction('getARM', '', 'address');

/** The router that an on-ramp takes messages from. A 2.0 on-ramp tells it with every message. */
export const getRouter15 = declareFunction('getDynamicConfig', '', 'address router');
export const getRouter16 = declareFunction(
  'getDestChainConfig',
  'uint64 destChainSelector',
  'uint64 sequenceNumber, bool allowlistEnabled, address router',
);

/** The number that the next message will have: what an on-ramp has counted, and a commit store has taken in. */
export const getNextNumber15 = declareFunction('getExpectedNextSequenceNumber', '', 'uint64');
export const getNextNumber16 = declareFunction('getExpectedNextSequenceNumber', 'uint64', 'uint64');
export const getNextNumber20 = declareFunction('getExpectedNextMessageNumber', 'uint64', 'uint64');
/** What a 1.6 off-ramp knows of a source: the next number to commit is `minSeqNr`. */
export const getSourceConfig16 = declareFunction('getSourceChainConfig', 'uint64 sourceChainSelector', [
  'Config config',
  'struct Config { address router; bool isEnabled; uint64 minSeqNr; bool isRMNVerificationDisabled; bytes onRamp; }',
]);
/** 0 untouched, 1 in progress, 2 success, 3 failure. */
export const getExecutionState15 = declareFunction('getExecutionState', 'uint64 number', 'uint8');
export const getExecutionState16 = declareFunction(
  'getExecutionState',
  'uint64 source, uint64 number',
  'uint8',
);
export const getExecutionState20 = declareFunction('getExecutionState', 'bytes32 messageId', 'uint8');

/** Seconds behind a commit after which anybody may execute. */
export const getThreshold15 = declareFunction('getDynamicConfig', '', 'uint32 thresholdSeconds');
export const getThreshold16 = declareFunction(
  'getDynamicConfig',
  '',
  'address feeQuoter, uint32 thresholdSeconds',
);

/** What tokens say of themselves. The texts are decoded by hand (`token-claims.ts`): some are not strings. */
export const getSymbol = declareFunction('symbol', '', '');
export const getName = declareFunction('name', '', '');
export const getDecimals = declareFunction('decimals', '', '');

/** Tokens and their pools. */
export const getToken = declareFunction('getToken', '', 'address');
export const getPoolBySourceToken = declareFunction(
  'getPoolBySourceToken',
  'uint64 destChainSelector, address sourceToken',
  'address',
);

/** Verifiers of 2.0, and those behind a resolver. */
export const getOutboundImplementation = declareFunction(
  'getOutboundImplementation',
  'uint64 destChainSelector, bytes extraArgs',
  'address',
);
export const getCcvsForMessage = declareFunction(
  'getCCVsForMessage',
  'bytes encodedMessage',
  'address[] required, address[] optional, uint8 threshold',
);
export const execute20 = declareFunction(
  'execute',
  'bytes encodedMessage, address[] ccvs, bytes[] verifierResults, uint32 gasLimitOverride',
  '',
);

/** What 1.5 on-ramps put into `sourceTokenData`. */
export const sourceTokenData = parseAbiParameters([
  'Data data',
  'struct Data { bytes sourcePoolAddress; bytes destTokenAddress; bytes extraData; uint64 destGasAmount; }',
]);

/** What follows the tag of a message's extra arguments. */
export const evmExtraArgsV1 = parseAbiParameters('uint256 gasLimit');
export const evmExtraArgsV2 = parseAbiParameters('uint256 gasLimit, bool allowOutOfOrderExecution');
export const svmExtraArgsV1 = parseAbiParameters([
  'Args args',
  'struct Args { uint32 computeUnits; uint64 accountIsWritableBitmap; bool allowOutOfOrderExecution; bytes32 tokenReceiver; bytes32[] accounts; }',
]);
export const suiExtraArgsV1 = parseAbiParameters([
  'Args args',
  'struct Args { uint256 gasLimit; bool allowOutOfOrderExecution; bytes32 tokenReceiver; bytes32[] receiverObjectIds; }',
]);
