/**
 * Chores of an EVM network: what no event tells and has to be asked or computed. Which verifiers a message needs, which
 * have verified it, and when manual execution opens to everybody.
 */
import type { Fact, Observation, RangeFact } from '../../domain/facts.ts';
import { statusRank } from '../../domain/lifecycle.ts';
import type { Message } from '../../domain/message.ts';
import type { AwaitingExecution, Chore, IndexStep } from '../../store/ledger/index-ledger.ts';
import type { Store } from '../../store/store.ts';
import type { Chores } from '../engine/family.ts';
import type { Progress } from '../engine/progress.ts';
import type { WorkerTiming } from '../engine/timing.ts';
import type { GenuineContract } from './contracts/contracts.ts';
import { readExecutionThreshold, readVerifierPolicy } from './decode/decoder.ts';
import { type BlessingQuestion, createRootBlessings } from './root-blessings.ts';
import type { Chain, Hex } from './rpc/chain.ts';
import type { VerifierResults } from './verifier-results.ts';

const CHORES_AT_ONCE = 50;
/** A contract that refuses is asked less and less often, at last this much more seldom than others: once a day. */
const REFUSED_PAUSES = 288;
/** Thresholds are settings of a contract, which change rarely. */
const THRESHOLD_KEPT = 600_000;

interface ChoreContext {
  readonly network: string;
  readonly chain: Chain;
  readonly store: Pick<Store, 'index' | 'findMessage'>;
  readonly book: ReadonlyMap<Hex, GenuineContract>;
  /** The newest block that was read: a node behind it may not know the contracts that we know. */
  readonly tip: number;
  /** Seconds since 1970, of the newest block. */
  readonly headTime: number;
  /** What rests on no log is seen here: at the newest final block. */
  readonly seen: Observation;
}

type ChoreStep = Pick<IndexStep, 'facts' | 'choresDone' | 'choresObsolete' | 'choresPostponed'>;

/** Backoff of a chore that came to nothing. */
type ChoreTiming = Pick<WorkerTiming, 'choreMinMs' | 'choreMaxMs'>;

export interface ChoresOptions {
  /** CCIP's number for the network. */
  readonly selector: string;
  readonly chain: Chain;
  readonly store: ChoreContext['store'];
  readonly progress: Progress;
  readonly book: { readonly contracts: ReadonlyMap<Hex, GenuineContract> };
  readonly results: VerifierResults | null;
  readonly timing: ChoreTiming;
}

export function createChores({
  selector,
  chain,
  store,
  progress,
  book,
  results,
  timing,
}: ChoresOptions): Chores {
  const thresholds = new Map<Hex, { readonly seconds: number | undefined; readonly readAt: number }>();
  const blessings = createRootBlessings(chain);
  let lookedBeyond: string | null = null;
  let isBehind = true;
  /** Until when chores wait for an off-ramp that history may yet name, on performance.now()'s clock. */
  let contractsAwaitedUntil = 0;

  const threshold = async (
    { chain, tip }: ChoreContext,
    offramp: GenuineContract,
  ): Promise<number | undefined> => {
    const known = thresholds.get(offramp.address);
    if (known && Date.now() - known.readAt < THRESHOLD_KEPT) return known.seconds;
    const seconds = await chain.run((node) => readExecutionThreshold(node, offramp), tip);
    thresholds.set(offramp.address, { seconds, readAt: Date.now() });
    return seconds;
  };

  /** Messages whose commit is so long ago that everybody may execute them. */
  const openExecution = async (context: ChoreContext): Promise<ChoreStep> => {
    const waiting = await context.store.index.awaitingExecution(context.network, {
      after: lookedBeyond,
      limit: CHORES_AT_ONCE,
    });
    lookedBeyond = waiting.length < CHORES_AT_ONCE ? null : (waiting.at(-1)?.messageId ?? null);
    const facts: Fact[] = [];
    for (const message of waiting) {
      const opening = await openingOf(message, context, threshold);
      if (opening)
        facts.push({ kind: 'ManualExecutionOpened', messageId: `0x${message.messageId}`, seen: opening });
    }
    const unblessed = waiting.filter(({ status }) => status < statusRank('BLESSED'));
    const questions = unblessed.flatMap(({ ranges }) => commitOf(ranges, context.book) ?? []);
    facts.push(...(await blessings.ask(questions, context.seen, context.tip)));
    return { facts };
  };

  return {
    get isBehind() {
      return isBehind || performance.now() < contractsAwaitedUntil;
    },
    async work() {
      const { final, tip } = progress;
      if (!final || !tip) return undefined;
      const context: ChoreContext = {
        network: selector,
        chain,
        store,
        book: book.contracts,
        tip: tip.number,
        headTime: progress.headTime,
        seen: progress.observedAt(final),
      };
      const policies = await store.index.dueChores(selector, 'policy', CHORES_AT_ONCE);
      const verifications = results
        ? await store.index.dueChores(selector, 'verification', CHORES_AT_ONCE)
        : [];
      const steps = [await openExecution(context)];
      isBehind =
        lookedBeyond !== null || [policies, verifications].some(({ length }) => length === CHORES_AT_ONCE);
      const isHistoryRead = progress.owed.owedBlocks === 0;
      for (const chore of policies) {
        const step = await askPolicy(chore, context, timing, isHistoryRead);
        steps.push(step);
        // Two rounds of its pause: by then it has been asked for again.
        if (step.isForContract) contractsAwaitedUntil = performance.now() + 2 * timing.choreMinMs;
      }
      for (const chore of verifications) {
        if (results) steps.push(await askResults(chore, results, context, timing));
      }
      const step = {
        facts: steps.flatMap(({ facts = [] }) => facts),
        choresDone: steps.flatMap(({ choresDone = [] }) => choresDone),
        choresObsolete: steps.flatMap(({ choresObsolete = [] }) => choresObsolete),
        choresPostponed: steps.flatMap(({ choresPostponed = [] }) => choresPostponed),
      };
      const isEmpty = Object.values(step).every((list) => list.length === 0);
      return isEmpty ? undefined : step;
    },
  };
}

