/** What somebody else's server decides about an exchange is bounded: how long it takes, and how much it says. */
import { getEventListeners, once } from 'node:events';
import { expect, test } from 'vitest';
import { ResponseTooLongError, readBody, withDeadline } from '../../src/base/bounded-exchange.ts';
import { listenWith } from '../listening.ts';

/** Longer than any test takes: what waits for it would be seen. */
const NEVER_MS = 3_600_000;

test.each([
  ['of no bytes', 0],
  ['of exactly as many bytes as are taken', 100_000],
])('a body %s is read whole', async (_what, length) => {
  const url = await listenWith((_, response) => void response.end(Buffer.alloc(length, 'x')));
  expect(Buffer.from(await readBody(await fetch(url), 100_000)).toString()).toBe('x'.repeat(length));
});

test('an answer without a body has an empty one', async () => {
  const url = await listenWith((_, response) => void response.writeHead(304).end());
  expect(await readBody(await fetch(url), 10)).toHaveLength(0);
});

test('a body without an end is rejected at its bound, and hung up on', async () => {
  let hungUp: Promise<unknown> | undefined;
  const url = await listenWith((_, response) => {
    hungUp = once(response, 'close');
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(1_000)));
    };
    response.on('drain', more);
    more();
  });
  const reading = readBody(await fetch(url), 99_999);
  await expect(reading).rejects.toThrow(new ResponseTooLongError(99_999));
  await expect(reading).rejects.toThrow('a response of more than 99999 bytes');
  await hungUp;
});

test('a server that says nothing is waited for until the deadline, and the error is the one that was given', async () => {
  const url = await listenWith(() => undefined);
  const tooLate = new Error('no answer in time');
  const asked = withDeadline(new AbortController().signal, async (deadline) => {
    deadline.restart(20, tooLate);
    return fetch(url, { signal: deadline.signal });
  });
  await expect(asked).rejects.toBe(tooLate);
});

test('a deadline that begins anew takes the place of the one before', async () => {
  const url = await listenWith((_, response) => void response.write('half of it'));
  const tooLate = new Error('no whole answer in time');
  const asked = withDeadline(new AbortController().signal, async (deadline) => {
    deadline.restart(NEVER_MS, new Error('no answer in time'));
    const response = await fetch(url, { signal: deadline.signal });
    deadline.restart(20, tooLate);
    return readBody(response, 1_000);
  });
  await expect(asked).rejects.toBe(tooLate);
});

test('an order to stop ends it at once with its reason, and none is begun behind it', async () => {
  const stop = new AbortController();
  const reason = new Error('we stop');
  const url = await listenWith(() => stop.abort(reason));
  const ask = () =>
    withDeadline(stop.signal, async (deadline) => {
      deadline.restart(NEVER_MS, new Error('no answer in time'));
      return fetch(url, { signal: deadline.signal });
    });
  await expect(ask()).rejects.toBe(reason);
  await expect(withDeadline(stop.signal, () => expect.unreachable())).rejects.toBe(reason);
});

test('what goes wrong by itself is thrown as it is, and nothing is left behind on the signal', async () => {
  const { signal } = new AbortController();
  const problem = new Error('out of paper');
  for (let i = 0; i < 3; i++) {
    expect(await withDeadline(signal, async () => 'fine')).toBe('fine');
    await expect(withDeadline(signal, () => Promise.reject(problem))).rejects.toBe(problem);
  }
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
