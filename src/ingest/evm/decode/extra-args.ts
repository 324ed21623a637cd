/** What the sender asked of the execution, from the tagged bytes that CCIP 1.6 carries. */
import { decodeAbiParameters, slice } from 'viem';
import type { Message } from '../../../domain/message.ts';
import { spelled, UnreadableLogError } from '../../engine/event-facts.ts';
import { evmExtraArgsV1, evmExtraArgsV2, suiExtraArgsV1, svmExtraArgsV1 } from '../contracts/abi.ts';
import type { Hex } from '../rpc/chain.ts';

/** The first four bytes of the hash of a name such as `CCIP EVMExtraArgsV1`. */
export const extraArgsTags = {
  evmV1: '0x97a657c9',
  evmV2: '0x181dcf10',
  svmV1: '0x1f3b3aba',
  suiV1: '0x21ea4ca9',
} as const;

/** Aptos and TON are sent the second form of EVM. Sui's own form has two members more, behind those of EVM's. */
export function readExtraArgs(extraArgs: Hex, nonce: bigint): Message['extraArgs'] {
  const tag = extraArgs.slice(0, 10);
  const encoded = (): Hex => slice(extraArgs, 4);
  switch (tag) {
    case extraArgsTags.evmV1: {
      const [gasLimit] = decodeAbiParameters(evmExtraArgsV1, encoded());
      return { gasLimit: gasLimit.toString(), allowOutOfOrderExecution: nonce === 0n };
    }
    case extraArgsTags.evmV2: {
      const [gasLimit, allowOutOfOrderExecution] = decodeAbiParameters(evmExtraArgsV2, encoded());
      return { gasLimit: gasLimit.toString(), allowOutOfOrderExecution };
    }
    case extraArgsTags.svmV1: {
      const [args] = decodeAbiParameters(svmExtraArgsV1, encoded());
      return {
        computeUnits: args.computeUnits,
        accountIsWritableBitmap: args.accountIsWritableBitmap.toString(),
        allowOutOfOrderExecution: args.allowOutOfOrderExecution,
        tokenReceiver: spelled(args.tokenReceiver, 'SVM', 'token receiver'),
        accounts: args.accounts.map((account) => spelled(account, 'SVM', 'account')),
      };
    }
    case extraArgsTags.suiV1: {
      const [args] = decodeAbiParameters(suiExtraArgsV1, encoded());
      return {
        gasLimit: args.gasLimit.toString(),
        allowOutOfOrderExecution: args.allowOutOfOrderExecution,
        tokenReceiver: spelled(args.tokenReceiver, 'SUI', 'token receiver'),
        receiverObjectIds: args.receiverObjectIds.map((id) => spelled(id, 'SUI', 'object')),
      };
    }
    default:
      throw new UnreadableLogError(`its extra arguments have the tag ${tag}, which we do not know`);
  }
}
