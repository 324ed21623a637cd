/**
 * A TCP proxy before a database that can lose connections as firewalls do: packets vanish in both directions, and neither
 * end gets a FIN or RST.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export type BlackHole = Awaited<ReturnType<typeof openBlackHole>>;

/** Closed with the test. `url` is that of a database on a Unix socket. */
export async function openBlackHole(url: string) {
  const { pathname, searchParams } = new URL(url);
  const sockets = new Set<Socket>();
  const passing = new Set<readonly [Socket, Socket]>();
  let takesEverything = false;
  const delayed = new Map<Socket, Buffer[]>();
  const keep = (socket: Socket) => sockets.add(socket.on('error', () => undefined));
  const proxy = createServer({ allowHalfOpen: true }, (client) => {
    keep(client);
    if (takesEverything) return void client.resume();
    const database = connect({ path: `${searchParams.get('host')}/.s.PGSQL.5432`, allowHalfOpen: true });
    keep(database);
    const pair = [client, database] as const;
    passing.add(pair);
    for (const [one, other] of [pair, [database, client] as const]) {
      one.on('data', (chunk) => {
        const waiting = delayed.get(other);
        if (waiting) waiting.push(chunk);
        else if (passing.has(pair)) other.write(chunk);
      });
      one.on('end', () => passing.has(pair) && other.end());
      one.on('close', () => {
        if (passing.delete(pair)) other.destroy();
      });
    }
    client.on('close', () => {
      if (delayed.has(client)) return;
      for (const [socket, chunks] of delayed) for (const chunk of chunks) socket.write(chunk);
      delayed.clear();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    proxy.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = proxy.address() as AddressInfo;
  return {
    url: `postgresql://${searchParams.get('user')}@127.0.0.1:${port}${pathname}`,
    /** Existing connections stay open and pass nothing any more; new ones work. */
    swallowConnections: () => passing.clear(),
    /** Existing connections get their answers when the next new connection has been closed. */
    delayAnswers() {
      for (const [client] of passing) delayed.set(client, []);
    },
    /** New ones are taken too, and get no answer. */
    swallowEverything() {
      passing.clear();
      takesEverything = true;
    },
    /** New connections work again; those that were swallowed stay dead. */
    recover() {
      takesEverything = false;
    },
    /** How many connections are open that still pass something. */
    get open() {
      return passing.size;
    },
  };
}
