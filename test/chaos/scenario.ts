/**
 * What happens on the chains that chaos replays: traffic of all versions both ways, of every kind and with every end,
 * on the chains that stay and on branches that do not.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Hex } from 'viem';
import { createDerivation, type Randomness } from '../../src/ingest/demo/randomness.ts';
import { deployImpostor } from '../lab/impostor.ts';
import {
  type Lab,
  type LabNetwork,
  type Lane,
  type NetworkKey,
  NotExecuted,
  PERMISSIONLESS_AFTER_SECONDS,
  type Ramps,
  type RawLog,
  type SendOptions,
  type SentMessage,
  startLab,
} from '../lab/lab.ts';
import { createRecorder, type RecordedChain, type Recorder } from './recorded-chain.ts';

export interface RecordedNetwork extends RecordedChain {
  readonly lab: LabNetwork;
  /** The height at which everything was deployed and traffic began. */
  readonly firstHead: number;
}

export interface Recording {
  readonly networks: readonly [RecordedNetwork, RecordedNetwork];
  readonly lab: Lab;
  /** All ramps that routers have named on the chains that stayed, with their lane. */
  readonly ramps: readonly { readonly lane: Lane; readonly ramps: Ramps }[];
}

/** Nodes let nobody be further ahead of their time than this. */
const MAX_AHEAD_SECONDS = 3600;
const BRANCH_BLOCKS = 5;

/**
 * Plays the scenario on a lab of its own, which stays open: calls are answered by its nodes.
 *
 * @param forks branches on each network
 * @param emptyBlocks blocks without anything in them, on one of the networks
 */
export async function recordScenario(forks: number, emptyBlocks: number): Promise<Recording> {
  const lab = await startLab();
  const { a, b } = lab;
  const first = { a: await a.blockNumber(), b: await b.blockNumber() };
  const recorders = { a: await createRecorder(a, b.selector), b: await createRecorder(b, a.selector) };
  const randomness = createDerivation('scenario').randomness('traffic');
  const traffic = createTraffic(lab, randomness);
  const ramps = lab.lanes.map((lane) => ({ lane, ramps: lane.ramps }));

  // Every lane has been used before any fork, so that nobody has to be given tokens in a branch.
  for (const lane of lab.lanes) await traffic.begin(lane);
  await traffic.play(60);
  await imitate(lab);
  await lab.travel(PERMISSIONLESS_AFTER_SECONDS + 1);
  await traffic.play(20);

  for (let fork = 0; fork < forks; fork++) {
    for (const key of ['a', 'b'] as const) await traffic.fork(key, recorders[key]);
    await traffic.play(randomness.integer(2, 8));
    if (fork === Math.floor(forks / 2)) {
      for (const version of ['1.6', '2.0'] as const) {
        const lane = lab.lane(version, version === '1.6' ? 'a' : 'b');
        await replaceInFork(lane, lab, recorders, traffic);
        ramps.push({ lane, ramps: lane.ramps });
      }
      await imitate(lab);
      if (emptyBlocks > 0) await a.mine(emptyBlocks);
    }
  }
  await traffic.play(30);
  await imitate(lab);
  // Some are final at the end, and some are not yet.
  for (const network of lab.networks) await network.mine(3);
  for (const lane of lab.lanes) await traffic.send(lane);

  const finish = async (key: NetworkKey): Promise<RecordedNetwork> => ({
    ...(await recorders[key].finish()),
    lab: lab.network(key),
    firstHead: first[key],
  });
  const networks = [await finish('a'), await finish('b')] as const;
  for (const { chain } of networks) {
    const aheadMs = Number(chain.at(-1)?.header.timestamp) * 1000 - Date.now() - MAX_AHEAD_SECONDS * 1000;
    await delay(Math.max(0, aheadMs + 1_000));
  }
  return { networks, lab, ramps };
}

/** Copies of what the genuine contracts have said of late, by a contract of which nobody has heard. */
async function imitate(lab: Lab): Promise<void> {
  for (const network of lab.networks) {
    const impostor = await deployImpostor(network);
    const head = await network.blockNumber();
    const logs = await network.rpc<RawLog[]>('eth_getLogs', [
      { fromBlock: `0x${Math.max(0, head - 25).toString(16)}`, toBlock: 'latest' },
    ]);
    // Word for word, and with another word at the end.
    await impostor.repeat(logs.slice(-20));
    await impostor.repeat(logs.slice(-20).map(({ topics, data }) => ({ topics, data: altered(data) })));
  }
}

function altered(data: Hex): Hex {
  return data.length > 10 ? `${data.slice(0, -1) as Hex}${data.endsWith('7') ? '8' : '7'}` : data;
}

/** New ramps that the routers name in a branch first, and in other blocks when that is gone. */
async function replaceInFork(
  lane: Lane,
  lab: Lab,
  recorders: Readonly<Record<NetworkKey, Recorder>>,
  traffic: Traffic,
): Promise<void> {
  const forks = { a: await lab.a.fork(), b: await lab.b.fork() };
  await lane.replaceRamps();
  traffic.forget(lane);
  await traffic.send(lane);
  for (const key of ['a', 'b'] as const) {
    await recorders[key].recordBranch(forks[key].blockNumber);
    await forks[key].abandon({ keep: 'all' });
  }
}

