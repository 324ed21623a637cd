/** A node that has no chain: it answers calls from a table, and whatever else it is given. */
import type {
  Block,
  CallAnswer,
  ChainNode,
  ContractCall,
  Hex,
  Transaction,
} from '../../../src/ingest/evm/rpc/chain.ts';

export interface AnsweringNode extends ChainNode {
  /** Every batch of calls that it was asked, in order. */
  readonly batches: readonly (readonly ContractCall[])[];
}

export function answeringNode(options: {
  readonly answer?: (call: ContractCall) => CallAnswer;
  readonly blocks?: readonly Block[];
  readonly transaction?: (hash: Hex) => Transaction;
}): AnsweringNode {
  const { answer, blocks = [], transaction } = options;
  const batches: (readonly ContractCall[])[] = [];
  const unasked = () => Promise.reject(new Error('Nobody should ask that here.'));
  return {
    name: 'table',
    batches,
    head: unasked,
    tips: unasked,
    finalized: unasked,
    blockByHash: unasked,
    logLimits: { needsAddress: false, maxTopics: undefined, maxAddresses: undefined, offersLogs: true },
    logs: unasked,
    logsOfBlocks: unasked,
    receiptLogs: unasked,
    hasLogs: unasked,
    accounts: unasked,
    async blocks(numbers) {
      return numbers.map((wanted) => {
        const block = blocks.find(({ number }) => number === wanted);
        if (!block) throw new Error(`There is no block ${wanted}.`);
        return block;
      });
    },
    async transactions(hashes) {
      if (!transaction) throw new Error('There are no transactions.');
      return hashes.map(transaction);
    },
    async calls(calls) {
      batches.push(calls);
      return calls.map((call) => answer?.(call));
    },
  };
}
