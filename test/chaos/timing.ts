import type { IndexerTiming } from '../../src/ingest/engine/indexer.ts';
import { hurriedTiming } from '../chain/indexing.ts';

/** Short of patience, so that a seed takes seconds. */
export const chaosTiming: Partial<IndexerTiming> = {
  ...hurriedTiming,
  taskMinMs: 20,
  taskMaxMs: 200,
  leaseSeconds: 2,
  leasePollMs: 50,
  endpoints: {
    // Not shorter: a machine that is busy with other tests needs its time too.
    answerMs: 2_000,
    bodyMs: 2_000,
    firstPauseMs: 10,
    longestPauseMs: 100,
    maxWaitMs: 200,
    longestRetryAfterMs: 200,
  },
};
