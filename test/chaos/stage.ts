/**
 * A seed's world: two networks that live through their recorded past, each behind a few endpoints of doubtful quality,
 * until all comes right.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createDerivation, type Derivation, type Randomness } from '../../src/ingest/demo/randomness.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import { labSource } from '../chain/indexing.ts';
import {
  type Misbehaviour,
  type Misfortune,
  type ReplayNode,
  startReplayNode,
} from '../chain/replay-node.ts';
import { type ChainView, viewOf } from '../chain/replay-recording.ts';
import { chooseProfile, createProfileFaults, isLiar } from './endpoint-profiles.ts';
import { chooseTemper, createMisbehaviour } from './faults.ts';
import type { RecordedNetwork, Recording } from './scenario.ts';
import { chooseTimeline } from './timeline.ts';

export interface Stage {
  readonly sources: readonly EvmSource[];
  /** The profile of each endpoint that has one, for reports. */
  readonly profiles: readonly string[];
  /** HTTP requests so far, at all endpoints. */
  readonly requests: number;
  /** Time goes by from here on. Resolves when the chains are at their ends and what is wrong has come right. */
  play(): Promise<void>;
  close(): Promise<void>;
}

/** Nothing is wrong, and nothing moves any more. */
export function openCalmStage(recording: Recording): Promise<Stage> {
  return openStage(
    recording.networks.map((network) => ({
      network,
      timeline: [viewOf(network.chain, network.chain.length - 1)],
      endpoints: [{ lagAt: () => 0, misbehave: () => ({}) }],
    })),
    createDerivation('calm'),
  );
}

export function openChaoticStage(recording: Recording, seed: string): Promise<Stage> {
  const derivation = createDerivation(seed);
  return openStage(
    recording.networks.map((network) => {
      const randomness = derivation.randomness(`network ${network.chainId}`);
      const timeline = chooseTimeline(network, network.firstHead, randomness);
      return {
        network,
        timeline,
        endpoints: chooseEndpoints(network, timeline.length, randomness, derivation),
      };
    }),
    derivation,
  );
}

interface EndpointPlan {
  /** The name of its profile. */
  readonly profile?: string;
  /** How many views it is behind the chain, when the chain is at its n-th. */
  lagAt(moment: number): number;
  misbehave(moment: number, calls: Parameters<Misbehaviour>[0], view: () => ChainView): Misfortune;
}

interface NetworkPlan {
  readonly network: RecordedNetwork;
  readonly timeline: readonly ChainView[];
  readonly endpoints: readonly EndpointPlan[];
}

/** It does not answer any more. */
const dead: Misfortune = { delivery: { kind: 'reset' } };

function chooseEndpoints(
  network: RecordedNetwork,
  moments: number,
  randomness: Randomness,
  derivation: Derivation,
): readonly EndpointPlan[] {
  const count = randomness.integer(1, 3);
  const liar = randomness.integer(0, count - 1);
  const survivor = randomness.integer(0, count - 1);
  // Of its own derivation: seeds that once failed keep the rest of their world.
  const character = derivation.randomness(`profiles ${network.chainId}`);
  const hasOddBlooms = character.chance(0.15);
  return Array.from({ length: count }, (_, index): EndpointPlan => {
    const chosen = chooseTemper(randomness, { mayOmit: index === liar });
    const profile = chooseProfile(character, {
      mayLie: index === liar && !hasOddBlooms,
      mayHaveOddBlooms: hasOddBlooms,
    });
    const temper = {
      ...chosen,
      omits: hasOddBlooms ? 0 : chosen.omits,
      // Who has holes in the logs must show them somewhere.
      hasReceipts: chosen.hasReceipts || (profile !== undefined && isLiar(profile)),
    };
    const diesAt =
      index !== survivor && randomness.chance(0.3)
        ? randomness.integer(0, moments)
        : Number.POSITIVE_INFINITY;
    const isElsewhere = chooseTimes(moments, randomness, randomness.chance(0.2) ? 0.1 : 0);
    const isBehind = chooseTimes(moments, randomness, randomness.chance(0.6) ? 0.3 : 0);
    const lag = randomness.pick([1, 2, 3, 8, 25]);
    let now = 0;
    const misbehave = createMisbehaviour(
      temper,
      network,
      derivation.randomness(`endpoint ${network.chainId} ${index}`),
      () => isElsewhere(now),
    );
    let view: () => ChainView = () => viewOf(network.chain, network.chain.length - 1);
    const personal = profile && createProfileFaults(profile, () => view());
    return {
      ...(profile && { profile: profile.name }),
      lagAt: (moment) => (isBehind(moment) ? lag : 0),
      misbehave: (moment, calls, currentView) => {
        now = moment;
        view = currentView;
        if (moment >= diesAt) return dead;
        if (moment >= moments) return {};
        const limits = personal?.(calls) ?? {};
        return limits.delivery ? limits : combine(limits, misbehave(calls));
      },
    };
  });
}

