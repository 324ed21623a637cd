/** Where deliveries may go, and how much of an answer is listened to. */
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createSender, isPublicAddress } from '../../src/webhooks/sender.ts';
import { listenWith } from '../listening.ts';
import {
  eventually,
  newMessage,
  openStoreForTest,
  runDispatcher,
  startReceiver,
  subscriptionTo,
} from './receiver.ts';

const patient = { connectMs: 60_000, totalMs: 60_000 };
const impatient = { connectMs: 300, totalMs: 500 };

describe('addresses', () => {
  test.each([
    ...['127.0.0.1', '127.255.255.254', '0.0.0.0', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    ...['169.254.169.254', '100.64.0.1', '100.127.255.255', '192.0.0.8', '198.18.0.1', '224.0.0.1'],
    ...['255.255.255.255', '240.0.0.1', '192.0.2.1', '198.51.100.7', '203.0.113.9'],
    ...['::', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8', '::127.0.0.1'],
    ...['fe80::1', 'fe80::1%lo'],
    ...['fc00::1', 'fd12:3456::1', 'ff02::1', 'fec0::1', '64:ff9b::7f00:1', '64:ff9b:1::1', '2002:7f00:1::'],
    ...['2001::1', '2001:db8::1', '3fff::1', '100::1', 'localhost', ''],
  ])('%s is not on the public internet', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700:4700::1111', '2a00:1450::1'])(
    '%s is',
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );
});

describe('a target that is not allowed', () => {
  test('is never connected to, however it is spelled', async () => {
    const [store, receiver] = [await openStoreForTest(), await startReceiver()];
    const hosts = ['localhost', '127.0.0.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '127.1'];
    // As if the configuration had let them pass: the check at the connection stands alone.
    const subscriptions = hosts.map((host, index) => ({
      ...subscriptionTo(receiver.url, { name: `sub-${index}` }),
      url: new URL(`http://${host}:${receiver.port}/hook`),
      allowPrivate: false,
    }));
    await runDispatcher(store, subscriptions);
    await store.apply([newMessage(1)]);
    const refused = /is not a public address; allowPrivate permits such targets/;
    await eventually(async () =>
      (await store.webhooks.backlog()).map(({ lastError }) => refused.test(lastError ?? '')),
    ).toEqual(hosts.map(() => true));
    expect(receiver.receipts).toHaveLength(0);
  });

  test('is not reached through a redirect either', async () => {
    const store = await openStoreForTest();
    const [receiver, inner] = [await startReceiver(), await startReceiver()];
    receiver.reply = () => ({ status: 307, headers: { location: inner.url } });
    await runDispatcher(store, [subscriptionTo(receiver.url)]);
    await store.apply([newMessage(1)]);
    await eventually(async () => (await store.webhooks.backlog())[0]?.lastError).toBe(
      'HTTP 307 (redirects are not followed; configure the final URL)',
    );
    expect(inner.receipts).toHaveLength(0);
  });
});

describe('a receiver that misbehaves', () => {
  function sendTo(url: string, timings = patient) {
    const sender = createSender(subscriptionTo(url), timings, 'test', 1);
    onTestFinished(() => sender.close());
    return sender;
  }
  const answering = async (listener: RequestListener, timings = patient) =>
    sendTo((await listenWith(listener)).href, timings);

  test('with an endless answer is heard for 4 kB', async () => {
    let isOpen = true;
    const sender = await answering((_request, response) => {
      response.on('close', () => {
        isOpen = false;
      });
      const more = () => {
        while (isOpen && response.write('x'.repeat(1000)));
        if (isOpen) response.once('drain', more);
      };
      more();
    });
    const { status, text } = await sender.send({}, '{}');
    expect([status, text.length]).toEqual([200, 4096]);
    await eventually(() => isOpen).toBe(false);
  });

  test('that says nothing is left after the time-out', async () => {
    const sender = await answering(() => undefined, impatient);
    await expect(sender.send({}, '{}')).rejects.toThrow('no answer within 0.5 s');
  });

  test.runIf(process.platform === 'linux')(
    'that does not take the connection is left after the time for that',
    async () => {
      // A thread that listens and then does nothing: once its queue is full, the kernel answers no SYN any more.
      const blocked = new Worker(
        `const { parentPort } = require('node:worker_threads');
         const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
           parentPort.postMessage(server.address().port);
           setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
         });`,
        { eval: true },
      );
      onTestFinished(async () => void (await blocked.terminate()));
      const [port] = (await once(blocked, 'message')) as [number];
      const waiting = Array.from({ length: 8 }, () =>
        connect(port, '127.0.0.1').on('error', () => undefined),
      );
      onTestFinished(() => waiting.forEach((socket) => void socket.destroy()));
      await eventually(() => waiting.filter(({ connecting }) => !connecting).length).toBeGreaterThan(1);
      const sender = sendTo(`http://127.0.0.1:${port}/`, { connectMs: 300, totalMs: 600_000 });
      await expect(sender.send({}, '{}')).rejects.toThrow('no connection within 0.3 s');
    },
  );

  test('that accepts and then drips has accepted', { tags: 'slow' }, async () => {
    const sender = await answering(
      (_request, response) => {
        response.writeHead(202);
        const timer = setInterval(() => response.write('.'), 50);
        response.on('close', () => clearInterval(timer));
        // It is listened to until the time-out.
      },
      { connectMs: 60_000, totalMs: 5_000 },
    );
    expect(await sender.send({}, '{}')).toMatchObject({ status: 202 });
  });

  /** Sends to a receiver that does this with each connection. */
  async function connecting(take: (socket: Socket) => void) {
    const sockets: Socket[] = [];
    const server = createTcpServer((socket) => {
      sockets.push(socket.on('error', () => undefined));
      take(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return sendTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  }
  const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
  const endWith = (bytes: string) => (socket: Socket) => void socket.end(bytes);

  test.each<[how: string, outcome: unknown, bytes: string, after?: (socket: Socket) => void]>([
    ['switches protocols', 101, `HTTP/1.1 101 Switching Protocols\r\n${upgrade}\r\n`],
    ['switches protocols and hangs up', 101, `HTTP/1.1 101 Switching\r\n${upgrade}\r\n`, endWith('')],
    ['switches to no protocol', 101, 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    [
      'switches protocols with an upgraded 200',
      200,
      `HTTP/1.1 200 OK\r\n${upgrade}Content-Length: 0\r\n\r\n`,
    ],
    [
      'gives hints before it accepts',
      200,
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${ok}`,
    ],
    ['gives nothing but hints', /more than 20 informational/, 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)],
    ['answers twice', 200, `${ok}HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n`],
    ['hangs up without an answer', /hang up/, '', endWith('')],
    ['hangs up within the head', /hang up|closed/, 'HTTP/1.1 200 OK\r\nX: ', endWith('')],
    ['hangs up within the body', 200, 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx', endWith('')],
    ['never ends its head', /[Hh]eader/, `HTTP/1.1 200 OK\r\n${`X: ${'x'.repeat(900)}\r\n`.repeat(40)}`],
    [
      'never ends its trailers',
      200,
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${'X: y\r\n'.repeat(9_000)}`,
    ],
    [
      'claims a length that is none',
      /[Cc]ontent-?[Ll]ength/,
      'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n',
    ],
    ['does not speak HTTP', /Parse Error/, 'SSH-2.0-OpenSSH_9.6\r\n'],
  ])('that %s has its attempt settled', async (_how, outcome, bytes, after = () => undefined) => {
    const sender = await connecting((socket) =>
      socket.once('data', () => socket.write(bytes, 'latin1', () => after(socket))),
    );
    const result = await sender.send({}, '{}').then(
      ({ status }) => status,
      (error: Error) => error.message,
    );
    if (outcome instanceof RegExp) expect(result).toMatch(outcome);
    else expect(result).toBe(outcome);
  });

  test('that closes kept connections is asked again on a fresh one', async () => {
    let requests = 0;
    const sender = await connecting((socket) => {
      let answered = false;
      socket.on('data', () => {
        requests++;
        if (answered) return socket.destroy();
        answered = true;
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n');
      });
    });
    expect((await sender.send({}, '{}')).status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await sender.send({}, '{}')).status).toBe(200);
    expect(requests).toBe(3);
  });
});
