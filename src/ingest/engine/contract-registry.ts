/** The contract registry of one network: its trusted contracts (or programs), and which contract registered each. */
import type { RegisteredContract } from '../../store/ledger/index-ledger.ts';

/** `Body` is what the family knows of a contract; it is stored as it is. */
export type ContractRegistry<Address extends string = string, Body = unknown> = ReturnType<
  typeof createContractRegistry<Address, Body>
>;

/** @param isRescannedToo whether a contract's events depend on which other contracts are known */
export function createContractRegistry<Address extends string = string, Body = unknown>(
  isRescannedToo: (body: Body) => boolean = () => false,
) {
  const contracts = new Map<Address, Body>();
  const registeredIn = new Map<Address, string>();
  /** In the order in which they were added. */
  const entries: Address[] = [];

  // What is stored was written by the family whose registry this is.
  const add = (registered: readonly RegisteredContract[]): void => {
    for (const { address: stored, blockHash, body } of registered) {
      const address = stored as Address;
      if (contracts.has(address)) continue;
      contracts.set(address, body as Body);
      entries.push(address);
      if (blockHash !== null) registeredIn.set(address, blockHash);
    }
  };

  return {
    contracts: contracts as ReadonlyMap<Address, Body>,
    /** How many have been added so far: a mark for `since`. */
    get mark() {
      return entries.length;
    },
    /** Those that were added since a mark and are still trusted. */
    since: (mark: number) => entries.slice(mark).filter((address) => contracts.has(address)),
    /** Those that are still trusted when these blocks are abandoned. */
    without(orphaned: readonly string[]): ReadonlyMap<Address, Body> {
      if (orphaned.length === 0) return contracts;
      const stays = (address: Address) => !orphaned.includes(registeredIn.get(address) ?? '');
      return new Map([...contracts].filter(([address]) => stays(address)));
    },
    /** The contracts whose events are read again when history is read again for these. */
    rescanned(given: readonly string[]): readonly string[] {
      const dependent = [...contracts].flatMap(([address, body]) => (isRescannedToo(body) ? [address] : []));
      const isDependent = (address: string) => dependent.some((other) => other === address);
      return given.every(isDependent) ? given : [...new Set([...given, ...dependent])];
    },
    /**
     * Adds contracts that are stored. Those whose chain of registrations does not begin at one of `routers` are left out:
     * a router that is no longer configured is no longer trusted, nor are the contracts that it registered.
     */
    load(stored: readonly RegisteredContract[], routers: readonly string[]): void {
      const trusted = new Set(routers);
      for (let before = -1; before !== trusted.size; ) {
        before = trusted.size;
        for (const { address, namedBy } of stored) {
          if (namedBy !== null && trusted.has(namedBy)) trusted.add(address);
        }
      }
      add(stored.filter(({ address }) => trusted.has(address)));
    },
    add,
    /** Removes the contracts that were registered in abandoned blocks. */
    forget(orphaned: readonly string[]): void {
      for (const [address, blockHash] of registeredIn) {
        if (!orphaned.includes(blockHash)) continue;
        contracts.delete(address);
        registeredIn.delete(address);
      }
    },
  };
}
