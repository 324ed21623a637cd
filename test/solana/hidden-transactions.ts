/** A ledger whose lists lack a transaction, as those of a node with a hole in its storage. */
import type { Ledger } from './runtime/ledger.ts';

export function hiding(ledger: Ledger, signature: string): Ledger {
  return Object.create(ledger, {
    signaturesFor: {
      value: (...query: Parameters<Ledger['signaturesFor']>) =>
        ledger.signaturesFor(...query).filter((entry) => entry.signature !== signature),
    },
  }) as Ledger;
}
