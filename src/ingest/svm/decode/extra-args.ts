/** What the sender asked of the execution: tagged borsh, as the router on Solana emits it. */
import { hex } from '@scure/base';
import type { Message } from '../../../domain/message.ts';
import { readBorsh, UnreadableDataError } from './borsh.ts';

/** EVM, Aptos and TON. */
const GENERIC_V2 = '181dcf10';
const SVM_V1 = '1f3b3aba';
const SUI_V1 = '21ea4ca9';

/** Sui's list of objects has no place in the record, which shows the rest in the shape of EVM's. */
export function readExtraArgs(extraArgs: Uint8Array): Message['extraArgs'] {
  const tag = hex.encode(extraArgs.subarray(0, 4));
  const encoded = extraArgs.subarray(4);
  switch (tag) {
    case GENERIC_V2:
      return readBorsh(encoded, (reader) => ({
        gasLimit: reader.u128().toString(),
        allowOutOfOrderExecution: reader.bool(),
      }));
    case SVM_V1:
      return readBorsh(encoded, (reader) => ({
        computeUnits: reader.u32(),
        accountIsWritableBitmap: reader.u64().toString(),
        allowOutOfOrderExecution: reader.bool(),
        tokenReceiver: reader.publicKey(),
        accounts: [...reader.list((item) => item.publicKey())],
      }));
    case SUI_V1:
      return readBorsh(encoded, (reader) => {
        const gasLimit = reader.u128().toString();
        const allowOutOfOrderExecution = reader.bool();
        reader.fixed(32); // token receiver
        reader.list((item) => item.fixed(32)); // objects of the receiver
        return { gasLimit, allowOutOfOrderExecution };
      });
    default:
      throw new UnreadableDataError(`the extra arguments have the unknown tag 0x${tag}`);
  }
}
