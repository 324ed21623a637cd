/**
 * Background tasks about messages to an EVM network, for state that no event carries: which verifiers a message needs, which
 * have verified it, when manual execution opens to everybody, and blessings that no event tells.
 */
import type { Fact, Observation, RangeFact, RootFact } from '../../domain/facts.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import type { Message } from '../../domain/message.ts';
import type { IndexStep, Task } from '../../store/ledger/index-ledger.ts';
import type { Store } from '../../store/store.ts';
import type { BackgroundTasks } from '../engine/family.ts';
import { createExecutionOpenings } from '../engine/manual-execution.ts';
import type { Progress } from '../engine/progress.ts';
import { answerOf, callOf, isBlessed } from './contracts/abi.ts';
import type { GenuineContract } from './contracts/contracts.ts';
import { readExecutionThreshold, readVerifierPolicy } from './decode/decoder.ts';
import type { EvmContractRegistry } from './reading.ts';
import type { Chain, ChainNode, Hex } from './rpc/chain.ts';
import type { VerifierResults } from './verifier-results.ts';

const TASKS_AT_ONCE = 50;
/** A contract that reverts is asked less and less often, at last this much more seldom than others: once a day. */
const REJECTED_PAUSES = 288;

type TaskStep = Pick<IndexStep, 'facts' | 'tasksDone' | 'tasksObsolete' | 'tasksPostponed'>;

/** @param results of the service that reports verifications before they are on chain; null: none */
export function createMessageTasks(
  progress: Progress,
  chain: Chain,
  registry: EvmContractRegistry,
  findMessage: Store['findMessage'],
  results: VerifierResults | null,
): BackgroundTasks {
  const { selector, ledger, timing } = progress;
  const askBlessings = createRootBlessings(chain);
  let isBehind = true;
  /** Until when tasks wait for an off-ramp that history may yet register, on performance.now()'s clock. */
  let contractsAwaitedUntil = 0;
  /** The newest block that was read: a node behind it may not know the contracts that we know. */
  const tipNumber = () => progress.head.tip?.number ?? 0;
  const contractAt = (address: string | undefined) => registry.contracts.get(address?.toLowerCase() as Hex);

  const openings = createExecutionOpenings(progress, {
    isOffRamp: (address) => contractAt(address) !== undefined,
    async readDelay(address, tip) {
      const offRamp = contractAt(address);
      return offRamp && chain.run((node) => readExecutionThreshold(node, offRamp), tip);
    },
    isTaken({ offramp }, { status }) {
      const version = contractAt(offramp)?.version;
      // Up to 1.5 an off-ramp takes a root only when it is blessed.
      return (version !== '1.2.0' && version !== '1.5.0') || status >= statusRank('BLESSED');
    },
  });

  /** Messages whose commit is so long ago that everybody may execute them, and blessings that no event tells. */
  const openExecution = async (seen: Observation): Promise<TaskStep> => {
    const { waiting, facts } = await openings.look();
    const questions = waiting
      .filter(({ status }) => status < statusRank('BLESSED'))
      .flatMap((message): readonly BlessingQuestion[] => {
        const commit = openings.commitOf(message);
        const offRamp = commit && contractAt(commit.offramp);
        return offRamp ? [{ commit, offRamp }] : [];
      });
    return { facts: [...facts, ...(await askBlessings(questions, seen, tipNumber()))] };
  };

  const askPolicy = async (task: Task, seen: Observation): Promise<TaskStep> => {
    const execution = (await ledger.sentFact(task.messageId))?.execution;
    // Its sending was taken back, or it is a lane without verifiers.
    if (!execution || !('encodedMessage' in execution)) return { tasksObsolete: [task] };
    const offRamp = contractAt(execution.offramp);
    const encodedMessage = execution.encodedMessage as Hex;
    if (offRamp?.role === 'offRamp') {
      const read = (node: ChainNode) => readVerifierPolicy(node, offRamp.address, encodedMessage);
      const policy = await chain.run(read, tipNumber());
      if (!policy) return postponed(task, REJECTED_PAUSES);
      const fact: Fact = { kind: 'VerifierPolicy', messageId: `0x${task.messageId}`, ...policy, seen };
      return { facts: [fact], tasksDone: [task] };
    }
    if (progress.recorder.backlog.owedBlocks === 0) return postponed(task);
    // History is read from its newest end: it may name the off-ramp further down. Two rounds of the task's pause: by then
    // it has been asked for again.
    contractsAwaitedUntil = performance.now() + 2 * timing.taskMinMs;
    return postponed({ ...task, attempts: 0 });
  };

  const askResults = async (task: Task, seen: Observation): Promise<TaskStep> => {
    const messageId = `0x${task.messageId}`;
    const stored = await findMessage(task.messageId);
    if (!stored) {
      const isSent = (await ledger.sentFact(task.messageId)) !== undefined;
      return isSent ? postponed(task) : { tasksObsolete: [task] };
    }
    const { status, verifiers } = JSON.parse(stored.record) as Message;
    if (statusRank(status) >= statusRank('VERIFIED')) return { tasksDone: [task] };
    const known = new Set(
      (verifiers?.items ?? [])
        .filter((item) => item.status === 'COMPLETED')
        .flatMap(({ sourceAddress, destAddress }) => [sourceAddress, destAddress]),
    );
    // A service that is away is asked again later, like one that does not know yet.
    const completed = (await results?.completed(messageId).catch(() => [])) ?? [];
    const facts = completed
      .filter(({ verifier }) => !known.has(verifier))
      .map(({ verifier, data, at }): Fact => {
        return { kind: 'VerifierCompleted', messageId, verifier, data, seen: { ...seen, at: at ?? seen.at } };
      });
    return { facts, ...postponed(task) };
  };

  /** By twice as long as the last time, up to so many of the longest pauses. */
  const postponed = (task: Task, longest = 1): TaskStep => {
    const { taskMinMs, taskMaxMs } = timing;
    const dueInMs = Math.min(longest * taskMaxMs, taskMinMs * 2 ** Math.min(task.attempts, 20));
    return { tasksPostponed: [{ ...task, dueInMs }] };
  };

  return {
    get isBehind() {
      return isBehind || performance.now() < contractsAwaitedUntil;
    },
    async work() {
      const { final } = progress.head;
      if (!final) return undefined;
      // What rests on no log is seen at the newest final block.
      const seen = progress.head.observedAt(final);
      const policies = await ledger.dueTasks(selector, 'policy', TASKS_AT_ONCE);
      const verifications = results ? await ledger.dueTasks(selector, 'verification', TASKS_AT_ONCE) : [];
      const steps = [await openExecution(seen)];
      isBehind =
        openings.isBehind || [policies, verifications].some(({ length }) => length === TASKS_AT_ONCE);
      for (const task of policies) steps.push(await askPolicy(task, seen));
      for (const task of verifications) steps.push(await askResults(task, seen));
      const step = {
        facts: steps.flatMap(({ facts = [] }) => facts),
        tasksDone: steps.flatMap(({ tasksDone = [] }) => tasksDone),
        tasksObsolete: steps.flatMap(({ tasksObsolete = [] }) => tasksObsolete),
        tasksPostponed: steps.flatMap(({ tasksPostponed = [] }) => tasksPostponed),
      };
      return Object.values(step).every((list) => list.length === 0) ? undefined : step;
    },
  };
}

