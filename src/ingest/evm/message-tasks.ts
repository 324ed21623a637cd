/**
 * Background tasks about messages to an EVM network, for state that no event carries: which verifiers a message needs, which
 * have verified it, and when manual execution opens to everybody.
 */
import type { Fact, Observation, RangeFact } from '../../domain/facts.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import type { Message } from '../../domain/message.ts';
import type { AwaitingExecution, IndexStep, Task } from '../../store/ledger/index-ledger.ts';
import type { Store } from '../../store/store.ts';
import type { BackgroundTasks } from '../engine/family.ts';
import type { Progress } from '../engine/progress.ts';
import type { WorkerTiming } from '../engine/timing.ts';
import type { GenuineContract } from './contracts/contracts.ts';
import { readExecutionThreshold, readVerifierPolicy } from './decode/decoder.ts';
import { type BlessingQuestion, createRootBlessings } from './root-blessings.ts';
import type { Chain, Hex } from './rpc/chain.ts';
import type { VerifierResults } from './verifier-results.ts';

const TASKS_AT_ONCE = 50;
/** A contract that reverts is asked less and less often, at last this much more seldom than others: once a day. */
const REJECTED_PAUSES = 288;
/** Thresholds are settings of a contract, which change rarely. */
const THRESHOLD_KEPT = 600_000;

interface TaskContext {
  readonly network: string;
  readonly chain: Chain;
  readonly store: Pick<Store, 'index' | 'findMessage'>;
  readonly registry: ReadonlyMap<Hex, GenuineContract>;
  /** The newest block that was read: a node behind it may not know the contracts that we know. */
  readonly tip: number;
  /** Of the newest block, in milliseconds since 1970. */
  readonly headAt: number;
  /** What rests on no log is seen here: at the newest final block. */
  readonly seen: Observation;
}

type TaskStep = Pick<IndexStep, 'facts' | 'tasksDone' | 'tasksObsolete' | 'tasksPostponed'>;

/** Backoff of a task that came to nothing. */
type TaskTiming = Pick<WorkerTiming, 'taskMinMs' | 'taskMaxMs'>;

export interface MessageTasksOptions {
  /** CCIP's number for the network. */
  readonly selector: string;
  readonly chain: Chain;
  readonly store: TaskContext['store'];
  readonly progress: Progress;
  readonly registry: { readonly contracts: ReadonlyMap<Hex, GenuineContract> };
  readonly results: VerifierResults | null;
  readonly timing: TaskTiming;
}

export function createMessageTasks({
  selector,
  chain,
  store,
  progress,
  registry,
  results,
  timing,
}: MessageTasksOptions): BackgroundTasks {
  const thresholds = new Map<Hex, { readonly seconds: number | undefined; readonly readAt: number }>();
  const blessings = createRootBlessings(chain);
  let lookedBeyond: string | null = null;
  let isBehind = true;
  /** Until when tasks wait for an off-ramp that history may yet register, on performance.now()'s clock. */
  let contractsAwaitedUntil = 0;

  const threshold = async (
    { chain, tip }: TaskContext,
    offramp: GenuineContract,
  ): Promise<number | undefined> => {
    const known = thresholds.get(offramp.address);
    if (known && Date.now() - known.readAt < THRESHOLD_KEPT) return known.seconds;
    const seconds = await chain.run((node) => readExecutionThreshold(node, offramp), tip);
    thresholds.set(offramp.address, { seconds, readAt: Date.now() });
    return seconds;
  };

  /** Messages whose commit is so long ago that everybody may execute them. */
  const openExecution = async (context: TaskContext): Promise<TaskStep> => {
    const waiting = await context.store.index.awaitingExecution(context.network, {
      after: lookedBeyond,
      limit: TASKS_AT_ONCE,
    });
    lookedBeyond = waiting.length < TASKS_AT_ONCE ? null : (waiting.at(-1)?.messageId ?? null);
    const facts: Fact[] = [];
    for (const message of waiting) {
      const opening = await openingOf(message, context, threshold);
      if (opening)
        facts.push({ kind: 'ManualExecutionOpened', messageId: `0x${message.messageId}`, seen: opening });
    }
    const unblessed = waiting.filter(({ status }) => status < statusRank('BLESSED'));
    const questions = unblessed.flatMap(({ ranges }) => commitOf(ranges, context.registry) ?? []);
    facts.push(...(await blessings.ask(questions, context.seen, context.tip)));
    return { facts };
  };

  return {
    get isBehind() {
      return isBehind || performance.now() < contractsAwaitedUntil;
    },
    async work() {
      const { final, tip } = progress.head;
      if (!final || !tip) return undefined;
      const context: TaskContext = {
        network: selector,
        chain,
        store,
        registry: registry.contracts,
        tip: tip.number,
        headAt: progress.head.stats?.headAt ?? 0,
        seen: progress.head.observedAt(final),
      };
      const policies = await store.index.dueTasks(selector, 'policy', TASKS_AT_ONCE);
      const verifications = results
        ? await store.index.dueTasks(selector, 'verification', TASKS_AT_ONCE)
        : [];
      const steps = [await openExecution(context)];
      isBehind =
        lookedBeyond !== null || [policies, verifications].some(({ length }) => length === TASKS_AT_ONCE);
      const isHistoryRead = progress.recorder.backlog.owedBlocks === 0;
      for (const task of policies) {
        const step = await askPolicy(task, context, timing, isHistoryRead);
        steps.push(step);
        // Two rounds of its pause: by then it has been asked for again.
        if (step.isForContract) contractsAwaitedUntil = performance.now() + 2 * timing.taskMinMs;
      }
      for (const task of verifications) {
        if (results) steps.push(await askResults(task, results, context, timing));
      }
      const step = {
        facts: steps.flatMap(({ facts = [] }) => facts),
        tasksDone: steps.flatMap(({ tasksDone = [] }) => tasksDone),
        tasksObsolete: steps.flatMap(({ tasksObsolete = [] }) => tasksObsolete),
        tasksPostponed: steps.flatMap(({ tasksPostponed = [] }) => tasksPostponed),
      };
      const isEmpty = Object.values(step).every((list) => list.length === 0);
      return isEmpty ? undefined : step;
    },
  };
}

