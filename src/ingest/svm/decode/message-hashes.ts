/** The id of a message that was sent from Solana: an event proves itself by it, made of the message and of its emitter. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes } from '@noble/hashes/utils.js';
import { base58, hex } from '@scure/base';
import type { Hex } from '../../../base/hex.ts';
import { hexOf } from './borsh.ts';
import type { SentRampMessage } from './layouts.ts';

const LEAF_DOMAIN = new Uint8Array(32);

export function sentMessageId({ header, ...message }: SentRampMessage, router: string): Hex {
  const parts = [
    LEAF_DOMAIN,
    new TextEncoder().encode('SVM2AnyMessageHashV1'),
    bigEndian(header.sourceChainSelector, 8),
    bigEndian(header.destChainSelector, 8),
    base58.decode(router),
    base58.decode(message.sender),
    bigEndian(header.sequenceNumber, 8),
    bigEndian(header.nonce, 8),
    base58.decode(message.feeToken),
    littleEndian(message.feeTokenAmount, 32),
    littleEndian(message.feeValueJuels, 32),
    withLength(message.receiver, 1),
    withLength(message.data, 2),
    littleEndian(BigInt(message.tokenAmounts.length), 4),
    ...message.tokenAmounts.flatMap((transfer) => [
      base58.decode(transfer.sourcePoolAddress),
      borshBytes(transfer.destTokenAddress),
      borshBytes(transfer.extraData),
      littleEndian(transfer.amount, 32),
      borshBytes(transfer.destExecData),
    ]),
    borshBytes(message.extraArgs),
  ];
  return hexOf(keccak_256(concatBytes(...parts)));
}

function bigEndian(value: bigint, length: number): Uint8Array {
  const digits = BigInt.asUintN(8 * length, value).toString(16);
  return hex.decode(digits.padStart(2 * length, '0'));
}

function littleEndian(value: bigint, length: number): Uint8Array {
  return bigEndian(value, length).reverse();
}

/** Behind a big-endian length. The programs cut the length off in the same way where it does not fit. */
function withLength(bytes: Uint8Array, lengthBytes: number): Uint8Array {
  return concatBytes(bigEndian(BigInt(bytes.length), lengthBytes), bytes);
}

function borshBytes(bytes: Uint8Array): Uint8Array {
  return concatBytes(littleEndian(BigInt(bytes.length), 4), bytes);
}
