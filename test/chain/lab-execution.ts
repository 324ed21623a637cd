/** The lab with a service that indexes it and simulates executions on its nodes, for as long as a file's tests run. */
import type { Hex } from 'viem';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import type { Diagnosis, ManualExecution } from '../../src/api/execution/execution-schema.ts';
import { createDestinations } from '../../src/cli/config/destinations.ts';
import { type RunningServer, serveStore } from '../api/running-server.ts';
import type { SentMessage } from '../lab/lab.ts';
import { createLabService } from '../sdk/lab-service.ts';
import { labSource } from './indexing.ts';
import { honest, type Interfere, type NodeProxy, startNodeProxy } from './node-proxy.ts';

type ServeOptions = NonNullable<Parameters<typeof serveStore>[1]>;

export function createLabExecution() {
  const service = createLabService();
  /** In front of the nodes, for what simulations ask. */
  let proxies: readonly NodeProxy[] = [];
  let server: RunningServer;
  const stopping = new AbortController();
  beforeAll(async () => {
    proxies = await Promise.all(service.lab.networks.map(({ url }) => startNodeProxy(url)));
    server = await startBeside({ destinations: destinations() });
  });
  afterAll(async () => {
    stopping.abort();
    await server?.close();
    for (const proxy of proxies) await proxy.close();
  });

  /** @param isDoubled each node is an endpoint of its own behind the proxy */
  const destinations = (isDoubled = false) =>
    createDestinations({
      sources: service.lab.networks.map((network, place) => {
        const { url } = proxies[place] as NodeProxy;
        return labSource(network, { rpc: isDoubled ? [url, new URL(network.url)] : [url] });
      }),
      signal: stopping.signal,
      writeLog: () => undefined,
    });
  const startBeside = (options: ServeOptions) =>
    serveStore({ ...service.server.store, close: async () => undefined }, options);
  /** Another server with the same messages, which has cached nothing. It asks the nodes unless it is told otherwise. */
  const serve = async (options: ServeOptions = { destinations: destinations() }) => {
    const served = await startBeside(options);
    onTestFinished(() => served.close());
    return served;
  };
  /** Has the node of network b answer otherwise, until the test ends. */
  const interfere = (interference: Interfere) => {
    const [, proxy] = proxies as readonly [NodeProxy, NodeProxy];
    proxy.interfere = interference;
    onTestFinished(() => {
      proxy.interfere = honest;
    });
  };
  const ask = (path: string, { messageId }: Pick<SentMessage, 'messageId'>, from = server) =>
    from.ask(`/v2/messages/${messageId}/${path}`);
  const diagnosisOf = async (message: SentMessage, from = server) => {
    const answer = await ask('diagnosis', message, from);
    expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
    return answer.json<Diagnosis>();
  };

  return {
    get lab() {
      return service.lab;
    },
    get server() {
      return server;
    },
    /** In front of the node of network b. */
    get proxy() {
      return proxies[1] as NodeProxy;
    },
    index: service.index,
    destinations,
    serve,
    ask,
    diagnosisOf,
    /** The cache of diagnoses would remember what the receiver did before. */
    async diagnoseAnew(message: SentMessage) {
      const fresh = await startBeside({ destinations: destinations() });
      return diagnosisOf(message, fresh).finally(() => fresh.close());
    },
    async statusOf(message: SentMessage) {
      await service.index();
      return (await service.recordOf(message)).status;
    },
    async transactionOf(message: SentMessage, parameters = '', from = server) {
      const answer = await ask(`manual-execution${parameters}`, message, from);
      expect(answer.text).toContain('"transaction"');
      return answer.json<ManualExecution>();
    },
    /** Sends exactly what was served, as somebody who has nothing to do with it. */
    send({ transaction: { to, data, value, gas } }: ManualExecution, on = service.lab.b) {
      return on.transact({
        from: on.foundation.bystander,
        to: to as Hex,
        data: data as Hex,
        value: BigInt(value),
        ...(gas !== null && { gas: BigInt(gas) }),
      });
    },
    interfere,
    /** Holds calls to contracts at the node of network b until they are released, at the latest when the test ends. */
    holdCalls() {
      let held = 0;
      let release: () => void = () => undefined;
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      interfere(async ({ method }, truth) => {
        if (method !== 'eth_call') return truth;
        held++;
        await released;
        return truth;
      });
      onTestFinished(() => release());
      return { held: () => held, release: () => release() };
    },
    /** Has the node of network b reset every connection, until the test ends. */
    takeDown() {
      const [, proxy] = proxies as readonly [NodeProxy, NodeProxy];
      proxy.isDown = true;
      onTestFinished(() => {
        proxy.isDown = false;
      });
    },
  };
}