/** When and by what the message became open to everybody; undefined while it is not. */
async function openingOf(
  { status, ranges }: AwaitingExecution,
  context: TaskContext,
  threshold: (context: TaskContext, offramp: GenuineContract) => Promise<number | undefined>,
): Promise<Observation | undefined> {
  const found = commitOf(ranges, context.registry);
  if (!found) return undefined;
  const { commit, offRamp: offramp } = found;
  // Up to 1.5 an off-ramp takes a root only when it is blessed.
  const needsBlessing = offramp.version === '1.2.0' || offramp.version === '1.5.0';
  if (needsBlessing && status < statusRank('BLESSED')) return undefined;
  const seconds = await threshold(context, offramp);
  if (seconds === undefined) return undefined;
  const opensAt = Date.parse(commit.seen.at) + seconds * 1000;
  // Strictly: the contract asks for more seconds than the threshold has.
  if (opensAt >= context.headAt) return undefined;
  return { ...commit.seen, transactionHash: null, logIndex: null, at: new Date(opensAt).toISOString() };
}

/** The newest commit that covers a message, and the off-ramp that executes it. */
function commitOf(
  ranges: readonly RangeFact[],
  registry: ReadonlyMap<Hex, GenuineContract>,
): BlessingQuestion | undefined {
  const commit = newest(ranges.filter(({ kind, offramp }) => kind === 'Committed' && offramp !== undefined));
  const offRamp = commit && registry.get(commit.offramp?.toLowerCase() as Hex);
  return offRamp && { commit, offRamp };
}

function newest(facts: readonly RangeFact[]): RangeFact | undefined {
  return [...facts].sort((a, b) => b.seen.blockNumber - a.seen.blockNumber)[0];
}

async function askPolicy(
  task: Task,
  { chain, store, registry, seen, tip }: TaskContext,
  timing: TaskTiming,
  isHistoryRead: boolean,
): Promise<TaskStep & { readonly isForContract?: boolean }> {
  const execution = (await store.index.sentFact(task.messageId))?.execution;
  // Its sending was taken back, or it is a lane without verifiers.
  if (!execution || !('encodedMessage' in execution)) return { tasksObsolete: [task] };
  const { offramp, encodedMessage } = execution;
  const isGenuine = registry.get(offramp.toLowerCase() as Hex)?.role === 'offRamp';
  const policy = isGenuine
    ? await chain.run(
        (node) => readVerifierPolicy(node, offramp.toLowerCase() as Hex, encodedMessage as Hex),
        tip,
      )
    : undefined;
  if (policy) {
    const fact: Fact = { kind: 'VerifierPolicy', messageId: `0x${task.messageId}`, ...policy, seen };
    return { facts: [fact], tasksDone: [task] };
  }
  // History is read from its newest end: it may name the off-ramp further down.
  if (!isGenuine && !isHistoryRead)
    return { ...postponed({ ...task, attempts: 0 }, timing), isForContract: true };
  return postponed(task, timing, isGenuine ? REJECTED_PAUSES : 1);
}

async function askResults(
  task: Task,
  results: VerifierResults,
  context: TaskContext,
  timing: TaskTiming,
): Promise<TaskStep> {
  const messageId = `0x${task.messageId}`;
  const stored = await context.store.findMessage(task.messageId);
  if (!stored) {
    const isSent = (await context.store.index.sentFact(task.messageId)) !== undefined;
    return isSent ? postponed(task, timing) : { tasksObsolete: [task] };
  }
  const { status, verifiers } = JSON.parse(stored.record) as Message;
  if (statusRank(status) >= statusRank('VERIFIED')) return { tasksDone: [task] };
  const known = new Set(
    (verifiers?.items ?? [])
      .filter((item) => item.status === 'COMPLETED')
      .flatMap(({ sourceAddress, destAddress }) => [sourceAddress, destAddress]),
  );
  // A service that is away is asked again later, like one that does not know yet.
  const completed = await results.completed(messageId).catch(() => []);
  const news = completed.filter(({ verifier }) => !known.has(verifier));
  return {
    facts: news.map(({ verifier, data, at }) => ({
      kind: 'VerifierCompleted' as const,
      messageId,
      verifier,
      data,
      seen: { ...context.seen, at: at ?? context.seen.at },
    })),
    ...postponed(task, timing),
  };
}

/** By twice as long as the last time, up to so many of the longest pauses. */
function postponed(task: Task, { taskMinMs, taskMaxMs }: TaskTiming, longest = 1): TaskStep {
  const dueInMs = Math.min(longest * taskMaxMs, taskMinMs * 2 ** Math.min(task.attempts, 20));
  return { tasksPostponed: [{ ...task, dueInMs }] };
}
