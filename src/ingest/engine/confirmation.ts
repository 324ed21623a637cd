/**
 * Confirmation by a second endpoint: an endpoint can invent what nothing else in its answers would deny.
 *
 * A claim counts when another endpoint has the same. Where one denies it and none has it, the endpoint that made the claim
 * is at fault. Endpoints that are away or behind are waited for, for a while. A single configured endpoint is believed:
 * there is nobody to ask.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { NodeError } from './faults.ts';
import type { EndpointPool } from './json-rpc/endpoint-pool.ts';
import { createPatience } from './patience.ts';

/** What one endpoint says. */
export interface Claim {
  /** An endpoint whose head is lower cannot tell. */
  readonly block: number;
  /** For people: what there is, as in “shows …”. */
  readonly what: string;
}

/** `lacks`: the endpoint does not keep what would be needed to tell. */
export type Opinion = 'has' | 'denies' | 'lacks';

export interface Confirmation<Node> {
  /**
   * Returns the claims that some endpoint could not be asked about, and no other one has confirmed. Throws a NodeError
   * where a claim is denied.
   *
   * @param opinionsOn in the order of the claims
   */
  confirm<Made extends Claim>(
    witness: Node,
    claims: readonly Made[],
    opinionsOn: (other: Node, claims: readonly Made[]) => Promise<readonly Opinion[]>,
  ): Promise<readonly Made[]>;
}

export interface ConfirmationOptions<Node> {
  readonly chain: Pick<EndpointPool<Node>, 'secondOpinion' | 'health'>;
  /** How long endpoints that are away are waited for. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
  /** Called where all other endpoints were asked, and none of them keeps what would be needed to tell. */
  readonly noticeAlone: (witness: string, claims: readonly Claim[]) => void;
}

const LOOK_AGAIN_MS = 100;

export function createConfirmation<Node extends { readonly name: string }>(
  options: ConfirmationOptions<Node>,
): Confirmation<Node> {
  const { chain, waitMs, signal, noticeAlone } = options;
  const patience = createPatience(waitMs);

  return {
    async confirm(witness, claims, opinionsOn) {
      let left = claims;
      const asked = [witness];
      const denials = new Map<Claim, string>();
      const minimumHead = Math.max(...claims.map(({ block }) => block));
      const ask = async (other: Node) => ({ other, opinions: await opinionsOn(other, left) });
      while (left.length > 0 && asked.length < chain.health().length) {
        const answer = await chain.secondOpinion(asked, ask, minimumHead);
        if (!answer && !patience.isLeft()) break;
        if (!answer) await delay(LOOK_AGAIN_MS, undefined, { signal });
        else {
          const { other, opinions } = answer;
          asked.push(other);
          patience.renew();
          for (const [index, claim] of left.entries())
            if (opinions[index] === 'denies') denials.set(claim, other.name);
          left = left.filter((_, index) => opinions[index] !== 'has');
        }
      }
      const denied = left.find((claim) => denials.has(claim));
      if (denied)
        throw new NodeError(`${witness.name} shows ${denied.what}; ${denials.get(denied)} denies that`);
      const areAllAsked = asked.length === chain.health().length;
      if (areAllAsked && left.length > 0 && asked.length > 1) noticeAlone(witness.name, left);
      return areAllAsked ? [] : left;
    },
  };
}
