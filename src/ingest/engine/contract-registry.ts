/** The trusted contracts (or programs) of one network, and which contract registered each. */
import type { RegisteredContract } from '../../store/ledger/index-ledger.ts';

/** `Body` is what the family knows of a contract; it is stored as it is. */
export interface ContractRegistry<Address extends string = string, Body = unknown> {
  readonly contracts: ReadonlyMap<Address, Body>;
  /** How many have been added so far: a mark for `since`. */
  readonly mark: number;
  /** Those that were added since a mark and are still trusted. */
  since(mark: number): readonly Address[];
  /** Those that are still trusted when these blocks are abandoned. */
  without(orphaned: readonly string[]): ReadonlyMap<Address, Body>;
  /**
   * Adds contracts that are stored. Those whose chain of registrations does not begin at one of `routers` are left out:
   * a router that is no longer configured is no longer trusted, nor are the contracts that it registered.
   */
  load(stored: readonly RegisteredContract[], routers: readonly Address[]): void;
  add(named: readonly RegisteredContract[]): void;
  /** Removes the contracts that were registered in abandoned blocks. */
  forget(orphaned: readonly string[]): void;
}

export function createContractRegistry<Address extends string = string, Body = unknown>(): ContractRegistry<
  Address,
  Body
> {
  const contracts = new Map<Address, Body>();
  const namedBlocks = new Map<Address, string>();
  /** In the order in which they were added. */
  const entries: Address[] = [];

  const add = (named: readonly RegisteredContract[]): void => {
    for (const { address, blockHash, body } of named) {
      if (contracts.has(address as Address)) continue;
      contracts.set(address as Address, body as Body);
      entries.push(address as Address);
      if (blockHash !== null) namedBlocks.set(address as Address, blockHash);
    }
  };

  return {
    contracts,
    get mark() {
      return entries.length;
    },
    since: (mark) => entries.slice(mark).filter((address) => contracts.has(address)),
    without(orphaned) {
      if (orphaned.length === 0) return contracts;
      const stays = (address: Address) => !orphaned.includes(namedBlocks.get(address) ?? '');
      return new Map([...contracts].filter(([address]) => stays(address)));
    },
    load(stored, routers) {
      const trusted = new Set<string>(routers);
      for (let before = -1; before !== trusted.size; ) {
        before = trusted.size;
        for (const { address, namedBy } of stored) {
          if (namedBy !== null && trusted.has(namedBy)) trusted.add(address);
        }
      }
      add(stored.filter(({ address }) => trusted.has(address)));
    },
    add,
    forget(orphaned) {
      for (const [address, blockHash] of namedBlocks) {
        if (!orphaned.includes(blockHash)) continue;
        contracts.delete(address);
        namedBlocks.delete(address);
      }
    },
  };
}
