/**
 * The known name that somebody most likely meant, or undefined when none is near.
 *
 * @example nearestName('sourceTxHash', ['sourceTransactionHash', 'sender']) // 'sourceTransactionHash'
 */
export function nearestName(typed: string, known: readonly string[]): string | undefined {
  if (typed.length > 64) return undefined;
  const wanted = typed.toLowerCase();
  const scored = known
    // An abbreviation leaves out half of a name at the most; beyond that the letters just happen to be there.
    .filter((name) => name.length <= 2 * typed.length)
    .map((name) => ({ name, distance: distanceTo(wanted, name.toLowerCase()), length: name.length }))
    .sort((a, b) => a.distance - b.distance);
  const best = scored[0];
  return best && best.distance <= Math.max(2, Math.max(best.length, typed.length) * 0.4)
    ? best.name
    : undefined;
}

/** Levenshtein distance; letters left out are half as wrong, for people abbreviate. */
function distanceTo(typed: string, name: string): number {
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
