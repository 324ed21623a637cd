/** When manual execution opens to everybody: an off-ramp's own delay after the commit. */
import type { Fact, RangeFact } from '../../domain/facts.ts';
import type { BackgroundTasks } from '../engine/family.ts';
import { readManualExecutionDelay } from './accounts.ts';
import { readable } from './decode/borsh.ts';
import { programAddresses } from './program-addresses.ts';
import { programsOf, type SvmNetwork } from './programs.ts';

const MESSAGES_AT_ONCE = 50;
/** The delay is a setting of the off-ramp, which changes rarely. */
const DELAY_KEPT_MS = 600_000;

export function createManualExecutionTasks(parts: SvmNetwork): BackgroundTasks {
  const { source, chain, store, progress, registry } = parts;
  const delays = new Map<string, { readonly seconds: number | undefined; readonly readAt: number }>();
  let lookedBeyond: string | null = null;
  let isBehind = true;

  /** Undefined where the off-ramp does not tell. */
  const delayOf = async (offRamp: string, tip: number): Promise<number | undefined> => {
    const known = delays.get(offRamp);
    if (known && Date.now() - known.readAt < DELAY_KEPT_MS) return known.seconds;
    const seconds = await chain.run(async (node) => {
      const [account] = await node.accounts([programAddresses.config(offRamp)], tip);
      return account && readable(() => readManualExecutionDelay(account, offRamp));
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
    const at = new Date(opensAt).toISOString();
    const seen = { ...commit.seen, transactionHash: null, logIndex: null, at };
    return { kind: 'ManualExecutionOpened', messageId: `0x${messageId}`, seen };
  };

  return {
    get isBehind() {
      return isBehind;
    },
    async work() {
      const { tip } = progress.head;
      if (!tip) return undefined;
      const offRamps = programsOf(registry.contracts.values());
      const waiting = await store.index.awaitingExecution(source.network.selector, {
        after: lookedBeyond,
        limit: MESSAGES_AT_ONCE,
        withFailed: true,
      });
      lookedBeyond = waiting.length < MESSAGES_AT_ONCE ? null : (waiting.at(-1)?.messageId ?? null);
      isBehind = lookedBeyond !== null;
      const facts: Fact[] = [];
      for (const { messageId, ranges } of waiting) {
        const [commit] = ranges
          .filter(({ kind, offramp }) => kind === 'Committed' && offRamps.includes(offramp ?? ''))
          .sort((a, b) => b.seen.blockNumber - a.seen.blockNumber);
        const opening = commit && (await openingOf(messageId, commit, tip.number));
        if (opening) facts.push(opening);
      }
      return facts.length === 0 ? undefined : { facts };
    },
  };
}