/** When and by what the message became open to everybody; undefined while it is not. */
async function openingOf(
  { status, ranges }: AwaitingExecution,
  context: ChoreContext,
  threshold: (context: ChoreContext, offramp: GenuineContract) => Promise<number | undefined>,
): Promise<Observation | undefined> {
  const found = commitOf(ranges, context.book);
  if (!found) return undefined;
  const { commit, offRamp: offramp } = found;
  // Up to 1.5 an off-ramp takes a root only when it is blessed.
  const needsBlessing = offramp.version === '1.2.0' || offramp.version === '1.5.0';
  if (needsBlessing && status < statusRank('BLESSED')) return undefined;
  const seconds = await threshold(context, offramp);
  if (seconds === undefined) return undefined;
  const opensAt = Date.parse(commit.seen.at) + seconds * 1000;
  // Strictly: the contract asks for more seconds than the threshold has.
  if (opensAt >= context.headTime * 1000) return undefined;
  return { ...commit.seen, transactionHash: null, logIndex: null, at: new Date(opensAt).toISOString() };
}

/** The newest commit that covers a message, and the off-ramp that executes it. */
function commitOf(
  ranges: readonly RangeFact[],
  book: ReadonlyMap<Hex, GenuineContract>,
): BlessingQuestion | undefined {
  const commit = newest(ranges.filter(({ kind, offramp }) => kind === 'Committed' && offramp !== undefined));
  const offRamp = commit && book.get(commit.offramp?.toLowerCase() as Hex);
  return offRamp && { commit, offRamp };
}

function newest(facts: readonly RangeFact[]): RangeFact | undefined {
  return [...facts].sort((a, b) => b.seen.blockNumber - a.seen.blockNumber)[0];
}

async function askPolicy(
  chore: Chore,
  { chain, store, book, seen, tip }: ChoreContext,
  timing: ChoreTiming,
  isHistoryRead: boolean,
): Promise<ChoreStep & { readonly isForContract?: boolean }> {
  const execution = (await store.index.sentFact(chore.messageId))?.execution;
  // Its sending was taken back, or it is a lane without verifiers.
  if (!execution || !('encodedMessage' in execution)) return { choresObsolete: [chore] };
  const { offramp, encodedMessage } = execution;
  const isGenuine = book.get(offramp.toLowerCase() as Hex)?.role === 'offRamp';
  const policy = isGenuine
    ? await chain.run(
        (node) => readVerifierPolicy(node, offramp.toLowerCase() as Hex, encodedMessage as Hex),
        tip,
      )
    : undefined;
  if (policy) {
    const fact: Fact = { kind: 'VerifierPolicy', messageId: `0x${chore.messageId}`, ...policy, seen };
    return { facts: [fact], choresDone: [chore] };
  }
  // History is read from its newest end: it may name the off-ramp further down.
  if (!isGenuine && !isHistoryRead)
    return { ...postponed({ ...chore, attempts: 0 }, timing), isForContract: true };
  return postponed(chore, timing, isGenuine ? REFUSED_PAUSES : 1);
}

async function askResults(
  chore: Chore,
  results: VerifierResults,
  context: ChoreContext,
  timing: ChoreTiming,
): Promise<ChoreStep> {
  const messageId = `0x${chore.messageId}`;
  const stored = await context.store.findMessage(chore.messageId);
  if (!stored) {
    const isSent = (await context.store.index.sentFact(chore.messageId)) !== undefined;
    return isSent ? postponed(chore, timing) : { choresObsolete: [chore] };
  }
  const { status, verifiers } = JSON.parse(stored.record) as Message;
  if (statusRank(status) >= statusRank('VERIFIED')) return { choresDone: [chore] };
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
    ...postponed(chore, timing),
  };
}

/** By twice as long as the last time, up to so many of the longest pauses. */
function postponed(chore: Chore, { choreMinMs, choreMaxMs }: ChoreTiming, longest = 1): ChoreStep {
  const dueInMs = Math.min(longest * choreMaxMs, choreMinMs * 2 ** Math.min(chore.attempts, 20));
  return { choresPostponed: [{ ...chore, dueInMs }] };
}
