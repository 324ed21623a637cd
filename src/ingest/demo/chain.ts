/** A simulated chain: blocks at a steady pace, and what an observer would note of them. */
import type { Observation } from '../../domain/facts.ts';
import type { Network } from '../../domain/networks.ts';
import { knownNetwork } from './message-writer.ts';
import type { Derivation, HashByNumber } from './randomness.ts';
import { heightsAt, type NetworkHabits } from './world.ts';

const second = 1_000;

export interface Block {
  readonly number: number;
  /** To the millisecond, for the order of blocks within a second. */
  readonly minedAt: number;
  /** What the chain says: whole seconds. */
  readonly timestamp: number;
}

/** Numbers and times of blocks follow from each other. */
export class Chain {
  readonly network: Network;
  readonly habits: NetworkHabits;
  private readonly blockHash: HashByNumber;

  constructor(habits: NetworkHabits, derive: Derivation) {
    this.network = knownNetwork(habits.name);
    this.habits = habits;
    this.blockHash = derive.hashes(this.network.family, `blocks of ${this.network.name}`);
  }

  /** The first block at or after a time. Its timestamp is never before that time either. */
  blockFrom(time: number): Block {
    const { height, blockMilliseconds } = this.habits;
    const blocks = Math.ceil((time - heightsAt) / blockMilliseconds);
    const minedAt = heightsAt + blocks * blockMilliseconds;
    return { number: height + blocks, minedAt, timestamp: Math.ceil(minedAt / second) * second };
  }

  /** Never earlier for a later block: roots rely on numbers finalizing in order. */
  finalizedAt(blockTimestamp: number): number {
    const epoch = this.habits.epochSeconds * second;
    return (Math.floor(blockTimestamp / epoch) + 1) * epoch + this.habits.finalityLagSeconds * second;
  }

  observe(block: Block, transactionHash: string | null, logIndex: number | null): Observation {
    return {
      network: this.network.selector,
      blockNumber: block.number,
      blockHash: this.blockHash(block.number),
      transactionHash,
      logIndex,
      at: isoTime(block),
    };
  }
}

export function isoTime(block: Block): string {
  return new Date(block.timestamp).toISOString();
}
