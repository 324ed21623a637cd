/** What a service tells of the indexing of one network: /v2/networks and /metrics. */
import type { RunningServer } from '../api/running-server.ts';

export async function toldOf(server: RunningServer, network: string) {
  const { data } = (await server.ask('/v2/networks')).json<{
    data: readonly { name: string; indexing: Readonly<Record<string, unknown>> | null }[];
  }>();
  const samples = (await server.ask('/metrics')).text.matchAll(
    /^lanescan_network_(\w+)\{network="([^"]*)"\} (\S+)$/gm,
  );
  const own = [...samples].filter(([, , name]) => name === network);
  return {
    indexing: data.find(({ name }) => name === network)?.indexing ?? null,
    /** Of the metrics of this network, by name without what all have in common. */
    metrics: Object.fromEntries(own.map(([, name, , value]) => [name, Number(value)])),
  };
}
