/** The message that the path of a request names, and the error where this server does not have it. */
import { ApiError } from '../../domain/errors.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import type { Store } from '../../store/store.ts';
import { indexingHealth, lagBlocks } from '../metrics/indexing-health.ts';

/** An error message lists at most this many networks. */
const LISTED_NETWORKS = 8;

/** The 64 digits of the message id in a path. Throws an ApiError for other text. */
export function messageIdDigits({ messageId = '' }: Readonly<Record<string, string>>): string {
  const digits = /^0x([0-9a-fA-F]{64})$/.exec(messageId)?.[1]?.toLowerCase();
  if (digits !== undefined) return digits;
  throw new ApiError('INVALID_MESSAGE_ID', 'A message id is 0x followed by 64 hexadecimal digits.', [
    { parameter: 'messageId', problem: 'is not 0x followed by 64 hexadecimal digits' },
  ]);
}

/** The error for an unknown message says how far each network is indexed: the message may be newer. */
export async function unknownMessage(store: Pick<Store, 'networkProgress'>, digits: string) {
  return new ApiError(
    'MESSAGE_NOT_FOUND',
    `No message 0x${digits} is known here. ${await describeIndexing(store)}`,
  );
}

async function describeIndexing(store: Pick<Store, 'networkProgress'>): Promise<string> {
  const progress = await store.networkProgress();
  if (progress.length === 0) {
    return 'No network is indexed here: records come from imports only, and it was not among them.';
  }
  const described = progress.slice(0, LISTED_NETWORKS).map((network) => {
    const name = networkBySelector(network.selector)?.displayName ?? network.selector;
    const health = indexingHealth(network);
    if (network.indexedBlock === null) {
      return `${name} (nothing yet${health === 'ok' ? '' : `, ${health}`})`;
    }
    const lag = lagBlocks(network);
    const details = [
      ...(lag === null ? [] : [`${lag} behind its head`]),
      ...(network.owedBlocks > 0 ? [`${network.owedBlocks} blocks of its history still to be read`] : []),
      ...(health === 'ok' ? [] : [health]),
    ].join(', ');
    return `${name} to block ${network.indexedBlock}${details === '' ? '' : ` (${details})`}`;
  });
  const more = progress.length - described.length;
  return (
    `Indexed so far: ${described.join('; ')}${more > 0 ? `; and ${more} more, see /v2/networks` : ''}. ` +
    'It may be newer than that, or come from a network that is not indexed here.'
  );
}
