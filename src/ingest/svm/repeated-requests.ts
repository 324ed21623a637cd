/**
 * An endpoint that repeats calls which failed for a reason that may pass at once: a gateway error, a connection that was
 * reset, a node of a balancer that is unhealthy. A piece of work on Solana takes many requests, and starting it anew for each
 * such failure could go on for ever.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { NodeError } from '../chain/faults.ts';
import type { Endpoint, RpcAnswer, RpcCall } from '../chain/json-rpc/endpoint.ts';
import { isPassing } from './refusals.ts';

const ATTEMPTS = 4;
const PAUSE_MS = 50;

export interface RepeatingEndpoint extends Endpoint {
  /** Asks again while an answer is not `isGood`, a few times; the last answers are returned in any case. */
  askUntil(calls: readonly RpcCall[], isGood: (answer: RpcAnswer) => boolean): Promise<readonly RpcAnswer[]>;
}

export function createRepeatingEndpoint(endpoint: Endpoint): RepeatingEndpoint {
  const askUntil: RepeatingEndpoint['askUntil'] = async (calls, isGood) => {
    const answers = new Array<RpcAnswer>(calls.length);
    let pending = [...calls.keys()];
    for (let attempt = 1; pending.length > 0; attempt++) {
      if (attempt > 1) await delay(PAUSE_MS * attempt);
      try {
        const given = await endpoint.ask(pending.map((place) => calls[place] as RpcCall));
        for (const [index, place] of pending.entries()) answers[place] = given[index] as RpcAnswer;
        pending = pending.filter((place) => !isGood(answers[place] as RpcAnswer));
      } catch (error) {
        if (!(error instanceof NodeError) || error.kind !== 'unreachable' || attempt >= ATTEMPTS) throw error;
      }
      if (attempt >= ATTEMPTS) break;
    }
    return answers;
  };
  return {
    ...endpoint,
    get requests() {
      return endpoint.requests;
    },
    get batchSize() {
      return endpoint.batchSize;
    },
    ask: (calls) => askUntil(calls, (answer) => !('refusal' in answer && isPassing(answer.refusal))),
    askUntil,
  };
}
