/**
 * A seed's world: two networks that live through their recorded past, each behind a few endpoints of doubtful quality,
 * until all comes right.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { createDerivation, type Derivation, type Randomness } from '../../src/ingest/demo/randomness.ts';
import { labSource } from '../chain/indexing.ts';
import {
  type Interference,
  type JsonRpcCall,
  type JsonRpcServer,
  startJsonRpcServer,
} from '../json-rpc-server.ts';
import { createAnswerer } from '../virtual-chain/endpoint.ts';
import { archiveNode, type EndpointProfile } from '../virtual-chain/endpoint-profile.ts';
import { chooseProfile, isLiar } from './endpoint-profiles.ts';
import { chooseTemper, createInterference } from './faults.ts';
import { type ChainView, recordedSource, viewOf } from './recorded-chain.ts';
import type { RecordedNetwork, Recording } from './scenario.ts';
import { chooseTimeline } from './timeline.ts';

export type Stage = Awaited<ReturnType<typeof openStage>>;

/** Nothing is wrong, and nothing moves any more. */
export function openCalmStage(recording: Recording) {
  return openStage(
    recording.networks.map((network) => ({
      network,
      timeline: [viewOf(network.chain, network.chain.length - 1)],
      endpoints: [{ profileAt: () => archiveNode, lagAt: () => 0, interfere: () => ({}) }],
    })),
    createDerivation('calm'),
  );
}

export function openChaoticStage(recording: Recording, seed: string) {
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

/** Moments are counted by the views of the chain. */
interface EndpointPlan {
  profileAt(moment: number): EndpointProfile;
  /** How many views it is behind the chain. */
  lagAt(moment: number): number;
  interfere(moment: number, calls: readonly JsonRpcCall[], view: ChainView): Interference;
}

interface NetworkPlan {
  readonly network: RecordedNetwork;
  readonly timeline: readonly ChainView[];
  readonly endpoints: readonly EndpointPlan[];
}

function chooseEndpoints(
  network: RecordedNetwork,
  moments: number,
  randomness: Randomness,
  derivation: Derivation,
): readonly EndpointPlan[] {
  const count = randomness.integer(1, 3);
  const liar = randomness.integer(0, count - 1);
  const survivor = randomness.integer(0, count - 1);
  // A separate derivation, under its first name: seeds that once failed keep their worlds.
  const character = derivation.randomness(`personalities ${network.chainId}`);
  const hasOddBlooms = character.chance(0.15);
  return Array.from({ length: count }, (_, index): EndpointPlan => {
    const chosen = chooseTemper(randomness, index === liar);
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
    const interfere = createInterference(
      temper,
      network,
      derivation.randomness(`endpoint ${network.chainId} ${index}`),
      () => isElsewhere(now),
    );
    return {
      profileAt: (moment) => (profile && moment < Math.min(diesAt, moments) ? profile : archiveNode),
      lagAt: (moment) => (isBehind(moment) ? lag : 0),
      interfere: (moment, calls, view) => {
        now = moment;
        if (moment >= diesAt) return { fault: 'reset' };
        return moment >= moments ? {} : interfere(calls, view);
      },
    };
  });
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

async function openStage(plans: readonly NetworkPlan[], derivation: Derivation) {
  const networks = await Promise.all(plans.map(openNetwork));
  return {
    sources: networks.map(({ source }) => source),
    /** The profile of each endpoint, for reports. */
    profiles: plans.flatMap(({ network, endpoints }) =>
      endpoints.map(
        ({ profileAt }, index) => `chain ${network.chainId}, endpoint ${index}: ${profileAt(0).name}`,
      ),
    ),
    /** HTTP requests so far, at all endpoints. */
    get requests() {
      return networks.reduce((sum, network) => sum + network.requests, 0);
    },
    /** Time goes by from here on. Resolves when the chains are at their ends and what is wrong has come right. */
    async play() {
      await Promise.all(networks.map(({ play }, index) => play(derivation.randomness(`pace ${index}`))));
    },
    async close() {
      await Promise.all(networks.map(({ close }) => close()));
    },
  };
}

/** In milliseconds: how long a chain waits for somebody to ask for its head before it moves on. */
const LONGEST_MOMENT = 400;

async function openNetwork({ network, timeline, endpoints }: NetworkPlan) {
  let moment = 0;
  let looks = 0;
  const servers = await Promise.all(
    endpoints.map(async ({ profileAt, lagAt, interfere }) => {
      const currentView = () => {
        const place = Math.max(0, Math.min(moment, timeline.length - 1) - lagAt(moment));
        return timeline[place] ?? viewOf(network.chain, network.chain.length - 1);
      };
      // Calls of one request are answered from one view, even if the chain goes on meanwhile.
      const views = new WeakMap<JsonRpcCall, ChainView>();
      const server: JsonRpcServer<EndpointProfile> = await startJsonRpcServer({
        profile: profileAt(moment),
        answererOf: (endpoint) => {
          const answer = createAnswerer(endpoint);
          return (call) => answer(call, recordedSource(network, views.get(call) ?? currentView()));
        },
        interfere: (calls) => {
          const view = currentView();
          for (const call of calls) views.set(call, view);
          return interfere(moment, calls, view);
        },
      });
      server.onCall = ({ params }) => {
        if (params[0] === 'latest') looks++;
      };
      return { server, profileAt };
    }),
  );
  return {
    source: labSource(network.lab, {
      rpc: servers.map(({ server }) => server.url),
      batchSize: 250,
      pollEvery: 5,
    }),
    get requests() {
      return servers.reduce((sum, { server }) => sum + server.requests, 0);
    },
    async play(randomness: Randomness) {
      // One more than there are views: then whatever is behind or wrong has come right.
      while (moment < timeline.length) {
        // The first look is at the head before it moves; what is asked after it is of another view, or of the same.
        const enough = looks + randomness.pick([1, 2, 2, 3, 4]);
        const until = Date.now() + LONGEST_MOMENT;
        while (looks < enough && Date.now() < until) await delay(1);
        moment++;
        for (const { server, profileAt } of servers) server.profile = profileAt(moment);
      }
    },
    async close() {
      await Promise.all(servers.map(({ server }) => server.close()));
    },
  };
}
