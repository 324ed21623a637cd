/**
 * The simulated network behind the demo: a discrete-event simulation that tells facts as chains would.
 *
 * It has no clock of its own. `factsUntil` moves it forward; how far each call goes makes no difference to
 * the facts, since whatever happens is decided by seed, lane and number.
 */
import type { Executed, Fact, Observation, RangeFact } from '../../domain/facts.ts';
import type { Network } from '../../domain/networks.ts';
import { Agenda, type Happening } from './agenda.ts';
import { type Block, Chain, isoTime } from './chain.ts';
import { drawFate, type Fate } from './fate.ts';
import { type Envelope, MessageWriter, type Route } from './message-writer.ts';
import { Derivation, type HashByNumber, type Randomness } from './randomness.ts';
import { crowdTimes, heartbeatTimes, laneRhythm, planTraffic, type TrafficOptions } from './traffic.ts';
import {
  company,
  heartbeats,
  type LaneHabits,
  lanes,
  type NetworkKey,
  networkHabits,
  networkKeys,
  type Pace,
  paces,
} from './world.ts';

export interface SimulationOptions {
  /** The same seed and `startsAt` give the same facts, byte for byte. */
  readonly seed: string;
  /** "Now" at the start: history lies before it, live traffic after. */
  readonly startsAt: Date;
  /** About this many messages are sent before `startsAt`; 20,000 unless given. */
  readonly historyMessages?: number;
  /** Over how many days before `startsAt` they are spread; 30 unless given. */
  readonly historyDays?: number;
  /** About this many are sent per minute from then on; 40 unless given. */
  readonly liveMessagesPerMinute?: number;
}

export interface Simulation {
  readonly networks: readonly Network[];
  /**
   * All facts with a time after the last call's (at first: from the beginning of history) up to and
   * including `time`, in order of time, in batches of at most `batchSize`.
   *
   * Lazy: the world moves only as far as the batches are taken, and holds only messages in flight. What is
   * left of an iteration that breaks off comes with the next call.
   */
  factsUntil(time: Date, batchSize?: number): Iterable<readonly Fact[]>;
}

/**
 * @example
 * const simulation = createSimulation({ seed: 'lanescan', startsAt: new Date() });
 * for (const facts of simulation.factsUntil(new Date())) await store.apply(facts);
 */
export function createSimulation(options: SimulationOptions): Simulation {
  return new World(options.seed, {
    startsAt: options.startsAt.getTime(),
    historyMessages: options.historyMessages ?? 20_000,
    historyDays: options.historyDays ?? 30,
    liveMessagesPerMinute: options.liveMessagesPerMinute ?? 40,
  });
}

const second = 1_000;
const minute = 60 * second;

/** A lane and what is under way on it. */
interface LaneTraffic {
  readonly route: Route;
  readonly source: Chain;
  readonly dest: Chain;
  readonly pace: Pace;
  readonly hashes: LaneHashes;
  /** Lanes commit at regular times, but not all at the same ones. */
  readonly commitPhase: number;
  nextNumber: number;
  /** Finalized and not yet committed, in order of number. */
  uncommitted: MessageInFlight[];
  commitIsDue: boolean;
  /** Senders of messages in order, by address. */
  readonly queues: Map<string, { nonce: number; lastExecution: number }>;
  /** The executor's last transaction: what it executes in the same block belongs to it. */
  execution: { readonly blockNumber: number; readonly transactionHash: string; logIndex: number } | undefined;
}

/** Hashes on the destination, by the (first) message number that they are about. */
interface LaneHashes {
  readonly root: HashByNumber;
  readonly commit: HashByNumber;
  readonly bless: HashByNumber;
  readonly execute: HashByNumber;
  /** By attempt, of which a message has two at most. */
  readonly rescue: HashByNumber;
}

interface MessageInFlight {
  readonly lane: LaneTraffic;
  readonly number: number;
  readonly messageId: string;
  readonly sender: string;
  readonly inOrder: boolean;
  readonly fate: Fate;
}

class World implements Simulation {
  readonly networks: readonly Network[];
  private readonly derive: Derivation;
  private readonly writer: MessageWriter;
  private readonly agenda = new Agenda();
  private readonly lanes: readonly LaneTraffic[];
  /** Lane weights summed up from the first lane on, for each hour of the day. */
  private readonly laneWeights: readonly (readonly number[])[];

