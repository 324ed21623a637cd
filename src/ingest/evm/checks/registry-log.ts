/**
 * Keeps what routers and blocks have told of contracts: which ramps they registered, and contracts that this version does
 * not know. It is recorded before the blocks count as read, so that a killed process forgets nothing.
 */
import type { IndexStep, Registration, StoredFinding } from '../../../store/ledger/index-ledger.ts';
import type { Progress } from '../../chain/progress.ts';
import type { Hex } from '../chain.ts';
import type { GenuineContract, Naming, RefusedNaming } from '../contracts.ts';

export interface RegistryLog {
  /** Records what a reading found, as far as it is new. */
  note(found: {
    readonly namings: readonly NamedAt[];
    readonly refused: readonly RefusedNaming[];
  }): Promise<void>;
  /** The bloom filter of this block denies a log that the block has. */
  noteWrongBloom(blockNumber: number): Promise<void>;
}

/** A naming, and the block of the event that told it; null where a view did. */
export interface NamedAt extends Naming {
  readonly blockNumber: number | null;
}

export function createRegistryLog(progress: Pick<Progress, 'record' | 'notice'>): RegistryLog {
  const recorded = new Set<string>();
  const isNew = (entry: unknown): boolean => {
    const key = JSON.stringify(entry);
    if (recorded.has(key)) return false;
    recorded.add(key);
    return true;
  };
  const record = async (step: IndexStep) => {
    if (Object.values(step).some((list) => list.length > 0)) await progress.record(() => step);
  };
  return {
    async note({ namings, refused }) {
      const registrations: readonly Registration[] = namings.flatMap(
        ({ address, role, selector, blockNumber }) =>
          selector === undefined ? [] : [{ contract: address, role, remote: selector, blockNumber }],
      );
      await record({
        registrations: registrations.filter(isNew),
        findings: refused
          .map(({ naming, reason }) => ({
            kind: 'contract-unknown' as const,
            subject: naming.address,
            detail: `The ${naming.role} ${naming.address}, which ${naming.namedBy} names, is not known to this version: ${reason}`,
            body: naming,
          }))
          .filter(isNew),
      });
    },
    async noteWrongBloom(blockNumber) {
      if (!isNew('bloom-wrong')) return;
      const detail = `The bloom filter of block ${blockNumber} denies a log that the block has: filters are not used to check for missing logs`;
      progress.notice(detail, 'warn');
      await record({ findings: [{ kind: 'bloom-wrong', subject: '', detail }] });
    },
  };
}

/** For readers without a store. */
export const unrecorded: RegistryLog = { note: async () => undefined, noteWrongBloom: async () => undefined };

/** The contracts that were not known at the latest reading, to be examined again. */
export function unknownNamings(findings: readonly StoredFinding[]): readonly Naming[] {
  return findings.flatMap(({ kind, body }) => (kind === 'contract-unknown' && body ? [body as Naming] : []));
}

/** Findings about contracts that are known by now. */
export function knownByNow(
  findings: readonly StoredFinding[],
  contracts: ReadonlyMap<Hex, GenuineContract>,
): readonly StoredFinding[] {
  return findings.filter(({ kind, subject }) => kind === 'contract-unknown' && contracts.has(subject as Hex));
}
