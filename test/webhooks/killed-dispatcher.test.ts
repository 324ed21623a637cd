// @module-tag slow: kills the program many times
/** `kill -9` of the server that delivers: another takes over, and nothing is lost. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import {
  distinctIds,
  expectInOrder,
  newMessage,
  openStoreForTest,
  SECRET,
  startReceiver,
  untilSettled,
} from './receiver.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';

function startProcess(database: string, receiver: string, name: string): ChildProcess {
  const script = fileURLToPath(new URL('dispatcher-process.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', script, database, receiver, name], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, SECRET },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

const untilItDelivers = (child: ChildProcess) => once(child.stdout as NodeJS.ReadableStream, 'data');

test('a server that is killed in the middle loses nothing; another goes on', async () => {
  const store = await openStoreForTest();
  const receiver = await startReceiver();
  const [messages, kills] = isFull ? [2_000, 8] : [120, 2];
  receiver.reply = () => ({ status: 200, afterMs: 5 });
  const servers = new Map<string, ChildProcess>();
  const add = (name: string) => {
    const child = startProcess(store.url, receiver.url, name);
    servers.set(name, child);
    return child;
  };
  await untilItDelivers(add('server 0'));
  add('server 1');
  const numbers = Array.from({ length: messages }, (_, index) => index + 1);
  await store.apply(numbers.map((number) => newMessage(number)));
  await store.apply(numbers.map((number) => newMessage(number, { status: 'SUCCESS' })));

  for (let kill = 1; kill <= kills; kill++) {
    const enough = Math.floor((messages * 2 * kill) / (kills + 1));
    await expect
      .poll(() => distinctIds(receiver.accepted).size, { interval: 5 })
      .toBeGreaterThanOrEqual(enough);
    const holder = String(receiver.receipts.at(-1)?.headers['user-agent']);
    const killedAt = Date.now();
    servers.get(holder)?.kill('SIGKILL');
    add(`server ${kill + 1}`);
    const later = () =>
      receiver.receipts.find(({ headers, at }) => headers['user-agent'] !== holder && at > killedAt);
    await expect.poll(later, { interval: 5 }).toBeDefined();
  }
  await untilSettled(store);

  expect(distinctIds(receiver.accepted).size).toBe(messages * 2);
  // At most what was under way: four deliveries a kill.
  expect(receiver.accepted.length - messages * 2).toBeLessThanOrEqual(4 * kills);
  expectInOrder(receiver.accepted);
});
