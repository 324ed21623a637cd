/** Bounds on requests to other servers: a deadline, and a maximum size of the response. */

/**
 * Runs an exchange that ends at its deadline, or when `stop` is aborted; then it throws that reason, not fetch's error.
 *
 * Not made with AbortSignal.any, whose signals accumulate on a long-lived one.
 */
export async function withDeadline<T>(
  stop: AbortSignal,
  exchange: (deadline: {
    /** For the request: aborted at the deadline, or when the process stops. */
    readonly signal: AbortSignal;
    /** Sets a new deadline from now; `timeoutError` is thrown when it passes. */
    restart(timeoutMs: number, timeoutError: Error): void;
  }) => Promise<T>,
): Promise<T> {
  stop.throwIfAborted();
  const controller = new AbortController();
  const onStop = () => controller.abort(stop.reason);
  let timer: ReturnType<typeof setTimeout> | undefined;
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

/** The pieces of a body as they arrive. Leaving the loop cancels the rest. */
export async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array> {
  // Not every browser can iterate over a stream.
  const reader = body?.getReader();
  if (!reader) return;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Reads the whole body. Throws a ResponseTooLongError, and cancels the response, where it has more bytes. */
export async function readBody(response: Response, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(response)) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new ResponseTooLongError(maxBytes);
    chunks.push(chunk);
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