  constructor(seed: string, options: TrafficOptions) {
    this.derive = new Derivation(seed);
    this.writer = new MessageWriter(this.derive);
    const traffic = planTraffic(options);
    const chains = Object.fromEntries(
      networkKeys.map((key) => [key, new Chain(networkHabits(key), this.derive)]),
    ) as Record<NetworkKey, Chain>;
    for (const chain of Object.values(chains)) {
      if (!(chain.blockFrom(traffic.from).number >= 0)) {
        throw new RangeError(`The simulated history cannot begin before ${chain.network.name} did.`);
      }
    }
    this.networks = Object.values(chains).map((chain) => chain.network);
    this.lanes = lanes.map((habits, index) => ({
      route: this.writer.route(habits),
      hashes: laneHashes(chains[habits.dest], habits, this.derive),
      source: chains[habits.source],
      dest: chains[habits.dest],
      pace: paces[habits.pace],
      commitPhase: index * 3.7 * second,
      nextNumber: 1,
      uncommitted: [],
      commitIsDue: false,
      queues: new Map(),
      execution: undefined,
    }));
    this.laneWeights = Array.from({ length: 24 }, (_, hour) => {
      let sum = 0;
      return lanes.map((lane) => (sum += lane.share * laneRhythm(hour, lane.peakHour)));
    });

    const crowd = this.derive.randomness('crowd');
    this.follow(crowdTimes(traffic, crowd), (time) => this.crowdSends(time, crowd));
    for (const { name, source, dest, everySeconds } of heartbeats) {
      const lane = this.lanes.find(
        ({ route }) => route.habits.source === source && route.habits.dest === dest,
      );
      if (!lane) throw new Error(`The heartbeat ${name} has no lane.`);
      const randomness = this.derive.randomness(name);
      this.follow(heartbeatTimes(traffic, everySeconds, randomness), (time) => {
        this.dispatch(lane, this.writer.heartbeatEnvelope(lane.route, lane.nextNumber, name), time);
      });
    }
  }

  *factsUntil(time: Date, batchSize = 1_000): Generator<readonly Fact[]> {
    if (!(batchSize >= 1)) throw new RangeError('A batch holds at least one fact.');
    const until = time.getTime();
    let batch: Fact[] = [];
    for (let happen = this.agenda.nextUntil(until); happen; happen = this.agenda.nextUntil(until)) {
      const fact = happen();
      if (!fact) continue;
      batch.push(fact);
      if (batch.length >= batchSize) {
        yield batch;
        batch = [];
      }
    }
    if (batch.length > 0) yield batch;
  }

  // ---- Sending

  /** Goes through a stream of times, holding no more than the next one. */
  private follow(times: Iterator<number, unknown>, arrive: (time: number) => void): void {
    const next = times.next();
    if (next.done) return;
    this.agenda.add(next.value, next.value, () => {
      arrive(next.value);
      this.follow(times, arrive);
      return undefined;
    });
  }

  private crowdSends(time: number, crowd: Randomness): void {
    const lane = this.pickLane(time, crowd);
    const transactions = crowd.chance(company.flurryChance) ? crowd.pick(company.flurrySizes) : 1;
    this.dispatch(lane, this.writer.envelope(lane.route, lane.nextNumber), time);
    for (let i = 1; i < transactions; i++) {
      const later = time + crowd.fraction() * company.flurrySeconds * second;
      this.agenda.add(later, later, () => {
        this.dispatch(lane, this.writer.envelope(lane.route, lane.nextNumber), later);
        return undefined;
      });
    }
  }

  private pickLane(time: number, crowd: Randomness): LaneTraffic {
    const weights = this.laneWeights[new Date(time).getUTCHours()] ?? [];
    const drawn = crowd.fraction() * (weights.at(-1) ?? 0);
    const lane = this.lanes[weights.findIndex((sum) => drawn < sum)];
    if (!lane) throw new Error('Some lane is always picked.');
    return lane;
  }

