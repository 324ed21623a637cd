/**
 * Hashes of messages: the id of one that was sent from Solana, the leaf of one that arrives there, and merkle roots.
 *
 * An event proves itself by its id, which is made of the message and of the program that emitted it.
 */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes } from '@noble/hashes/utils.js';
import { base58, hex } from '@scure/base';
import { type Hex, hexOf } from './borsh.ts';
import type { SentRampMessage } from './events.ts';
import type { ReceivedRampMessage } from './instructions.ts';

const LEAF_DOMAIN = new Uint8Array(32);
const INNER_DOMAIN = Uint8Array.from({ length: 32 }, (_, index) => (index === 31 ? 1 : 0));
/** Fills up a layer with an odd number of nodes. */
const NO_NODE = new Uint8Array(32).fill(0xff);

export function sentMessageId({ header, ...message }: SentRampMessage, router: string): Hex {
  return keccak(
    LEAF_DOMAIN,
    ascii('SVM2AnyMessageHashV1'),
    bigEndian(header.sourceChainSelector, 8),
    bigEndian(header.destChainSelector, 8),
    base58.decode(router),
    base58.decode(message.sender),
    bigEndian(header.sequenceNumber, 8),
    bigEndian(header.nonce, 8),
    base58.decode(message.feeToken),
    littleEndianBytes(message.feeTokenAmount, 32),
    littleEndianBytes(message.feeValueJuels, 32),
    withLength(message.receiver, 1),
    withLength(message.data, 2),
    littleEndianBytes(BigInt(message.tokenAmounts.length), 4),
    ...message.tokenAmounts.flatMap((transfer) => [
      base58.decode(transfer.sourcePoolAddress),
      borshBytes(transfer.destTokenAddress),
      borshBytes(transfer.extraData),
      littleEndianBytes(transfer.amount, 32),
      borshBytes(transfer.destExecData),
    ]),
    borshBytes(message.extraArgs),
  );
}

/** @param accounts the receiver unless it is zero, then the accounts of the message, in base58 */
export function receivedMessageLeaf(
  { header, ...message }: ReceivedRampMessage,
  onRamp: Uint8Array,
  accounts: readonly string[],
): Hex {
  return keccak(
    LEAF_DOMAIN,
    ascii('Any2SVMMessageHashV1'),
    bigEndian(header.sourceChainSelector, 8),
    bigEndian(header.destChainSelector, 8),
    withLength(onRamp, 2),
    hex.decode(header.messageId.slice(2)),
    base58.decode(message.tokenReceiver),
    bigEndian(header.sequenceNumber, 8),
    littleEndianBytes(BigInt(message.computeUnits), 4),
    littleEndianBytes(message.isWritableBitmap, 8),
    bigEndian(header.nonce, 8),
    withLength(message.sender, 2),
    withLength(message.data, 2),
    littleEndianBytes(BigInt(message.tokenAmounts.length), 4),
    ...message.tokenAmounts.flatMap((transfer) => [
      borshBytes(transfer.sourcePoolAddress),
      base58.decode(transfer.destTokenAddress),
      littleEndianBytes(BigInt(transfer.destGasAmount), 4),
      borshBytes(transfer.extraData),
      littleEndianBytes(transfer.amount, 32),
    ]),
    ...accounts.map((account) => base58.decode(account)),
  );
}

/** The root of the tree with these leaves, in the order of their sequence numbers; there is at least one. */
export function merkleRootOf(leaves: readonly Hex[]): Hex {
  let layer: readonly Uint8Array[] = leaves.map((leaf) => hex.decode(leaf.slice(2)));
  while (layer.length > 1) {
    const nodes = layer;
    layer = Array.from({ length: Math.ceil(nodes.length / 2) }, (_, index) => {
      const pair = [nodes[2 * index] ?? NO_NODE, nodes[2 * index + 1] ?? NO_NODE];
      return keccak_256(concatBytes(INNER_DOMAIN, ...pair.sort(Buffer.compare)));
    });
  }
  return hexOf(layer[0] ?? NO_NODE);
}

function keccak(...parts: readonly Uint8Array[]): Hex {
  return hexOf(keccak_256(concatBytes(...parts)));
}

function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function bigEndian(value: bigint, length: number): Uint8Array {
  return hex.decode(
    BigInt.asUintN(8 * length, value)
      .toString(16)
      .padStart(2 * length, '0'),
  );
}

function littleEndianBytes(value: bigint, length: number): Uint8Array {
  return bigEndian(value, length).reverse();
}

/** Behind a big-endian length. The programs cut the length off in the same way where it does not fit. */
function withLength(bytes: Uint8Array, lengthBytes: number): Uint8Array {
  return concatBytes(bigEndian(BigInt(bytes.length), lengthBytes), bytes);
}

function borshBytes(bytes: Uint8Array): Uint8Array {
  return concatBytes(littleEndianBytes(BigInt(bytes.length), 4), bytes);
}
