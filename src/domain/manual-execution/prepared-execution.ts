/**
 * A manual execution, prepared from the inputs that are known of a message: the calls of its off-ramp, with their proofs.
 *
 * Inputs are untrusted. The leaves of the batch must come to the committed root, or the hash of the encoded message to the
 * message's id; other inputs are rejected.
 */

import { keccak_256 } from '@noble/hashes/sha3.js';
import type { FailureReason } from '../failures/failure-reason.ts';
import {
  type AbiFunction,
  type AbiInput,
  bytesOf,
  encodeCall,
  type Hex,
  parseFunction,
} from './abi-encoding.ts';
import { MESSAGE_V1, readMessageV1 } from './message-v1.ts';
import {
  attestationNeed,
  type BatchLane,
  dataOf,
  evmAddressOf,
  hashOf,
  hexOf,
  LANE_MESSAGE,
  listOf,
  proveLeaf,
  RAMP_MESSAGE,
  type RampMessage,
  readLaneMessage,
  readRampMessage,
  UnusableInputsError,
} from './ramp-messages.ts';
import { computedGas, type ExecutionGas } from './transaction-gas.ts';

export type ExecutableVersion = '1.2' | '1.5' | '1.6' | '2.0';

export type OffRampCall = ReturnType<typeof callOf>;

export interface PreparedExecution extends ExecutionGas {
  readonly messageId: Hex;
  readonly version: ExecutableVersion;
  readonly offramp: Hex;
  /** That the sender has set for the receiver. */
  readonly gasLimit: bigint;
  /** The places in the message of transfers whose pools need an attestation that is on no chain. */
  readonly unattested: readonly number[];
  /** The places of transfers whose pools may need one: their data is not known here. */
  readonly unknownPools: readonly number[];
  /** What anybody sends. Without a gas limit the message's own applies. */
  execute(gasLimit?: bigint): OffRampCall;
  /**
   * The call that the off-ramp makes to itself. It reverts wherever the execution fails, while the first attempt of
   * `execute` succeeds and records the failure. Only the off-ramp may make it; a simulation may pretend to be it.
   */
  executeAlone(gasLimit?: bigint): Hex;
  /** Asks for the state of the message: 0 untouched, 1 in progress, 2 success, 3 failure. */
  readonly stateCall: Hex;
  /** Asks after how many seconds anybody may execute; the word of the answer that has it. Null on 2.0: at once. */
  readonly thresholdCall: { readonly data: Hex; readonly word: number } | null;
  /** Null where no other message has to be executed before. */
  readonly order: MessageOrder | null;
}

/** Inputs up to 1.6. */
export interface BatchMaterial {
  readonly lane: BatchLane;
  readonly version: Exclude<ExecutableVersion, '2.0'>;
  readonly offramp: string;
  readonly merkleRoot: string;
  /** Every message of the root in the order of its number. */
  readonly batch: Iterable<unknown>;
}

/** Inputs from 2.0 on. */
export interface VerifiedMaterial {
  readonly offramp: unknown;
  readonly encodedMessage: unknown;
  readonly verifierAddresses: unknown;
  readonly ccvData: unknown;
}

const LANE_REPORT = `(${LANE_MESSAGE}[] messages,bytes[][] offchainTokenData,bytes32[] proofs,uint256 proofFlagBits) report`;
const RAMP_REPORTS =
  `(uint64 sourceChainSelector,${RAMP_MESSAGE}[] messages,bytes[][] offchainTokenData,bytes32[] proofs,` +
  'uint256 proofFlagBits)[] reports';
const OVERRIDE = '(uint256 receiverExecutionGasLimit,uint32[] tokenGasOverrides)';

const functions = {
  execute: {
    '1.2': parseFunction(`manuallyExecute(${LANE_REPORT},uint256[] gasLimitOverrides)`),
    '1.5': parseFunction(`manuallyExecute(${LANE_REPORT},${OVERRIDE}[] gasLimitOverrides)`),
    '1.6': parseFunction(`manuallyExecute(${RAMP_REPORTS},${OVERRIDE}[][] gasLimitOverrides)`),
    '2.0': parseFunction(
      'execute(bytes encodedMessage,address[] ccvs,bytes[] verifierResults,uint32 gasLimitOverride)',
    ),
  },
  executeAlone: {
    '1.2': parseFunction(`executeSingleMessage(${LANE_MESSAGE} message,bytes[] offchainTokenData)`),
    '1.5': parseFunction(
      `executeSingleMessage(${LANE_MESSAGE} message,bytes[] offchainTokenData,uint32[] tokenGasOverrides)`,
    ),
    '1.6': parseFunction(
      `executeSingleMessage(${RAMP_MESSAGE} message,bytes[] offchainTokenData,uint32[] tokenGasOverrides)`,
    ),
    '2.0': parseFunction(
      `executeSingleMessage(${MESSAGE_V1} message,bytes32 messageId,address[] ccvs,bytes[] verifierResults,uint32 gasLimitOverride)`,
    ),
  },
  laneState: parseFunction('getExecutionState(uint64 sequenceNumber)'),
  rampState: parseFunction('getExecutionState(uint64 sourceChainSelector,uint64 sequenceNumber)'),
  verifiedState: parseFunction('getExecutionState(bytes32 messageId)'),
  dynamicConfig: parseFunction('getDynamicConfig()'),
};

