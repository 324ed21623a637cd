/**
 * One endpoint: JSON-RPC calls in batches that it takes, at a rate that it takes, answers matched to their calls.
 *
 * RPC errors are returned in the place of answers, for what it means depends on the question. What it
 * fails to answer is thrown as a NodeError. Nothing that is thrown or returned shows more of its URL than the host.
 */
import { setMaxListeners } from 'node:events';
import { type BackoffLimits, backoffMs } from '../../../base/backoff.ts';
import { createRedactor } from '../../../base/url-parts.ts';
import type { ProblemKind } from '../../../domain/networks/indexing-problem.ts';
import { inParallel } from '../../work.ts';
import { NodeError } from '../faults.ts';
import { createPost, type ExchangeTiming, type HttpAnswer, UnansweredError } from './exchange.ts';
import { type ClassifyRpcError, errorIn, type RpcError } from './rpc-error.ts';
import { createTokenBucket } from './token-bucket.ts';

export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

export type RpcAnswer = { readonly result: unknown } | { readonly error: RpcError };

export interface EndpointTiming extends ExchangeTiming, BackoffLimits {
  /** How long one request may wait in all because of the endpoint's rate limit. */
  readonly maxWaitMs: number;
  /** The longest rest of all, whatever a `Retry-After` says. */
  readonly longestRetryAfterMs: number;
}

export const usualTiming: EndpointTiming = {
  answerMs: 20_000,
  bodyMs: 60_000,
  firstPauseMs: 1_000,
  longestPauseMs: 60_000,
  maxWaitMs: 10_000,
  longestRetryAfterMs: 600_000,
};

export interface EndpointOptions {
  readonly url: URL;
  readonly name: string;
  readonly requestsPerSecond: number;
  readonly batchSize: number;
  readonly userAgent: string;
  readonly signal: AbortSignal;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly timing: EndpointTiming;
  readonly classifyRpcError: ClassifyRpcError;
  /** Called with what was learned of its limits, in words. */
  readonly learned?: (text: string) => void;
}

export type Endpoint = ReturnType<typeof createEndpoint>;

/** A fault after which the endpoint is left alone for a certain time. */
export class EndpointError extends NodeError {
  readonly restMs: number | undefined;
  constructor(message: string, kind: ProblemKind, restMs?: number) {
    super(message, kind);
    this.restMs = restMs;
  }
}

/** An answer did not come in time, or was too long: it may be the question. */
export class AnswerTooHeavyError extends NodeError {
  constructor(message: string) {
    super(message, 'slow');
  }
}

/** Requests of one `ask` that are under way at once. */
const CONCURRENT_REQUESTS = 4;
/** Rest of an endpoint whose failure lasts, such as a wrong key. */
const LASTING_FAULT_REST_MS = 300_000;
const MAX_SHOWN = 200;
/** Statuses with which servers answer an array where they want an object, or a shorter one. */
const batchRejectingStatuses: ReadonlySet<number> = new Set([400, 405, 406, 413, 414, 415, 422, 501]);

interface Item extends RpcCall {
  readonly place: number;
  readonly isBulk: boolean;
}

/** How long, and how often, some calls have waited because of the endpoint's rate limit. */
interface Waited {
  ms: number;
  times: number;
}

/** What one request comes to. */
type Outcome =
  | { readonly kind: 'answered'; readonly answers: readonly RpcAnswer[] }
  | { readonly kind: 'batch rejected'; readonly accepts: number | undefined }
  | { readonly kind: 'too fast'; readonly waitMs: number | null; readonly said: string };