  /** Brings a transaction into the source's next block. Its numbers are taken at once, in order of time. */
  private dispatch(lane: LaneTraffic, envelope: Envelope, time: number): void {
    lane.nextNumber += envelope.count;
    const block = lane.source.blockFrom(time);
    for (let index = 0; index < envelope.count; index++) {
      this.inBlock(block, () => this.send(lane, envelope, index, block));
    }
  }

  private send(lane: LaneTraffic, envelope: Envelope, index: number, block: Block): Fact {
    const { message, randomness } = this.writer.write(envelope, index, {
      sendTimestamp: isoTime(block),
      sendBlockNumber: block.number,
      nextNonce: (sender) => nextNonce(lane, sender),
    });
    const inOrder = !message.extraArgs.allowOutOfOrderExecution;
    const inFlight: MessageInFlight = {
      lane,
      number: envelope.firstNumber + index,
      messageId: message.messageId,
      sender: message.sender,
      inOrder,
      fate: drawFate(lane.route, lane.pace, inOrder, randomness),
    };

    const finalizedAt =
      message.finality === 0
        ? lane.source.finalizedAt(block.timestamp)
        : block.timestamp + message.finality * lane.source.habits.blockMilliseconds;
    const finalityBlock = lane.source.blockFrom(finalizedAt);
    this.inBlock(finalityBlock, () => this.finalize(inFlight, finalityBlock));

    const seen = lane.source.observe(block, message.sendTransactionHash, message.sendLogIndex);
    return { kind: 'Sent', message, seen };
  }

  // ---- From finality to execution

  private finalize(message: MessageInFlight, block: Block): Fact {
    const { lane, messageId } = message;
    if (lane.route.verifiers) this.verify(message, block.timestamp);
    else this.awaitCommit(message, block.timestamp);
    return { kind: 'SourceFinalized', messageId, seen: lane.source.observe(block, null, null) };
  }

  private verify(message: MessageInFlight, finalizedAt: number): void {
    const { lane, messageId, fate } = message;
    const items = lane.route.verifiers?.items ?? [];
    const optional: number[] = [];
    let verifiedAt = finalizedAt;
    items.forEach((verifier, index) => {
      const after = fate.verifications[index] ?? null;
      const block = after === null ? undefined : lane.dest.blockFrom(finalizedAt + after);
      const at = block?.timestamp ?? Number.POSITIVE_INFINITY;
      if (verifier.isRequired) verifiedAt = Math.max(verifiedAt, at);
      else optional.push(at);
      if (!block) return;
      this.inBlock(block, () => ({
        kind: 'VerifierCompleted',
        messageId,
        verifier: verifier.sourceAddress,
        data: this.derive.hexDigest(`verification of ${messageId} by ${verifier.sourceAddress}`),
        seen: lane.dest.observe(block, null, null),
      }));
    });
    const threshold = lane.route.verifiers?.optionalThreshold ?? 0;
    if (threshold > 0) {
      const enoughAt = optional.sort((a, b) => a - b)[threshold - 1] ?? Number.POSITIVE_INFINITY;
      verifiedAt = Math.max(verifiedAt, enoughAt);
    }
    if (Number.isFinite(verifiedAt)) this.awaitExecution(message, verifiedAt);
  }

  private awaitCommit(message: MessageInFlight, finalizedAt: number): void {
    const { lane } = message;
    lane.uncommitted.push(message);
    if (lane.commitIsDue) return;
    lane.commitIsDue = true;
    const interval = lane.pace.commitEverySeconds * second;
    const rounds = Math.floor((finalizedAt - lane.commitPhase) / interval) + 1;
    const block = lane.dest.blockFrom(lane.commitPhase + rounds * interval);
    this.inBlock(block, () => this.commit(lane, block));
  }