type Traffic = ReturnType<typeof createTraffic>;
type LaneState = Record<'uncommitted' | 'unblessed' | 'executable' | 'failed', SentMessage[]>;

type Act = (lane: Lane, state: LaneState) => Promise<unknown>;

function createTraffic(lab: Lab, randomness: Randomness) {
  let states = new Map(lab.lanes.map((lane) => [lane, emptyState()]));
  const stateOf = (lane: Lane): LaneState => {
    const state = states.get(lane) ?? emptyState();
    states.set(lane, state);
    return state;
  };

  const send: Act = async (lane, state) => {
    const messages = await lane.send(someMessage(lane, lab, randomness));
    (lane.version === '2.0' ? state.executable : state.uncommitted).push(...messages);
  };
  const commit: Act = async (lane, state) => {
    const count = randomness.integer(1, state.uncommitted.length);
    const messages = state.uncommitted.splice(0, count);
    await lane.commit(messages, { blessed: lane.version === '1.6' && randomness.chance(0.3) });
    (lane.version === '1.6' ? state.executable : state.unblessed).push(...messages);
  };
  const bless: Act = async (lane, state) => {
    await lane.bless(state.unblessed);
    state.executable.push(...state.unblessed.splice(0));
  };
  const execute: Act = async (lane, state) => {
    const message = state.executable.shift();
    const fail = randomness.chance(0.3);
    if (!message) return;
    try {
      await lane.execute(message, { fail });
      if (fail) state.failed.push(message);
    } catch (error) {
      // One of another order was left alone before it.
      if (!(error instanceof NotExecuted)) throw error;
    }
  };
  const retry: Act = async (lane, state) => {
    const message = state.failed.shift();
    if (message) await lane.executeByHand(message);
  };

  /** What can happen now and makes a block on one of these networks. */
  const possible = (keys: readonly NetworkKey[]) =>
    lab.lanes.flatMap((lane): (readonly [() => Promise<unknown>, number])[] => {
      const state = stateOf(lane);
      const act = (what: Act, weight: number) => [() => what(lane, state), weight] as const;
      return [
        ...(keys.includes(lane.from) ? [act(send, 3)] : []),
        ...(!keys.includes(lane.to)
          ? []
          : [
              ...(state.uncommitted.length > 0 ? [act(commit, 2)] : []),
              ...(state.unblessed.length > 0 ? [act(bless, 3)] : []),
              ...(state.executable.length > 1 ? [act(execute, 4)] : []),
              ...(state.failed.length > 1 ? [act(retry, 3)] : []),
            ]),
      ];
    });
  const actOn = (keys: readonly NetworkKey[]) => randomness.pickWeighted(possible(keys))();

  return {
    /** Sends the first messages of a lane, by account and by contract. */
    async begin(lane: Lane) {
      const state = stateOf(lane);
      for (const via of ['account', 'contract'] as const) {
        const messages = await lane.send({ via, feeToken: 'link', data: '0x01' });
        (lane.version === '2.0' ? state.executable : state.uncommitted).push(...messages);
      }
    },
    send: async (lane: Lane) => {
      await send(lane, stateOf(lane));
    },
    /** So many things happen, wherever. */
    async play(count: number) {
      for (let done = 0; done < count; done++) await actOn(['a', 'b']);
    },
    /** Lets some things happen on a network, records them, and takes them back; they may happen again otherwise. */
    async fork(key: NetworkKey, recorder: Recorder) {
      const network = lab.network(key);
      const before = new Map([...states].map(([lane, state]) => [lane, copyOf(state)]));
      const fork = await network.fork();
      const length = randomness.integer(1, BRANCH_BLOCKS);
      while ((await network.blockNumber()) < fork.blockNumber + length) await actOn([key]);
      await recorder.recordBranch(fork.blockNumber);
      // What was sent in the branch and seen on the other network would be known there for ever: so acts of a fork
      // are those of one network only, and either all of them happen again or none.
      if (randomness.chance(0.4)) await fork.abandon({ keep: 'all' });
      else {
        await fork.abandon({ blocks: 0 });
        states = before;
        if (randomness.chance(0.5)) await network.mine(randomness.integer(1, 3));
      }
      // The branch that stays is the longer one in the end.
      while ((await network.blockNumber()) <= fork.blockNumber + length) await actOn([key]);
    },
    /** The lane begins anew: what was under way on it is left alone. */
    forget: (lane: Lane) => {
      states.set(lane, emptyState());
    },
  };
}

function emptyState(): LaneState {
  return { uncommitted: [], unblessed: [], executable: [], failed: [] };
}

function copyOf(state: LaneState): LaneState {
  return Object.fromEntries(Object.entries(state).map(([name, list]) => [name, [...list]])) as LaneState;
}

function someMessage(lane: Lane, lab: Lab, randomness: Randomness): SendOptions {
  const [token, coin] = lab.network(lane.from).foundation.tokens;
  const amount = BigInt(randomness.integer(1_000, 1_000_000));
  return randomness.pick<SendOptions>([
    { data: `0x${randomness.word().toString(16).padStart(8, '0')}` },
    { data: '0x', tokens: [{ token: token.address, amount }] },
    { tokens: [{ token: coin.address, amount }], feeToken: 'link' },
    { count: randomness.integer(2, 4), data: (index) => `0x0${index}` },
    { count: 2, tokens: [{ token: token.address, amount }] },
    { via: 'contract', outOfOrder: false },
  ]);
}
