/**
 * The message of CCIP 2.0, in the encoding that all its chains share: fixed fields, then fields that each begin with their
 * length. Addresses are bytes: those of the source as its ABI pads them, those of the destination bare.
 */
import type { Hex } from './abi-encoding.ts';

export type MessageV1 = ReturnType<typeof readMessageV1>;
export type TokenTransferV1 = MessageV1['tokenTransfer'][number];

const ENCODING_VERSION = 1n;

/** As the off-ramp takes it. */
export const MESSAGE_V1 =
  '(uint64 sourceChainSelector,uint64 destChainSelector,uint64 messageNumber,uint32 executionGasLimit,' +
  'uint32 ccipReceiveGasLimit,bytes4 finality,bytes32 ccvAndExecutorHash,bytes onRampAddress,bytes offRampAddress,' +
  'bytes sender,bytes receiver,bytes destBlob,(uint256 amount,bytes sourcePoolAddress,bytes sourceTokenAddress,' +
  'bytes destTokenAddress,bytes tokenReceiver,bytes extraData)[] tokenTransfer,bytes data)';

/** @param problem makes the error where the bytes are not exactly one message; what is wrong is such as "ends too early" */
export function readMessageV1(encoded: Hex, problem: (what: string) => Error) {
  const { take, uint, prefixed, end } = fieldsIn(encoded, problem);
  // Members are evaluated in the order they are written down, which is the order of the encoding.
  const message = {
    sourceChainSelector: uint(8),
    destChainSelector: uint(8),
    messageNumber: uint(8),
    /** For verifiers, token pool and receiver together, as the source chain has charged it. */
    executionGasLimit: uint(4),
    ccipReceiveGasLimit: uint(4),
    /** The upper half has flags, the lower is a depth in blocks. */
    finality: take(4),
    ccvAndExecutorHash: take(32),
    onRampAddress: prefixed(1),
    offRampAddress: prefixed(1),
    sender: prefixed(1),
    receiver: prefixed(1),
    destBlob: prefixed(2),
    /** At most one. */
    tokenTransfer: transfersIn(prefixed(2), problem),
    data: prefixed(2),
  };
  end();
  return message;
}

function transfersIn(encoded: Hex, problem: (what: string) => Error) {
  if (encoded === '0x') return [];
  const { uint, prefixed, end } = fieldsIn(encoded, problem);
  const transfer = {
    amount: uint(32),
    sourcePoolAddress: prefixed(1),
    sourceTokenAddress: prefixed(1),
    destTokenAddress: prefixed(1),
    tokenReceiver: prefixed(1),
    extraData: prefixed(2),
  };
  end();
  return [transfer];
}

/** Reads fields one after the other, behind the version of the encoding. */
function fieldsIn(encoded: Hex, problem: (what: string) => Error) {
  const digits = encoded.slice(2);
  let at = 0;
  const take = (bytes: number): Hex => {
    const end = at + 2 * bytes;
    if (end > digits.length) throw problem('ends too early');
    const taken = digits.slice(at, end);
    at = end;
    return `0x${taken}`;
  };
  const uint = (bytes: number) => BigInt(take(bytes));
  const version = uint(1);
  if (version !== ENCODING_VERSION)
    throw problem(`has encoding version ${version}; version ${ENCODING_VERSION} is known`);
  return {
    take,
    uint,
    prefixed: (lengthBytes: number) => take(Number(uint(lengthBytes))),
    end() {
      if (at !== digits.length) throw problem('has bytes behind its end');
    },
  };
}
