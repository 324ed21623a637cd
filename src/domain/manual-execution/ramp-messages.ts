/** Messages as off-ramps take them, and up to version 1.6 their leaves in the merkle tree and the tokens they carry. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { base64, hex } from '@scure/base';
import { type ChainFamily, parseAddress } from '../addresses.ts';
import { type AbiInput, bytesOf, encodeMembers, type Hex, membersOf, wordOf } from './abi-encoding.ts';

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
  /** In the order of the sender's messages; 0 where they have none. */
  readonly nonce: bigint;
  /** As the off-ramp has it: an address up to 1.5, bytes in 1.6. */
  readonly sender: Hex;
  /** That the sender has set for the receiver. */
  readonly gasLimit: bigint;
  /** The message as an argument of a call, with another gas limit where one is given. */
  withGasLimit(gasLimit?: bigint): { readonly [member: string]: AbiInput };
  readonly leaf: Hex;
  readonly transfers: readonly Transfer[];
}

export interface Transfer {
  /** What the source pool has left for the destination pool. */
  readonly poolData: Hex;
  /** Gas that the off-ramp gives the destination pool; null in 1.2, whose messages do not tell it. */
  readonly gas: bigint | null;
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

const laneFixedFields = membersOf(
  'address sender,address receiver,uint64 sequenceNumber,uint256 gasLimit,bool strict,uint64 nonce,address feeToken,' +
    'uint256 feeTokenAmount',
);
const laneTransfers = membersOf('(address token,uint256 amount)[] tokenAmounts');
const laneTokenData = membersOf('bytes[] sourceTokenData');
const rampFixedFields = membersOf(
  'bytes32 messageId,address receiver,uint64 sequenceNumber,uint256 gasLimit,uint64 nonce',
);
const rampTransfers = membersOf(RAMP_TRANSFERS);

const LANE_HASH_DOMAIN = keccak_256(utf8ToBytes('EVM2EVMMessageHashV2'));
const RAMP_HASH_DOMAIN = keccak_256(utf8ToBytes('Any2EVMMessageHashV1'));
const LEAF_DOMAIN = wordOf(0n);
/** `extraArgs` begin with a tag of four bytes; in those of EVM destinations the first word is the gas limit. */
const evmArgumentTags = ['0x97a657c9', '0x181dcf10'];

/** A message of 1.2 or 1.5. Its id is its leaf. */
export function readLaneMessage(value: unknown, lane: BatchLane, version: '1.2' | '1.5'): RampMessage {
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
  const { messageId, sequenceNumber, nonce, sender, gasLimit } = message;
  return {
    messageId,
    sequenceNumber,
    nonce,
    sender,
    gasLimit,
    withGasLimit: (override = gasLimit) => ({ ...message, gasLimit: override }),
    get leaf() {
      return leafOf(LANE_HASH_DOMAIN, lane, wordOf(BigInt(evmAddressOf(lane.onramp, 'onramp'))), [
        encodeMembers(laneFixedFields, message),
        bytesOf(message.data),
        encodeMembers(laneTransfers, message),
        encodeMembers(laneTokenData, message),
      ]);
    },
    get transfers() {
      return sourceTokenData.map((data) =>
        version === '1.2' ? { poolData: data, gas: null } : transferOf(data),
      );
    },
  };
}

export function readRampMessage(value: unknown, lane: BatchLane): RampMessage {
  const { sourceFamily } = lane;
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
    sender: remoteAddressOf(fields.sender, sourceFamily, 'sender'),
    data: dataOf(fields.data, 'data'),
    receiver: evmAddressOf(fields.receiver, 'receiver'),
    gasLimit,
    tokenAmounts: listOf(fields.tokenAmounts, 'tokenAmounts').map((entry) => {
      const transfer = fieldsOf(entry, 'a transfer');
      return {
        sourcePoolAddress: remoteAddressOf(transfer.sourcePoolAddress, sourceFamily, 'sourcePoolAddress'),
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
    nonce: header.nonce,
    sender: message.sender,
    gasLimit,
    withGasLimit: (override = gasLimit) => ({ ...message, gasLimit: override }),
    get leaf() {
      const onramp = bytesOf(remoteAddressOf(lane.onramp, sourceFamily, 'onramp'));
      return leafOf(RAMP_HASH_DOMAIN, lane, hashed(onramp), [
        encodeMembers(rampFixedFields, { ...header, receiver: message.receiver, gasLimit }),
        bytesOf(message.sender),
        bytesOf(message.data),
        encodeMembers(rampTransfers, message),
      ]);
    },
    transfers: message.tokenAmounts.map(({ extraData, destGasAmount }) => ({
      poolData: extraData,
      gas: destGasAmount,
    })),
  };
}

/** Begin the data of USDC's pools: CCTP V1, CCTP V2, and V2 with verifiers. */
const attestedTags = ['f3567d18', 'b148ea5f', '3047587c'];
/** The data of USDC's pools where the tokens are locked and released, without CCTP. */
const LOCK_RELEASE_DATA = /^fa7c07de(?:00)*$/;

/**
 * Whether the destination pool needs data that is on no chain: USDC's pools leave a nonce and a domain for the attestation
 * of CCTP, older ones without a tag, and LBTC's pool the hash of a payload. Pools that need nothing leave nothing, or the
 * token's decimals. What other data means, only the pool knows.
 */
export function attestationNeed(poolData: Hex): 'needed' | 'none' | 'unknown' {
  const data = poolData.slice(2);
  if (data === '' || /^0{62}..$/.test(data) || LOCK_RELEASE_DATA.test(data)) return 'none';
  if (attestedTags.includes(data.slice(0, 8))) return 'needed';
  const isNonceAndDomain = data.length === 128 && /^0{48}.{16}0{56}/.test(data);
  // A hash has few zero bytes.
  const isHash = data.length === 64 && (data.match(/../g) ?? []).filter((byte) => byte !== '00').length > 20;
  return isNonceAndDomain || isHash ? 'needed' : 'unknown';
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

/** 1.5 has a tuple: addresses of pool and token, the pool's data at the offset in the fourth word, and the gas. */
function transferOf(sourceTokenData: Hex): Transfer {
  const digits = sourceTokenData.slice(2);
  const numberAt = (byte: number): number => {
    const word = digits.slice(2 * byte, 2 * byte + 64);
    if (!/^0{52}.{12}$/.test(word))
      throw new UnusableInputsError('sourceTokenData is not that of version 1.5');
    return Number(`0x${word}`);
  };
  const dataAt = 32 + numberAt(3 * 32);
  const poolData = digits.slice(2 * dataAt + 64, 2 * dataAt + 64 + 2 * numberAt(dataAt));
  if (poolData.length !== 2 * numberAt(dataAt))
    throw new UnusableInputsError('sourceTokenData ends too early');
  return { poolData: `0x${poolData}`, gas: BigInt(numberAt(4 * 32)) };
}

function hashed(...parts: readonly Uint8Array[]): Uint8Array {
  return keccak_256(concatBytes(...parts));
}

/** The hash of what is common to the lane's messages, and of the hash of each part of this one. */
function leafOf(domain: Uint8Array, lane: BatchLane, onramp: Uint8Array, parts: readonly Uint8Array[]): Hex {
  const metadata = hashed(domain, wordOf(lane.sourceChainSelector), wordOf(lane.destChainSelector), onramp);
  return hexOf(hashed(LEAF_DOMAIN, metadata, ...parts.map((part) => hashed(part))));
}

// ---- The merkle tree of a committed root, and the proof for one of its leaves, as off-ramps and commit stores verify it

const INNER_DOMAIN = wordOf(1n);
/** Fills up a layer with an odd number of nodes. */
const FILLER: Hex = `0x${'ff'.repeat(32)}`;

/**
 * The root, and the siblings of the leaf, of its parent, and so on up to the root.
 *
 * @param leaves in the order of their sequence numbers, at least one
 */
export function proveLeaf(leaves: readonly Hex[], index: number) {
  const siblings: Hex[] = [];
  let layer = leaves;
  for (let at = index; layer.length > 1; at >>= 1) {
    siblings.push(layer[at ^ 1] ?? FILLER);
    layer = parentsOf(layer);
  }
  return { root: layer[0] ?? FILLER, siblings };
}

function parentsOf(layer: readonly Hex[]): readonly Hex[] {
  return Array.from({ length: Math.ceil(layer.length / 2) }, (_, index) => {
    const left = layer[2 * index] ?? FILLER;
    const right = layer[2 * index + 1] ?? FILLER;
    // The smaller one first, so that a proof need not tell left from right.
    const [first, second] = left < right ? [left, right] : [right, left];
    return `0x${hex.encode(keccak_256(concatBytes(INNER_DOMAIN, bytesOf(first), bytesOf(second))))}` as Hex;
  });
}

// ---- Readers of the values in inputs of an execution. Inputs of a mirrored server are untrusted: every value is checked

/** The inputs do not have the shape that they should have, or do not belong together. The message is for people. */
export class UnusableInputsError extends Error {
  override readonly name = 'UnusableInputsError';
}

type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UnusableInputsError(`${what} is not an object`);
  return value as Fields;
}

export function listOf(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new UnusableInputsError(`${what} is not a list`);
  return value;
}

/** A number in decimal, as text or as a JSON number. */
export function integerOf(value: unknown, what: string): bigint {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !/^\d{1,78}$/.test(text))
    throw new UnusableInputsError(`${what} is not a number`);
  return BigInt(text);
}

/** Bytes in hexadecimal, or in base64 as sources on Solana have them. */
export function dataOf(value: unknown, what: string): Hex {
  if (typeof value !== 'string') throw new UnusableInputsError(`${what} is not bytes`);
  try {
    if (!value.startsWith('0x')) return hexOf(base64.decode(value));
    bytesOf(value);
    return value.toLowerCase() as Hex;
  } catch {
    throw new UnusableInputsError(`${what} is not bytes`);
  }
}

export function hashOf(value: unknown, what: string): Hex {
  const data = dataOf(value, what);
  if (data.length !== 66) throw new UnusableInputsError(`${what} does not have 32 bytes`);
  return data;
}

export function evmAddressOf(value: unknown, what: string): Hex {
  const address = typeof value === 'string' ? parseAddress(value, 'EVM') : undefined;
  if (address?.bytes.length !== 40) throw new UnusableInputsError(`${what} is not an EVM address`);
  return `0x${address.bytes}`;
}

/** An address of another chain as 1.6 has it on an EVM chain: padded to 32 bytes, longer ones as they are. */
function remoteAddressOf(value: unknown, family: ChainFamily, what: string): Hex {
  const address = typeof value === 'string' ? parseAddress(value, family) : undefined;
  if (!address) throw new UnusableInputsError(`${what} is not an address of its chain`);
  return `0x${address.bytes.padStart(64, '0')}`;
}

/** JSON whose large integers are kept as text: as numbers they would be rounded. */
export function parseExactJson(text: string): unknown {
  const quoted = text.replace(/"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g, (token) =>
    token.startsWith('"') ? token : `"${token}"`,
  );
  try {
    return JSON.parse(quoted);
  } catch {
    throw new UnusableInputsError('they are not JSON');
  }
}

export function hexOf(bytes: Uint8Array): Hex {
  return `0x${hex.encode(bytes)}`;
}
