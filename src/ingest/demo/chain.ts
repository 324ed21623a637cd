/**
 * A simulated chain: blocks at regular intervals, and the observations that an indexer would make of them; and the queue of
 * the events that are to happen on chains.
 */
import type { Fact } from '../../domain/facts.ts';
import { findNetwork, type Network } from '../../domain/networks/networks.ts';
import { HEIGHTS_AT, type NetworkProfile } from './parameters.ts';
import type { Derivation } from './randomness.ts';

export const SECOND_MS = 1_000;

export interface Block {
  readonly number: number;
  /** To the millisecond, for the order of blocks within a second. */
  readonly minedAt: number;
  /** The timestamp of the chain, in whole seconds (milliseconds since 1970). */
  readonly timestamp: number;
}

export type Chain = ReturnType<typeof createChain>;

/** Numbers and times of its blocks follow from each other. */
export function createChain(profile: NetworkProfile, derive: Derivation) {
  const { name, height, blockMs, epochSeconds, finalityLagSeconds } = profile;
  const network: Network | undefined = findNetwork(name);
  if (!network) throw new Error(`The simulation uses an unknown network ${name}.`);
  const blockHash = derive.hashes(network.family, `blocks of ${name}`);
  return {
    network,
    blockMs,
    /** The first block at or after a time. Its timestamp is never before that time either. */
    blockFrom(time: number): Block {
      const blocks = Math.ceil((time - HEIGHTS_AT) / blockMs);
      const minedAt = HEIGHTS_AT + blocks * blockMs;
      return { number: height + blocks, minedAt, timestamp: Math.ceil(minedAt / SECOND_MS) * SECOND_MS };
    },
    /** Never earlier for a later block: merkle roots rely on sequence numbers becoming final in order. */
    finalizedAt(blockTimestamp: number): number {
      const epochMs = epochSeconds * SECOND_MS;
      return (Math.floor(blockTimestamp / epochMs) + 1) * epochMs + finalityLagSeconds * SECOND_MS;
    },
    observe: (block: Block, transactionHash: string | null = null, logIndex: number | null = null) => ({
      network: network.selector,
      blockNumber: block.number,
      blockHash: blockHash(block.number),
      transactionHash,
      logIndex,
      at: new Date(block.timestamp).toISOString(),
    }),
  };
}

/** Runs at its time and returns its facts. */
export type SimulatedEvent = () => Fact | readonly Fact[] | undefined;

/** A priority queue by time, as a sorted list: only events of messages in flight are in it, and most are added near its end. */
export function createEventQueue() {
  /** The latest first, so that the earliest is taken from the end. */
  const entries: { readonly at: number; readonly minedAt: number; readonly event: SimulatedEvent }[] = [];
  return {
    /** Events of the same time run in the order in which they were added. */
    add(at: number, minedAt: number, event: SimulatedEvent): void {
      const later = entries.findLastIndex((other) => (other.at - at || other.minedAt - minedAt) > 0);
      entries.splice(later + 1, 0, { at, minedAt, event });
    },
    /** Removes the earliest event, unless it is later than `time`. */
    nextUntil(time: number): SimulatedEvent | undefined {
      const earliest = entries.at(-1);
      return earliest && earliest.at <= time ? entries.pop()?.event : undefined;
    },
  };
}
