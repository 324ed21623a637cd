/** The trusted contracts (or programs) of one network, and which contract registered each. */
import type { NamedContract } from '../../store/ledger/index-ledger.ts';

/** `Body` is what the family knows of a contract; it is stored as it is. */
export class ContractBook<Address extends string = string, Body = unknown> {
  readonly #contracts = new Map<Address, Body>();
  readonly #namedBlocks = new Map<Address, string>();
  /** In the order in which they were added. */
  readonly #entries: Address[] = [];

  get contracts(): ReadonlyMap<Address, Body> {
    return this.#contracts;
  }

  /** How many have been added so far: a mark for `since`. */
  get mark(): number {
    return this.#entries.length;
  }

  /** Those that were added since a mark and are still trusted. */
  since(mark: number): readonly Address[] {
    return this.#entries.slice(mark).filter((address) => this.#contracts.has(address));
  }

  /** Those that are still trusted when these blocks are abandoned. */
  without(orphaned: readonly string[]): ReadonlyMap<Address, Body> {
    if (orphaned.length === 0) return this.#contracts;
    const stays = (address: Address) => !orphaned.includes(this.#namedBlocks.get(address) ?? '');
    return new Map([...this.#contracts].filter(([address]) => stays(address)));
  }

  /**
   * Adds contracts that are stored. Those whose chain of registrations does not begin at one of `routers` are left out:
   * a router that is no longer configured is no longer trusted, nor are the contracts that it registered.
   */
  load(stored: readonly NamedContract[], routers: readonly Address[]): void {
    const trusted = new Set<string>(routers);
    for (let before = -1; before !== trusted.size; ) {
      before = trusted.size;
      for (const { address, namedBy } of stored) {
        if (namedBy !== null && trusted.has(namedBy)) trusted.add(address);
      }
    }
    this.add(stored.filter(({ address }) => trusted.has(address)));
  }

  add(named: readonly NamedContract[]): void {
    for (const { address, blockHash, body } of named) {
      if (this.#contracts.has(address as Address)) continue;
      this.#contracts.set(address as Address, body as Body);
      this.#entries.push(address as Address);
      if (blockHash !== null) this.#namedBlocks.set(address as Address, blockHash);
    }
  }

  /** Removes the contracts that were registered in abandoned blocks. */
  forget(orphaned: readonly string[]): void {
    for (const [address, blockHash] of this.#namedBlocks) {
      if (!orphaned.includes(blockHash)) continue;
      this.#contracts.delete(address);
      this.#namedBlocks.delete(address);
    }
  }
}