  /** Commits all that is finalized under one root, and blesses it where the lane does. */
  private commit(lane: LaneTraffic, block: Block): Fact | undefined {
    const messages = lane.uncommitted;
    const first = messages[0];
    const last = messages.at(-1);
    lane.uncommitted = [];
    lane.commitIsDue = false;
    if (!first || !last) return undefined;

    const merkleRoot = lane.hashes.root(first.number);
    const range = (kind: RangeFact['kind'], seen: Observation): RangeFact => ({
      kind,
      lane: lane.route.lane,
      fromSequenceNumber: String(first.number),
      toSequenceNumber: String(last.number),
      merkleRoot,
      seen,
    });
    const committed = lane.dest.observe(block, lane.hashes.commit(first.number), 2);

    let readyAt = block.timestamp;
    if (lane.route.habits.assurance === 'blessed at once') {
      // One event says both.
      this.inBlock(block, () => range('Blessed', committed));
    } else if (lane.route.habits.assurance === 'blessed later') {
      const blessing = lane.dest.blockFrom(block.timestamp + first.fate.blessAfter);
      readyAt = blessing.timestamp;
      this.inBlock(blessing, () =>
        range('Blessed', lane.dest.observe(blessing, lane.hashes.bless(first.number), 1)),
      );
    }
    for (const message of messages) {
      if (message.fate.isStuck) this.forget(message, block.timestamp);
      else this.awaitExecution(message, readyAt);
    }
    return range('Committed', committed);
  }

  /** Nobody executes the message until, maybe, somebody does it by hand. */
  private forget(message: MessageInFlight, committedAt: number): void {
    const { lane, messageId } = message;
    const opening = lane.dest.blockFrom(committedAt + lane.pace.permissionlessAfterMinutes * minute);
    this.inBlock(opening, () => {
      this.awaitRescue(message, 0, opening.timestamp);
      return {
        kind: 'ManualExecutionOpened',
        messageId,
        seen: lane.dest.observe(opening, null, null),
      };
    });
  }

  private awaitExecution(message: MessageInFlight, readyAt: number): void {
    const { lane, fate } = message;
    let executedAt = readyAt + fate.executeAfter;
    const queue = message.inOrder ? lane.queues.get(message.sender) : undefined;
    if (queue) {
      executedAt = Math.max(executedAt, queue.lastExecution);
      queue.lastExecution = executedAt;
    }
    const block = lane.dest.blockFrom(executedAt);
    this.inBlock(block, () => {
      this.awaitRescue(message, 0, block.timestamp);
      return executed(message, fate.succeeds, this.executorObserves(message, block));
    });
  }

  /** In one block the executor needs only one transaction per lane. */
  private executorObserves({ lane, number }: MessageInFlight, block: Block): Observation {
    if (lane.execution?.blockNumber === block.number) {
      lane.execution.logIndex += 3;
    } else {
      const transactionHash = lane.hashes.execute(number);
      lane.execution = { blockNumber: block.number, transactionHash, logIndex: 3 };
    }
    return lane.dest.observe(block, lane.execution.transactionHash, lane.execution.logIndex);
  }

  private awaitRescue(message: MessageInFlight, attempt: number, since: number): void {
    const { lane, number, fate } = message;
    const rescue = fate.rescues[attempt];
    if (!rescue) return;
    const block = lane.dest.blockFrom(since + rescue.after);
    this.inBlock(block, () => {
      this.awaitRescue(message, attempt + 1, block.timestamp);
      const transactionHash = lane.hashes.rescue(2 * number + attempt);
      return executed(message, rescue.succeeds, lane.dest.observe(block, transactionHash, 3));
    });
  }

  private inBlock(block: Block, happen: Happening): void {
    this.agenda.add(block.timestamp, block.minedAt, happen);
  }
}

function laneHashes({ network }: Chain, { source, dest }: LaneHabits, derive: Derivation): LaneHashes {
  const transactions = (what: string) =>
    derive.transactionHashes(network.family, `${what} ${source} to ${dest}`);
  return {
    root: derive.hashes('EVM', `roots ${source} to ${dest}`),
    commit: transactions('commit'),
    bless: transactions('bless'),
    execute: transactions('execute'),
    rescue: transactions('rescue'),
  };
}

function nextNonce(lane: LaneTraffic, sender: string): number {
  const queue = lane.queues.get(sender) ?? { nonce: 0, lastExecution: 0 };
  lane.queues.set(sender, queue);
  queue.nonce++;
  return queue.nonce;
}

function executed({ messageId }: MessageInFlight, success: boolean, seen: Observation): Executed {
  return { kind: 'Executed', messageId, success, seen };
}
