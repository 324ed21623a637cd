/** Labels: names that the operator gives to addresses, for display and search. Plain text. */
import type { BytesHex } from '../addresses.ts';

export const MAX_LABEL_CHARACTERS = 64;

export interface Label {
  readonly name: string;
  readonly bytes: BytesHex;
  /** As the network's family writes it; without a network, as lanescan.yaml does. */
  readonly address: string;
  /** Chain selector; null: on every network. */
  readonly network: string | null;
}

let defined: readonly Label[] = [];

/** Replaces what an earlier call defined, for the whole process. */
export function defineLabels(labels: readonly Label[]): void {
  defined = labels;
}

export function definedLabels(): readonly Label[] {
  return defined;
}

/** Labels with these words in their name, those that begin with them first. */
export function labelsNamed(labels: readonly Label[], text: string): readonly Label[] {
  const typed = text.trim().toLowerCase();
  if (typed === '') return [];
  const rank = ({ name }: Label) => (name.toLowerCase().startsWith(typed) ? 0 : 1);
  return labels
    .filter(({ name }) => name.toLowerCase().includes(typed))
    .sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}
