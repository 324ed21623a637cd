/** One HTTP request to a node, with a bound on everything that the node decides. Redirects are not followed. */

import { ResponseTooLongError, readBody, withDeadline } from '../../../base/bounded-exchange.ts';
import { basicAuthorization, parseRetryAfterMs } from '../../../base/http-headers.ts';
import { withoutCredentials } from '../../../base/url-parts.ts';

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
  /** The body as JSON; undefined where it is not JSON. */
  readonly body: unknown;
}

/** There is no answer, or not the whole of it. */
export class UnansweredError extends Error {
  readonly why: 'slow' | 'lost' | 'long';
  constructor(why: UnansweredError['why'], message: string) {
    super(message);
    this.why = why;
  }
}

/** What ten thousand long messages take; more than that is asked for in parts. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

export function createPost(
  target: URL,
  timing: ExchangeTiming,
  { userAgent, signal, now }: { userAgent: string; signal: AbortSignal; now: () => number },
) {
  const url = withoutCredentials(target);
  const authorization = basicAuthorization(target);
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json',
    'User-Agent': userAgent,
    ...(authorization !== null && { Authorization: authorization }),
  };

  const attempt = (payload: string) =>
    withDeadline(signal, async (deadline): Promise<HttpAnswer> => {
      const endAfter = (ms: number, what: string) =>
        deadline.restart(ms, new UnansweredError('slow', `${what} within ${ms / 1000} s`));
      endAfter(timing.answerMs, 'no answer');
      const response = await fetch(url, {
        method: 'POST',
        redirect: 'manual',
        headers,
        body: payload,
        signal: deadline.signal,
      });
      endAfter(timing.bodyMs, 'no whole answer');
      const retryAfterMs = parseRetryAfterMs(response.headers.get('retry-after'), now());
      return { status: response.status, retryAfterMs, body: await readJson(response) };
    }).catch((error: unknown) => {
      signal.throwIfAborted();
      if (error instanceof ResponseTooLongError) throw new UnansweredError('long', error.message);
      throw error instanceof UnansweredError ? error : new UnansweredError('lost', reasonOf(error));
    });

  return async (payload: string): Promise<HttpAnswer> => {
    try {
      return await attempt(payload);
    } catch (error) {
      // A kept connection that the node closed while we wrote to it says nothing about its health, and asking twice
      // does no harm: we only read.
      if (error instanceof UnansweredError && error.why === 'lost') return attempt(payload);
      throw error;
    }
  };
}

async function readJson(response: Response): Promise<unknown> {
  const content = await readBody(response, MAX_ANSWER_BYTES);
  try {
    return JSON.parse(new TextDecoder().decode(content));
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
