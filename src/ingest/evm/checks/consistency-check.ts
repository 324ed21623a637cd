/**
 * The consistency check of a network: history counts as read only when the contracts' own numbers agree with it.
 *
 * It runs when history has been read, after blocks were read again, and then seldom. A difference counts when it shows
 * twice, each time with fresh answers of the contracts: endpoints disagree for moments about what is newest.
 */
import { findingKinds } from '../../../domain/index-findings.ts';
import type {
  CheckLedger,
  IndexStep,
  Registration,
  StoredFinding,
} from '../../../store/ledger/index-ledger.ts';
import type { Chores } from '../../chain/family.ts';
import { NodeError } from '../../chain/faults.ts';
import type { Progress } from '../../chain/progress.ts';
import { type Contradiction, planRereads, type Reread, subjectOf } from '../../chain/rereads.ts';
import type { BloomTrust } from '../bloom-trust.ts';
import type { Chain, Hex } from '../chain.ts';
import { currentNamings, type GenuineContract } from '../contracts.ts';
import { readCounters } from './contract-counters.ts';
import { type ContractViews, compare, type ExecutedMessage } from './contradictions.ts';
import { knownByNow, unknownNamings } from './registry-log.ts';

const CHECK_EVERY_MS = 3_600_000;
/** While ranges are on the ledger of failures nothing is compared: that blocks are missing is known. */
const LOOK_AGAIN_MS = 30_000;

export interface ConsistencyCheckOptions {
  /** CCIP's number for the network. */
  readonly selector: string;
  readonly routers: readonly Hex[];
  /** Whether a block or time is configured at which history starts. */
  readonly hasStart: boolean;
  readonly chain: Chain;
  readonly ledger: CheckLedger;
  readonly progress: Progress;
  readonly book: { readonly contracts: ReadonlyMap<Hex, GenuineContract> };
  readonly bloomTrust: Pick<BloomTrust, 'isConfirmed'>;
  /** Messages that off-ramps of this network have executed, as far as the records do not know it. */
  readonly readExecuted: (tip: number) => Promise<readonly ExecutedMessage[]>;
}

export interface ConsistencyCheck extends Chores {
  /** Endpoints that history is not read from while its blocks are read again from another one. */
  avoidedEndpoints(): readonly string[];
}

export function createConsistencyCheck(options: ConsistencyCheckOptions): ConsistencyCheck {
  const { selector, routers, hasStart, chain, ledger, progress, book } = options;
  /** On performance.now()'s clock; undefined until the store was asked when the last check was. */
  let dueAt: number | undefined;
  let isPending = true;
  /** Whether other networks were still being read at the latest check: it is repeated when they are done. */
  let isProvisional = false;
  /** What the contracts said, until everything up to then has been read. */
  let views: ContractViews | undefined;
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

  const readViews = async (tip: number): Promise<ContractViews> => {
    const registrations = await ledger.registrations(selector);
    const executed = await options.readExecuted(tip);
    return chain.run(async (node) => {
      const [namings, counters] = await Promise.all([
        currentNamings(node, routers),
        readCounters(node, selector, book.contracts.values(), registrations),
      ]);
      const { number: head } = await node.head();
      return { namings, counters, executed, head };
    }, tip);
  };

  /** Reports what is new, and what has been found since. */
  const report = (
    contradictions: readonly Contradiction[],
    stored: readonly StoredFinding[],
    next: string | undefined,
  ): void => {
    for (const { kind, subject, detail } of contradictions) {
      if (stored.some((finding) => finding.kind === kind && finding.subject === subject)) continue;
      const remedy =
        next === undefined
          ? 'Add an endpoint that has the whole history (an archive node) to `rpc`'
          : 'The blocks are read again, from one endpoint after the other';
      progress.notice(`${detail}. ${remedy}`, 'error');
    }
    for (const { kind, subject } of resolvedOf(contradictions, stored)) {
      const where = reread ? `, by reading from ${reread.endpoint}` : '';
      progress.notice(`Resolved${where}: ${kind}, ${subject}`);
    }
  };

  const judge = async (seen: ContractViews, finalBlock: number): Promise<IndexStep | undefined> => {
    const open = await ledger.findings(selector);
    const registrations = await ledger.registrations(selector);
    const startBlock = progress.startBlock ?? 0;
    const isBefore = ({ blockNumber }: Registration) => blockNumber !== null && blockNumber < startBlock;
    const { counters, contradictions } = await compare(ledger, seen, {
      network: selector,
      routers,
      book: book.contracts,
      registrations,
      unknown: new Set(unknownNamings(open).map(({ address }) => address)),
      isWhole: !hasStart || (registrations.length > 0 && !registrations.some(isBefore)),
      startBlock,
      finalBlock,
    });
    const stored = open.filter(({ kind }) => isContradiction(kind));
    const isStored = ({ kind, subject }: Contradiction) =>
      stored.some((finding) => finding.kind === kind && finding.subject === subject);
    const unconfirmed = contradictions.filter((found) => !isStored(found) && !suspects.has(subjectOf(found)));
    suspects = new Set(contradictions.map(subjectOf));
    if (unconfirmed.length > 0) {
      views = undefined;
      return undefined;
    }
    const wrongBlooms = options.bloomTrust.isConfirmed
      ? open.filter(({ kind }) => kind === 'bloom-wrong')
      : [];
    const health = chain.health();
    const plan = planRereads(
      contradictions,
      stored,
      health.filter(({ healthy }) => healthy).map(({ name }) => name),
      { only: health.length === 1 ? health[0]?.name : undefined, last: reread },
    );
    report(contradictions, stored, plan.endpoint);
    reread =
      plan.endpoint === undefined
        ? undefined
        : { endpoint: plan.endpoint, subjects: new Set(plan.again.map(subjectOf)) };
    if (!reread) postpone(CHECK_EVERY_MS);
    views = undefined;
    return {
      counters,
      findings: plan.findings,
      resolved: [...resolvedOf(contradictions, stored), ...knownByNow(open, book.contracts), ...wrongBlooms],
      owed: distinctRanges(plan.again),
    };
  };

  /** Whether a check is due; asks the store at the beginning when the last one was. */
  const isDue = async (): Promise<boolean> => {
    if (dueAt === undefined) {
      const age = await ledger.checkAgeMs(selector);
      const { owed } = await ledger.workload(selector);
      const hasFindings = (await ledger.findings(selector)).some(({ kind }) => isContradiction(kind));
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
        return views.head > tip.number ? undefined : await judge(views, final.number);
      } catch (error) {
        if (!(error instanceof NodeError)) throw error;
        progress.notice(`History could not be compared with the contracts: ${error.message}`, 'warn');
        return postpone(LOOK_AGAIN_MS);
      }
    },
  };
}

/** Findings of this check; others have a cause and an end of their own. */
function isContradiction(kind: StoredFinding['kind']): boolean {
  return findingKinds[kind].isLoss && kind !== 'contract-unknown';
}

function resolvedOf(
  contradictions: readonly Contradiction[],
  stored: readonly StoredFinding[],
): readonly StoredFinding[] {
  return stored.filter(
    ({ kind, subject }) => !contradictions.some((found) => found.kind === kind && found.subject === subject),
  );
}

function distinctRanges(contradictions: readonly Contradiction[]) {
  const ranges = contradictions.flatMap(({ range }) => range ?? []);
  return [...new Map(ranges.map((range) => [JSON.stringify(range), range])).values()];
}
