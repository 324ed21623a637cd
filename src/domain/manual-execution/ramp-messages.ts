/** Messages up to version 1.6 as off-ramps take them, their leaves in the merkle tree, and the tokens they carry. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import type { ChainFamily } from '../addresses.ts';
import { type AbiInput, bytesOf, encodeMembers, type Hex, parseMembers, wordOf } from './abi-encoding.ts';
import {
  dataOf,
  evmAddressOf,
  type Fields,
  fieldsOf,
  foreignAddressOf,
  hashOf,
  hexOf,
  integerOf,
  listOf,
  UnusableInputsError,
} from './input-values.ts';

/** The lane of a batch: what the leaves of all its messages have in common. */
export interface BatchLane {
  readonly sourceChainSelector: bigint;
  readonly destChainSelector: bigint;
  readonly sourceFamily: ChainFamily;
  readonly onramp: string;
}

export interface RampMessage {
  readonly messageId: Hex;
  readonly sequenceNumber: bigint;
  /** That the sender has set for the receiver. */
  readonly gasLimit: bigint;
  /** The message as an argument of a call, with another gas limit where one is given. */
  withGasLimit(gasLimit?: bigint): { readonly [member: string]: AbiInput };
  readonly leaf: Hex;
  /** Of each transfer, what the source pool has left for the destination pool. */
  readonly poolData: readonly Hex[];
}

export const LANE_MESSAGE =
  '(uint64 sourceChainSelector,address sender,address receiver,uint64 sequenceNumber,uint256 gasLimit,bool strict,' +
  'uint64 nonce,address feeToken,uint256 feeTokenAmount,bytes data,(address token,uint256 amount)[] tokenAmounts,' +
  'bytes[] sourceTokenData,bytes32 messageId)';

const RAMP_TRANSFERS =
  '(bytes sourcePoolAddress,address destTokenAddress,uint32 destGasAmount,bytes extraData,uint256 amount)[] tokenAmounts';

export const RAMP_MESSAGE =
  '((bytes32 messageId,uint64 sourceChainSelector,uint64 destChainSelector,uint64 sequenceNumber,uint64 nonce) header,' +
  `bytes sender,bytes data,address receiver,uint256 gasLimit,${RAMP_TRANSFERS})`;

const laneFixedFields = parseMembers(
  'address sender,address receiver,uint64 sequenceNumber,uint256 gasLimit,bool strict,uint64 nonce,address feeToken,' +
    'uint256 feeTokenAmount',
);
const laneTransfers = parseMembers('(address token,uint256 amount)[] tokenAmounts');
const laneTokenData = parseMembers('bytes[] sourceTokenData');
const rampFixedFields = parseMembers(
  'bytes32 messageId,address receiver,uint64 sequenceNumber,uint256 gasLimit,uint64 nonce',
);
const rampTransfers = parseMembers(RAMP_TRANSFERS);

const LANE_HASH_DOMAIN = keccak_256(utf8ToBytes('EVM2EVMMessageHashV2'));
const RAMP_HASH_DOMAIN = keccak_256(utf8ToBytes('Any2EVMMessageHashV1'));
const LEAF_DOMAIN = wordOf(0n);
/** `extraArgs` begin with a tag of four bytes; in those of EVM destinations the first word is the gas limit. */
const evmArgumentTags = ['0x97a657c9', '0x181dcf10'];

/** A message of 1.2 or 1.5. Its id is its leaf. */
export function readLaneMessage(value: unknown, lane: BatchLane): RampMessage {
  const fields = fieldsOf(value, 'a message');
  const sourceTokenData = listOf(fields.sourceTokenData, 'sourceTokenData').map((data) =>
    dataOf(data, 'sourceTokenData'),
  );
  const message = {
    sourceChainSelector: integerOf(fields.sourceChainSelector, 'sourceChainSelector'),
    sender: evmAddressOf(fields.sender, 'sender'),
    receiver: evmAddressOf(fields.receiver, 'receiver'),
    sequenceNumber: integerOf(fields.sequenceNumber, 'sequenceNumber'),
    gasLimit: integerOf(fields.gasLimit, 'gasLimit'),
    strict: fields.strict === true,
    nonce: integerOf(fields.nonce, 'nonce'),
    feeToken: evmAddressOf(fields.feeToken, 'feeToken'),
    feeTokenAmount: integerOf(fields.feeTokenAmount, 'feeTokenAmount'),
    data: dataOf(fields.data, 'data'),
    tokenAmounts: listOf(fields.tokenAmounts, 'tokenAmounts').map((entry) => {
      const { token, amount } = fieldsOf(entry, 'a transfer');
      return { token: evmAddressOf(token, 'token'), amount: integerOf(amount, 'amount') };
    }),
    sourceTokenData,
    messageId: hashOf(fields.messageId, 'messageId'),
  };
  const { messageId, sequenceNumber, gasLimit } = message;
  return {
    messageId,
    sequenceNumber,
    gasLimit,
    withGasLimit: (override = gasLimit) => ({ ...message, gasLimit: override }),
    get leaf() {
      const metadata = hashed(
        LANE_HASH_DOMAIN,
        wordOf(lane.sourceChainSelector),
        wordOf(lane.destChainSelector),
        padded(evmAddressOf(lane.onramp, 'onramp')),
      );
      return hexOf(
        hashed(
          LEAF_DOMAIN,
          metadata,
          hashed(encodeMembers(laneFixedFields, message)),
          hashed(bytesOf(message.data)),
          hashed(encodeMembers(laneTransfers, message)),
          hashed(encodeMembers(laneTokenData, message)),
        ),
      );
    },
    poolData: sourceTokenData.map(poolDataOf),
  };
}

