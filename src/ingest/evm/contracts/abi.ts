/**
 * The events and views of the contracts, as far as we read them.
 *
 * Selectors and topics are computed once, when the program loads: the library would hash the signature again at every
 * call, which takes longer than the decoding. Of a structure of fixed size the ABI lays the members out as if they were
 * values of their own, so that a view which returns one is declared by the members up to the last that we want; that
 * is also what lets one declaration serve versions that differ only behind them.
 */
import {
  type AbiFunction,
  type AbiParameter,
  concat,
  type DecodeAbiParametersReturnType,
  decodeAbiParameters,
  encodeAbiParameters,
  parseAbiItem,
  parseAbiParameters,
  slice,
  toEventSelector,
  toFunctionSelector,
} from 'viem';
import type { CallAnswer, ChainLog, ContractCall, Hex } from '../rpc/chain.ts';

export type Params = readonly AbiParameter[];
export type Values<P extends Params> = DecodeAbiParametersReturnType<P>;
type Arguments<P extends Params> = Parameters<typeof encodeAbiParameters<P>>[1];

// ---- Events

export interface ContractEvent<I extends Params = Params, D extends Params = Params> {
  readonly name: string;
  readonly topic: Hex;
  readonly indexed: I;
  readonly data: D;
}

/** All our events have their indexed parameters in front of the others. */
function declareEvent<const I extends Params, const D extends Params>(
  name: string,
  indexed: I,
  data: D,
): ContractEvent<I, D> {
  const inputs = [...indexed.map((input) => ({ ...input, indexed: true })), ...data];
  return { name, topic: toEventSelector({ type: 'event', name, inputs }), indexed, data };
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
  const indexed = decodeAbiParameters(event.indexed, topics.length === 0 ? '0x' : concat(topics));
  return [indexed, decodeAbiParameters(event.data, log.data)];
}

/** CCIP 1.2 and 1.5, which share their events. */
export const ccipSendRequested = declareEvent(
  'CCIPSendRequested',
  [],
  parseAbiParameters([
    'Message message',
    'struct Message { uint64 sourceChainSelector; address sender; address receiver; uint64 sequenceNumber; uint256 gasLimit; bool strict; uint64 nonce; address feeToken; uint256 feeTokenAmount; bytes data; TokenAmount[] tokenAmounts; bytes[] sourceTokenData; bytes32 messageId; }',
    'struct TokenAmount { address token; uint256 amount; }',
  ]),
);

export const reportAccepted = declareEvent(
  'ReportAccepted',
  [],
  parseAbiParameters([
    'Report report',
    'struct Report { PriceUpdates priceUpdates; Interval interval; bytes32 merkleRoot; }',
    'struct Interval { uint64 min; uint64 max; }',
    'struct PriceUpdates { TokenPrice[] tokenPriceUpdates; GasPrice[] gasPriceUpdates; }',
    'struct TokenPrice { address sourceToken; uint224 usdPerToken; }',
    'struct GasPrice { uint64 destChainSelector; uint224 usdPerUnitGas; }',
  ]),
);

export const taggedRootBlessed = declareEvent(
  'TaggedRootBlessed',
  parseAbiParameters('uint32 configVersion'),
  parseAbiParameters([
    'TaggedRoot taggedRoot, uint16 accumulatedWeight',
    'struct TaggedRoot { address commitStore; bytes32 root; }',
  ]),
);

/** Of a commit store, and of a 1.6 off-ramp: a root that was not blessed is taken back. */
export const rootRemoved = declareEvent('RootRemoved', [], parseAbiParameters('bytes32 root'));

export const executionStateChanged15 = declareEvent(
  'ExecutionStateChanged',
  parseAbiParameters('uint64 sequenceNumber, bytes32 messageId'),
  parseAbiParameters('uint8 state, bytes returnData'),
);

export const ccipMessageSent16 = declareEvent(
  'CCIPMessageSent',
  parseAbiParameters('uint64 destChainSelector, uint64 sequenceNumber'),
  parseAbiParameters([
    'Message message',
    'struct Message { Header header; address sender; bytes data; bytes receiver; bytes extraArgs; address feeToken; uint256 feeTokenAmount; uint256 feeValueJuels; TokenTransfer[] tokenAmounts; }',
    'struct Header { bytes32 messageId; uint64 sourceChainSelector; uint64 destChainSelector; uint64 sequenceNumber; uint64 nonce; }',
    'struct TokenTransfer { address sourcePoolAddress; bytes destTokenAddress; bytes extraData; uint256 amount; bytes destExecData; }',
  ]),
);

