/** The contracts of one network that are believed, and who named them. */
import type { NamedContract } from '../../store/index-ledger.ts';
import type { Hex } from './chain.ts';
import type { GenuineContract } from './contracts.ts';

export class ContractBook {
  readonly #contracts = new Map<Hex, GenuineContract>();
  readonly #namedBlocks = new Map<Hex, string>();
  /** In the order in which they came in. */
  readonly #entries: Hex[] = [];

  get contracts(): ReadonlyMap<Hex, GenuineContract> {
    return this.#contracts;
  }

  /** How many have come in so far: a mark for `since`. */
  get mark(): number {
    return this.#entries.length;
  }

  /** Those that have come in since a mark and are still believed. */
  since(mark: number): readonly Hex[] {
    return this.#entries.slice(mark).filter((address) => this.#contracts.has(address));
  }

  /** Those that are still believed when these blocks are abandoned. */
  without(orphaned: readonly string[]): ReadonlyMap<Hex, GenuineContract> {
    if (orphaned.length === 0) return this.#contracts;
    const stays = (address: Hex) => !orphaned.includes(this.#namedBlocks.get(address) ?? '');
    return new Map([...this.#contracts].filter(([address]) => stays(address)));
  }

  /**
   * Takes in contracts that are stored. Those whose line of names does not begin at one of `routers` are left out:
   * a router that is no longer configured is no longer believed, nor is whom it named.
   */
  load(stored: readonly NamedContract[], routers: readonly Hex[]): void {
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
      if (this.#contracts.has(address as Hex)) continue;
      this.#contracts.set(address as Hex, body as GenuineContract);
      this.#entries.push(address as Hex);
      if (blockHash !== null) this.#namedBlocks.set(address as Hex, blockHash);
    }
  }

  /** Forgets whom abandoned blocks have named. */
  forget(orphaned: readonly string[]): void {
    for (const [address, blockHash] of this.#namedBlocks) {
      if (!orphaned.includes(blockHash)) continue;
      this.#contracts.delete(address);
      this.#namedBlocks.delete(address);
    }
  }
}
