/**
 * The message of CCIP 2.0, in the encoding that all its chains share: fixed fields, then fields that each begin with
 * their length. Addresses are bytes: those of the source as its ABI pads them, those of the destination bare.
 */

import { UnreadableLogError } from '../../engine/event-facts.ts';
import type { Hex } from '../rpc/chain.ts';

export type MessageV1 = ReturnType<typeof decodeMessageV1>;
export type TokenTransferV1 = NonNullable<MessageV1['tokenTransfer']>;

const ENCODING_VERSION = 1n;

/** Throws an UnreadableLogError where the bytes are not exactly one message. */
export function decodeMessageV1(encoded: Hex) {
  const bytes = new EncodedBytes(encoded);
  bytes.expectVersion();
  // Members are evaluated in the order they are written down, which is the order of the encoding.
  const message = {
    sourceChainSelector: bytes.uint(8),
    destChainSelector: bytes.uint(8),
    messageNumber: bytes.uint(8),
    executionGasLimit: bytes.uint(4),
    ccipReceiveGasLimit: bytes.uint(4),
    /** The upper half has flags, the lower is a depth in blocks. */
    finality: Number(bytes.uint(4)),
    ccvAndExecutorHash: bytes.take(32),
    onRampAddress: bytes.prefixed(1),
    offRampAddress: bytes.prefixed(1),
    sender: bytes.prefixed(1),
    receiver: bytes.prefixed(1),
    destBlob: bytes.prefixed(2),
    tokenTransfer: decodeTokenTransfer(bytes.prefixed(2)),
    data: bytes.prefixed(2),
  };
  bytes.expectEnd();
  return message;
}

function decodeTokenTransfer(encoded: Hex) {
  if (encoded === '0x') return undefined;
  const bytes = new EncodedBytes(encoded);
  bytes.expectVersion();
  const transfer = {
    amount: bytes.uint(32),
    sourcePoolAddress: bytes.prefixed(1),
    sourceTokenAddress: bytes.prefixed(1),
    destTokenAddress: bytes.prefixed(1),
    tokenReceiver: bytes.prefixed(1),
    extraData: bytes.prefixed(2),
  };
  bytes.expectEnd();
  return transfer;
}

/** A place in a row of bytes. */
class EncodedBytes {
  readonly #digits: string;
  #position = 0;

  constructor(encoded: Hex) {
    this.#digits = encoded.slice(2);
  }

  take(length: number): Hex {
    const end = this.#position + 2 * length;
    if (end > this.#digits.length) throw new UnreadableLogError('its encoded message ends too early');
    const taken = this.#digits.slice(this.#position, end);
    this.#position = end;
    return `0x${taken}`;
  }

  uint(length: number): bigint {
    return BigInt(this.take(length));
  }

  /** A field that begins with its own length. */
  prefixed(lengthOfLength: number): Hex {
    return this.take(Number(this.uint(lengthOfLength)));
  }

  expectVersion(): void {
    const version = this.uint(1);
    if (version !== ENCODING_VERSION) {
      throw new UnreadableLogError(
        `its message has encoding version ${version}; we know version ${ENCODING_VERSION}`,
      );
    }
  }

  expectEnd(): void {
    if (this.#position !== this.#digits.length)
      throw new UnreadableLogError('its encoded message has bytes behind its end');
  }
}
