/** Bounds on a request to somebody else's server, for everything that the server decides: how long, and how much. */

export interface Deadline {
  /** For the request: aborted when the time is over, or when everything has to stop. */
  readonly signal: AbortSignal;
  /** Begins anew: from now on there are so many milliseconds, and this is what is thrown behind them. */
  restart(milliseconds: number, tooLate: Error): void;
}

/**
 * An exchange that ends by its deadline, or when `stop` comes; then it throws why, not what fetch makes of it.
 *
 * By hand: signals made with AbortSignal.any pile up behind one that lives long.
 */
export async function withDeadline<T>(
  stop: AbortSignal,
  exchange: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  stop.throwIfAborted();
  const ending = new AbortController();
  const onStop = () => ending.abort(stop.reason);
  let timer: NodeJS.Timeout | undefined;
  stop.addEventListener('abort', onStop);
  try {
    return await exchange({
      signal: ending.signal,
      restart(milliseconds, tooLate) {
        clearTimeout(timer);
        timer = setTimeout(() => ending.abort(tooLate), milliseconds);
      },
    });
  } catch (error) {
    stop.throwIfAborted();
    throw ending.signal.aborted ? ending.signal.reason : error;
  } finally {
    clearTimeout(timer);
    stop.removeEventListener('abort', onStop);
  }
}

/** An answer is longer than anybody should hold in memory. */
export class AnswerTooLong extends Error {
  constructor(maxBytes: number) {
    super(`an answer of more than ${maxBytes} bytes`);
  }
}

/** The whole body of an answer; throws an AnswerTooLong, and hangs up, where it has more bytes. */
export async function readBody(response: Response, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    // Leaving the loop cancels the rest.
    if (bytes > maxBytes) throw new AnswerTooLong(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
