/** The judgement of one on-ramp: its numbers against what the chain counts, where the chain was asked. */

import type { NetworkInfo } from '../../domain/message.ts';
import { type MissingNumbers, missingNumbers } from '../../domain/missing-numbers.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import type { CountedLane, LaneStatistics, OnrampStatistics } from '../../store/query/lanes.ts';
import { addressColumn } from '../../store/write/message-row.ts';

type AuditedEnds = Pick<LaneStatistics, 'sourceNetworkInfo' | 'destNetworkInfo'>;

export interface OnrampAudit {
  readonly networks: AuditedEnds;
  readonly onramp: string;
  /** Null where the store has no message of it. */
  readonly statistics: OnrampStatistics | null;
  /** The numbers that were judged. */
  readonly first: string;
  readonly last: string;
  /** Missing messages; undefined where none is. */
  readonly missing: MissingNumbers | undefined;
  /** Missing commits on the destination; undefined where none is, or the destination was not asked. */
  readonly missingCommits: MissingNumbers | undefined;
  /** What the on-ramp itself has counted; null where it was not asked, and the ends of the lane are not judged. */
  readonly counted: string | null;
  /** What the destination has counted as committed; null where it was not asked. */
  readonly countedCommits: string | null;
  /** Whether what came before `first` is not known because indexing starts later. */
  readonly isUnknownBefore: boolean;
}

/** All on-ramps of these lanes, then those that only the chain's counters know of. */
export function auditOnramps(lanes: readonly LaneStatistics[], counted: readonly CountedLane[]) {
  const judged = new Set<CountedLane>();
  const audits = lanes.flatMap(({ sourceNetworkInfo, destNetworkInfo, onramps }) =>
    onramps.map((statistics) => {
      const { onramp } = statistics;
      const bytes = addressColumn(onramp, sourceNetworkInfo.chainFamily);
      const counters = counted.filter(
        (counter) =>
          counter.sourceChainSelector === sourceNetworkInfo.chainSelector &&
          counter.destChainSelector === destNetworkInfo.chainSelector &&
          counter.onramp === bytes,
      );
      for (const counter of counters) judged.add(counter);
      return judge(counters, statistics, { networks: { sourceNetworkInfo, destNetworkInfo }, onramp });
    }),
  );
  const unseen = counted
    .filter((counter) => counter.kind === 'sent' && !judged.has(counter))
    .map((counter) => {
      const sourceNetworkInfo = infoOf(counter.sourceChainSelector);
      const destNetworkInfo = infoOf(counter.destChainSelector);
      const onramp = `0x${counter.onramp}`;
      return judge([counter], null, { networks: { sourceNetworkInfo, destNetworkInfo }, onramp });
    });
  return [...audits, ...unseen.filter(({ missing }) => missing !== undefined)];
}

function judge(
  counters: readonly CountedLane[],
  statistics: OnrampStatistics | null,
  names: Pick<OnrampAudit, 'networks' | 'onramp'>,
): OnrampAudit {
  const sent = counters.find(({ kind }) => kind === 'sent');
  const committed = counters.find(({ kind }) => kind === 'committed');
  const { first = '1', last = '0' } = statistics?.completeness ?? {};
  // Messages may have come since the on-ramp was asked.
  const end = sent && BigInt(sent.lastNumber) > BigInt(last) ? sent.lastNumber : last;
  const isWhole = sent?.isWhole === true;
  return {
    ...names,
    statistics,
    first: isWhole ? '1' : first,
    last: end,
    missing: sent ? missingNumbers(sent.present, { lastNumber: end, isWhole }) : holesOf(statistics),
    missingCommits: committed && missingNumbers(committed.present, committed),
    counted: sent?.lastNumber ?? null,
    countedCommits: committed?.lastNumber ?? null,
    isUnknownBefore: sent !== undefined && !isWhole && BigInt(first) > 1n,
  };
}

/** Between the first and the last number that is there: all that can be judged without the on-ramp's own word. */
function holesOf(statistics: OnrampStatistics | null): MissingNumbers | undefined {
  if (!statistics || statistics.completeness.isComplete) return undefined;
  const { missing, missingRanges, first, last } = statistics.completeness;
  return { count: BigInt(missing), ranges: missingRanges, lowest: BigInt(first), highest: BigInt(last) };
}

function infoOf(selector: string): NetworkInfo {
  const network = networkBySelector(selector);
  return {
    name: network?.name ?? selector,
    chainSelector: selector,
    chainId: network?.chainId ?? '',
    chainFamily: network?.family ?? 'EVM',
    displayName: network?.displayName ?? null,
  };
}
