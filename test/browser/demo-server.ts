/** A server with the demo's network. */
import { createSimulation } from '../../src/ingest/demo/simulation.ts';
import { openStore } from '../../src/store/store.ts';
import { type RunningServer, type SearchBody, serveStore } from '../api/running-server.ts';
import { createTestDatabase } from '../database.ts';

export async function startDemo(): Promise<RunningServer> {
  const database = await createTestDatabase({ empty: true });
  const store = await openStore({ place: { url: database.url }, content: 'simulated' });
  const startsAt = new Date();
  const simulation = createSimulation({ seed: 'lanescan', startsAt, historyMessages: 2_500 });
  for (const { network, bytes, claims } of simulation.tokens)
    await store.index.tokens.write(network, [{ bytes, claims, dueInMs: 1e9 }]);
  for (const facts of simulation.factsUntil(startsAt, 5_000)) await store.apply(facts);
  const close = async () => {
    await store.close();
    await database.drop();
  };
  return serveStore({ ...store, url: database.url, close });
}

export async function searched(server: RunningServer, query: string): Promise<SearchBody['data']> {
  return (await server.ask(`/v2/messages?${query}`)).json<SearchBody>().data;
}
