/**
 * Confirmation by a second endpoint: an endpoint can invent events that nothing else in its answers would deny.
 *
 * A claim counts when another endpoint shows the same. Where one denies it and none confirms it, the endpoint that made
 * the claim is at fault. Endpoints that are away or behind are waited for, for a while. A single configured endpoint is
 * trusted: there is no other to ask.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { NodeError } from './faults.ts';
import type { EndpointPool } from './json-rpc/endpoint-pool.ts';

/** What one endpoint shows. */
export interface Claim {
  /** For people: what there is, as in “shows …”. */
  readonly what: string;
}

/** `lacks`: the endpoint does not keep what would be needed to tell. */
export type Opinion = 'has' | 'denies' | 'lacks';

export type Confirmation<Node extends { readonly name: string }> = ReturnType<
  typeof createConfirmation<Node>
>;

const LOOK_AGAIN_MS = 100;
/** Others may be a moment behind the endpoint that has shown a new block. */
const BEHIND_MS = 2_000;

/** @param waitMs how long an endpoint that is away is waited for */
export function createConfirmation<Node extends { readonly name: string }>({
  chain,
  waitMs,
  signal,
}: {
  readonly chain: Pick<EndpointPool<Node>, 'opinions' | 'health'>;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}) {
  const waits = createEndpointWaits(waitMs);

  return {
    /**
     * The claims that no other endpoint has confirmed, and whether all endpoints were asked about them. Throws a NodeError
     * where a claim is denied.
     */
    async confirm<Made extends Claim>(
      witness: Node,
      claims: readonly Made[],
      question: {
        /** In the order of the claims. */
        opinionsOn(other: Node, claims: readonly Made[]): Promise<readonly Opinion[]>;
        /** An endpoint whose head is lower cannot tell. */
        readonly minimumHead: number | undefined;
        /** Whether the claims are so new that endpoints that lack them may be a moment behind. */
        readonly isNew?: boolean;
      },
    ): Promise<{ readonly claims: readonly Made[]; readonly areAllAsked: boolean }> {
      const { opinionsOn, minimumHead, isNew = false } = question;
      const names = chain.health().map(({ name }) => name);
      if (names.length === 1 || claims.length === 0) return { claims: [], areAllAsked: true };
      let left = claims;
      let asked = [witness];
      let hasWaited = false;
      const deniers = new Map<Claim, readonly string[]>();
      const ask = async (other: Node) => ({ other, opinions: await opinionsOn(other, left) });
      const away = () => names.filter((name) => !asked.some((node) => node.name === name));
      const startedAt = performance.now();
      const mayBeBehind = () =>
        isNew &&
        !left.some((claim) => deniers.has(claim)) &&
        performance.now() - startedAt < Math.min(BEHIND_MS, waitMs);

      for (;;) {
        for await (const { other, opinions } of chain.opinions(asked, ask, minimumHead)) {
          asked.push(other);
          waits.answered(other.name);
          for (const [index, claim] of left.entries())
            if (opinions[index] === 'denies') deniers.set(claim, [...(deniers.get(claim) ?? []), other.name]);
          left = left.filter((_, index) => opinions[index] !== 'has');
          if (left.length === 0) break;
        }
        if (left.length === 0) break;
        const areAllAsked = away().length === 0;
        if (areAllAsked ? !mayBeBehind() : !waits.isLeft(away())) break;
        if (areAllAsked) asked = [witness];
        hasWaited = true;
        await delay(LOOK_AGAIN_MS, undefined, { signal });
      }

      const denied = left.find((claim) => deniers.has(claim));
      if (denied)
        throw new NodeError(
          `${witness.name} shows ${denied.what}, which ${deniers.get(denied)?.join(' and ')} denies`,
        );
      // Two endpoints that lie at different times must not confirm each other: after a wait both have to show the same.
      if (hasWaited && left.length === 0) {
        const opinions = await opinionsOn(witness, claims);
        const gone = claims.find((_, index) => opinions[index] !== 'has');
        if (gone) throw new NodeError(`${witness.name} no longer shows ${gone.what}, which it has shown`);
      }
      return { claims: left, areAllAsked: away().length === 0 };
    },
  };
}

/** Bounds the wait for endpoints that are away: each is waited for up to `waitMs`, then not again until it has answered. */
export function createEndpointWaits(waitMs: number) {
  /** By name, on performance.now()'s clock. */
  const awaySince = new Map<string, number>();
  return {
    /** Whether one of these endpoints, which are away, is still to be waited for. */
    isLeft(names: readonly string[]): boolean {
      const now = performance.now();
      for (const name of names) if (!awaySince.has(name)) awaySince.set(name, now);
      return names.some((name) => now - (awaySince.get(name) ?? now) < waitMs);
    },
    answered: (name: string) => awaySince.delete(name),
  };
}
