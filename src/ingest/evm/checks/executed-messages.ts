/**
 * Messages that are not executed by the records, and that their off-ramps have executed. No off-ramp counts executions, so
 * each is asked about the messages that it has yet to execute; as a rule these are few.
 */
import type { Message } from '../../../domain/message.ts';
import type { AwaitingExecution, IndexLedger } from '../../../store/ledger/index-ledger.ts';
import type { Store } from '../../../store/store.ts';
import {
  answerOf,
  callOf,
  getExecutionState15,
  getExecutionState16,
  getExecutionState20,
  lowerCase,
} from '../contracts/abi.ts';
import type { GenuineContract } from '../contracts/contracts.ts';
import type { Chain, ContractCall, Hex } from '../rpc/chain.ts';
import type { ExecutedMessage } from './contradictions.ts';

const MESSAGES_AT_ONCE = 500;
/** Of one check; the next one goes on behind them. */
const MAX_PAGES = 10;
const SUCCESS = 2;
const FAILURE = 3;

export interface ExecutedMessagesOptions {
  readonly selector: string;
  readonly chain: Chain;
  readonly store: Pick<Store, 'findMessage'> & { readonly index: Pick<IndexLedger, 'checks' | 'sentFact'> };
  readonly registry: { readonly contracts: ReadonlyMap<Hex, GenuineContract> };
}

interface StateQuestion extends ExecutedMessage {
  readonly call: ContractCall;
}

export function createExecutedMessages({ selector, chain, store, registry }: ExecutedMessagesOptions) {
  /** Behind this message the next check goes on. */
  let checkedUpTo: string | null = null;

  const offRampAt = (address: string | undefined): GenuineContract | undefined =>
    address === undefined ? undefined : registry.contracts.get(lowerCase(address as Hex));

  const questionOf = async ({ messageId, ranges }: AwaitingExecution): Promise<StateQuestion | undefined> => {
    const committed = ranges.find(({ kind, offramp }) => kind === 'Committed' && offramp !== undefined);
    const execution = committed ? undefined : (await store.index.sentFact(messageId))?.execution;
    const named = execution && 'offramp' in execution ? execution.offramp : undefined;
    const offRamp = offRampAt(committed?.offramp ?? named);
    const stored = offRamp && (await store.findMessage(messageId));
    if (!offRamp || !stored) return undefined;
    const call = stateCall(offRamp, JSON.parse(stored.record) as Message);
    return call && { messageId, offRamp: offRamp.address, call };
  };

  const askPage = async (
    page: readonly AwaitingExecution[],
    tip: number,
  ): Promise<readonly ExecutedMessage[]> => {
    const questions: StateQuestion[] = [];
    for (const message of page) {
      const question = await questionOf(message);
      if (question) questions.push(question);
    }
    if (questions.length === 0) return [];
    const answers = await chain.run((node) => node.calls(questions.map(({ call }) => call)), tip);
    return questions
      .filter((_, index) => {
        const [state] = answerOf(getExecutionState16, answers[index]) ?? [];
        return state === SUCCESS || state === FAILURE;
      })
      .map(({ messageId, offRamp }) => ({ messageId, offRamp }));
  };

  return async (tip: number): Promise<readonly ExecutedMessage[]> => {
    const executed: ExecutedMessage[] = [];
    let after = checkedUpTo;
    let isAtEnd = false;
    for (let page = 0; page < MAX_PAGES && !isAtEnd; page++) {
      const messages = await store.index.checks.unexecuted(selector, after, MESSAGES_AT_ONCE);
      executed.push(...(await askPage(messages, tip)));
      after = messages.at(-1)?.messageId ?? after;
      isAtEnd = messages.length < MESSAGES_AT_ONCE;
    }
    // A contradiction counts when it shows twice, so what was found here is asked for again.
    if (executed.length === 0) checkedUpTo = isAtEnd ? null : after;
    return executed;
  };
}

function stateCall(offRamp: GenuineContract, message: Message): ContractCall | undefined {
  if (offRamp.role !== 'offRamp') return undefined;
  const { address, version } = offRamp;
  const number = BigInt(message.sequenceNumber);
  switch (version) {
    case '1.2.0':
    case '1.5.0':
      return callOf(getExecutionState15, address, number);
    case '1.6.0':
      return callOf(getExecutionState16, address, BigInt(message.sourceNetworkInfo.chainSelector), number);
    case '2.0.0':
      return callOf(getExecutionState20, address, message.messageId as Hex);
  }
}
