/**
 * Endpoint profiles at the endpoints of chaos: the same limits, wordings and lies, on recorded chains.
 *
 * Recorded chains are shorter than virtual ones, so limits in blocks are smaller here. Traits of a chain (finality, old
 * state, the numbers of logs) are left out: all endpoints of a recorded chain have the same.
 */
import type { Randomness } from '../../src/ingest/demo/randomness.ts';
import type { EndpointProfile, Limit } from '../virtual-chain/endpoint-profile.ts';
import { profiles } from '../virtual-chain/endpoint-profiles.ts';

const SHORTER = 10;

/** Answers that lack logs, without a word. At most one endpoint of a network has such a profile. */
export function isLiar({ logs = {} }: EndpointProfile): boolean {
  const { kept, isBlindToAddresses, leavesOutEvery, truncatedAt } = logs;
  return (
    kept?.answer === 'empty' ||
    isBlindToAddresses === true ||
    leavesOutEvery !== undefined ||
    truncatedAt !== undefined
  );
}

/** Whether any of its traits means something on a recorded chain. */
function isFelt({
  logs = {},
  batch,
  rate,
  cap,
  resetsEvery,
  fails,
  receipts,
  bloom,
}: EndpointProfile): boolean {
  const { hasIndexPerTransaction, ...others } = logs;
  return (
    Object.keys(others).length > 0 ||
    [batch, rate, cap, resetsEvery, fails, receipts, bloom].some((trait) => trait !== undefined)
  );
}

export interface ProfileChoice {
  /** Whether it may leave out logs. Those who do have whole receipts. */
  readonly mayLie: boolean;
  /** Whether its blooms may be wrong: without them nobody notices lies. */
  readonly mayHaveOddBlooms: boolean;
}

/** Undefined: one without a profile. */
export function chooseProfile(
  randomness: Randomness,
  { mayLie, mayHaveOddBlooms }: ProfileChoice,
): EndpointProfile | undefined {
  if (randomness.chance(0.3)) return undefined;
  const possible = profiles.filter(
    (profile) =>
      isFelt(profile) && (mayLie || !isLiar(profile)) && (mayHaveOddBlooms || profile.bloom === undefined),
  );
  return shortened(randomness.pick(possible));
}

function shortened(profile: EndpointProfile): EndpointProfile {
  const { logs = {} } = profile;
  const less = (limit: Limit) => ({ ...limit, max: Math.max(1, Math.ceil(limit.max / SHORTER)) });
  return {
    ...profile,
    logs: {
      ...logs,
      ...(logs.blocks && { blocks: less(logs.blocks) }),
      ...(logs.blocksWithoutAddress && { blocksWithoutAddress: less(logs.blocksWithoutAddress) }),
      ...(logs.kept && {
        kept: { ...logs.kept, blocks: logs.kept.blocks / SHORTER, keepsReceipts: true },
      }),
    },
  };
}
