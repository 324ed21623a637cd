/**
 * Keeps what routers and blocks have told of contracts: which ramps they registered, and contracts that this version does
 * not know. It is recorded before the blocks count as read, so that a killed process forgets nothing.
 */
import type { IndexStep, StoredFinding } from '../../../store/ledger/index-ledger.ts';
import type { Progress } from '../../engine/progress.ts';
import type { Dispute } from '../contracts/contract-agreement.ts';
import type { GenuineContract, Registration, RejectedRegistration } from '../contracts/contracts.ts';
import type { Hex } from '../rpc/chain.ts';

export type RegistryLog = ReturnType<typeof createRegistryLog>;

export function createRegistryLog({ recorder, log }: Progress) {
  const recorded = new Set<string>();
  const isNew = (entry: unknown) => !recorded.has(JSON.stringify(entry));
  /** Entries count as recorded only when they are: a reading that fails is repeated, and tells them again. */
  const record = async (step: Pick<IndexStep, 'registrations' | 'findings' | 'resolved'>) => {
    const entries = [...(step.registrations ?? []), ...(step.findings ?? []), ...(step.resolved ?? [])];
    if (entries.length === 0) return;
    await recorder.record(() => step);
    for (const entry of entries) recorded.add(JSON.stringify(entry));
  };
  return {
    /** Records what a reading found, as far as it is new. */
    async note({
      registrations = [],
      rejected = [],
      disputed = [],
      agreed = [],
    }: {
      /** With the block of the event that told it; null where a view did. */
      readonly registrations?: readonly (Registration & { readonly blockNumber: number | null })[];
      readonly rejected?: readonly RejectedRegistration[];
      readonly disputed?: readonly Dispute[];
      /** Contracts on which endpoints agree, whatever they say. */
      readonly agreed?: readonly Hex[];
    }): Promise<void> {
      const ramps = registrations.flatMap(({ address, role, selector, blockNumber }) =>
        selector === undefined ? [] : [{ contract: address, role, remote: selector, blockNumber }],
      );
      const unknown = rejected.map(({ registration, reason }) => ({
        kind: 'contract-unknown' as const,
        subject: registration.address,
        detail: `The ${registration.role} ${registration.address}, which ${registration.namedBy} names, is not known to this version: ${reason}`,
        body: registration,
      }));
      // They come and go: each is recorded, also one that was before.
      const disputes = disputed.map(({ registration, detail }) => ({
        kind: 'contract-disputed' as const,
        subject: registration.address,
        detail: `Registered by ${registration.namedBy}: ${detail}`,
      }));
      await record({
        registrations: ramps.filter(isNew),
        findings: [...unknown.filter(isNew), ...disputes],
        resolved: agreed.map((subject) => ({ kind: 'contract-disputed' as const, subject })),
      });
    },
    /** The bloom filter of this block denies a log that the block has. */
    async noteWrongBloom(blockNumber: number): Promise<void> {
      const detail = `The bloom filter of block ${blockNumber} denies a log that the block has: filters are not used to check for missing logs`;
      log(detail, 'warn');
      await record({ findings: [{ kind: 'bloom-wrong', subject: '', detail }] });
    },
  };
}

/** The contracts that were not known at the latest reading, to be identified again. */
export function unknownRegistrations(findings: readonly StoredFinding[]): readonly Registration[] {
  return findings.flatMap(({ kind, body }) =>
    kind === 'contract-unknown' && body ? [body as Registration] : [],
  );
}

/** Findings about contracts that are known by now. */
export function knownByNow(findings: readonly StoredFinding[], contracts: ReadonlyMap<Hex, GenuineContract>) {
  return findings.filter(({ kind, subject }) => kind === 'contract-unknown' && contracts.has(subject as Hex));
}
