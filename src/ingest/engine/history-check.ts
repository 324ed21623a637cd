/**
 * The check of a network's history: it counts as read only when it agrees with what the chain itself has counted.
 *
 * It runs when history has been read, after blocks were read again, and then seldom. A difference counts when it shows
 * twice, each time with fresh answers of the chain: endpoints disagree for moments about what is newest. What is missing is
 * then pending again, from one endpoint after the other. What is compared, and how, is up to the family.
 */
import { findingKinds } from '../../domain/networks/index-findings.ts';
import type { CheckLedger, FindingKey, IndexStep, StoredFinding } from '../../store/ledger/index-ledger.ts';
import type { BackgroundTasks } from './family.ts';
import { NodeError } from './faults.ts';
import type { EndpointHealth } from './json-rpc/endpoint-pool.ts';
import type { Progress } from './progress.ts';
import { type Contradiction, planRescans, type Rescan, subjectOf } from './rescans.ts';

const CHECK_EVERY_MS = 3_600_000;
/** While ranges are on the ledger of failures nothing is compared: that blocks are missing is known. */
const LOOK_AGAIN_MS = 30_000;

export interface HistoryCheckOptions<Views extends { readonly head: number }> {
  /** CCIP's number for the network. */
  readonly selector: string;
  readonly ledger: CheckLedger;
  readonly progress: Progress;
  readonly health: () => readonly EndpointHealth[];
  /** What counts on this chain, and what its history is made of, for log lines. */
  readonly words: { readonly counted: 'contracts' | 'accounts'; readonly units: 'blocks' | 'slots' };
  /** Asks the chain. `head` is the newest block after that: what was read must reach up to it before it is compared. */
  readonly readViews: (tip: number) => Promise<Views>;
  /** @param open all findings that are stored for the network */
  readonly compare: (views: Views, final: number, open: readonly StoredFinding[]) => Promise<Comparison>;
}

export interface Comparison {
  readonly counters: NonNullable<IndexStep['counters']>;
  readonly contradictions: readonly Contradiction[];
  /** Findings of other origin that no longer hold. */
  readonly resolved?: readonly FindingKey[];
}

export interface HistoryCheck extends BackgroundTasks {
  /** Endpoints that history is not read from while its blocks are read again from another one. */
  avoidedEndpoints(): readonly string[];
  /** Has the next round compare again. */
  recheck(): void;
}

export function createHistoryCheck<Views extends { readonly head: number }>(
  options: HistoryCheckOptions<Views>,
): HistoryCheck {
  const { selector, ledger, progress, health, words } = options;
  /** On performance.now()'s clock; undefined until the store was asked when the last check was. */
  let dueAt: number | undefined;
  let isPending = true;
  /** Whether other networks were still being read at the latest check: it is repeated when they are done. */
  let isProvisional = false;
  /** What the chain said, until everything up to then has been read. */
  let views: Views | undefined;
  /** Contradictions that were seen once. */
  let suspects: ReadonlySet<string> = new Set();
  /** What is being read again, and from which endpoint. */
  let rescan: Rescan | undefined;

  const postpone = (ms: number): undefined => {
    dueAt = performance.now() + ms;
    isPending = false;
    views = undefined;
    return undefined;
  };

  /** Reports what is new, and what has been found since. */
  const report = (
    contradictions: readonly Contradiction[],
    stored: readonly StoredFinding[],
    next: string | undefined,
  ): void => {
    const remedy =
      next === undefined
        ? 'Add an endpoint that has the whole history (an archive node) to `rpc`'
        : `The ${words.units} are read again, from one endpoint after the other`;
    for (const found of contradictions) {
      if (!stored.some((finding) => subjectOf(finding) === subjectOf(found)))
        progress.log(`${found.detail}. ${remedy}`, 'error');
    }
    for (const { kind, subject } of resolvedOf(contradictions, stored)) {
      const where = rescan ? `, by reading from ${rescan.endpoint}` : '';
      progress.log(`Resolved${where}: ${kind}, ${subject}`);
    }
  };

  const judge = async (seen: Views, final: number): Promise<IndexStep | undefined> => {
    const open = await ledger.findings(selector);
    const { counters, contradictions, resolved = [] } = await options.compare(seen, final, open);
    views = undefined;
    const stored = open.filter(isContradiction);
    const known = new Set([...stored.map(subjectOf), ...suspects]);
    const isConfirmed = contradictions.every((found) => known.has(subjectOf(found)));
    suspects = new Set(contradictions.map(subjectOf));
    if (!isConfirmed) return undefined;
    const endpoints = health();
    const plan = planRescans(
      contradictions,
      stored,
      endpoints.filter(({ healthy }) => healthy).map(({ name }) => name),
      { only: endpoints.length === 1 ? endpoints[0]?.name : undefined, last: rescan },
    );
    report(contradictions, stored, plan.endpoint);
    const { endpoint } = plan;
    rescan = endpoint === undefined ? undefined : { endpoint, subjects: new Set(plan.again.map(subjectOf)) };
    if (!rescan) postpone(CHECK_EVERY_MS);
    return {
      counters,
      findings: plan.findings,
      resolved: [...resolvedOf(contradictions, stored), ...resolved],
      pending: distinctRanges(plan.again),
    };
  };

  /** Whether a check is due; asks the store at the beginning when the last one was. */
  const isDue = async (): Promise<boolean> => {
    if (dueAt === undefined) {
      const age = await ledger.checkAgeMs(selector);
      const { pending } = await ledger.workload(selector);
      const hasFindings = (await ledger.findings(selector)).some(isContradiction);
      const isFresh = age !== null && age < CHECK_EVERY_MS && pending === 0 && !hasFindings;
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
      const endpoints = health();
      const isUsable = endpoints.some(({ name, healthy }) => name === rescan?.endpoint && healthy);
      return isUsable ? endpoints.map(({ name }) => name).filter((name) => name !== rescan?.endpoint) : [];
    },
    recheck() {
      dueAt = performance.now();
      isPending = true;
    },
    async work() {
      const { tip, final } = progress.head;
      if (!tip || !final || !((await isDue()) || isProvisional)) return undefined;
      const { pending, failed, isElsewhere } = await ledger.workload(selector);
      if (!(await isDue()) && isElsewhere) return undefined;
      dueAt = performance.now();
      isPending = true;
      isProvisional = isElsewhere;
      if (pending > 0 || progress.head.startBlock === null) return undefined;
      if (failed > 0) return postpone(LOOK_AGAIN_MS);
      try {
        views ??= await options.readViews(tip.number);
        return views.head > tip.number ? undefined : await judge(views, final.number);
      } catch (error) {
        if (!(error instanceof NodeError)) throw error;
        progress.log(`History could not be compared with the ${words.counted}: ${error.message}`, 'warn');
        return postpone(LOOK_AGAIN_MS);
      }
    },
  };
}

/** Findings of this check; others have a cause and an end of their own. */
function isContradiction({ kind }: StoredFinding): boolean {
  return findingKinds[kind].isLoss && kind !== 'contract-unknown';
}

function resolvedOf(
  contradictions: readonly Contradiction[],
  stored: readonly StoredFinding[],
): readonly StoredFinding[] {
  const found = new Set(contradictions.map(subjectOf));
  return stored.filter((finding) => !found.has(subjectOf(finding)));
}

function distinctRanges(contradictions: readonly Contradiction[]) {
  const ranges = contradictions.flatMap(({ range }) => range ?? []);
  return [...new Map(ranges.map((range) => [JSON.stringify(range), range])).values()];
}
