/**
 * What the accounts of a Solana network's programs say, compared with what was read of their history.
 *
 * Numbers of a lane are unique between two renumberings only. So the messages of each such period are compared by
 * themselves, with the number at its end: the event of the next renumbering has it, or the router's account.
 */
import { addressFromBytes, parseAddress } from '../../../domain/addresses.ts';
import type { Message } from '../../../domain/message.ts';
import { type MissingNumbers, missingNumbers } from '../../../domain/missing-numbers.ts';
import type { CheckLedger } from '../../../store/ledger/index-ledger.ts';
import { NodeError } from '../../engine/faults.ts';
import { type Contradiction, createHistoryCheck, type HistoryCheck } from '../../engine/history-check.ts';
import { UnreadableDataError } from '../../engine/json-rpc/answer-reader.ts';
import {
  type CommittedEnd,
  type ContractCounter,
  contractRange,
  createLaneFindings,
  nameOf,
} from '../../engine/lane-findings.ts';
import type { Span } from '../../engine/pending-ranges.ts';
import { keptRenumberings, type Renumbering, renumberingEvents } from '../decode/renumbering.ts';
import type { SvmNetwork } from '../programs.ts';
import { readCounters, readExecuted } from './account-counters.ts';

/** Waiting messages whose execution is looked up: as a rule few wait. */
const MAX_WAITING = 500;

export function createCompletenessCheck(parts: SvmNetwork): HistoryCheck {
  const { source, chain, store, progress, registry } = parts;
  const { network } = source;
  const { selector } = network;
  /** Whether everything from the first message on is expected: no slot or time is configured at which history starts. */
  const isWhole = source.start === null;
  const ledger: CheckLedger = store.index.checks;
  const lanes = createLaneFindings(progress, 'Router');
  const startSlot = () => progress.head.startBlock ?? 0;
  const programsWith = (role: 'router' | 'offRamp') =>
    [...registry.contracts.values()].filter((one) => one.role === role).map(({ program }) => program);

  /** What the accounts say, read from one endpoint. */
  const readViews = async (tip: number) => {
    const contracts = [...registry.contracts.values()];
    const offRamps = new Set(programsWith('offRamp'));
    const waiting = await waitingMessages();
    try {
      return await chain.run(async (node) => {
        const counters = await readCounters(node, network, contracts, tip);
        const executed = await readExecuted(node, waiting, offRamps, tip);
        return { counters, executed, head: (await node.head()).slot };
      }, tip);
    } catch (error) {
      // An account of an unknown layout has the same one at every endpoint: the check is made again later.
      if (error instanceof UnreadableDataError) throw new NodeError(error.message);
      throw error;
    }
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

  /** Lanes that were committed elsewhere, from on-ramps of this network that are not configured. */
  const unknownOnRamps = (committed: readonly CommittedEnd[]): readonly Contradiction[] => {
    const routers = new Set(programsWith('router').map((program) => parseAddress(program, 'SVM')?.bytes));
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

  /**
   * The slots are those between which it is to be looked for; undefined where the numbers tell better.
   *
   * @param renumberings of this lane, in the order of the chain
   */
  const missingMessages = async (
    counter: ContractCounter,
    renumberings: readonly Renumbering[],
    final: number,
  ): Promise<(MissingNumbers & { readonly blocks?: Span }) | undefined> => {
    if (renumberings.length === 0) return missingNumbers(await ledger.sentRuns(counter), counter);
    let from = startSlot();
    /** The number before the first message of a period; undefined where it is not known. */
    let base: bigint | undefined = isWhole ? 0n : undefined;
    const newest = { slot: undefined, previous: BigInt(counter.lastNumber), next: undefined };
    for (const { slot, previous, next } of [...renumberings, newest]) {
      // A slot with a renumbering belongs to both sides: lists do not tell which of its transactions came first.
      const slots = { from, to: slot ?? Math.max(from, final) };
      const runs = await ledger.sentRunsBetween(counter, slots);
      const below = base === undefined || base === 0n ? [] : [{ from: '1', to: base.toString() }];
      const expected = { lastNumber: previous.toString(), isWhole: base !== undefined };
      const missing = missingNumbers([...below, ...runs], expected);
      if (missing) return { ...missing, blocks: slots };
      from = slots.to;
      base = next;
    }
    return undefined;
  };

  const missingSends = async (
    counter: ContractCounter,
    all: readonly Renumbering[],
    final: number,
  ): Promise<readonly Contradiction[]> => {
    const { contract, destSelector, numberLeft } = counter;
    const renumberings = all.filter((renumbering) => renumbering.destSelector === destSelector);
    // The router's account holds the number that the latest renumbering left.
    if (isWhole && numberLeft !== undefined && renumberings.at(-1)?.previous !== numberLeft)
      return [
        {
          kind: 'messages-missing',
          subject: `${contract} ${destSelector}`,
          detail: `Router ${contract} has changed the numbers of its messages to ${nameOf(destSelector)} after number ${numberLeft}; the event was not found in its history`,
          range: contractRange(contract, startSlot(), final),
        },
      ];
    // Renumberings are kept with what could not be decoded, and are no message.
    return lanes.missingSends(
      counter,
      await missingMessages(counter, renumberings, final),
      final,
      all.length,
    );
  };

  const compare = async (seen: Awaited<ReturnType<typeof readViews>>, final: number) => {
    const committed = await ledger.committedEnds(selector);
    const counters = lanes.expected(seen.counters, committed, isWhole);
    const contradictions = [
      ...(await lanes.missingExecutions(seen.executed, 'SUCCESS', final)),
      ...unknownOnRamps(committed),
    ];
    const renumberings = new Map<string, readonly Renumbering[]>();
    for (const router of programsWith('router')) {
      const kept = await ledger.keptLogs(selector, router, renumberingEvents);
      renumberings.set(router, keptRenumberings(kept, isWhole));
    }
    for (const counter of counters) {
      const missing =
        counter.kind === 'sent'
          ? missingSends(counter, renumberings.get(counter.contract) ?? [], final)
          : lanes.missingCommits(counter, final);
      contradictions.push(...(await missing));
    }
    return { counters, contradictions };
  };

  return createHistoryCheck({
    progress,
    health: () => chain.health(),
    words: { counted: 'accounts', units: 'slots' },
    readViews,
    compare,
  });
}
