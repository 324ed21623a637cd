/**
 * The check of a network's history: it counts as read only when it agrees with what the chain itself has counted.
 *
 * It runs when history has been read, after blocks were read again, and then seldom. A difference counts when it shows
 * twice, each time with fresh answers of the chain: endpoints disagree for moments about what is newest. What is missing is
 * then pending again, from one endpoint after the other. What is compared, and how, is up to the family.
 */
import { findingKinds } from '../../domain/networks/index-findings.ts';
import type {
  BlockRange,
  FindingKey,
  IndexFinding,
  IndexStep,
  StoredFinding,
} from '../../store/ledger/index-ledger.ts';
import { NodeError } from './faults.ts';
import type { EndpointHealth } from './json-rpc/endpoint-pool.ts';
import type { Progress } from './progress.ts';

const CHECK_EVERY_MS = 3_600_000;
/** While ranges are on the ledger of failures nothing is compared: that blocks are missing is known. */
const LOOK_AGAIN_MS = 30_000;

/** Something that the contracts of a network say of themselves and that what was read of their history denies. */
export interface Contradiction extends FindingKey {
  /** For operators. */
  readonly detail: string;
  /** The blocks that are pending again because of it; undefined while they are not final, or where that is of no use. */
  readonly range: BlockRange | undefined;
  /** What the chain family needs to look at it again, as JSON. */
  readonly body?: unknown;
}

export type HistoryCheck = ReturnType<typeof createHistoryCheck>;

export function createHistoryCheck<Views extends { readonly head: number }>(options: {
  readonly progress: Progress;
  readonly health: () => readonly EndpointHealth[];
  /** What counts on this chain, and what its history is made of, for log lines. */
  readonly words: { readonly counted: 'contracts' | 'accounts'; readonly units: 'blocks' | 'slots' };
  /** Asks the chain. `head` is the newest block after that: what was read must reach up to it before it is compared. */
  readonly readViews: (tip: number) => Promise<Views>;
  /** @param open all findings that are stored for the network */
  readonly compare: (
    views: Views,
    final: number,
    open: readonly StoredFinding[],
  ) => Promise<{
    readonly counters: NonNullable<IndexStep['counters']>;
    readonly contradictions: readonly Contradiction[];
    /** Findings of other origin that no longer hold. */
    readonly resolved?: readonly FindingKey[];
  }>;
}) {
  const { progress, health, words } = options;
  const { selector } = progress;
  const ledger = progress.ledger.checks;
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
    /** Endpoints that history is not read from while its blocks are read again from another one. */
    avoidedEndpoints(): readonly string[] {
      const endpoints = health();
      const isUsable = endpoints.some(({ name, healthy }) => name === rescan?.endpoint && healthy);
      return isUsable ? endpoints.map(({ name }) => name).filter((name) => name !== rescan?.endpoint) : [];
    },
    /** Has the next round compare again. */
    recheck(): void {
      dueAt = performance.now();
      isPending = true;
    },
    async work(): Promise<IndexStep | undefined> {
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

function resolvedOf(contradictions: readonly Contradiction[], stored: readonly StoredFinding[]) {
  const found = new Set(contradictions.map(subjectOf));
  return stored.filter((finding) => !found.has(subjectOf(finding)));
}

function distinctRanges(contradictions: readonly Contradiction[]) {
  const ranges = contradictions.flatMap(({ range }) => range ?? []);
  return [...new Map(ranges.map((range) => [JSON.stringify(range), range])).values()];
}

const FIRST_RETRY_MS = 3_600_000;
const LONGEST_RETRY_MS = 86_400_000;

/** An endpoint, and the contradictions whose blocks are read again from it. */
interface Rescan {
  readonly endpoint: string;
  readonly subjects: ReadonlySet<string>;
}

/** Tells contradictions apart. */
export function subjectOf({ kind, subject }: FindingKey): string {
  return `${kind} ${subject}`;
}

/**
 * Plans which pending blocks are read again because of contradictions: from one endpoint at a time, each in its turn, then
 * with exponential backoff. Whatever endpoint has the whole history, its turn comes.
 *
 * @param endpoints those that are healthy, in order of preference
 * @param only the endpoint, where no other is configured: what was read, was read from it
 * @param last whose blocks were just read again
 */
export function planRescans(
  contradictions: readonly Contradiction[],
  stored: readonly StoredFinding[],
  endpoints: readonly string[],
  { only, last }: { readonly only: string | undefined; readonly last: Rescan | undefined },
) {
  const findingOf = (contradiction: Contradiction): IndexFinding => {
    const { range, ...found } = contradiction;
    const known = stored.find((finding) => subjectOf(finding) === subjectOf(found));
    if (!known)
      return {
        ...found,
        tried: only === undefined ? [] : [only],
        attempts: 0,
        retryInMs: FIRST_RETRY_MS,
      };
    const isRead = last?.subjects.has(subjectOf(contradiction)) === true;
    const tried = [...new Set([...known.tried, ...(isRead ? [last.endpoint] : [])])];
    const isExhausted = endpoints.every((name) => tried.includes(name));
    if (!isExhausted || !known.isDue) return { ...found, tried };
    const attempts = known.attempts + 1;
    const retryInMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts, 10));
    return { ...found, tried: [], attempts, retryInMs };
  };
  const findings = contradictions.map(findingOf);
  /** Those whose blocks can be read again, and were not yet from this endpoint. */
  const readableFrom = (name: string) =>
    contradictions.filter(({ range }, index) => range && !findings[index]?.tried?.includes(name));
  const endpoint = endpoints.find((name) => readableFrom(name).length > 0);
  return {
    /** All contradictions, with the endpoints that were tried. */
    findings,
    /** The endpoint whose turn it is; undefined where all have had theirs for now. */
    endpoint,
    /** Those whose blocks are to be read again from it. */
    again: endpoint === undefined ? [] : routersFirst(readableFrom(endpoint)),
  };
}

/** The routers' history names the contracts whose events the other ranges are read for. */
function routersFirst(contradictions: readonly Contradiction[]): readonly Contradiction[] {
  const ofRouters = contradictions.filter(({ range }) => range?.purpose === 'routers');
  return ofRouters.length > 0 ? ofRouters : contradictions;
}