/** No proof has more leaves. */
const MAX_LEAVES = 256;

/** @param pause waited for between messages of 1.6, all of which are hashed: a batch may have megabytes */
export async function prepareBatch(
  messageId: Hex,
  material: BatchMaterial,
  pause: () => Promise<void> = async () => undefined,
): Promise<PreparedExecution> {
  const { lane, version, merkleRoot } = material;
  const leaves: Hex[] = [];
  let found: { readonly message: RampMessage; readonly index: number } | undefined;
  for (const value of material.batch) {
    const message = version === '1.6' ? readRampMessage(value, lane) : readLaneMessage(value, lane, version);
    if (message.messageId === messageId) found = { message, index: leaves.length };
    // Up to 1.5 the id is the leaf; that the root comes out is the check of all.
    leaves.push(version === '1.6' ? message.leaf : message.messageId);
    if (leaves.length > MAX_LEAVES) throw new UnusableInputsError('the batch has too many messages');
    await pause();
  }
  if (!found) throw new UnusableInputsError('the message is not in its batch');
  const { message, index } = found;
  const { root, siblings } = proveLeaf(leaves, index);
  if (root !== hashOf(merkleRoot, 'merkleRoot') || message.leaf !== leaves[index])
    throw new UnusableInputsError('the messages of the batch do not come to the committed root');

  const { transfers } = message;
  const offchainTokenData = transfers.map((): Hex => '0x');
  const tokenGasOverrides = transfers.map(() => 0n);
  const report = {
    messages: [message.withGasLimit()],
    offchainTokenData: [offchainTokenData],
    proofs: siblings,
    proofFlagBits: 0n,
  };
  const overrides = (gasLimit = 0n): Readonly<Record<string, AbiInput>> => {
    const override = { receiverExecutionGasLimit: gasLimit, tokenGasOverrides };
    switch (version) {
      case '1.2':
        return { report, gasLimitOverrides: [gasLimit] };
      case '1.5':
        return { report, gasLimitOverrides: [override] };
      case '1.6':
        return {
          reports: [{ sourceChainSelector: lane.sourceChainSelector, ...report }],
          gasLimitOverrides: [[override]],
        };
    }
  };
  const { sequenceNumber } = message;
  const execute = (gasLimit?: bigint) => callOf(functions.execute[version], overrides(gasLimit));
  const needs = transfers.map(({ poolData }) => attestationNeed(poolData));
  const tokenGas = transfers.reduce((sum, { gas }) => sum + (gas ?? 0n), 0n);
  return {
    messageId,
    version,
    offramp: evmAddressOf(material.offramp, 'offramp'),
    gasLimit: message.gasLimit,
    destChainSelector: lane.destChainSelector,
    unattested: placesOf('needed', needs),
    unknownPools: placesOf('unknown', needs),
    execute,
    tellsTokenGas: transfers.every(({ gas }) => gas !== null),
    computedGas: (gasLimit) =>
      computedGas(execute(gasLimit).data, gasLimit ?? message.gasLimit, tokenGas, transfers.length),
    executeAlone: (gasLimit) =>
      encodeCall(functions.executeAlone[version], {
        message: message.withGasLimit(gasLimit),
        offchainTokenData,
        tokenGasOverrides,
      }),
    stateCall:
      version === '1.6'
        ? encodeCall(functions.rampState, { sourceChainSelector: lane.sourceChainSelector, sequenceNumber })
        : encodeCall(functions.laneState, { sequenceNumber }),
    thresholdCall: { data: encodeCall(functions.dynamicConfig, {}), word: version === '1.6' ? 1 : 0 },
    order: orderOf(message, version, lane.sourceChainSelector),
  };
}