/** What the profile makes of the truth, and then chance of that. */
function combine(first: Misfortune, second: Misfortune): Misfortune {
  return {
    ...second,
    answer(call, truth, view) {
      const limited = first.answer?.(call, truth, view) ?? truth;
      return limited.error ? limited : (second.answer?.(call, limited, view) ?? limited);
    },
  };
}

/** Stretches of time that make up about this share of it. */
function chooseTimes(moments: number, randomness: Randomness, share: number): (moment: number) => boolean {
  const isWithin = new Set<number>();
  while (isWithin.size < Math.floor(moments * share)) {
    const from = randomness.integer(0, moments - 1);
    const length = randomness.integer(1, 20);
    for (let moment = from; moment < Math.min(moments, from + length); moment++) isWithin.add(moment);
  }
  return (moment) => isWithin.has(moment);
}

async function openStage(plans: readonly NetworkPlan[], derivation: Derivation): Promise<Stage> {
  const networks = await Promise.all(plans.map(openNetwork));
  return {
    sources: networks.map(({ source }) => source),
    profiles: plans.flatMap(({ network, endpoints }) =>
      endpoints.flatMap(({ profile }, index) =>
        profile === undefined ? [] : [`chain ${network.chainId}, endpoint ${index}: ${profile}`],
      ),
    ),
    get requests() {
      return networks.reduce((sum, network) => sum + network.requests, 0);
    },
    async play() {
      await Promise.all(networks.map(({ play }, index) => play(derivation.randomness(`pace ${index}`))));
    },
    async close() {
      await Promise.all(networks.map(({ close }) => close()));
    },
  };
}

interface StagedNetwork {
  readonly source: EvmSource;
  readonly requests: number;
  play(randomness: Randomness): Promise<void>;
  close(): Promise<void>;
}

/** In milliseconds: how long a chain waits for somebody to ask for its head before it moves on. */
const LONGEST_MOMENT = 400;

async function openNetwork({ network, timeline, endpoints }: NetworkPlan): Promise<StagedNetwork> {
  let moment = 0;
  let requests = 0;
  let looks = 0;
  const nodes: readonly ReplayNode[] = await Promise.all(
    endpoints.map(({ lagAt, misbehave }) => {
      const view = () => {
        const place = Math.max(0, Math.min(moment, timeline.length - 1) - lagAt(moment));
        return timeline[place] ?? viewOf(network.chain, network.chain.length - 1);
      };
      return startReplayNode({
        network,
        view,
        misbehave: (calls) => {
          requests++;
          if (calls.some(({ params }) => params[0] === 'latest')) looks++;
          return misbehave(moment, calls, view);
        },
      });
    }),
  );
  return {
    source: labSource(network.lab, {
      rpc: nodes.map(({ url }) => new URL(url)),
      batchSize: 250,
      pollEvery: 5,
    }),
    get requests() {
      return requests;
    },
    async play(randomness) {
      // One more than there are views: then whatever is behind or wrong has come right.
      for (; moment < timeline.length; moment++) {
        // The first look is at the head before it moves; what is asked after it is of another view, or of the same.
        const enough = looks + randomness.pick([1, 2, 2, 3, 4]);
        const until = Date.now() + LONGEST_MOMENT;
        while (looks < enough && Date.now() < until) await delay(1);
      }
    },
    async close() {
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}