export const commitReportAccepted = declareEvent(
  'CommitReportAccepted',
  [],
  parseAbiParameters([
    'Root[] blessedMerkleRoots, Root[] unblessedMerkleRoots, PriceUpdates priceUpdates',
    'struct Root { uint64 sourceChainSelector; bytes onRampAddress; uint64 minSeqNr; uint64 maxSeqNr; bytes32 merkleRoot; }',
    'struct PriceUpdates { TokenPrice[] tokenPriceUpdates; GasPrice[] gasPriceUpdates; }',
    'struct TokenPrice { address sourceToken; uint224 usdPerToken; }',
    'struct GasPrice { uint64 destChainSelector; uint224 usdPerUnitGas; }',
  ]),
);

export const executionStateChanged16 = declareEvent(
  'ExecutionStateChanged',
  parseAbiParameters('uint64 sourceChainSelector, uint64 sequenceNumber, bytes32 messageId'),
  parseAbiParameters('bytes32 messageHash, uint8 state, bytes returnData, uint256 gasUsed'),
);

export const ccipMessageSent20 = declareEvent(
  'CCIPMessageSent',
  parseAbiParameters('uint64 destChainSelector, address sender, bytes32 messageId'),
  parseAbiParameters([
    'address feeToken, uint256 tokenAmountBeforeTokenPoolFees, bytes encodedMessage, Receipt[] receipts, bytes[] verifierBlobs',
    'struct Receipt { address issuer; uint32 destGasLimit; uint32 destBytesOverhead; uint256 feeTokenAmount; bytes extraArgs; }',
  ]),
);

export const executionStateChanged20 = declareEvent(
  'ExecutionStateChanged',
  parseAbiParameters('uint64 sourceChainSelector, uint64 messageNumber, bytes32 messageId'),
  parseAbiParameters('uint8 state, bytes returnData'),
);

export const onRampSet = declareRampEvent('OnRampSet');
export const offRampAdded = declareRampEvent('OffRampAdded');
export const offRampRemoved = declareRampEvent('OffRampRemoved');

/** A router names a ramp, and the chain at the other end. */
function declareRampEvent(name: string) {
  return declareEvent(name, parseAbiParameters('uint64 chainSelector'), parseAbiParameters('address ramp'));
}

export const armSet = declareEvent('ARMSet', [], parseAbiParameters('address arm'));

// ---- Functions

export interface ContractFunction<I extends Params = Params, O extends Params = Params> {
  readonly selector: Hex;
  readonly inputs: I;
  readonly outputs: O;
}

function declareFunction<const I extends Params, const O extends Params>(
  item: AbiFunction & { readonly inputs: I; readonly outputs: O },
): ContractFunction<I, O> {
  return { selector: toFunctionSelector(item), inputs: item.inputs, outputs: item.outputs };
}

/** The call of a function on a contract. */
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
    return decodeAbiParameters(callee.outputs, answer);
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
    return decodeAbiParameters(callee.inputs, slice(input, 4));
  } catch {
    return undefined;
  }
}

export function lowerCase(hex: Hex): Hex {
  return hex.toLowerCase() as Hex;
}

export const typeAndVersion = declareFunction(
  parseAbiItem('function typeAndVersion() view returns (string)'),
);

/** Routers. */
export const getOnRamp = declareFunction(
  parseAbiItem('function getOnRamp(uint64 destChainSelector) view returns (address)'),
);
export const getOffRamps = declareFunction(
  parseAbiItem([
    'function getOffRamps() view returns (OffRamp[] offRamps)',
    'struct OffRamp { uint64 sourceChainSelector; address offRamp; }',
  ]),
);