/** @param lane of the record, which the message must name too */
export function prepareVerified(
  messageId: Hex,
  material: VerifiedMaterial,
  lane: Pick<BatchLane, 'sourceChainSelector' | 'destChainSelector'>,
): PreparedExecution {
  const encodedMessage = dataOf(material.encodedMessage, 'encodedMessage');
  if (hexOf(keccak_256(bytesOf(encodedMessage))) !== messageId)
    throw new UnusableInputsError('the hash of encodedMessage is not the id of the message');
  const message = readMessageV1(encodedMessage, (what) => new UnusableInputsError(`encodedMessage ${what}`));
  const { destChainSelector, ccipReceiveGasLimit, executionGasLimit } = message;
  if (
    message.sourceChainSelector !== lane.sourceChainSelector ||
    destChainSelector !== lane.destChainSelector
  )
    throw new UnusableInputsError('encodedMessage is of another lane than the record');
  const offramp = evmAddressOf(material.offramp, 'offramp');
  if (message.offRampAddress !== offramp)
    throw new UnusableInputsError(
      `the message is for the off-ramp ${message.offRampAddress}, not for ${offramp}`,
    );
  const ccvs = listOf(material.verifierAddresses, 'verifierAddresses').map((address) =>
    evmAddressOf(address, 'verifierAddresses'),
  );
  const verifierResults = listOf(material.ccvData, 'ccvData').map((data) => dataOf(data, 'ccvData'));
  if (ccvs.length !== verifierResults.length)
    throw new UnusableInputsError('it has not as many verifiers as results');
  const execute = (gasLimit = 0n) =>
    callOf(functions.execute['2.0'], { encodedMessage, ccvs, verifierResults, gasLimitOverride: gasLimit });
  return {
    messageId,
    version: '2.0',
    offramp,
    gasLimit: ccipReceiveGasLimit,
    destChainSelector,
    // Attestations are results of verifiers.
    unattested: [],
    unknownPools: [],
    execute,
    tellsTokenGas: true,
    computedGas: (gasLimit) =>
      computedGas(
        execute(gasLimit).data,
        gasLimit ?? ccipReceiveGasLimit,
        // It covers the receiver's limit too.
        executionGasLimit > ccipReceiveGasLimit ? executionGasLimit - ccipReceiveGasLimit : 0n,
        message.tokenTransfer.length,
      ),
    executeAlone: (gasLimit = 0n) =>
      encodeCall(functions.executeAlone['2.0'], {
        message,
        messageId,
        ccvs,
        verifierResults,
        gasLimitOverride: gasLimit,
      }),
    stateCall: encodeCall(functions.verifiedState, { messageId }),
    thresholdCall: null,
    order: null,
  };
}

/** The version whose calls are known; undefined for others. */
export function executableVersion(version: string | null): ExecutableVersion | undefined {
  const [, family] = /^(\d+\.\d+)\./.exec(version ?? '') ?? [];
  return family !== undefined && family in functions.execute ? (family as ExecutableVersion) : undefined;
}

function placesOf<T>(wanted: T, list: readonly T[]): readonly number[] {
  return list.flatMap((item, place) => (item === wanted ? [place] : []));
}

/** @param given by the names of the parameters */
function callOf(called: AbiFunction, given: Readonly<Record<string, AbiInput>>) {
  return { data: encodeCall(called, given), function: called, arguments: given };
}

// ---- The order of a sender's messages. Up to 1.6, an off-ramp skips a message with a nonce that was never tried, unless its
// nonce is the next one of its sender: the transaction succeeds, and the message stays as it is.

export interface MessageOrder {
  readonly nonce: bigint;
  /** Asks for the last nonce of the sender that had its turn. */
  readonly nonceCall: Hex;
  /** Asks the off-ramp which contract answers that; the word of its answer. Null: the off-ramp itself does. */
  readonly managerCall: { readonly data: Hex; readonly word: number } | null;
}

const senderNonce = parseFunction('getSenderNonce(address sender)');
const inboundNonce = parseFunction('getInboundNonce(uint64 sourceChainSelector,bytes sender)');
const managerCall = { data: encodeCall(parseFunction('getStaticConfig()'), {}), word: 4 };

/** Null for a message that is executed in any order. */
export function orderOf(
  { nonce, sender }: RampMessage,
  version: '1.2' | '1.5' | '1.6',
  sourceChainSelector: bigint,
): MessageOrder | null {
  if (nonce === 0n) return null;
  return version === '1.6'
    ? { nonce, nonceCall: encodeCall(inboundNonce, { sourceChainSelector, sender }), managerCall }
    : { nonce, nonceCall: encodeCall(senderNonce, { sender }), managerCall: null };
}

const SKIPPED = 'SkippedIncorrectNonce';

/** Why a message that was never tried would be skipped; null where it is its turn. */
export function whySkipped(nonce: bigint, lastNonce: bigint): FailureReason | null {
  const next = lastNonce + 1n;
  if (nonce === next) return null;
  const skipped = { code: SKIPPED, saidBy: 'ccip', wrappers: [], error: null, data: '0x' } as const;
  return nonce > next
    ? {
        ...skipped,
        text:
          `The off-ramp would skip the message: it has nonce ${nonce}, and an earlier message of the same sender, ` +
          `with nonce ${next} on this lane, has to be executed first.`,
        fixableBy: 'anyone',
        advice: `Execute the sender's messages in the order of their nonces, from ${next} on; then try this one again.`,
      }
    : {
        ...skipped,
        text:
          `The off-ramp would skip the message: its nonce ${nonce} is used already, and yet no execution of it is ` +
          'recorded.',
        fixableBy: 'unknown',
        advice:
          'It may have been executed a moment ago: try again shortly. If this stays so, the off-ramp does not execute it any more.',
      };
}

/** Whether sending would cost a fee and change nothing. Receivers may use the name too. */
export function isSkipped(reason: FailureReason | null): boolean {
  return reason?.code === SKIPPED && reason.saidBy === 'ccip';
}
