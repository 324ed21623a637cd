/** A contract that nobody has named to a router, and that says what genuine ones say, word for word. */
import { type AbiFunction, type Hex, toFunctionSelector } from 'viem';
import type { Contract, Network, RawLog, RawReceipt } from './network.ts';
import { labContract } from './solidity.ts';

export async function deployImpostor(network: Network) {
  const impostor = await network.deploy(labContract('Impostor'));
  return {
    address: impostor.address,
    /** Emits logs with the same topics and data as these, all in one transaction. */
    repeat(logs: readonly Pick<RawLog, 'topics' | 'data'>[]): Promise<RawReceipt> {
      return impostor.send('emitLogs', [logs.map(({ topics, data }) => ({ topics, data }))]);
    },
    /** Answers every question without arguments as the contract does now. */
    async imitate({ abi, address }: Contract): Promise<void> {
      const views = abi.filter(
        (item) =>
          item.type === 'function' && item.stateMutability !== 'nonpayable' && item.inputs.length === 0,
      ) as readonly AbiFunction[];
      const answers = await Promise.all(
        views.map(async (view) => {
          const selector = toFunctionSelector(view);
          const answer = await network
            .rpc<Hex>('eth_call', [{ to: address, data: selector }, 'latest'])
            .catch(() => '0x');
          return answer === '0x' ? [] : [{ selector, answer }];
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
