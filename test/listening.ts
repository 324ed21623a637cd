/** Servers that others ask, for as long as a test runs. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** Lets it listen on a free port of this machine; the answer is the port. */
export async function listening(server: Server | TlsServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

/** An HTTP server that answers as told. */
export async function listenWith(listener: RequestListener): Promise<URL> {
  return new URL(`http://127.0.0.1:${await listening(createServer(listener))}`);
}