interface BlessingQuestion {
  readonly commit: RangeFact;
  readonly offRamp: GenuineContract;
}

/** An event usually comes within minutes of the commit; the same root is not asked about more often than this. */
const ASK_AFTER_MS = 600_000;
const MAX_REMEMBERED = 10_000;

/**
 * Blessings that no event in the history tells: by a legacy RMN behind the present one, by an RMN for whose commit store
 * every root is blessed (`PermaBlessedCommitStoreAdded`), or before the configured start. The commit store itself is asked
 * about roots of 1.2 and 1.5 lanes whose messages still wait.
 */
export function createRootBlessings(chain: Pick<Chain, 'run'>) {
  const askedAtMs = new Map<string, number>();
  /** @param seen what the answers rest on: no log tells them */
  return async (
    questions: readonly BlessingQuestion[],
    seen: Observation,
    tip: number,
  ): Promise<readonly RootFact[]> => {
    const nowMs = Date.parse(seen.at);
    const commitStores = new Map<string, Hex>();
    for (const { commit, offRamp } of questions) {
      const { merkleRoot } = commit;
      const lastMs = Math.max(Date.parse(commit.seen.at), askedAtMs.get(merkleRoot) ?? 0);
      if ('commitStore' in offRamp && nowMs - lastMs >= ASK_AFTER_MS)
        commitStores.set(merkleRoot, offRamp.commitStore);
    }
    if (commitStores.size === 0) return [];
    const calls = [...commitStores].map(([root, commitStore]) => callOf(isBlessed, commitStore, root as Hex));
    const answers = await chain.run((node) => node.calls(calls), tip);
    if (askedAtMs.size >= MAX_REMEMBERED) askedAtMs.clear();
    const roots = [...commitStores.keys()];
    for (const root of roots) askedAtMs.set(root, nowMs);
    return roots
      .filter((_, index) => answerOf(isBlessed, answers[index])?.[0] === true)
      .map((merkleRoot) => ({ kind: 'RootBlessed', merkleRoot, seen }));
  };
}