export function createEndpoint(options: EndpointOptions) {
  const { url, name, signal, random, timing, classifyRpcError } = options;
  // Each request that is under way listens; there may be many.
  setMaxListeners(0, signal);
  const post = createPost(url, timing, options);
  const bucket = createTokenBucket(options.requestsPerSecond);
  const conceal = createRedactor(url);
  // A batch larger than a second's worth would break the rate all by itself.
  let batchSize = Math.max(1, Math.min(options.batchSize, Math.floor(options.requestsPerSecond)));
  let requests = 0;
  let lastId = 0;

  /** Words of the node, harmless and short. */
  const shown = (text: string): string => {
    const line = conceal(text)
      .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
      .trim();
    return line.length <= MAX_SHOWN ? line : `${line.slice(0, MAX_SHOWN - 1)}…`;
  };
  const shownError = (rpcError: RpcError): RpcError => ({ ...rpcError, message: shown(rpcError.message) });
  const fault = (items: readonly Item[], what: string, kind: ProblemKind = 'bad-answer', restMs?: number) =>
    new EndpointError(`${name}: ${methodsOf(items)}: ${shown(what)}`, kind, restMs);
  const lastingFault = (items: readonly Item[], what: string, kind: ProblemKind) =>
    fault(items, what, kind, LASTING_FAULT_REST_MS);

  const send = async (items: readonly Item[]): Promise<Outcome> => {
    await bucket.take(items.length, items[0]?.isBulk === true, signal);
    requests += items.length;
    const firstId = lastId + 1;
    lastId += items.length;
    const callOf = ({ method, params }: Item, index: number) => ({
      jsonrpc: '2.0',
      id: firstId + index,
      method,
      params,
    });
    const calls = items.map(callOf);
    const answer = await post(JSON.stringify(items.length === 1 ? calls[0] : calls));
    return items.length === 1 ? readSingle(answer, items, firstId) : readBatch(answer, items, firstId);
  };

  const readSingle = (answer: HttpAnswer, items: readonly Item[], id: number): Outcome => {
    const { status, body } = answer;
    const error = errorIn(body);
    if (error === undefined) {
      if (!isSuccess(status)) return unusable(answer, items);
      return { kind: 'answered', answers: [resultOf(body, id, items)] };
    }
    // An RPC error of the request as a whole often has no id.
    const { id: given = null } = body as { id?: unknown };
    if (given !== id && given !== null) throw fault(items, 'an answer to another call');
    const rpcError = classifyRpcError(error, items[0]?.method ?? '');
    const rejected = rejectedAsWhole(answer, rpcError, items);
    return rejected ?? { kind: 'answered', answers: [{ error: shownError(rpcError) }] };
  };

  const readBatch = (answer: HttpAnswer, items: readonly Item[], firstId: number): Outcome => {
    const { status, body } = answer;
    if (!Array.isArray(body) || body.length !== items.length) return readNoBatch(answer, items);
    if (status === 429) return tooFast(answer, '');
    const byId = new Map(body.map((entry: { id?: unknown } | null) => [entry?.id, entry]));
    const answers = items.map((item, index): RpcAnswer => {
      const id = firstId + index;
      const entry = byId.get(id);
      const error = errorIn(entry);
      if (error === undefined) return resultOf(entry, id, items);
      return { error: shownError(classifyRpcError(error, item.method, true)) };
    });
    const rpcErrors = answers.flatMap((one) => ('error' in one ? one.error : []));
    const rejected = rpcErrors.find(({ kind }) => kind === 'batch');
    return rejected ? { kind: 'batch rejected', accepts: rejected.accepts } : { kind: 'answered', answers };
  };

  /** An answer to a batch that is not one answer a call: most often the batch itself was rejected. */
  const readNoBatch = (answer: HttpAnswer, items: readonly Item[]): Outcome => {
    const { status, body } = answer;
    const [error] = (Array.isArray(body) ? body : [body]).map(errorIn);
    const rpcError = error && classifyRpcError(error, '', true);
    const outcome = rpcError && rejectedAsWhole(answer, rpcError, items);
    if (outcome) return outcome;
    const isMisunderstood =
      rpcError !== undefined && ['batch', 'invalid', 'unsupported'].includes(rpcError.kind);
    if (isMisunderstood || batchRejectingStatuses.has(status))
      return { kind: 'batch rejected', accepts: rpcError?.accepts };
    if (rpcError !== undefined) throw fault(items, rpcError.message, 'refused');
    if (!Array.isArray(body)) return unusable(answer, items);
    throw fault(items, `${body.length} answers to a batch of ${items.length}`);
  };

  /** Where an RPC error is about us and not about the question. */
  const rejectedAsWhole = (
    answer: HttpAnswer,
    { kind, message, waitMs }: RpcError,
    items: readonly Item[],
  ): Outcome | undefined => {
    const { status } = answer;
    if (status === 429 || kind === 'rate') return tooFast(answer, message, waitMs);
    if (kind === 'denied' || (kind === 'other' && (status === 401 || status === 403)))
      throw lastingFault(items, `it does not let us in (${message})`, 'denied');
    // A gateway without a backend speaks JSON-RPC too.
    if (kind === 'other' && status >= 500) throw fault(items, `HTTP ${status}: ${message}`, 'unreachable');
    return undefined;
  };

  const resultOf = (entry: unknown, id: number, items: readonly Item[]): RpcAnswer => {
    if (typeof entry !== 'object' || entry === null) throw fault(items, 'an answer that is no JSON-RPC');
    if ((entry as { id?: unknown }).id !== id) throw fault(items, 'an answer to another call');
    if (!('result' in entry)) throw fault(items, 'an answer without a result');
    return { result: entry.result };
  };

  const tooFast = ({ retryAfterMs }: HttpAnswer, said: string, waitMs?: number): Outcome => ({
    kind: 'too fast',
    waitMs: retryAfterMs ?? waitMs ?? null,
    said,
  });

  /** An answer that is no JSON-RPC, by its status. */
  const unusable = (answer: HttpAnswer, items: readonly Item[]): Outcome => {
    const { status } = answer;
    if (status === 429) return tooFast(answer, '');
    if (isSuccess(status)) throw fault(items, 'an answer that is no JSON');
    if (status >= 300 && status < 400)
      throw lastingFault(items, `HTTP ${status}: it redirects; configure the final URL`, 'refused');
    if ([401, 402, 403].includes(status))
      throw lastingFault(items, `HTTP ${status}: it does not let us in; check the key`, 'denied');
    if ([408, 413, 504, 524].includes(status))
      throw new AnswerTooHeavyError(`${name}: ${methodsOf(items)}: HTTP ${status}`);
    const restMs =
      answer.retryAfterMs === null ? undefined : Math.min(answer.retryAfterMs, timing.longestRetryAfterMs);
    throw fault(items, `HTTP ${status}`, status >= 500 ? 'unreachable' : 'refused', restMs);
  };

  /** Pauses all requests to this endpoint: as long as it asks for, with backoff. */
  const slowDown = (waitMs: number | null, said: string, items: readonly Item[], waited: Waited): void => {
    const usualMs = backoffMs(++waited.times, timing, random());
    const askedMs = Math.min(waitMs ?? 0, timing.longestRetryAfterMs);
    const wanted = waitMs === null || waited.times > 1 ? Math.max(usualMs, askedMs) : askedMs;
    waited.ms += wanted;
    const words = said === '' ? '' : ` (${said})`;
    if (waited.ms > timing.maxWaitMs)
      throw fault(items, `it wants fewer requests${words}; lower requestsPerSecond`, 'rate-limited', wanted);
    bucket.pause(wanted);
  };

  /** Asks until each has its answer. How they are sent next follows from what the node has made of them. */
  const askAll = async (items: readonly Item[], answers: RpcAnswer[]): Promise<void> => {
    const waited: Waited = { ms: 0, times: 0 };
    const parts: (readonly Item[])[] = [items];
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
      if (part.length > batchSize) parts.unshift(part.slice(0, batchSize), part.slice(batchSize));
      else parts.unshift(...(await askOnce(part, answers, waited)));
    }
  };

  /** One request. What got no answer by it is handed back, in the parts in which to ask for it again. */
  const askOnce = async (items: readonly Item[], answers: RpcAnswer[], waited: Waited) => {
    let outcome: Outcome;
    try {
      outcome = await send(items);
    } catch (error) {
      return partsAfter(error, items);
    }
    switch (outcome.kind) {
      case 'batch rejected': {
        const { accepts } = outcome;
        const isUseful = accepts !== undefined && accepts < items.length;
        const smaller = isUseful ? accepts : Math.max(1, Math.floor(items.length / 2));
        if (smaller < batchSize) {
          batchSize = smaller;
          options.learned?.(`it takes ${batchSize === 1 ? 'no batches' : `batches of ${batchSize} calls`}`);
        }
        return [items];
      }
      case 'too fast':
        slowDown(outcome.waitMs, outcome.said, items, waited);
        // A batch of more calls than the endpoint takes in a second would be rejected for ever.
        return waited.times > 1 && items.length > 1 ? halvesOf(items) : [items];
      case 'answered':
        return takeIn(outcome.answers, items, answers, waited);
    }
  };

  const partsAfter = (error: unknown, items: readonly Item[]): readonly (readonly Item[])[] => {
    if (!(error instanceof UnansweredError)) throw error;
    if (error.why === 'lost') throw fault(items, error.message, 'unreachable');
    if (error.why === 'long' && items.length > 1) return halvesOf(items);
    throw new AnswerTooHeavyError(`${name}: ${methodsOf(items)}: ${error.message}`);
  };

  /** Puts answers in their places, but for RPC errors that another attempt may overcome. */
  const takeIn = (
    given: readonly RpcAnswer[],
    items: readonly Item[],
    answers: RpcAnswer[],
    waited: Waited,
  ): readonly (readonly Item[])[] => {
    const again: Item[] = [];
    let pace: RpcError | undefined;
    for (const [index, item] of items.entries()) {
      const answer = given[index];
      if (answer === undefined) continue;
      const rpcError = 'error' in answer ? answer.error : undefined;
      if (rpcError?.kind === 'rate') pace = rpcError;
      // Some have a limit on a batch's answers together, and reject those beyond it.
      const isHopeful = rpcError?.kind === 'rate' || (rpcError?.kind === 'size' && items.length > 1);
      if (isHopeful) again.push(item);
      else answers[item.place] = answer;
    }
    if (!pace) return again.map((item) => [item]);
    slowDown(pace.waitMs ?? null, pace.message, again, waited);
    return [again];
  };

  return {
    name,
    /** How many calls were sent. */
    get requests() {
      return requests;
    },
    /** How many calls it is known to take in one request. */
    get batchSize() {
      return batchSize;
    },
    /**
     * In the order asked for.
     *
     * @param isBulk whether other calls come first where the rate limit lets calls wait
     */
    async ask(calls: readonly RpcCall[], isBulk = false): Promise<readonly RpcAnswer[]> {
      const items = calls.map((call, place) => ({ ...call, place, isBulk }));
      const answers = new Array<RpcAnswer>(items.length);
      const parts: Item[][] = [];
      for (let at = 0; at < items.length; at += batchSize) parts.push(items.slice(at, at + batchSize));
      await inParallel(parts, CONCURRENT_REQUESTS, (part) => askAll(part, answers));
      return answers;
    },
  };
}

function halvesOf(items: readonly Item[]): readonly (readonly Item[])[] {
  const half = Math.ceil(items.length / 2);
  return [items.slice(0, half), items.slice(half)];
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function methodsOf(items: readonly RpcCall[]): string {
  return [...new Set(items.map(({ method }) => method))].join(', ');
}
