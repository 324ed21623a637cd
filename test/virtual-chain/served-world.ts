/** A world of virtual chains behind endpoints, with an empty store to index it into, for as long as a test runs. */
import { onTestFinished } from 'vitest';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import { type Indexed, type Indexing, indexSources, judgeIndexed } from '../chain/indexing.ts';
import { openTestStore } from '../database.ts';
import type { JsonRpcCall } from '../json-rpc-server.ts';
import type { CcipChain, CcipWorld } from './ccip-chain.ts';
import { type Provider, startProvider } from './endpoint.ts';
import { archiveNode, type EndpointProfile } from './endpoint-profile.ts';
import { differencesFrom, sourceOf } from './indexed-world.ts';

/** An endpoint of the chain, and every call that it gets. */
export async function serveChain(chain: CcipChain, profile: EndpointProfile = archiveNode, port?: number) {
  const provider = await startProvider(chain, { profile, ...(port !== undefined && { port }) });
  onTestFinished(provider.close);
  const calls: JsonRpcCall[] = [];
  provider.onCall = (call) => calls.push(call);
  return Object.assign(provider, { calls });
}

export async function serveWorld(
  world: CcipWorld,
  ofA: readonly EndpointProfile[] = [archiveNode],
  ofB: readonly EndpointProfile[] = [archiveNode],
) {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const a = await Promise.all(ofA.map((profile) => serveChain(world.a, profile)));
  const b = await Promise.all(ofB.map((profile) => serveChain(world.b, profile)));
  const sources = (overrides: Partial<EvmSource> = {}, endpoints: readonly Provider[] = a) => [
    sourceOf(world.a, endpoints, overrides),
    sourceOf(world.b, b),
  ];
  return {
    world,
    store,
    a,
    b,
    /** The settings of chain `a` may be overridden. */
    sources,
    index: (
      overrides?: Partial<EvmSource>,
      options?: Indexing & { readonly sources?: readonly EvmSource[] },
    ) => indexSources(store, options?.sources ?? sources(overrides), options),
    differences: () => differencesFrom(world, store),
    judge: async (indexed: Indexed) => judgeIndexed(store, indexed, await differencesFrom(world, store)),
    findings: (chain = world.a) => store.index.checks.findings(chain.network.selector),
  };
}

export type ServedWorld = Awaited<ReturnType<typeof serveWorld>>;