/** Static configurations: what a contract was deployed with. The first word is the chain's own selector from 1.6 on. */
export const getStaticConfig = declareFunction(
  parseAbiItem('function getStaticConfig() view returns (uint64 chainSelector)'),
);
export const getOnRampConfig15 = declareFunction(
  parseAbiItem(
    'function getStaticConfig() view returns (address linkToken, uint64 chainSelector, uint64 destChainSelector)',
  ),
);
export const getOffRampConfig15 = declareFunction(
  parseAbiItem(
    'function getStaticConfig() view returns (address commitStore, uint64 chainSelector, uint64 sourceChainSelector, address onRamp)',
  ),
);
export const getCommitStoreConfig = declareFunction(
  parseAbiItem(
    'function getStaticConfig() view returns (uint64 chainSelector, uint64 sourceChainSelector, address onRamp, address rmnProxy)',
  ),
);
/** Of a commit store: by vote, by a legacy RMN behind the present one, or because all of its roots are blessed for good. */
export const isBlessed = declareFunction(
  parseAbiItem('function isBlessed(bytes32 root) view returns (bool)'),
);
export const getArm = declareFunction(parseAbiItem('function getARM() view returns (address)'));

/** The router that an on-ramp takes messages from. A 2.0 on-ramp tells it with every message. */
export const getRouter15 = declareFunction(
  parseAbiItem('function getDynamicConfig() view returns (address router)'),
);
export const getRouter16 = declareFunction(
  parseAbiItem(
    'function getDestChainConfig(uint64 destChainSelector) view returns (uint64 sequenceNumber, bool allowlistEnabled, address router)',
  ),
);

/** The number that the next message will have: what an on-ramp has counted, and a commit store has taken in. */
export const getNextNumber15 = declareFunction(
  parseAbiItem('function getExpectedNextSequenceNumber() view returns (uint64)'),
);
export const getNextNumber16 = declareFunction(
  parseAbiItem('function getExpectedNextSequenceNumber(uint64 destChainSelector) view returns (uint64)'),
);
export const getNextNumber20 = declareFunction(
  parseAbiItem('function getExpectedNextMessageNumber(uint64 destChainSelector) view returns (uint64)'),
);
/** What a 1.6 off-ramp knows of a source: the next number to commit is `minSeqNr`. */
export const getSourceConfig16 = declareFunction(
  parseAbiItem([
    'function getSourceChainConfig(uint64 sourceChainSelector) view returns (Config config)',
    'struct Config { address router; bool isEnabled; uint64 minSeqNr; bool isRMNVerificationDisabled; bytes onRamp; }',
  ]),
);
/** 0 untouched, 1 in progress, 2 success, 3 failure. */
export const getExecutionState15 = declareFunction(
  parseAbiItem('function getExecutionState(uint64 sequenceNumber) view returns (uint8)'),
);
export const getExecutionState16 = declareFunction(
  parseAbiItem(
    'function getExecutionState(uint64 sourceChainSelector, uint64 sequenceNumber) view returns (uint8)',
  ),
);
export const getExecutionState20 = declareFunction(
  parseAbiItem('function getExecutionState(bytes32 messageId) view returns (uint8)'),
);

/** Seconds behind a commit after which anybody may execute. */
export const getThreshold15 = declareFunction(
  parseAbiItem('function getDynamicConfig() view returns (uint32 permissionLessExecutionThresholdSeconds)'),
);
export const getThreshold16 = declareFunction(
  parseAbiItem(
    'function getDynamicConfig() view returns (address feeQuoter, uint32 permissionLessExecutionThresholdSeconds)',
  ),
);

/** What tokens say of themselves. The texts are decoded by hand (`token-claims.ts`): some are not strings. */
export const getSymbol = declareFunction(parseAbiItem('function symbol() view'));
export const getName = declareFunction(parseAbiItem('function name() view'));
export const getDecimals = declareFunction(parseAbiItem('function decimals() view'));

/** Tokens and their pools. */
export const getToken = declareFunction(parseAbiItem('function getToken() view returns (address)'));
export const getPoolBySourceToken = declareFunction(
  parseAbiItem(
    'function getPoolBySourceToken(uint64 destChainSelector, address sourceToken) view returns (address)',
  ),
);

/** Verifiers of 2.0, and those behind a resolver. */
export const getOutboundImplementation = declareFunction(
  parseAbiItem(
    'function getOutboundImplementation(uint64 destChainSelector, bytes extraArgs) view returns (address)',
  ),
);
export const getCcvsForMessage = declareFunction(
  parseAbiItem(
    'function getCCVsForMessage(bytes encodedMessage) view returns (address[] required, address[] optional, uint8 threshold)',
  ),
);
export const execute20 = declareFunction(
  parseAbiItem(
    'function execute(bytes encodedMessage, address[] ccvs, bytes[] verifierResults, uint32 gasLimitOverride) view',
  ),
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
