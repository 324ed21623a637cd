/** Waits for work up to a time limit; false where it was not done by then. The work goes on, and its failure counts as done. */
export async function isDoneWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  const done = work.then(
    () => true,
    () => true,
  );
  return Promise.race([done, limit]).finally(() => clearTimeout(timer));
}
