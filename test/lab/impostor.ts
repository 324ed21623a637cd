/** A contract that nobody has named to a router, and that says what genuine ones say, word for word. */
import { encodeFunctionData, type Hex, slice } from 'viem';
import type { Contract, Network, RawLog, RawReceipt } from './network.ts';
import { labContract } from './solidity.ts';

export interface Impostor {
  readonly address: Hex;
  /** Emits logs with the same topics and data as these, all in one transaction. */
  repeat(logs: readonly Pick<RawLog, 'topics' | 'data'>[]): Promise<RawReceipt>;
  /**
   * Answers from now on as the contract does: every question without arguments, and those of `calls` (function name
   * and arguments), whatever the arguments will be.
   */
  imitate(
    contract: Contract,
    calls?: readonly { readonly functionName: string; readonly args: readonly unknown[] }[],
  ): Promise<void>;
}

export async function deployImpostor(network: Network): Promise<Impostor> {
  const impostor = await network.deploy(labContract('Impostor'));
  return {
    address: impostor.address,
    repeat(logs) {
      return impostor.send('emitLogs', [logs.map(({ topics, data }) => ({ topics, data }))]);
    },
    async imitate({ abi, address }, calls = []) {
      const plain = abi.flatMap((item) =>
        item.type === 'function' && item.stateMutability !== 'nonpayable' && item.inputs.length === 0
          ? [{ functionName: item.name, args: [] }]
          : [],
      );
      const answers = await Promise.all(
        [...plain, ...calls].map(async ({ functionName, args }) => {
          const data = encodeFunctionData({ abi, functionName, args: [...args] });
          const answer = await network
            .rpc<Hex>('eth_call', [{ to: address, data }, 'latest'])
            .catch(() => undefined);
          return answer === undefined || answer === '0x' ? [] : [{ selector: slice(data, 0, 4), answer }];
        }),
      );
      const known = answers.flat();
      await impostor.send('setAnswers', [
        known.map(({ selector }) => selector),
        known.map(({ answer }) => answer),
      ]);
    },
  };
}
