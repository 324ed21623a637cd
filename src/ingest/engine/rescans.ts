/**
 * Reading pending blocks again because of a contradiction: from one endpoint at a time, each in its turn, then with
 * exponential backoff. Whatever endpoint has the whole history, its turn comes.
 */
import type { BlockRange, FindingKey, IndexFinding, StoredFinding } from '../../store/ledger/index-ledger.ts';

/** Something that the contracts of a network say of themselves and that what was read of their history denies. */
export interface Contradiction extends FindingKey {
  /** For operators. */
  readonly detail: string;
  /** The blocks that are pending again because of it; undefined while they are not final, or where that is of no use. */
  readonly range: BlockRange | undefined;
  /** What the chain family needs to look at it again, as JSON. */
  readonly body?: unknown;
}

const FIRST_RETRY_MS = 3_600_000;
const LONGEST_RETRY_MS = 86_400_000;

/** An endpoint, and the contradictions whose blocks are read again from it. */
export interface Rescan {
  readonly endpoint: string;
  readonly subjects: ReadonlySet<string>;
}

/** Tells contradictions apart. */
export function subjectOf({ kind, subject }: FindingKey): string {
  return `${kind} ${subject}`;
}

export interface RescanPlan {
  /** All contradictions, with the endpoints that were tried. */
  readonly findings: readonly IndexFinding[];
  /** The endpoint whose turn it is; undefined where all have had theirs for now. */
  readonly endpoint: string | undefined;
  /** Those whose blocks are to be read again from it. */
  readonly again: readonly Contradiction[];
}

/**
 * @param endpoints those that are healthy, in order of preference
 * @param only the endpoint, where no other is configured: what was read, was read from it
 * @param last whose blocks were just read again
 */
export function planRescans(
  contradictions: readonly Contradiction[],
  stored: readonly StoredFinding[],
  endpoints: readonly string[],
  { only, last }: { readonly only: string | undefined; readonly last: Rescan | undefined },
): RescanPlan {
  const plans = contradictions.map((contradiction) => {
    const { range, ...found } = contradiction;
    const { kind, subject } = found;
    const known = stored.find((finding) => finding.kind === kind && finding.subject === subject);
    if (!known) {
      const tried = only === undefined ? [] : [only];
      return {
        contradiction,
        finding: { ...found, tried, attempts: 0, retryInMs: FIRST_RETRY_MS },
      };
    }
    const isRead = last?.subjects.has(subjectOf(contradiction)) === true;
    const tried = [...new Set([...known.tried, ...(isRead ? [last.endpoint] : [])])];
    const isExhausted = endpoints.every((name) => tried.includes(name));
    if (!isExhausted || !known.isDue) return { contradiction, finding: { ...found, tried } };
    const attempts = known.attempts + 1;
    const retryInMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts, 10));
    return { contradiction, finding: { ...found, tried: [], attempts, retryInMs } };
  });
  const readable = plans.filter(({ contradiction }) => contradiction.range !== undefined);
  const endpoint = endpoints.find((name) =>
    readable.some(({ finding }) => !(finding.tried ?? []).includes(name)),
  );
  const again = readable.filter(
    ({ finding }) => endpoint !== undefined && !(finding.tried ?? []).includes(endpoint),
  );
  return {
    findings: plans.map(({ finding }) => finding),
    endpoint,
    again: routersFirst(again.map(({ contradiction }) => contradiction)),
  };
}

/** The routers' history names the contracts whose events the other ranges are read for. */
function routersFirst(contradictions: readonly Contradiction[]): readonly Contradiction[] {
  const ofRouters = contradictions.filter(({ range }) => range?.purpose === 'routers');
  return ofRouters.length > 0 ? ofRouters : contradictions;
}
