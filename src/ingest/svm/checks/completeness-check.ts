/**
 * What the accounts of a Solana network's programs say, compared with what was read of their history.
 *
 * Numbers of a lane are unique between two renumberings only. So the messages of each such period are compared by
 * themselves, with the number at its end: the event of the next renumbering has it, or the router's account.
 */
import { addressFromBytes, parseAddress } from '../../../domain/addresses.ts';
import type { Message } from '../../../domain/message.ts';
import { type MissingNumbers, missingNumbers } from '../../../domain/missing-numbers.ts';
import { networkBySelector } from '../../../domain/networks/networks.ts';
import type { BlockRange, CheckLedger, LaneKey } from '../../../store/ledger/index-ledger.ts';
import { NodeError } from '../../engine/faults.ts';
import { type Contradiction, createHistoryCheck, type HistoryCheck } from '../../engine/history-check.ts';
import { UnreadableDataError } from '../../engine/json-rpc/answer-reader.ts';
import { keptRenumberings, type Renumbering, renumberingEvents } from '../decode/renumbering.ts';
import type { SvmNetwork } from '../programs.ts';
import { type ExecutedMessage, type ProgramCounter, readCounters, readExecuted } from './account-counters.ts';

/** Waiting messages whose execution is looked up: as a rule few wait. */
const MAX_WAITING = 500;

/** The highest number of a lane that was committed elsewhere. */
type CommittedEnd = LaneKey & { readonly last: string };

