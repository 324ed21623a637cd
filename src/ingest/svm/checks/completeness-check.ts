/**
 * The completeness check of a Solana network: history counts as read only when it agrees with the programs' own accounts.
 *
 * It runs when history has been read, after slots were read again, and then seldom. A difference counts when it shows
 * twice, each time with fresh accounts. What is missing is then owed again, from one endpoint after the other.
 */
import { addressFromBytes, parseAddress } from '../../../domain/addresses.ts';
import { findingKinds } from '../../../domain/index-findings.ts';
import type { Message } from '../../../domain/message.ts';
import { missingNumbers } from '../../../domain/missing-numbers.ts';
import { type Network, networkBySelector } from '../../../domain/networks.ts';
import type {
  BlockRange,
  CheckLedger,
  IndexStep,
  LaneKey,
  StoredFinding,
} from '../../../store/ledger/index-ledger.ts';
import type { Store } from '../../../store/store.ts';
import type { Chores } from '../../chain/family.ts';
import { NodeError } from '../../chain/faults.ts';
import type { Progress } from '../../chain/progress.ts';
import { type Contradiction, planRereads, type Reread, subjectOf } from '../../chain/rereads.ts';
import type { Chain } from '../chain.ts';
import { UnreadableDataError } from '../decode/borsh.ts';
import type { ProgramBook } from '../programs.ts';
import { type ExecutedMessage, type ProgramCounter, readCounters, readExecuted } from './account-counters.ts';

const CHECK_EVERY_MS = 3_600_000;
/** While ranges are on the ledger of failures nothing is compared: that slots are missing is known. */
const LOOK_AGAIN_MS = 30_000;
/** Waiting messages whose execution is looked up: as a rule few wait. */
const MAX_WAITING = 500;

export interface CompletenessCheckOptions {
  readonly network: Network;
  /** Whether a slot or time is configured at which history starts. */
  readonly hasStart: boolean;
  readonly chain: Chain;
  readonly store: Pick<Store, 'index' | 'findMessage'>;
  readonly progress: Progress;
  readonly book: ProgramBook;
}

export interface CompletenessCheck extends Chores {
  /** Endpoints that history is not read from while its slots are read again from another one. */
  avoidedEndpoints(): readonly string[];
}

/** What the accounts say, read from one endpoint. */
interface AccountViews {
  readonly counters: readonly ProgramCounter[];
  readonly executed: readonly ExecutedMessage[];
  /** The endpoint's newest slot after it was asked: what was read must reach up to here before it is compared. */
  readonly slot: number;
}

/** The highest number of a lane that was committed elsewhere. */
type CommittedEnd = LaneKey & { readonly last: string };

