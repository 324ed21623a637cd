/** Ledgers of endpoints that lack or lie about single transactions. What they invent is another world's. */
import { executionStates } from './ccip-events.ts';
import { concat, toBase64, u8 } from './runtime/bytes.ts';
import type { Ledger } from './runtime/virtual-cluster.ts';

/** Its lists lack a transaction, as those of a node with a hole in its storage. */
export function hiding(ledger: Ledger, signature: string): Ledger {
  return Object.create(ledger, {
    signaturesFor: {
      value: (...query: Parameters<Ledger['signaturesFor']>) =>
        ledger.signaturesFor(...query).filter((entry) => entry.signature !== signature),
    },
  }) as Ledger;
}

/** A transaction seems never to have been. */
export function denying(ledger: Ledger, signature: string): Ledger {
  return Object.create(hiding(ledger, signature), {
    transaction: {
      value: (asked: string) => (asked === signature ? undefined : ledger.transaction(asked)),
    },
    placeOf: { value: (asked: string) => (asked === signature ? undefined : ledger.placeOf(asked)) },
  }) as Ledger;
}

/** The log of an execution that succeeded says that it failed. */
export function alteringExecution(ledger: Ledger, signature: string): Ledger {
  const altered = (line: string): string => {
    const [, text] = /^Program data: (\S+)$/.exec(line) ?? [];
    const data = text === undefined ? undefined : new Uint8Array(Buffer.from(text, 'base64'));
    if (data?.at(-1) !== executionStates.success) return line;
    return `Program data: ${toBase64(concat(data.slice(0, -1), u8(executionStates.failure)))}`;
  };
  return Object.create(ledger, {
    transaction: {
      value: (asked: string) => {
        const found = ledger.transaction(asked);
        if (!found || asked !== signature) return found;
        const { meta } = found;
        return { ...found, meta: { ...meta, logMessages: meta.logMessages.map(altered) } };
      },
    },
  }) as Ledger;
}
