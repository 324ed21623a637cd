/** When manual execution opens to everybody: an off-ramp's own delay after the newest commit that covers a message. */
import type { Fact, RangeFact } from '../../domain/facts.ts';
import type { AwaitingExecution } from '../../store/ledger/index-ledger.ts';
import type { Progress } from './progress.ts';

const MESSAGES_AT_ONCE = 50;
/** The delay is a setting of the off-ramp, which changes rarely. */
const DELAY_KEPT_MS = 600_000;

export function createExecutionOpenings(
  { selector, ledger, head }: Progress,
  options: {
    readonly isOffRamp: (address: string) => boolean;
    /** Seconds from the commit after which anybody may execute; undefined where the off-ramp does not tell. */
    readonly readDelay: (offRamp: string, tip: number) => Promise<number | undefined>;
    /** Whether the off-ramp would take the message, but for the delay; it would where this is left out. */
    readonly isTaken?: (commit: RangeFact, message: AwaitingExecution) => boolean;
    /** Whether messages whose execution has failed are looked at too. */
    readonly withFailed?: boolean;
  },
) {
  const { isOffRamp, readDelay, isTaken = () => true, withFailed = false } = options;
  const delays = new Map<string, { readonly seconds: number | undefined; readonly readAt: number }>();
  let lookedBeyond: string | null = null;
  let isBehind = true;

  const delayOf = async (offRamp: string, tip: number): Promise<number | undefined> => {
    const known = delays.get(offRamp);
    if (known && Date.now() - known.readAt < DELAY_KEPT_MS) return known.seconds;
    const seconds = await readDelay(offRamp, tip);
    delays.set(offRamp, { seconds, readAt: Date.now() });
    return seconds;
  };

  /** The newest commit that covers a message. */
  const commitOf = ({ ranges }: AwaitingExecution): RangeFact | undefined =>
    ranges
      .filter(({ kind, offramp }) => kind === 'Committed' && offramp !== undefined && isOffRamp(offramp))
      .sort((a, b) => b.seen.blockNumber - a.seen.blockNumber)[0];

  const openingOf = async (message: AwaitingExecution, tip: number): Promise<readonly Fact[]> => {
    const commit = commitOf(message);
    if (!commit || !isTaken(commit, message)) return [];
    const seconds = await delayOf(commit.offramp ?? '', tip);
    if (seconds === undefined) return [];
    const opensAt = Date.parse(commit.seen.at) + seconds * 1_000;
    // Strictly: the contract asks for more seconds than the delay has.
    if (opensAt >= (head.stats?.headAt ?? 0)) return [];
    const at = new Date(opensAt).toISOString();
    const seen = { ...commit.seen, transactionHash: null, logIndex: null, at };
    return [{ kind: 'ManualExecutionOpened', messageId: `0x${message.messageId}`, seen }];
  };

  /** The next messages that wait, and which of them everybody may execute. */
  const look = async () => {
    const query = { after: lookedBeyond, limit: MESSAGES_AT_ONCE, withFailed };
    const waiting = await ledger.awaitingExecution(selector, query);
    lookedBeyond = waiting.length < MESSAGES_AT_ONCE ? null : (waiting.at(-1)?.messageId ?? null);
    isBehind = lookedBeyond !== null;
    const facts: Fact[] = [];
    for (const message of waiting) facts.push(...(await openingOf(message, head.tip?.number ?? 0)));
    return { waiting, facts };
  };

  return {
    get isBehind() {
      return isBehind;
    },
    commitOf,
    look,
    async work() {
      const { facts } = head.tip ? await look() : { facts: [] };
      return facts.length === 0 ? undefined : { facts };
    },
  };
}
