/**
 * Whether the bloom filters of a network are used to check for missing logs. Some chains leave them empty or fill them
 * wrongly: a log that its block's filter denies shows it, and from then on no filter of the network is used.
 */
import { mayHaveLogs } from './bloom.ts';
import type { RegistryLog } from './checks/registry-log.ts';
import type { Block, ChainLog, Hex } from './rpc/chain.ts';
import type { EvmSource } from './settings.ts';

export interface BloomTrust {
  /** Whether the filters of these blocks may be used, as far as their own logs show. */
  allows(logs: readonly ChainLog[], blocks: ReadonlyMap<Hex, Block>): Promise<boolean>;
  /** Whether a log has agreed with its block's filter since the start, and none has contradicted one. */
  readonly isConfirmed: boolean;
}

export function createBloomTrust(verify: EvmSource['verify'], registryLog: RegistryLog): BloomTrust {
  let isTrusted = verify !== 'off';
  let isConfirmed = false;
  return {
    get isConfirmed() {
      return isConfirmed;
    },
    async allows(logs, blocks) {
      if (!isTrusted) return false;
      const denied = logs.find(({ blockHash, address, topics }) => {
        const block = blocks.get(blockHash);
        return block !== undefined && !mayHaveLogs(block.logsBloom, [address], topics.slice(0, 1));
      });
      if (!denied) {
        isConfirmed ||= logs.some(({ blockHash }) => blocks.has(blockHash));
        return true;
      }
      isTrusted = false;
      isConfirmed = false;
      await registryLog.noteWrongBloom(denied.blockNumber);
      return false;
    },
  };
}

/** For readers without settings. */
export const alwaysTrusted: BloomTrust = { allows: async () => true, isConfirmed: false };
