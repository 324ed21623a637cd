/**
 * The simulated network of the demo: a discrete-event simulation that produces facts as chains would.
 *
 * It has no clock. `factsUntil` advances it; the size of the steps makes no difference to the facts, because every event
 * is determined by seed, lane and number.
 */
import type { Fact, Observation, RangeFact, SentMessage } from '../../domain/facts.ts';
import {
  type Block,
  type Chain,
  createChain,
  createEventQueue,
  SECOND_MS,
  type SimulatedEvent,
} from './chain.ts';
import { createMessageWriter, createRoute, tokensOf } from './message-writer.ts';
import { drawFailure, drawOutcome, type Outcome } from './outcome.ts';
import {
  bursts,
  type LaneProfile,
  lanes,
  laneTimings,
  type NetworkKey,
  networkProfiles,
} from './parameters.ts';
import { createDerivation, type Derivation } from './randomness.ts';
import { sendTimes } from './traffic.ts';

export interface SimulationOptions {
  /** The same seed and `startsAt` give the same facts, byte for byte. */
  readonly seed: string;
  /** The current time at the start: history is before it, live traffic after. */
  readonly startsAt: Date;
  /** About this many messages are sent before `startsAt`; 20,000 by default. */
  readonly historyMessages?: number;
  /** Over how many days before `startsAt` they are spread; 30 by default. */
  readonly historyDays?: number;
  /** About this many are sent per minute from then on; 40 by default. */
  readonly liveMessagesPerMinute?: number;
}

export type Simulation = ReturnType<typeof createSimulation>;

const MINUTE_MS = 60 * SECOND_MS;
const DAY_MS = 1_440 * MINUTE_MS;
/** Accounts that execute by hand what failed. */
const RESCUERS = 5;

type Chains = Readonly<Record<NetworkKey, Chain>>;
type LaneState = ReturnType<typeof createLane>;

interface MessageInFlight {
  readonly lane: LaneState;
  readonly message: SentMessage;
  readonly number: number;
  readonly outcome: Outcome;
}

/** A lane and its messages in flight. */
function createLane(profile: LaneProfile, index: number, chains: Chains, derive: Derivation) {
  const source = chains[profile.source];
  const dest = chains[profile.dest];
  const key = `${profile.source} to ${profile.dest}`;
  const transactions = (what: string) => derive.transactionHashes(dest.network.family, `${what} ${key}`);
  return {
    route: createRoute(profile, source, dest, derive),
    source,
    dest,
    timing: laneTimings[profile.timing],
    /** Hashes on the destination, by the (first) message number that they are about. */
    hashes: {
      root: derive.hashes('EVM', `roots ${key}`),
      commit: transactions('commit'),
      bless: transactions('bless'),
      execute: transactions('execute'),
      /** By attempt; a message has at most two. */
      manualExecution: transactions('rescue'),
    },
    /** Lanes commit at regular intervals, with different phases. */
    commitPhaseMs: index * 3.7 * SECOND_MS,
    nextNumber: 1,
    /** Finalized and not yet committed, in order of number. */
    uncommitted: [] as MessageInFlight[],
    /** Ordered senders, by address. */
    queues: new Map<string, { nonce: number; lastExecution: number }>(),
    /** The executor's last transaction, which contains all executions of its block. */
    execution: { blockNumber: -1, transactionHash: '', logIndex: 0 },
  };
}

/**
 * @example
 * const simulation = createSimulation({ seed: 'lanescan', startsAt: new Date() });
 * for (const facts of simulation.factsUntil(new Date())) await store.apply(facts);
 */