export function createCompletenessCheck(options: CompletenessCheckOptions): CompletenessCheck {
  const { network, hasStart, chain, store, progress, book } = options;
  const { selector } = network;
  const ledger: CheckLedger = store.index.checks;
  /** On performance.now()'s clock; undefined until the store was asked when the last check was. */
  let dueAt: number | undefined;
  let isPending = true;
  /** Whether other networks were still being read at the latest check: it is repeated when they are done. */
  let isProvisional = false;
  let views: AccountViews | undefined;
  /** Contradictions that were seen once. */
  let suspects: ReadonlySet<string> = new Set();
  /** What is being read again, and from which endpoint. */
  let reread: Reread | undefined;

  const postpone = (ms: number): undefined => {
    dueAt = performance.now() + ms;
    isPending = false;
    views = undefined;
    return undefined;
  };

  const readViews = async (tip: number): Promise<AccountViews> => {
    const contracts = [...book.contracts.values()];
    const offRamps = new Set(
      contracts.filter(({ role }) => role === 'offRamp').map(({ program }) => program),
    );
    const waiting = await waitingMessages();
    return chain.run(async (node) => {
      const counters = await readCounters(node, network, contracts, tip);
      const executed = await readExecuted(node, waiting, offRamps, tip);
      return { counters, executed, slot: (await node.head()).slot };
    }, tip);
  };

  const waitingMessages = async () => {
    const query = { after: null, limit: MAX_WAITING, withFailed: true };
    const waiting = [];
    for (const message of await store.index.awaitingExecution(selector, query)) {
      const stored = await store.findMessage(message.messageId);
      if (!stored) continue;
      const { sequenceNumber } = JSON.parse(stored.record) as Message;
      waiting.push({ ...message, sequenceNumber: BigInt(sequenceNumber) });
    }
    return waiting;
  };

  /** What commits elsewhere have taken in must have been sent here. */
  const expected = (
    counters: readonly ProgramCounter[],
    committed: readonly CommittedEnd[],
  ): readonly ProgramCounter[] =>
    counters.map((counter) => {
      const end = committed.find(
        ({ destSelector, onramp }) => destSelector === counter.destSelector && onramp === counter.onramp,
      );
      const isHigher =
        counter.kind === 'sent' && end !== undefined && BigInt(end.last) > BigInt(counter.lastNumber);
      return isHigher ? { ...counter, lastNumber: end.last } : counter;
    });

  /** Lanes that were committed elsewhere, from on-ramps of this network that are not configured. */
  const unknownOnRamps = (committed: readonly CommittedEnd[]): readonly Contradiction[] => {
    const routers = new Set(
      [...book.contracts.values()]
        .filter(({ role }) => role === 'router')
        .map(({ program }) => parseAddress(program, 'SVM')?.bytes),
    );
    return committed
      .filter(({ onramp }) => !routers.has(onramp))
      .map(({ onramp, destSelector, last }) => {
        const router = addressFromBytes(onramp, 'SVM')?.text ?? `0x${onramp}`;
        return {
          kind: 'onramp-unknown',
          subject: `${router} ${destSelector}`,
          detail: `${nameOf(destSelector)} has committed messages up to ${last} of the router ${router}, which is missing in \`routers\``,
          // Reading again does not help.
          range: undefined,
        };
      });
  };

  const programRange = (program: string, from: number, to: number): BlockRange | undefined =>
    from > to ? undefined : { from, to, purpose: 'contracts', contracts: [program] };

  const missingOf = async (counter: ProgramCounter, final: number): Promise<Contradiction | undefined> => {
    const { kind, program, lastNumber, sourceSelector, destSelector } = counter;
    const isSent = kind === 'sent';
    const runs = await (isSent ? ledger.sentRuns(counter) : ledger.committedRuns(counter));
    const missing = missingNumbers(runs, { lastNumber, isWhole: !hasStart });
    if (!missing) return undefined;
    // What is kept because it could not be decoded is not missing from the history.
    if (missing.count <= BigInt(await ledger.unreadableLogs(selector, program))) return undefined;
    const start = progress.startBlock ?? 0;
    const { lowest, highest, count } = missing;
    const numbers = `${count} of them (${lowest === highest ? lowest : `${lowest}…${highest}`})`;
    if (!isSent) {
      return {
        kind: 'commits-missing',
        subject: `${program} ${sourceSelector}`,
        detail: `${lastNumber} messages from ${nameOf(sourceSelector)} are committed on ${program}; the commits of ${numbers} were not found in its history`,
        range: programRange(program, start, final),
      };
    }
    const before = await ledger.sendBlock(counter, (lowest - 1n).toString());
    const after = await ledger.sendBlock(counter, (highest + 1n).toString());
    return {
      kind: 'messages-missing',
      subject: `${program} ${destSelector}`,
      detail: `Router ${program} has sent ${lastNumber} messages to ${nameOf(destSelector)}; ${numbers} were not found in its history`,
      range: programRange(program, before ?? start, Math.min(after ?? final, final)),
    };
  };

  const missingExecutions = (executed: readonly ExecutedMessage[], final: number): readonly Contradiction[] =>
    [...new Set(executed.map(({ offRamp }) => offRamp))].map((offRamp) => {
      const own = executed.filter((message) => message.offRamp === offRamp);
      return {
        kind: 'executions-missing',
        subject: offRamp,
        detail:
          `Off-ramp ${offRamp} has executed ${own.length === 1 ? '' : `${own.length} messages, among them `}` +
          `0x${own[0]?.messageId}, but the event was not found in its history`,
        range: programRange(offRamp, progress.startBlock ?? 0, final),
      };
    });

  const compare = async (seen: AccountViews, final: number) => {
    const committed = await ledger.committedEnds(selector);
    const counters = expected(seen.counters, committed);
    const found = await Promise.all(counters.map((counter) => missingOf(counter, final)));
    const contradictions = [
      ...found.flatMap((contradiction) => contradiction ?? []),
      ...missingExecutions(seen.executed, final),
      ...unknownOnRamps(committed),
    ];
    return { counters: counters.map((counter) => ({ ...counter, isWhole: !hasStart })), contradictions };
  };

  const report = (
    contradictions: readonly Contradiction[],
    stored: readonly StoredFinding[],
    next: string | undefined,
  ): void => {
    const remedy =
      next === undefined
        ? 'Add an endpoint that has the whole history (an archive node) to `rpc`'
        : 'The slots are read again, from one endpoint after the other';
    for (const found of contradictions) {
      if (!stored.some((finding) => subjectOf(finding) === subjectOf(found)))
        progress.notice(`${found.detail}. ${remedy}`, 'error');
    }
    for (const { kind, subject } of resolvedOf(contradictions, stored)) {
      const where = reread ? `, by reading from ${reread.endpoint}` : '';
      progress.notice(`Resolved${where}: ${kind}, ${subject}`);
    }
  };

  const judge = async (seen: AccountViews, final: number): Promise<IndexStep | undefined> => {
    const stored = (await ledger.findings(selector)).filter(({ kind }) => findingKinds[kind].isLoss);
    const { counters, contradictions } = await compare(seen, final);
    views = undefined;
    const known = new Set([...stored.map(subjectOf), ...suspects]);
    const isConfirmed = contradictions.every((found) => known.has(subjectOf(found)));
    suspects = new Set(contradictions.map(subjectOf));
    if (!isConfirmed) return undefined;
    const health = chain.health();
    const plan = planRereads(
      contradictions,
      stored,
      health.filter(({ healthy }) => healthy).map(({ name }) => name),
      { only: health.length === 1 ? health[0]?.name : undefined, last: reread },
    );
    report(contradictions, stored, plan.endpoint);
    const { endpoint } = plan;
    reread = endpoint === undefined ? undefined : { endpoint, subjects: new Set(plan.again.map(subjectOf)) };
    if (!reread) postpone(CHECK_EVERY_MS);
    const ranges = plan.again.flatMap(({ range }) => range ?? []);
    return {
      counters,
      findings: plan.findings,
      resolved: resolvedOf(contradictions, stored),
      owed: [...new Map(ranges.map((range) => [JSON.stringify(range), range])).values()],
    };
  };

  /** Whether a check is due; asks the store at the beginning when the last one was. */
  const isDue = async (): Promise<boolean> => {
    if (dueAt === undefined) {
      const age = await ledger.checkAgeMs(selector);
      const { owed } = await ledger.workload(selector);
      const hasFindings = (await ledger.findings(selector)).some(({ kind }) => findingKinds[kind].isLoss);
      const isFresh = age !== null && age < CHECK_EVERY_MS && owed === 0 && !hasFindings;
      if (isFresh) postpone(CHECK_EVERY_MS - age);
      else dueAt = performance.now();
    }
    return performance.now() >= (dueAt ?? 0);
  };

  return {
    get isBehind() {
      return isPending;
    },
    avoidedEndpoints() {
      const health = chain.health();
      const isUsable = health.some(({ name, healthy }) => name === reread?.endpoint && healthy);
      return isUsable ? health.map(({ name }) => name).filter((name) => name !== reread?.endpoint) : [];
    },
    async work() {
      const { tip, final } = progress;
      if (!tip || !final || !((await isDue()) || isProvisional)) return undefined;
      const { owed, failed, isElsewhere } = await ledger.workload(selector);
      if (!(await isDue()) && isElsewhere) return undefined;
      dueAt = performance.now();
      isPending = true;
      isProvisional = isElsewhere;
      if (owed > 0 || progress.startBlock === null) return undefined;
      if (failed > 0) return postpone(LOOK_AGAIN_MS);
      try {
        views ??= await readViews(tip.number);
        return views.slot > tip.number ? undefined : await judge(views, final.number);
      } catch (error) {
        if (!(error instanceof NodeError || error instanceof UnreadableDataError)) throw error;
        progress.notice(`History could not be compared with the accounts: ${error.message}`, 'warn');
        return postpone(LOOK_AGAIN_MS);
      }
    },
  };
}

function resolvedOf(
  contradictions: readonly Contradiction[],
  stored: readonly StoredFinding[],
): readonly StoredFinding[] {
  return stored.filter((finding) => !contradictions.some((found) => subjectOf(found) === subjectOf(finding)));
}

function nameOf(selector: string): string {
  return networkBySelector(selector)?.name ?? `chain ${selector}`;
}
