/** Words about a message: its networks and its status. */
import type { Status } from '../domain/lifecycle.ts';
import type { Message, NetworkInfo } from '../domain/message.ts';
import { printable } from './format.ts';

const MAX_NETWORK_NAME = 60;

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

export function networkName({ displayName, name }: NetworkInfo): string {
  const chosen = printable(displayName?.trim() || name);
  return chosen.length > MAX_NETWORK_NAME ? `${chosen.slice(0, MAX_NETWORK_NAME - 1)}…` : chosen;
}

export function laneWords(ends: Pick<Message, 'sourceNetworkInfo' | 'destNetworkInfo'>): string {
  return `${networkName(ends.sourceNetworkInfo)} → ${networkName(ends.destNetworkInfo)}`;
}

export function isInFlight({ status }: Pick<Message, 'status'>): boolean {
  return status !== 'SUCCESS' && status !== 'FAILED';
}
