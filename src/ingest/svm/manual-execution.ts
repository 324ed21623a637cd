/** When manual execution opens to everybody: an off-ramp's own delay after the commit. */
import type { Fact, RangeFact } from '../../domain/facts.ts';
import type { Store } from '../../store/store.ts';
import type { BackgroundTasks } from '../engine/family.ts';
import type { Progress } from '../engine/progress.ts';
import { readManualExecutionDelay } from './accounts.ts';
import type { Chain } from './chain.ts';
import { UnreadableDataError } from './decode/borsh.ts';
import { programAddresses } from './program-addresses.ts';
import type { ProgramRegistry } from './programs.ts';

const MESSAGES_AT_ONCE = 50;
/** The delay is a setting of the off-ramp, which changes rarely. */
const DELAY_KEPT_MS = 600_000;

export interface ManualExecutionOptions {
  readonly selector: string;
  readonly chain: Chain;
  readonly store: Pick<Store, 'index'>;
  readonly progress: Progress;
  readonly registry: ProgramRegistry;
}

export function createManualExecutionTasks(options: ManualExecutionOptions): BackgroundTasks {
  const { selector, chain, store, progress, registry } = options;
  const delays = new Map<string, { readonly seconds: number | undefined; readonly readAt: number }>();
  let lookedBeyond: string | null = null;
  let isBehind = true;

  /** Undefined where the off-ramp does not tell. */
  const delayOf = async (offRamp: string, tip: number): Promise<number | undefined> => {
    const known = delays.get(offRamp);
    if (known && Date.now() - known.readAt < DELAY_KEPT_MS) return known.seconds;
    const seconds = await chain.run(async (node) => {
      const [account] = await node.accounts([programAddresses.config(offRamp)], tip);
      try {
        return account && readManualExecutionDelay(account, offRamp);
      } catch (error) {
        if (error instanceof UnreadableDataError) return undefined;
        throw error;
      }
    }, tip);
    delays.set(offRamp, { seconds, readAt: Date.now() });
    return seconds;
  };

  const openingOf = async (messageId: string, commit: RangeFact, tip: number): Promise<Fact | undefined> => {
    const seconds = await delayOf(commit.offramp ?? '', tip);
    if (seconds === undefined) return undefined;
    const opensAt = Date.parse(commit.seen.at) + seconds * 1_000;
    // Strictly: the program asks for more seconds than the delay has.
    if (opensAt >= (progress.head.stats?.headAt ?? 0)) return undefined;
    const seen = {
      ...commit.seen,
      transactionHash: null,
      logIndex: null,
      at: new Date(opensAt).toISOString(),
    };
    return { kind: 'ManualExecutionOpened', messageId: `0x${messageId}`, seen };
  };

  return {
    get isBehind() {
      return isBehind;
    },
    async work() {
      const { tip } = progress.head;
      if (!tip) return undefined;
      const offRamps = new Set([...registry.contracts.values()].map(({ program }) => program));
      const waiting = await store.index.awaitingExecution(selector, {
        after: lookedBeyond,
        limit: MESSAGES_AT_ONCE,
        withFailed: true,
      });
      lookedBeyond = waiting.length < MESSAGES_AT_ONCE ? null : (waiting.at(-1)?.messageId ?? null);
      isBehind = lookedBeyond !== null;
      const facts: Fact[] = [];
      for (const { messageId, ranges } of waiting) {
        const [commit] = ranges
          .filter(({ kind, offramp }) => kind === 'Committed' && offRamps.has(offramp ?? ''))
          .sort((a, b) => b.seen.blockNumber - a.seen.blockNumber);
        const opening = commit && (await openingOf(messageId, commit, tip.number));
        if (opening) facts.push(opening);
      }
      return facts.length === 0 ? undefined : { facts };
    },
  };
}
