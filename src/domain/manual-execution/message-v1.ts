/** The message of CCIP 2.0 as a value of the ABI, decoded from the encoding that all its chains share. */
import type { AbiInput, Hex } from './abi-encoding.ts';
import { UnusableInputsError } from './input-values.ts';

export const MESSAGE_V1 =
  '(uint64 sourceChainSelector,uint64 destChainSelector,uint64 messageNumber,uint32 executionGasLimit,' +
  'uint32 ccipReceiveGasLimit,bytes4 finality,bytes32 ccvAndExecutorHash,bytes onRampAddress,bytes offRampAddress,' +
  'bytes sender,bytes receiver,bytes destBlob,(uint256 amount,bytes sourcePoolAddress,bytes sourceTokenAddress,' +
  'bytes destTokenAddress,bytes tokenReceiver,bytes extraData)[] tokenTransfer,bytes data)';

export type MessageV1 = ReturnType<typeof readMessageV1>;

export function readMessageV1(encoded: Hex) {
  const { take, uint, prefixed, end } = fieldsIn(encoded);
  // Members are evaluated in the order they are written down, which is the order of the encoding.
  const message = {
    sourceChainSelector: uint(8),
    destChainSelector: uint(8),
    messageNumber: uint(8),
    /** For verifiers, token pool and receiver together, as the source chain has charged it. */
    executionGasLimit: uint(4),
    ccipReceiveGasLimit: uint(4),
    finality: take(4),
    ccvAndExecutorHash: take(32),
    onRampAddress: prefixed(1),
    offRampAddress: prefixed(1),
    sender: prefixed(1),
    receiver: prefixed(1),
    destBlob: prefixed(2),
    tokenTransfer: transfersIn(prefixed(2)),
    data: prefixed(2),
  };
  end();
  return message;
}

function transfersIn(encoded: Hex): readonly AbiInput[] {
  if (encoded === '0x') return [];
  const { take, prefixed, end } = fieldsIn(encoded);
  const transfer = {
    amount: BigInt(take(32)),
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
function fieldsIn(encoded: Hex) {
  const digits = encoded.slice(2);
  let at = 0;
  const take = (bytes: number): Hex => {
    const end = at + 2 * bytes;
    if (end > digits.length) throw new UnusableInputsError('encodedMessage ends too early');
    const taken = digits.slice(at, end);
    at = end;
    return `0x${taken}`;
  };
  const uint = (bytes: number) => BigInt(take(bytes));
  if (uint(1) !== 1n) throw new UnusableInputsError('encodedMessage has an unknown version');
  return {
    take,
    uint,
    prefixed: (lengthBytes: number) => take(Number(uint(lengthBytes))),
    end() {
      if (at !== digits.length) throw new UnusableInputsError('encodedMessage is too long');
    },
  };
}
