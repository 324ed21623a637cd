/**
 * Messages of lanes up to 1.6 that are committed and not executed by the records, and that their off-ramps have executed.
 * A bounded number of them: as a rule few messages wait.
 */
import type { Message } from '../../../domain/message.ts';
import type { IndexLedger } from '../../../store/ledger/index-ledger.ts';
import type { Store } from '../../../store/store.ts';
import { answerOf, callOf, getExecutionState15, getExecutionState16 } from '../abi.ts';
import type { Chain, ContractCall, Hex } from '../chain.ts';
import type { GenuineContract } from '../contracts.ts';
import type { ExecutedMessage } from './contradictions.ts';

const MAX_MESSAGES = 500;
const SUCCESS = 2;
const FAILURE = 3;

export interface ExecutedMessagesOptions {
  readonly selector: string;
  readonly chain: Chain;
  readonly store: Pick<Store, 'findMessage'> & { readonly index: Pick<IndexLedger, 'awaitingExecution'> };
  readonly book: { readonly contracts: ReadonlyMap<Hex, GenuineContract> };
}

export function createExecutedMessages({ selector, chain, store, book }: ExecutedMessagesOptions) {
  return async (tip: number): Promise<readonly ExecutedMessage[]> => {
    const waiting = await store.index.awaitingExecution(selector, { after: null, limit: MAX_MESSAGES });
    const asked: { messageId: string; offRamp: Hex; call: ContractCall }[] = [];
    for (const { messageId, ranges } of waiting) {
      const committed = ranges.find(({ kind, offramp }) => kind === 'Committed' && offramp !== undefined);
      const offRamp = committed && book.contracts.get(committed.offramp?.toLowerCase() as Hex);
      const stored = offRamp && (await store.findMessage(messageId));
      if (!offRamp || !stored) continue;
      const call = stateCall(offRamp, JSON.parse(stored.record) as Message);
      if (call) asked.push({ messageId, offRamp: offRamp.address, call });
    }
    if (asked.length === 0) return [];
    const answers = await chain.run((node) => node.calls(asked.map(({ call }) => call)), tip);
    return asked
      .filter((_, index) => {
        const [state] = answerOf(getExecutionState16, answers[index]) ?? [];
        return state === SUCCESS || state === FAILURE;
      })
      .map(({ messageId, offRamp }) => ({ messageId, offRamp }));
  };
}

function stateCall(offRamp: GenuineContract, message: Message): ContractCall | undefined {
  const number = BigInt(message.sequenceNumber);
  if (offRamp.version === '1.2.0' || offRamp.version === '1.5.0') {
    return callOf(getExecutionState15, offRamp.address, number);
  }
  if (offRamp.version !== '1.6.0') return undefined;
  const source = BigInt(message.sourceNetworkInfo.chainSelector);
  return callOf(getExecutionState16, offRamp.address, source, number);
}
