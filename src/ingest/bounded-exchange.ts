/** Bounds on requests to other servers: a deadline, and a maximum size of the response. */

export interface Deadline {
  /** For the request: aborted at the deadline, or when the process stops. */
  readonly signal: AbortSignal;
  /** Sets a new deadline from now; `timeoutError` is thrown when it passes. */
  restart(timeoutMs: number, timeoutError: Error): void;
}

/**
 * Runs an exchange that ends at its deadline, or when `stop` is aborted; then it throws that reason, not fetch's error.
 *
 * Not made with AbortSignal.any, whose signals accumulate on a long-lived one.
 */
export async function withDeadline<T>(
  stop: AbortSignal,
  exchange: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  stop.throwIfAborted();
  const controller = new AbortController();
  const onStop = () => controller.abort(stop.reason);
  let timer: NodeJS.Timeout | undefined;
  stop.addEventListener('abort', onStop);
  try {
    return await exchange({
      signal: controller.signal,
      restart(timeoutMs, timeoutError) {
        clearTimeout(timer);
        timer = setTimeout(() => controller.abort(timeoutError), timeoutMs);
      },
    });
  } catch (error) {
    stop.throwIfAborted();
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    clearTimeout(timer);
    stop.removeEventListener('abort', onStop);
  }
}

/** The response is longer than allowed. */
export class ResponseTooLongError extends Error {
  constructor(maxBytes: number) {
    super(`a response of more than ${maxBytes} bytes`);
  }
}

/** Reads the whole body. Throws a ResponseTooLongError, and cancels the response, where it has more bytes. */
export async function readBody(response: Response, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    // Leaving the loop cancels the rest.
    if (bytes > maxBytes) throw new ResponseTooLongError(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
