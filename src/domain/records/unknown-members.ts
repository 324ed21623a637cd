/**
 * Members of a record that the contract does not define: what sources have added since, and what they may add.
 *
 * They are kept as the source wrote them, behind the defined members. A bound on their size keeps a source from
 * filling the store with them: what is over it is dropped, and the record is stored without it.
 */

/** The most characters of undefined members in one record. */
export const MAX_UNKNOWN_CHARACTERS = 64 * 1024;
const MAX_DEPTH = 16;
/** What exports write beside the record, on request: attempts to execute it. They are not part of the record. */
export const ATTEMPTS_MEMBER = 'executionAttempts';
const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,99}$/;

export interface UnknownMembers {
  /** Whether the member may be kept. Counts it against the bound of the record. */
  accepts(key: string, value: unknown): boolean;
}

export function createUnknownMembers(): UnknownMembers {
  let remaining = MAX_UNKNOWN_CHARACTERS;
  return {
    accepts(key, value) {
      // `__proto__` and other inherited names are not plain members in JavaScript.
      if (!NAME.test(key) || key in Object.prototype || key === ATTEMPTS_MEMBER) return false;
      const size = key.length + sizeOf(value, MAX_DEPTH, remaining);
      if (size > remaining) return false;
      remaining -= size;
      return true;
    },
  };
}

/** About how many characters a JSON value has; Infinity for one that is nested too deep or over the limit. */
function sizeOf(value: unknown, depth: number, limit: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 8;
  if (depth === 0) return Number.POSITIVE_INFINITY;
  let size = 2;
  for (const [key, member] of Object.entries(value)) {
    if (key === '__proto__') return Number.POSITIVE_INFINITY;
    size += key.length + 4 + sizeOf(member, depth - 1, limit);
    if (size > limit) return Number.POSITIVE_INFINITY;
  }
  return size;
}
