/** What an operator watches, from the statistics that every write keeps: nothing here counts messages. */
import { type MirrorState, readMirrors } from '../ledger/mirror-ledger.ts';
import type { Read } from '../reads/reads.ts';
import { countsOf, type StatusCounts } from './lanes.ts';
import { type NetworkProgress, readNetworkProgress } from './network-progress.ts';

export interface StoreMetrics {
  /** Position of the latest change. */
  readonly position: number;
  readonly byStatus: StatusCounts;
  readonly inFlight: number;
  readonly readyForManualExecution: number;
  readonly lanes: number;
  /** Sequence numbers that are missing between the first and the last of their on-ramps. */
  readonly missingSequenceNumbers: number;
  readonly onrampsWithHoles: number;
  readonly networks: readonly NetworkProgress[];
  readonly mirrors: readonly MirrorState[];
}

export async function readStoreMetrics(read: Read): Promise<StoreMetrics> {
  const totals = await read(
    `select status, ready, sum(messages)::bigint as messages from lane_total group by 1, 2`,
    [],
  );
  const [rest] = await read(
    `with onramp as (
       select runs, (select to_sequence from lane_run r
                     where (r.source_selector, r.dest_selector, r.onramp) = (o.source_selector, o.dest_selector, o.onramp)
                     order by from_sequence desc limit 1)
                  - (select from_sequence from lane_run r
                     where (r.source_selector, r.dest_selector, r.onramp) = (o.source_selector, o.dest_selector, o.onramp)
                     order by from_sequence limit 1) + 1 - present as missing
       from lane_onramp o)
     select (select position from store)::text as position,
            (select count(*) from (select distinct source_selector, dest_selector from lane_onramp) l)::int as lanes,
            coalesce(sum(missing), 0)::text as missing,
            (count(*) filter (where runs > 1))::int as holed
     from onramp`,
    [],
  );
  const networks = await readNetworkProgress(read);
  const mirrors = await readMirrors(read);
  const { byStatus, inFlight, readyForManualExecution } = countsOf(totals);
  return {
    position: Number(rest?.position ?? 0),
    byStatus,
    inFlight,
    readyForManualExecution,
    lanes: (rest?.lanes as number | undefined) ?? 0,
    missingSequenceNumbers: Number(rest?.missing ?? 0),
    onrampsWithHoles: (rest?.holed as number | undefined) ?? 0,
    networks,
    mirrors,
  };
}