export function createCompletenessCheck(parts: SvmNetwork): HistoryCheck {
  const { source, chain, store, progress, registry } = parts;
  const { network } = source;
  const { selector } = network;
  /** Whether everything from the first message on is expected: no slot or time is configured at which history starts. */
  const isWhole = source.start === null;
  const ledger: CheckLedger = store.index.checks;
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

  /** What commits elsewhere have taken in must have been sent here; of a renumbered lane they do not tell when. */
  const expected = (
    counters: readonly ProgramCounter[],
    committed: readonly CommittedEnd[],
  ): readonly ProgramCounter[] =>
    counters.map((counter) => {
      const end = committed.find(
        ({ destSelector, onramp }) => destSelector === counter.destSelector && onramp === counter.onramp,
      );
      const isHigher =
        counter.kind === 'sent' &&
        counter.numberLeft === undefined &&
        end !== undefined &&
        BigInt(end.last) > BigInt(counter.lastNumber);
      return isHigher ? { ...counter, lastNumber: end.last } : counter;
    });

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

  const programRange = (program: string, from: number, to: number): BlockRange | undefined =>
    from > to ? undefined : { from, to, purpose: 'contracts', contracts: [program] };

  const missingCommits = async (
    counter: ProgramCounter,
    final: number,
  ): Promise<Contradiction | undefined> => {
    const { program, lastNumber, sourceSelector } = counter;
    const runs = await ledger.committedRuns(counter);
    const missing = missingNumbers(runs, { lastNumber, isWhole });
    // What is kept because it could not be decoded is not missing from the history.
    if (!missing || missing.count <= BigInt(await ledger.unreadableLogs(selector, program))) return undefined;
    return {
      kind: 'commits-missing',
      subject: `${program} ${sourceSelector}`,
      detail: `${lastNumber} messages from ${nameOf(sourceSelector)} are committed on ${program}; the commits of ${numbersOf(missing)} were not found in its history`,
      range: programRange(program, startSlot(), final),
    };
  };

  /**
   * The slots are those between which it is to be looked for; undefined where the numbers tell better.
   *
   * @param renumberings of this lane, in the order of the chain
   */
  const missingMessages = async (
    counter: ProgramCounter,
    renumberings: readonly Renumbering[],
    final: number,
  ): Promise<(MissingNumbers & { readonly slots?: { from: number; to: number } }) | undefined> => {
    const { lastNumber } = counter;
    if (renumberings.length === 0)
      return missingNumbers(await ledger.sentRuns(counter), { lastNumber, isWhole });
    let from = startSlot();
    /** The number before the first message of a period; undefined where it is not known. */
    let base: bigint | undefined = isWhole ? 0n : undefined;
    const newest = { slot: undefined, previous: BigInt(lastNumber), next: undefined };
    for (const { slot, previous, next } of [...renumberings, newest]) {
      // A slot with a renumbering belongs to both sides: lists do not tell which of its transactions came first.
      const slots = { from, to: slot ?? Math.max(from, final) };
      const runs = await ledger.sentRunsBetween(counter, slots);
      const below = base === undefined || base === 0n ? [] : [{ from: '1', to: base.toString() }];
      const expected = { lastNumber: previous.toString(), isWhole: base !== undefined };
      const missing = missingNumbers([...below, ...runs], expected);
      if (missing) return { ...missing, slots };
      from = slots.to;
      base = next;
    }
    return undefined;
  };

  const missingSends = async (
    counter: ProgramCounter,
    all: readonly Renumbering[],
    final: number,
  ): Promise<Contradiction | undefined> => {
    const { program, lastNumber, destSelector } = counter;
    const start = startSlot();
    const found = { kind: 'messages-missing', subject: `${program} ${destSelector}` } as const;
    const renumberings = all.filter((renumbering) => renumbering.destSelector === destSelector);
    const { numberLeft } = counter;
    // The router's account holds the number that the latest renumbering left.
    if (isWhole && numberLeft !== undefined && renumberings.at(-1)?.previous !== numberLeft) {
      return {
        ...found,
        detail: `Router ${program} has changed the numbers of its messages to ${nameOf(destSelector)} after number ${numberLeft}; the event was not found in its history`,
        range: programRange(program, start, final),
      };
    }
    const missing = await missingMessages(counter, renumberings, final);
    // Renumberings are kept with what could not be decoded, and are no message.
    const unreadable = (await ledger.unreadableLogs(selector, program)) - all.length;
    if (!missing || missing.count <= BigInt(unreadable)) return undefined;
    const { lowest, highest, slots } = missing;
    const before = slots?.from ?? (await ledger.sendBlock(counter, (lowest - 1n).toString()));
    const after = slots?.to ?? (await ledger.sendBlock(counter, (highest + 1n).toString()));
    const period = slots ? ` in slots ${slots.from} to ${slots.to}` : '';
    return {
      ...found,
      detail: `Router ${program} has sent ${lastNumber} messages to ${nameOf(destSelector)}; ${numbersOf(missing)}${period} were not found in its history`,
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
        range: programRange(offRamp, startSlot(), final),
      };
    });

  const compare = async (seen: Awaited<ReturnType<typeof readViews>>, final: number) => {
    const committed = await ledger.committedEnds(selector);
    const counters = expected(seen.counters, committed);
    const renumberings = new Map<string, readonly Renumbering[]>();
    for (const router of programsWith('router')) {
      const kept = await ledger.keptLogs(selector, router, renumberingEvents);
      renumberings.set(router, keptRenumberings(kept, isWhole));
    }
    const found = await Promise.all(
      counters.map((counter) =>
        counter.kind === 'sent'
          ? missingSends(counter, renumberings.get(counter.program) ?? [], final)
          : missingCommits(counter, final),
      ),
    );
    // Everything up to the views has been read since: executions that the records have by now are not missing.
    const unseen = await ledger.belowStatus(
      seen.executed.map(({ messageId }) => messageId),
      'SUCCESS',
    );
    const contradictions = [
      ...found.flatMap((contradiction) => contradiction ?? []),
      ...missingExecutions(
        seen.executed.filter(({ messageId }) => unseen.has(messageId)),
        final,
      ),
      ...unknownOnRamps(committed),
    ];
    return { counters: counters.map((counter) => ({ ...counter, isWhole })), contradictions };
  };

  return createHistoryCheck({
    progress,
    health: () => chain.health(),
    words: { counted: 'accounts', units: 'slots' },
    readViews,
    compare,
  });
}

function numbersOf({ count, lowest, highest }: MissingNumbers): string {
  return `${count} of them (${lowest === highest ? lowest : `${lowest}…${highest}`})`;
}

function nameOf(selector: string): string {
  return networkBySelector(selector)?.name ?? `chain ${selector}`;
}
