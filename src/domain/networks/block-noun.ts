/** What people call the numbers by which a chain counts its history. */

/** Solana counts slots, some of which have no block. Imports may name families that are not known here. */
export function blockNoun(family: string): 'block' | 'slot' {
  return family === 'SVM' ? 'slot' : 'block';
}

/** The same as the name of a field. */
export function blockTitle(family: string): 'Block' | 'Slot' {
  return blockNoun(family) === 'slot' ? 'Slot' : 'Block';
}
