/** A cache of promises: concurrent callers share one (single-flight), results expire, and failures are not kept. */

interface Entry<Value> {
  readonly value: Promise<Value>;
  readonly weight: number;
  /** On the clock of performance.now(); infinite while it is under way. */
  expiresAt: number;
}

/** Beyond a total weight of `maxWeight` the oldest are dropped. Only what `isKept` accepts is served again. */
export function createExpiringCache<Value>(
  ttlMs: number,
  maxWeight = Number.POSITIVE_INFINITY,
  isKept: (value: Value) => boolean = () => true,
) {
  const entries = new Map<string, Entry<Value>>();
  let totalWeight = 0;

  const remove = (key: string, entry: Entry<Value>) => {
    if (entries.get(key) === entry && entries.delete(key)) totalWeight -= entry.weight;
  };

  const find = (key: string): Promise<Value> | undefined => {
    for (const [each, entry] of entries) if (entry.expiresAt <= performance.now()) remove(each, entry);
    return entries.get(key)?.value;
  };

  const add = (key: string, value: Promise<Value>, weight = 1): Promise<Value> => {
    const entry: Entry<Value> = { value, weight, expiresAt: Number.POSITIVE_INFINITY };
    entries.set(key, entry);
    totalWeight += weight;
    for (const [oldest, other] of entries) {
      if (totalWeight <= maxWeight) break;
      remove(oldest, other);
    }
    value.then(
      (result) => {
        if (isKept(result)) entry.expiresAt = performance.now() + ttlMs;
        else remove(key, entry);
      },
      () => remove(key, entry),
    );
    return value;
  };

  return {
    find,
    /** The key must be free. */
    add,
    get: (key: string, make: () => Promise<Value>, weight?: number) => find(key) ?? add(key, make(), weight),
  };
}
