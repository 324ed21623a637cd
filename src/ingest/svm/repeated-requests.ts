/**
 * An endpoint that repeats calls which failed for a reason that may pass at once: a gateway error, a connection that was
 * reset, a node of a balancer that is unhealthy. A piece of work on Solana takes many requests, and starting it anew for each
 * such failure could go on for ever.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Endpoint, EndpointError, type RpcAnswer, type RpcCall } from '../engine/json-rpc/endpoint.ts';
import { inParallel } from '../work.ts';
import { isPassing } from './svm-rpc-errors.ts';

/** Attempts in a row that bring nothing. */
const ATTEMPTS = 4;
const PAUSE_MS = 50;
const CONCURRENT_SINGLES = 8;
const CONCURRENT_BATCHES = 4;
const WITHOUT_BATCHES_MS = 600_000;

type IsGood = (answer: RpcAnswer) => boolean;

export function createRepeatingEndpoint(endpoint: Endpoint) {
  /** Until when batches are not tried, on performance.now()'s clock: it failed to answer them, and did not say why. */
  let singleUntil = 0;

  const answersAlone = async (call: RpcCall): Promise<boolean> => {
    try {
      const [answer] = await endpoint.ask([call]);
      return answer !== undefined && 'result' in answer;
    } catch (error) {
      if (isPassingFault(error)) return false;
      throw error;
    }
  };

  /** One request, or a few where the endpoint takes fewer calls in one. */
  const askPart = async (calls: readonly RpcCall[], isGood: IsGood): Promise<readonly RpcAnswer[]> => {
    const answers = new Array<RpcAnswer>(calls.length);
    let pending = [...calls.keys()];
    for (let attempt = 1; pending.length > 0 && attempt <= ATTEMPTS; attempt++) {
      if (attempt > 1) await delay(PAUSE_MS * attempt);
      try {
        const given = await endpoint.ask(pending.map((place) => calls[place] as RpcCall));
        for (const [index, place] of pending.entries()) answers[place] = given[index] as RpcAnswer;
        const left = pending.filter((place) => !isGood(answers[place] as RpcAnswer));
        if (left.length < pending.length) attempt = 1;
        pending = left;
      } catch (error) {
        if (!isPassingFault(error) || attempt === ATTEMPTS) throw error;
        const isLastChance = attempt === ATTEMPTS - 1 && pending.length > 1;
        if (isLastChance && (await answersAlone(calls[0] as RpcCall))) {
          singleUntil = performance.now() + WITHOUT_BATCHES_MS;
          return askUntil(calls, isGood);
        }
      }
    }
    return answers;
  };

  /**
   * Asks again while an answer is not `isGood`, a few times; the last answers are returned in any case. Each request is
   * repeated on its own: of many, one may fail every time.
   */
  const askUntil = async (calls: readonly RpcCall[], isGood: IsGood): Promise<readonly RpcAnswer[]> => {
    const areSingle = performance.now() < singleUntil;
    const size = areSingle ? 1 : endpoint.batchSize;
    const starts = Array.from({ length: Math.ceil(calls.length / size) }, (_, index) => index * size);
    const answers = new Array<RpcAnswer>(calls.length);
    await inParallel(starts, areSingle ? CONCURRENT_SINGLES : CONCURRENT_BATCHES, async (start) => {
      const part = await askPart(calls.slice(start, start + size), isGood);
      for (const [index, answer] of part.entries()) answers[start + index] = answer;
    });
    return answers;
  };

  const ask = (calls: readonly RpcCall[]) =>
    askUntil(calls, (answer) => !('error' in answer && isPassing(answer.error)));
  return { ask, askUntil };
}

/** One for which no pause was asked. */
function isPassingFault(error: unknown): boolean {
  if (!(error instanceof EndpointError) || error.restMs !== undefined) return false;
  return error.kind === 'unreachable' || error.kind === 'refused';
}
