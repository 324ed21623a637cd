/** Very many transactions that name the router and do nothing, computed when they are asked for. */

import type { SolanaWorld } from './ccip-world.ts';
import { addressOf } from './runtime/bytes.ts';

export interface BulkNoise {
  readonly count: number;
  /** In each slot that has a block. */
  readonly perSlot: number;
  readonly isFailed?: boolean;
}

/** Spreads noise over the slots from now on; the cluster grows by as many as it takes. */
export function addBulkNoise(world: SolanaWorld, { count, perSlot, isFailed = false }: BulkNoise): void {
  const { cluster, programs } = world;
  const noisy = addressOf('noisy program');
  const feePayer = addressOf('noisy payer');
  const data = new Uint8Array([0x40]);
  const first = cluster.head;
  // A skipped slot's share falls into the slot below, so that places are found without a table.
  const slotOf = (index: number) =>
    Math.max(first, cluster.slotAtOrBelow(first + Math.floor(index / perSlot)));
  cluster.addSeries({
    count,
    addresses: [programs.router, noisy, feePayer],
    slotOf,
    planOf: () => ({
      feePayer,
      instructions: [{ program: noisy, accounts: [{ address: programs.router }], data }],
    }),
    errOf: () => (isFailed ? { InstructionError: [0, { Custom: 1 }] } : null),
  });
  cluster.grow(Math.ceil(count / perSlot));
}
