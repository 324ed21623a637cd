/** The merkle tree of a committed root, and the proof for one of its leaves, as off-ramps and commit stores verify it. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes } from '@noble/hashes/utils.js';
import { hex } from '@scure/base';
import { bytesOf, type Hex, wordOf } from './abi-encoding.ts';

const INNER_DOMAIN = wordOf(1n);
/** Fills up a layer with an odd number of nodes. */
const FILLER: Hex = `0x${'ff'.repeat(32)}`;

/**
 * The root, and the siblings of the leaf, of its parent, and so on up to the root.
 *
 * @param leaves in the order of their sequence numbers, at least one
 */
export function proveLeaf(leaves: readonly Hex[], index: number) {
  const siblings: Hex[] = [];
  let layer = leaves;
  for (let at = index; layer.length > 1; at >>= 1) {
    siblings.push(layer[at ^ 1] ?? FILLER);
    layer = parentsOf(layer);
  }
  return { root: layer[0] ?? FILLER, siblings };
}

function parentsOf(layer: readonly Hex[]): readonly Hex[] {
  return Array.from({ length: Math.ceil(layer.length / 2) }, (_, index) => {
    const left = layer[2 * index] ?? FILLER;
    const right = layer[2 * index + 1] ?? FILLER;
    // The smaller one first, so that a proof need not tell left from right.
    const [first, second] = left < right ? [left, right] : [right, left];
    return `0x${hex.encode(keccak_256(concatBytes(INNER_DOMAIN, bytesOf(first), bytesOf(second))))}` as Hex;
  });
}
