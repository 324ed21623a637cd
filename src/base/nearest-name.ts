/** Longer input is not a typing mistake, and comparing it would be slow. */
const MAX_TYPED_LENGTH = 64;

/**
 * Finds the known name that is most similar to a mistyped one (for "did you mean"); undefined when none is similar.
 *
 * @example nearestName('sourceTxHash', ['sourceTransactionHash', 'sender']) // 'sourceTransactionHash'
 */
export function nearestName(typed: string, known: readonly string[]): string | undefined {
  if (typed.length > MAX_TYPED_LENGTH) return undefined;
  const lowerCased = typed.toLowerCase();
  const scored = known
    // An abbreviation keeps at least half of the letters; a longer name only contains them by chance.
    .filter((name) => name.length <= 2 * typed.length)
    .map((name) => ({ name, distance: distanceBetween(lowerCased, name.toLowerCase()), length: name.length }))
    .sort((a, b) => a.distance - b.distance);
  const best = scored[0];
  return best && best.distance <= Math.max(2, Math.max(best.length, typed.length) * 0.4)
    ? best.name
    : undefined;
}

/** Levenshtein distance, where an omitted letter costs half, because people abbreviate. */
function distanceBetween(typed: string, name: string): number {
  let previous = Array.from({ length: name.length + 1 }, (_, j) => j / 2);
  for (let i = 1; i <= typed.length; i++) {
    const current = [i];
    for (let j = 1; j <= name.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (typed[i - 1] === name[j - 1] ? 0 : 1);
      current[j] = Math.min(substitution, (previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 0.5);
    }
    previous = current;
  }
  return previous[name.length] ?? Number.POSITIVE_INFINITY;
}