/** A message of 1.6. */
export function readRampMessage(value: unknown, lane: BatchLane): RampMessage {
  const fields = fieldsOf(value, 'a message');
  const header = {
    messageId: hashOf(fields.messageId, 'messageId'),
    sourceChainSelector: lane.sourceChainSelector,
    destChainSelector: lane.destChainSelector,
    sequenceNumber: integerOf(fields.sequenceNumber, 'sequenceNumber'),
    nonce: integerOf(fields.nonce, 'nonce'),
  };
  const gasLimit = rampGasLimit(fields);
  const message = {
    header,
    sender: foreignAddressOf(fields.sender, lane.sourceFamily, 'sender'),
    data: dataOf(fields.data, 'data'),
    receiver: evmAddressOf(fields.receiver, 'receiver'),
    gasLimit,
    tokenAmounts: listOf(fields.tokenAmounts, 'tokenAmounts').map((entry) => {
      const transfer = fieldsOf(entry, 'a transfer');
      return {
        sourcePoolAddress: foreignAddressOf(
          transfer.sourcePoolAddress,
          lane.sourceFamily,
          'sourcePoolAddress',
        ),
        destTokenAddress: evmAddressOf(transfer.destTokenAddress, 'destTokenAddress'),
        destGasAmount: destGasAmount(transfer),
        extraData: dataOf(transfer.extraData, 'extraData'),
        amount: integerOf(transfer.amount, 'amount'),
      };
    }),
  };
  return {
    messageId: header.messageId,
    sequenceNumber: header.sequenceNumber,
    gasLimit,
    withGasLimit: (override = gasLimit) => ({ ...message, gasLimit: override }),
    get leaf() {
      const metadata = hashed(
        RAMP_HASH_DOMAIN,
        wordOf(lane.sourceChainSelector),
        wordOf(lane.destChainSelector),
        hashed(bytesOf(foreignAddressOf(lane.onramp, lane.sourceFamily, 'onramp'))),
      );
      return hexOf(
        hashed(
          LEAF_DOMAIN,
          metadata,
          hashed(
            encodeMembers(rampFixedFields, {
              messageId: header.messageId,
              receiver: message.receiver,
              sequenceNumber: header.sequenceNumber,
              gasLimit,
              nonce: header.nonce,
            }),
          ),
          hashed(bytesOf(message.sender)),
          hashed(bytesOf(message.data)),
          hashed(encodeMembers(rampTransfers, message)),
        ),
      );
    },
    poolData: message.tokenAmounts.map(({ extraData }) => extraData),
  };
}

/**
 * Whether the destination pool needs data that is on no chain: USDC's pools leave a nonce and a domain for the attestation
 * of CCTP, LBTC's pool the hash of a payload. Other pools leave nothing, or the token's decimals.
 */
export function needsAttestation(poolData: Hex): boolean {
  const words = [poolData.slice(2, 66), poolData.slice(66)];
  const [first = '', second = ''] = words;
  if (first.length !== 64) return false;
  // A hash has few zero bytes; a number of decimals has nothing else.
  if (second === '') return (first.match(/../g) ?? []).filter((byte) => byte !== '00').length > 20;
  return second.length === 64 && /^0{48}/.test(first) && /^0{56}/.test(second);
}

function rampGasLimit({ gasLimit, extraArgs }: Fields): bigint {
  if (gasLimit !== undefined && gasLimit !== null) return integerOf(gasLimit, 'gasLimit');
  const data = dataOf(extraArgs, 'extraArgs');
  if (!evmArgumentTags.includes(data.slice(0, 10)) || data.length < 74)
    throw new UnusableInputsError('extraArgs are not those of an EVM destination');
  return BigInt(`0x${data.slice(10, 74)}`);
}

/** Sources on EVM chains tell it in `destExecData`, in one word. */
function destGasAmount({ destGasAmount, destExecData }: Fields): bigint {
  if (destGasAmount !== undefined && destGasAmount !== null) return integerOf(destGasAmount, 'destGasAmount');
  const data = dataOf(destExecData, 'destExecData');
  if (data.length < 4 || data.length > 66)
    throw new UnusableInputsError('destExecData does not hold a number');
  return BigInt(data);
}

/** In 1.5 it is the third of four members of a tuple, at the offset that the tuple's head names. 1.2 has it bare. */
function poolDataOf(sourceTokenData: Hex): Hex {
  // The head of the tuple is longer than all that pools of 1.2 leave.
  if (sourceTokenData.length < 2 + 5 * 64) return sourceTokenData;
  const offset = Number(BigInt(`0x${sourceTokenData.slice(2 + 3 * 64, 2 + 4 * 64)}`));
  const at = 2 + 2 * (32 + offset);
  const length = Number(BigInt(`0x${sourceTokenData.slice(at, at + 64) || '0'}`));
  return `0x${sourceTokenData.slice(at + 64, at + 64 + 2 * length)}`;
}

function hashed(...parts: readonly Uint8Array[]): Uint8Array {
  return keccak_256(concatBytes(...parts));
}

function padded(address: Hex): Uint8Array {
  return wordOf(BigInt(address));
}
