/** One HTTP request to a node, with a bound on everything that the node decides. Redirects are not followed. */
import { authorizationOf, retryAfterOf } from '../../../domain/http-headers.ts';

export interface ExchangeTiming {
  /** To the head of the answer, connecting included. */
  readonly answerMs: number;
  /** From there to its last byte. */
  readonly bodyMs: number;
}

export interface HttpAnswer {
  readonly status: number;
  /** Milliseconds that the node asks us to wait. */
  readonly retryAfterMs: number | null;
  /** The body as JSON; undefined where it is none. */
  readonly body: unknown;
}

/** There is no answer, or not the whole of it. */
export class Unanswered extends Error {
  readonly why: 'slow' | 'lost' | 'long';
  constructor(why: Unanswered['why'], message: string) {
    super(message);
    this.why = why;
  }
}

export type Post = (payload: string) => Promise<HttpAnswer>;

/** What ten thousand long messages take; more than that is asked for in parts. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

export function createPost(
  target: URL,
  timing: ExchangeTiming,
  {
    userAgent,
    signal,
    now,
  }: { readonly userAgent: string; readonly signal: AbortSignal; readonly now: () => number },
): Post {
  const url = new URL(target);
  const authorization = authorizationOf(url);
  // fetch refuses a URL with credentials.
  url.username = '';
  url.password = '';
  url.hash = '';
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json',
    'User-Agent': userAgent,
    ...(authorization !== null && { Authorization: authorization }),
  };

  const attempt = async (payload: string): Promise<HttpAnswer> => {
    signal.throwIfAborted();
    const ending = new AbortController();
    // By hand: signals made with AbortSignal.any pile up behind one that lives long.
    const stop = () => ending.abort(signal.reason);
    signal.addEventListener('abort', stop);
    const endAfter = (ms: number, what: string) =>
      setTimeout(() => ending.abort(new Unanswered('slow', `${what} within ${ms / 1000} s`)), ms);
    let timer = endAfter(timing.answerMs, 'no answer');
    try {
      const response = await fetch(url, {
        method: 'POST',
        redirect: 'manual',
        headers,
        body: payload,
        signal: ending.signal,
      });
      clearTimeout(timer);
      timer = endAfter(timing.bodyMs, 'no whole answer');
      const retryAfterMs = retryAfterOf(response.headers.get('retry-after'), now());
      return { status: response.status, retryAfterMs, body: await readJson(response) };
    } catch (error) {
      signal.throwIfAborted();
      if (ending.signal.aborted) throw ending.signal.reason;
      throw error instanceof Unanswered ? error : new Unanswered('lost', reasonOf(error));
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
    }
  };

  return async (payload) => {
    try {
      return await attempt(payload);
    } catch (error) {
      // A kept connection that the node closed while we wrote to it says nothing about its health, and asking twice
      // does no harm: we only read.
      if (error instanceof Unanswered && error.why === 'lost') return attempt(payload);
      throw error;
    }
  };
}

async function readJson(response: Response): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    // Leaving the loop cancels the rest.
    if (bytes > MAX_ANSWER_BYTES)
      throw new Unanswered('long', `an answer of more than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    return undefined;
  }
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & {
    cause?: { code?: string; message?: string; errors?: readonly { code?: string }[] };
  };
  // Of several addresses that were tried, each has its error.
  const why = cause?.code ?? cause?.errors?.[0]?.code ?? cause?.message ?? message;
  return `no connection (${why})`;
}
