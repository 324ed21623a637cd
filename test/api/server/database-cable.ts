/** A server with one message, over a way to its database that can break, fall silent and come back. */
import { type AddressInfo, connect, createServer as createProxy, type Server, type Socket } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { openStore } from '../../../src/store/store.ts';
import { createTestDatabase } from '../../database.ts';
import { makeMessage, makeSnapshot } from '../../fixtures.ts';
import { type Answer, expectError, serveStore } from '../running-server.ts';

export const message = makeMessage();

export async function serveOnCable(connections: number) {
  const database = await createTestDatabase();
  const sockets = new Set<Socket>();
  let proxy: Server | undefined;
  let port = 0;
  let isSilent = false;
  const hangUp = () => {
    for (const socket of sockets) socket.destroy();
  };
  const cable = {
    async plugIn() {
      const server = createProxy((client) => {
        const keep = (socket: Socket) =>
          sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
        keep(client);
        if (isSilent) return;
        const behind = connect(database.socket);
        keep(behind);
        client.pipe(behind).pipe(client);
      });
      await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
      port = (server.address() as AddressInfo).port;
      proxy = server;
    },
    async pullOut() {
      const closed = new Promise((resolve) => proxy?.close(resolve));
      hangUp();
      await closed;
    },
    /** Existing connections break; new ones get no word. */
    fallSilent() {
      isSilent = true;
      hangUp();
    },
    /** Existing connections stay, and nothing passes any more. */
    freeze() {
      isSilent = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    speakAgain() {
      isSilent = false;
    },
    thaw() {
      isSilent = false;
      hangUp();
    },
  };
  await cable.plugIn();
  const url = `postgresql://lanescan@127.0.0.1:${port}${new URL(database.url).pathname}`;
  const store = await openStore({ place: { url }, connections });
  await store.apply([makeSnapshot(message)]);
  const server = await serveStore({ ...store, url });
  onTestFinished(async () => {
    await cable.pullOut();
    await server.close();
    await database.drop();
  });
  return { server, cable, database };
}

export function expectUnavailable(answer: Answer): void {
  expect(expectError(answer, 503, 'SERVICE_UNAVAILABLE').details).toEqual([]);
  expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  expect(answer.text).not.toMatch(/127\.0\.0\.1|ECONN|terminat|lanescan|test_\d/i);
}
