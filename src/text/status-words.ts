/** The word for each status. */
import type { Status } from '../domain/lifecycle.ts';

export const statusWords: Record<Status, string> = {
  SENT: 'Sent',
  SOURCE_FINALIZED: 'Finalized',
  COMMITTED: 'Committed',
  BLESSED: 'Blessed',
  VERIFYING: 'Verifying',
  VERIFIED: 'Verified',
  FAILED: 'Failed',
  SUCCESS: 'Success',
};
