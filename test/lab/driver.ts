/**
 * Lively traffic on every lane, without end: messages of all kinds are sent, committed, blessed and executed; some fail
 * and are executed by hand later, and a few are left where they are. Messages that others send on the lanes go the same way,
 * and what others do to messages of the driver is no obstacle to it.
 *
 * What happens on a lane depends on the seed alone, however the lanes get into each other's blocks.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Hex, numberToHex } from 'viem';
import { createDerivation, type Randomness } from '../../src/ingest/demo/randomness.ts';
import { type Lab, type Lane, NotExecuted, type SendOptions, type SentMessage } from './lab.ts';
import { CallFailure } from './network.ts';

export interface DriveOptions {
  readonly seed: string;
  readonly signal?: AbortSignal;
  /** Of all lanes together, on average; default 2. Infinity: as fast as the nodes can. */
  readonly messagesPerSecond?: number;
  /** Ends by itself after so many rounds on every lane; default never. */
  readonly rounds?: number;
}

/** Messages of a round, on average. */
const MESSAGES_A_ROUND = 1.6;

/** Resolves with what has been done, by lane, when the signal or the last round has come, and what was under way is done. */
export async function drive(lab: Lab, options: DriveOptions) {
  const { seed, signal, messagesPerSecond = 2, rounds = Number.POSITIVE_INFINITY } = options;
  const derivation = createDerivation(seed);
  const pauseMs = (1000 * MESSAGES_A_ROUND * lab.lanes.length) / messagesPerSecond;
  const tallies = await Promise.all(
    lab.lanes.map(async (lane) => {
      const randomness = derivation.randomness(lane.name);
      const traffic = createTraffic(lane, lab, randomness);
      for (let round = 0; round < rounds && !signal?.aborted; round++) {
        await traffic.round();
        const waitMs = randomness.between(0.2, 1.8) * pauseMs;
        if (waitMs > 0) await delay(waitMs, undefined, { ...(signal && { signal }) }).catch(() => undefined);
      }
      return [lane, traffic.tally] as const;
    }),
  );
  return new Map(tallies);
}

function createTraffic(lane: Lane, lab: Lab, randomness: Randomness) {
  const { version } = lane;
  const tally = { sent: 0, commits: 0, succeeded: 0, failed: 0 };
  let sent: SentMessage[] = [];
  let committed: SentMessage[] = [];
  let ready: SentMessage[] = [];
  const failed: SentMessage[] = [];

  /** Messages of the driver, and those of others that it has taken up. */
  const known = new Set<Hex>();
  const foreign = new Set<Hex>();
  /** The last block in which messages were looked for. */
  let readUpTo: number | undefined;

  const send = async () => {
    const messages = await lane.send(randomMessage(lane, lab, randomness));
    tally.sent += messages.length;
    for (const { messageId } of messages) known.add(messageId);
    sent.push(...messages);
  };

  /** A root has no gaps: without the messages of others the lane would stand still. */
  const takeUpOthers = async () => {
    const messages = await lane.sentSince(readUpTo ?? 0);
    readUpTo = messages.at(-1)?.blockNumber ?? readUpTo;
    for (const message of messages) {
      if (known.has(message.messageId) || lane.commitOf(message)) continue;
      known.add(message.messageId);
      foreign.add(message.messageId);
      sent.push(message);
    }
    sent.sort((a, b) => Number(a.sequenceNumber - b.sequenceNumber));
  };

  const commit = async () => {
    // Blessed roots only where the version knows them, and not every time.
    const blessed = version === '1.6' && randomness.chance(0.2);
    await lane.commit(sent, { blessed });
    tally.commits++;
    if (version === '1.6') ready.push(...sent);
    else committed.push(...sent);
    sent = [];
  };

  const bless = async () => {
    await lane.bless(committed);
    ready.push(...committed);
    committed = [];
  };

  const executeNext = async () => {
    const [message, ...rest] = ready;
    if (!message) return;
    ready = rest;
    // One that has its order would hold up all behind it.
    if (message.nonce === 0n && randomness.chance(0.05)) return;
    // Only the lab's own receivers can be told to fail.
    const fail = randomness.chance(0.15) && !foreign.has(message.messageId);
    const execution = await unlessReverted(() => lane.execute(message, { fail }));
    if (execution?.state === 'success') tally.succeeded++;
    if (execution?.state !== 'failure') return;
    tally.failed++;
    if (fail) failed.push(message);
  };

  const retry = async () => {
    const message = failed.shift();
    if (message) await unlessReverted(() => lane.executeByHand(message));
  };

  return {
    tally,
    async round() {
      // What was sent before and is not committed comes first in the next root. 2.0 knows no roots.
      readUpTo ??=
        version === '2.0' ? Number(await lab.network(lane.from).rpc<Hex>('eth_blockNumber')) + 1 : 0;
      if (randomness.chance(0.9)) await send();
      await takeUpOthers();
      if (version === '2.0') {
        ready.push(...sent);
        sent = [];
      } else if (sent.length > 0 && randomness.chance(0.5)) await commit();
      if (committed.length > 0 && randomness.chance(0.7)) await bless();
      for (let count = randomness.integer(0, 4); count > 0; count--) await executeNext();
      if (randomness.chance(0.12)) await retry();
    },
  };
}

/**
 * Undefined where the contracts revert: somebody else has executed the message already (it is skipped, or reverts), or has
 * sent one before it that was never executed.
 */
async function unlessReverted<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NotExecuted || error instanceof CallFailure) return undefined;
    throw error;
  }
}

function randomMessage(lane: Lane, lab: Lab, randomness: Randomness): SendOptions {
  const { foundation } = lab.network(lane.from);
  const [demo, coin] = foundation.tokens;
  const count = randomness.chance(0.2) ? randomness.integer(2, 5) : 1;
  const data = Array.from({ length: count }, () => randomData(randomness));
  const tokens = [
    { token: demo.address, amount: BigInt(randomness.integer(1, 1e9)) * 10n ** 9n },
    { token: coin.address, amount: BigInt(randomness.integer(1000, 1e9)) },
  ];
  const chosen = randomness.pickWeighted([
    [[], 5],
    [tokens.slice(0, 1), 3],
    [tokens.slice(1), 2],
    // 2.0 carries one token a message.
    [lane.version === '2.0' ? [] : tokens, 1],
  ]);
  return {
    count,
    data: (index) => data[index] ?? '0x',
    tokens: chosen,
    gasLimit: BigInt(randomness.integer(100, 400)) * 1000n,
    outOfOrder: randomness.chance(0.6),
    feeToken: randomness.chance(0.3) ? 'link' : 'native',
    via: count > 1 || randomness.chance(0.2) ? 'contract' : 'account',
    ...(lane.version === '2.0' && { verifiers: randomness.integer(0, 2) }),
  };
}

function randomData(randomness: Randomness): Hex {
  const words = randomness.pick([0, 0, 1, 2, 8, 40]);
  const parts = Array.from({ length: words }, () => numberToHex(randomness.word(), { size: 4 }).slice(2));
  return `0x${parts.join('')}`;
}
