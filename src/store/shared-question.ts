/**
 * One question for many who ask: whoever comes while it is on its way could be answered with the past, and shares the
 * next one.
 */
export function createSharedQuestion<T>(ask: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const begin = (): Promise<T> => {
    const asked = ask().finally(() => {
      if (current === asked) current = undefined;
    });
    current = asked;
    return asked;
  };
  return () => {
    if (!current) return begin();
    next ??= current
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return begin();
      });
    return next;
  };
}