export function createSimulation(options: SimulationOptions) {
  const { historyMessages = 20_000, historyDays = 30, liveMessagesPerMinute = 40 } = options;
  const startsAt = options.startsAt.getTime();
  const from = startsAt - historyDays * DAY_MS;
  const derive = createDerivation(options.seed);
  const writer = createMessageWriter(derive);
  const events = createEventQueue();
  const chains = Object.fromEntries(
    Object.entries(networkProfiles).map(([key, profile]) => [key, createChain(profile, derive)]),
  ) as Chains;
  for (const { network, blockFrom } of Object.values(chains)) {
    if (!(blockFrom(from).number >= 0))
      throw new RangeError(`The simulated history cannot begin before ${network.name} did.`);
  }
  const laneStates = lanes.map((profile, index) => createLane(profile, index, chains, derive));
  const weightedLanes = laneStates.map((lane) => [lane, lane.route.profile.share] as const);

  const inBlock = (block: Block, event: SimulatedEvent): void =>
    events.add(block.timestamp, block.minedAt, event);

  // ---- Sending

  /** Puts a transaction into the source's next block. Its sequence numbers are assigned at once, in order of time. */
  const dispatch = (lane: LaneState, time: number): void => {
    const draft = writer.draft(lane.route, lane.nextNumber);
    lane.nextNumber += draft.count;
    const block = lane.source.blockFrom(time);
    const context = {
      sendTimestamp: new Date(block.timestamp).toISOString(),
      sendBlockNumber: block.number,
      nextNonce: (sender: string) => nextNonce(lane, sender),
    };
    for (let index = 0; index < draft.count; index++)
      inBlock(block, () => {
        const { message, randomness } = writer.write(draft, index, context);
        return send(lane, message, drawOutcome(lane.route.profile, message, randomness), block);
      });
  };

  const send = (lane: LaneState, message: SentMessage, outcome: Outcome, block: Block): Fact => {
    const { source } = lane;
    const finalizedAt =
      message.finality === 0
        ? source.finalizedAt(block.timestamp)
        : block.timestamp + message.finality * source.blockMs;
    const finalityBlock = source.blockFrom(finalizedAt);
    inBlock(finalityBlock, () => {
      const inFlight = { lane, message, number: Number(message.sequenceNumber), outcome };
      if (message.verifiers) verify(inFlight, finalityBlock.timestamp);
      else scheduleCommit(inFlight, finalityBlock.timestamp);
      return { kind: 'SourceFinalized', messageId: message.messageId, seen: source.observe(finalityBlock) };
    });
    const seen = source.observe(block, message.sendTransactionHash, message.sendLogIndex);
    return { kind: 'Sent', message, seen };
  };

  // ---- From finality to execution

  const verify = (inFlight: MessageInFlight, finalizedAt: number): void => {
    const { lane, message, outcome } = inFlight;
    const { messageId, verifiers } = message;
    let verifiedAt = finalizedAt;
    for (const [index, { sourceAddress: verifier }] of (verifiers?.items ?? []).entries()) {
      const afterMs = outcome.verificationsMs[index] ?? null;
      if (afterMs === null) continue;
      const block = lane.dest.blockFrom(finalizedAt + afterMs);
      verifiedAt = Math.max(verifiedAt, block.timestamp);
      const data = derive.hexDigest(`verification of ${messageId} by ${verifier}`);
      const seen = lane.dest.observe(block);
      inBlock(block, () => ({ kind: 'VerifierCompleted', messageId, verifier, data, seen }));
    }
    if (!outcome.isStuck) scheduleExecution(inFlight, verifiedAt);
  };

  const scheduleCommit = (inFlight: MessageInFlight, finalizedAt: number): void => {
    const { lane } = inFlight;
    if (lane.uncommitted.push(inFlight) > 1) return;
    const intervalMs = lane.timing.commitIntervalSeconds * SECOND_MS;
    const rounds = Math.floor((finalizedAt - lane.commitPhaseMs) / intervalMs) + 1;
    const block = lane.dest.blockFrom(lane.commitPhaseMs + rounds * intervalMs);
    inBlock(block, () => commit(lane, block));
  };

  /** Commits all finalized messages under one merkle root, and blesses it on lanes that do. */
  const commit = (lane: LaneState, block: Block): Fact | undefined => {
    const { dest, hashes, route } = lane;
    const messages = lane.uncommitted;
    lane.uncommitted = [];
    const [first, last] = [messages[0], messages.at(-1)];
    if (!first || !last) return undefined;
    const range = (kind: RangeFact['kind'], seen: Observation): RangeFact => ({
      kind,
      lane: route.lane,
      fromSequenceNumber: String(first.number),
      toSequenceNumber: String(last.number),
      merkleRoot: hashes.root(first.number),
      seen,
    });
    const committed = dest.observe(block, hashes.commit(first.number), 2);
    let readyAt = block.timestamp;
    const { assurance } = route.profile;
    // One event reports both.
    if (assurance === 'blessed at once') inBlock(block, () => range('Blessed', committed));
    if (assurance === 'blessed later') {
      const blessing = dest.blockFrom(block.timestamp + first.outcome.blessAfterMs);
      readyAt = blessing.timestamp;
      inBlock(blessing, () => range('Blessed', dest.observe(blessing, hashes.bless(first.number), 1)));
    }
    for (const inFlight of messages) {
      if (inFlight.outcome.isStuck) leaveStuck(inFlight, block.timestamp);
      else scheduleExecution(inFlight, readyAt);
    }
    return range('Committed', committed);
  };

  /** The message is not executed, except perhaps manually. */
  const leaveStuck = (inFlight: MessageInFlight, committedAt: number): void => {
    const { dest, timing } = inFlight.lane;
    const { messageId } = inFlight.message;
    const opening = dest.blockFrom(committedAt + timing.permissionlessAfterMinutes * MINUTE_MS);
    inBlock(opening, () => {
      scheduleManualExecution(inFlight, 0, opening.timestamp);
      return { kind: 'ManualExecutionOpened', messageId, seen: dest.observe(opening) };
    });
  };

  const scheduleExecution = (inFlight: MessageInFlight, readyAt: number): void => {
    const { lane, message, number, outcome } = inFlight;
    const { dest } = lane;
    let executedAt = readyAt + outcome.executeAfterMs;
    const queue = message.extraArgs.allowOutOfOrderExecution ? undefined : lane.queues.get(message.sender);
    if (queue) {
      executedAt = Math.max(executedAt, queue.lastExecution);
      queue.lastExecution = executedAt;
    }
    const block = dest.blockFrom(executedAt);
    inBlock(block, () => {
      scheduleManualExecution(inFlight, 0, block.timestamp);
      // The executor needs only one transaction for each lane and block.
      if (lane.execution.blockNumber !== block.number)
        lane.execution = {
          blockNumber: block.number,
          transactionHash: lane.hashes.execute(number),
          logIndex: 0,
        };
      lane.execution.logIndex += 3;
      const seen = dest.observe(block, lane.execution.transactionHash, lane.execution.logIndex);
      return executed(inFlight, outcome.succeeds, seen, 'executor');
    });
  };

  const scheduleManualExecution = (inFlight: MessageInFlight, attempt: number, since: number): void => {
    const { lane, number, outcome } = inFlight;
    const execution = outcome.manualExecutions[attempt];
    if (!execution) return;
    const block = lane.dest.blockFrom(since + execution.afterMs);
    inBlock(block, () => {
      scheduleManualExecution(inFlight, attempt + 1, block.timestamp);
      const seen = lane.dest.observe(block, lane.hashes.manualExecution(2 * number + attempt), 3);
      return executed(inFlight, execution.succeeds, seen, `rescuer ${number % RESCUERS}`);
    });
  };

  /**
   * On an EVM chain the outcome of a failed attempt comes with what it returned. Attempts of one message fail for the same
   * reason.
   *
   * @param caller derivation name of the account that sends the execution
   */
  const executed = (
    { message, lane }: MessageInFlight,
    success: boolean,
    seen: Observation,
    caller: string,
  ): readonly Fact[] => {
    const { messageId } = message;
    const outcome: Fact = { kind: 'Executed', messageId, success, seen };
    const { family, name } = lane.dest.network;
    if (success || family !== 'EVM') return [outcome];
    const failure = drawFailure(message, derive.randomness(`failure of ${messageId}`));
    const account = derive.address(family, `${caller} on ${name}`);
    return [outcome, { kind: 'ExecutionDetails', messageId, ...failure, caller: account, seen }];
  };

  // ---- Users

  const users = derive.randomness('crowd');
  const times = sendTimes(from, startsAt, historyMessages, liveMessagesPerMinute, users);
  const at = (time: number, happen: () => void): void =>
    events.add(time, time, () => {
      happen();
      return undefined;
    });
  /** Only the next time is in the queue. */
  const sendNext = (): void => {
    const { value: time, done } = times.next();
    if (done) return;
    at(time, () => {
      const lane = users.pickWeighted(weightedLanes);
      const transactions = users.chance(bursts.burstChance) ? users.pick(bursts.burstSizes) : 1;
      dispatch(lane, time);
      for (let index = 1; index < transactions; index++) {
        const later = time + users.fraction() * bursts.burstSeconds * SECOND_MS;
        at(later, () => dispatch(lane, later));
      }
      sendNext();
    });
  };
  sendNext();

  return {
    networks: Object.values(chains).map((chain) => chain.network),
    /** The tokens of its messages, as their contracts would describe them. */
    tokens: tokensOf(laneStates.map(({ route }) => route)),

    /**
     * All facts with a time after the last call's (at first: from the beginning of history) up to and including `time`, in
     * order of time, in batches of at most `batchSize`.
     *
     * Lazy: the simulation advances only as far as batches are taken, and holds only messages in flight. The rest of an
     * iteration that breaks off is returned by the next call.
     */
    *factsUntil(time: Date, batchSize = 1_000): Generator<readonly Fact[]> {
      if (!(batchSize >= 1)) throw new RangeError('A batch has at least one fact.');
      const until = time.getTime();
      let batch: Fact[] = [];
      for (let event = events.nextUntil(until); event; event = events.nextUntil(until)) {
        for (const fact of [event() ?? []].flat()) {
          batch.push(fact);
          if (batch.length < batchSize) continue;
          yield batch;
          batch = [];
        }
      }
      if (batch.length > 0) yield batch;
    },
  };
}

function nextNonce(lane: LaneState, sender: string): number {
  const queue = lane.queues.get(sender) ?? { nonce: 0, lastExecution: 0 };
  lane.queues.set(sender, queue);
  return ++queue.nonce;
}
