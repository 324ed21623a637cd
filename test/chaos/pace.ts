import type { IndexerPace } from '../../src/ingest/evm/indexer.ts';
import { hurriedPace } from '../chain/indexing.ts';

/** Short of patience, so that a seed takes seconds. */
export const chaosPace: Partial<IndexerPace> = {
  ...hurriedPace,
  soonestChore: 20,
  latestChore: 200,
  lease: 1,
  leaseLook: 50,
  endpoints: {
    // Not shorter: a machine that is busy with other tests needs its time too.
    answerMs: 1_000,
    bodyMs: 1_000,
    firstPauseMs: 10,
    longestPauseMs: 100,
    patienceMs: 200,
    longestRetryAfterMs: 200,
  },
};
