/** What the history check finds on lanes, whatever the family: counters of contracts, held against what is recorded. */
import { type MissingNumbers, missingNumbers } from '../../domain/missing-numbers.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import { groupBy } from '../../store/group-by.ts';
import type { BlockRange, LaneCounter, LaneKey } from '../../store/ledger/index-ledger.ts';
import type { Contradiction } from './history-check.ts';
import type { Span } from './pending-ranges.ts';
import type { Progress } from './progress.ts';

/** What a contract counts by itself. */
export interface ContractCounter<Contract extends string = string> extends LaneCounter {
  /** The contract that counts; its events are what the records are made of. */
  readonly contract: Contract;
  /** The last number before the latest renumbering of the lane; undefined where there was none. */
  readonly numberLeft?: bigint | undefined;
}

/** As it was read, before it is known whether everything from the first message on is expected. */
export type ReadCounter<Contract extends string = string> = Omit<ContractCounter<Contract>, 'isWhole'>;

/** A message that its off-ramp has executed, as the off-ramp says. */
export interface ExecutedMessage<OffRamp extends string = string> {
  readonly messageId: string;
  readonly offRamp: OffRamp;
}

/** The highest number of a lane that was committed elsewhere. */
export type CommittedEnd = LaneKey & { readonly last: string };

/** @param sender what contracts that send are called, in findings */
export function createLaneFindings(
  { selector, ledger: { checks }, head }: Progress,
  sender: 'On-ramp' | 'Router',
) {
  const startBlock = () => head.startBlock ?? 0;

  return {
    /** What commits elsewhere have taken in must have been sent here; of a renumbered lane they do not tell when. */
    expected<Counter extends ReadCounter>(
      counters: readonly Counter[],
      committed: readonly CommittedEnd[],
      isWhole: boolean,
    ) {
      return counters.map((counter) => {
        const end = committed.find(
          ({ sourceSelector, destSelector, onramp }) =>
            sourceSelector === counter.sourceSelector &&
            destSelector === counter.destSelector &&
            onramp === counter.onramp,
        );
        const isHigher =
          counter.kind === 'sent' &&
          counter.numberLeft === undefined &&
          end !== undefined &&
          BigInt(end.last) > BigInt(counter.lastNumber);
        return { ...counter, isWhole, ...(isHigher && { lastNumber: end.last }) };
      });
    },

    async missingCommits(counter: ContractCounter, final: number): Promise<readonly Contradiction[]> {
      const { contract, lastNumber, sourceSelector } = counter;
      const missing = missingNumbers(await checks.committedRuns(counter), counter);
      // What is kept because it could not be decoded is not missing from the history.
      if (!missing || missing.count <= BigInt(await checks.unreadableLogs(selector, contract))) return [];
      return [
        {
          kind: 'commits-missing',
          subject: `${contract} ${sourceSelector}`,
          detail: `${lastNumber} messages from ${nameOf(sourceSelector)} are committed on ${contract}; the commits of ${numbersOf(missing)} were not found in its history`,
          range: contractRange(contract, startBlock(), final),
        },
      ];
    },

    /**
     * @param missing the numbers that the records lack, and the blocks in which to look for them where those are known
     * @param keptEvents how many of the logs that are kept as unreadable are none of messages
     */
    async missingSends(
      counter: ContractCounter,
      missing: (MissingNumbers & { readonly blocks?: Span }) | undefined,
      final: number,
      keptEvents = 0,
    ): Promise<readonly Contradiction[]> {
      const { contract, lastNumber, destSelector } = counter;
      const unreadable = (await checks.unreadableLogs(selector, contract)) - keptEvents;
      if (!missing || missing.count <= BigInt(unreadable)) return [];
      const { lowest, highest, blocks } = missing;
      // Between the messages around the gap, where those are recorded.
      const before = blocks?.from ?? (await checks.sendBlock(counter, (lowest - 1n).toString()));
      const after = blocks?.to ?? (await checks.sendBlock(counter, (highest + 1n).toString()));
      const period = blocks ? ` in slots ${blocks.from} to ${blocks.to}` : '';
      return [
        {
          kind: 'messages-missing',
          subject: `${contract} ${destSelector}`,
          detail: `${sender} ${contract} has sent ${lastNumber} messages to ${nameOf(destSelector)}; ${numbersOf(missing)}${period} were not found in its history`,
          range: contractRange(contract, before ?? startBlock(), Math.min(after ?? final, final)),
        },
      ];
    },

    /** @param status which records have at least, where they know of the execution */
    async missingExecutions(
      executed: readonly ExecutedMessage[],
      status: 'FAILED' | 'SUCCESS',
      final: number,
    ): Promise<readonly Contradiction[]> {
      // Everything up to the views has been read since: executions that the records have by now are not missing.
      const ids = executed.map(({ messageId }) => messageId);
      const unseen = await checks.belowStatus(ids, status);
      const missing = executed.filter(({ messageId }) => unseen.has(messageId));
      return [...groupBy(missing, ({ offRamp }) => offRamp)].map(([offRamp, own]) => ({
        kind: 'executions-missing',
        subject: offRamp,
        detail:
          `Off-ramp ${offRamp} has executed ${own.length === 1 ? '' : `${own.length} messages, among them `}0x${own[0]?.messageId}, ` +
          'but the event was not found in its history',
        range: contractRange(offRamp, startBlock(), final),
      }));
    },
  };
}

export function contractRange(contract: string, from: number, to: number): BlockRange | undefined {
  return from > to ? undefined : { from, to, purpose: 'contracts', contracts: [contract] };
}

/** @example numbersOf({ count: 3n, lowest: 1n, highest: 160n }) // '3 of them (1…160)' */
function numbersOf({ count, lowest, highest }: MissingNumbers): string {
  return `${count} of them (${lowest === highest ? lowest : `${lowest}…${highest}`})`;
}

export function nameOf(selector: string): string {
  return networkBySelector(selector)?.name ?? `chain ${selector}`;
}
