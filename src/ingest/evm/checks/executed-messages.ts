/**
 * Messages that are not executed by the records, and that their off-ramps have executed. No off-ramp counts executions, so
 * each is asked about the messages that it has yet to execute; as a rule these are few.
 */
import type { Message } from '../../../domain/message.ts';
import type { AwaitingExecution } from '../../../store/ledger/index-ledger.ts';
import type { Store } from '../../../store/store.ts';
import type { ExecutedMessage } from '../../engine/lane-findings.ts';
import type { Progress } from '../../engine/progress.ts';
import * as abi from '../contracts/abi.ts';
import type { GenuineContract } from '../contracts/contracts.ts';
import type { EvmContractRegistry } from '../reading.ts';
import type { Chain, ContractCall, Hex } from '../rpc/chain.ts';

const MESSAGES_AT_ONCE = 500;
/** Of one check; the next one goes on behind them. */
const MAX_PAGES = 10;
const SUCCESS = 2;
const FAILURE = 3;

export function createExecutedMessages(
  { selector, ledger }: Progress,
  chain: Chain,
  registry: EvmContractRegistry,
  findMessage: Store['findMessage'],
) {
  /** Behind this message the next check goes on. */
  let checkedUpTo: string | null = null;

  const questionOf = async ({ messageId, ranges }: AwaitingExecution) => {
    const committed = ranges.find(({ kind, offramp }) => kind === 'Committed' && offramp !== undefined);
    const execution = committed ? undefined : (await ledger.sentFact(messageId))?.execution;
    const named = execution && 'offramp' in execution ? execution.offramp : undefined;
    const address = (committed?.offramp ?? named) as Hex | undefined;
    const offRamp = address && registry.contracts.get(abi.lowerCase(address));
    const stored = offRamp && (await findMessage(messageId));
    if (!offRamp || !stored) return undefined;
    const call = stateCall(offRamp, JSON.parse(stored.record) as Message);
    return call && { messageId, offRamp: offRamp.address, call };
  };

  const askPage = async (page: readonly AwaitingExecution[], tip: number) => {
    const questions: (ExecutedMessage & { readonly call: ContractCall })[] = [];
    for (const message of page) {
      const question = await questionOf(message);
      if (question) questions.push(question);
    }
    if (questions.length === 0) return [];
    const answers = await chain.run((node) => node.calls(questions.map(({ call }) => call)), tip);
    return questions.filter((_, index) => {
      const [state] = abi.answerOf(abi.getExecutionState16, answers[index]) ?? [];
      return state === SUCCESS || state === FAILURE;
    });
  };

  return async (tip: number): Promise<readonly ExecutedMessage[]> => {
    const executed: ExecutedMessage[] = [];
    let after = checkedUpTo;
    let isAtEnd = false;
    for (let page = 0; page < MAX_PAGES && !isAtEnd; page++) {
      const messages = await ledger.checks.unexecuted(selector, after, MESSAGES_AT_ONCE);
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
      return abi.callOf(abi.getExecutionState15, address, number);
    case '1.6.0':
      return abi.callOf(
        abi.getExecutionState16,
        address,
        BigInt(message.sourceNetworkInfo.chainSelector),
        number,
      );
    case '2.0.0':
      return abi.callOf(abi.getExecutionState20, address, message.messageId as Hex);
  }
}
