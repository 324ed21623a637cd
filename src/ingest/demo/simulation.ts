/**
 * The simulated network of the demo: a discrete-event simulation that produces facts as chains would.
 *
 * It has no clock. `factsUntil` advances it; the size of the steps makes no difference to the facts, because every event
 * is determined by seed, lane and number.
 */
import type { Executed, Fact, Observation, RangeFact, SentMessage } from '../../domain/facts.ts';
import { type TokenClaims, type TokenKey, tokenKey, tokenKeyOf } from '../../domain/names/tokens.ts';
import type { Network } from '../../domain/networks/networks.ts';
import {
  type Block,
  type Chain,
  createChain,
  createEventQueue,
  isoTime,
  type SimulatedEvent,
} from './chain.ts';
import { drawFailure } from './failures.ts';
import { createMessageWriter, createRoute, type Route, type TransactionDraft } from './message-writer.ts';
import { drawOutcome, type Outcome } from './outcome.ts';
import {
  bursts,
  decimalsOn,
  type LaneProfile,
  type LaneTiming,
  lanes,
  laneTimings,
  type NetworkKey,
  networkProfiles,
  periodicSenders,
  tokenNames,
} from './parameters.ts';
import { createDerivation, type Derivation, type Randomness } from './randomness.ts';
import { laneRhythm, periodicTimes, planTraffic, userTimes } from './traffic.ts';

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

type SimulatedToken = TokenKey & { readonly claims: TokenClaims };

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
/** Accounts that execute by hand what failed. */
const RESCUERS = 5;

/** A lane and its messages in flight. */
interface LaneState {
  readonly route: Route;
  readonly source: Chain;
  readonly dest: Chain;
  readonly timing: LaneTiming;
  readonly hashes: ReturnType<typeof laneHashes>;
  /** Lanes commit at regular intervals, with different phases. */
  readonly commitPhaseMs: number;
  nextNumber: number;
  /** Finalized and not yet committed, in order of number. */
  uncommitted: MessageInFlight[];
  isCommitDue: boolean;
  /** Ordered senders, by address. */
  readonly queues: Map<string, { nonce: number; lastExecution: number }>;
  /** The executor's last transaction, which contains all executions of its block. */
  execution: { readonly blockNumber: number; readonly transactionHash: string; logIndex: number } | undefined;
}

interface MessageInFlight {
  readonly lane: LaneState;
  readonly number: number;
  readonly messageId: string;
  readonly sender: string;
  readonly inOrder: boolean;
  readonly outcome: Outcome;
  /** Null for a message that never fails. */
  readonly failing: SentMessage | null;
}

/** Of all lanes, each token once. */
function tokensOf(routes: readonly Route[]): readonly SimulatedToken[] {
  const found = new Map<string, SimulatedToken>();
  const add = (network: Network, address: string, claims: TokenClaims) => {
    const key = tokenKeyOf(network.selector, address, network.family);
    if (key) found.set(tokenKey(key), { ...key, claims });
  };
  for (const { source, dest, tokens: transferred, feeTokens } of routes) {
    for (const { name, sourceTokenAddress, destTokenAddress } of transferred) {
      const called = tokenNames[name];
      if (called === null) continue;
      const claimsOn = (network: Network) => ({
        symbol: name,
        name: called,
        decimals: decimalsOn(network, name),
      });
      add(source, sourceTokenAddress, claimsOn(source));
      add(dest, destTokenAddress, claimsOn(dest));
    }
    const [link, wrapped] = feeTokens;
    const decimals = source.family === 'SVM' ? 9 : 18;
    add(source, link, { symbol: 'LINK', name: tokenNames.LINK, decimals });
    add(source, wrapped, { symbol: 'WNAT', name: 'Wrapped native token', decimals });
  }
  return [...found.values()];
}

/**
 * @example
 * const simulation = createSimulation({ seed: 'lanescan', startsAt: new Date() });
 * for (const facts of simulation.factsUntil(new Date())) await store.apply(facts);
 */
export function createSimulation(options: SimulationOptions) {
  const derive = createDerivation(options.seed);
  const writer = createMessageWriter(derive);
  const events = createEventQueue();
  const traffic = planTraffic({
    startsAt: options.startsAt.getTime(),
    historyMessages: options.historyMessages ?? 20_000,
    historyDays: options.historyDays ?? 30,
    liveMessagesPerMinute: options.liveMessagesPerMinute ?? 40,
  });
  const chains = Object.fromEntries(
    Object.entries(networkProfiles).map(([key, profile]) => [key, createChain(profile, derive)]),
  ) as Record<NetworkKey, Chain>;
  for (const chain of Object.values(chains)) {
    if (!(chain.blockFrom(traffic.from).number >= 0)) {
      throw new RangeError(`The simulated history cannot begin before ${chain.network.name} did.`);
    }
  }
  const laneStates: readonly LaneState[] = lanes.map((profile, index) => ({
    route: createRoute(profile, derive),
    hashes: laneHashes(chains[profile.dest], profile, derive),
    source: chains[profile.source],
    dest: chains[profile.dest],
    timing: laneTimings[profile.timing],
    commitPhaseMs: index * 3.7 * SECOND_MS,
    nextNumber: 1,
    uncommitted: [],
    isCommitDue: false,
    queues: new Map(),
    execution: undefined,
  }));
  /** Cumulative lane weights, for each hour of the day. */
  const laneWeights: readonly (readonly number[])[] = Array.from({ length: 24 }, (_, hour) => {
    let sum = 0;
    return lanes.map((lane) => (sum += lane.share * laneRhythm(hour, lane.peakHour)));
  });

  // ---- Sending

  /** Schedules times one after the other; only the next one is in the queue. */
  const followTimes = (times: Iterator<number, unknown>, arrive: (time: number) => void): void => {
    const next = times.next();
    if (next.done) return;
    at(next.value, () => {
      arrive(next.value);
      followTimes(times, arrive);
    });
  };

  const at = (time: number, happen: () => void): void => {
    events.add(time, time, () => {
      happen();
      return undefined;
    });
  };

  const sendAsUser = (time: number, users: Randomness): void => {
    const lane = pickLane(time, users);
    const transactions = users.chance(bursts.burstChance) ? users.pick(bursts.burstSizes) : 1;
    dispatch(lane, writer.draftTransaction(lane.route, lane.nextNumber), time);
    for (let i = 1; i < transactions; i++) {
      const later = time + users.fraction() * bursts.burstSeconds * SECOND_MS;
      at(later, () => dispatch(lane, writer.draftTransaction(lane.route, lane.nextNumber), later));
    }
  };

  const pickLane = (time: number, users: Randomness): LaneState => {
    const weights = laneWeights[new Date(time).getUTCHours()] ?? [];
    const drawn = users.fraction() * (weights.at(-1) ?? 0);
    const lane = laneStates[weights.findIndex((sum) => drawn < sum)];
    if (!lane) throw new Error('No lane was picked.');
    return lane;
  };

  /** Puts a transaction into the source's next block. Its sequence numbers are assigned at once, in order of time. */
  const dispatch = (lane: LaneState, draft: TransactionDraft, time: number): void => {
    lane.nextNumber += draft.count;
    const block = lane.source.blockFrom(time);
    for (let index = 0; index < draft.count; index++) {
      inBlock(block, () => send(lane, draft, index, block));
    }
  };

  const send = (lane: LaneState, draft: TransactionDraft, index: number, block: Block): Fact => {
    const { message, randomness } = writer.write(draft, index, {
      sendTimestamp: isoTime(block),
      sendBlockNumber: block.number,
      nextNonce: (sender) => nextNonce(lane, sender),
    });
    const inOrder = !message.extraArgs.allowOutOfOrderExecution;
    const outcome = drawOutcome(lane.route, lane.timing, inOrder, randomness);
    const canFail = !outcome.succeeds || outcome.manualExecutions.some(({ succeeds }) => !succeeds);
    const inFlight: MessageInFlight = {
      lane,
      number: draft.firstNumber + index,
      messageId: message.messageId,
      sender: message.sender,
      inOrder,
      outcome,
      failing: canFail ? message : null,
    };

    const finalizedAt =
      message.finality === 0
        ? lane.source.finalizedAt(block.timestamp)
        : block.timestamp + message.finality * lane.source.profile.blockMs;
    const finalityBlock = lane.source.blockFrom(finalizedAt);
    inBlock(finalityBlock, () => finalize(inFlight, finalityBlock));

    const seen = lane.source.observe(block, message.sendTransactionHash, message.sendLogIndex);
    return { kind: 'Sent', message, seen };
  };

  // ---- From finality to execution

  const finalize = (message: MessageInFlight, block: Block): Fact => {
    const { lane, messageId } = message;
    if (lane.route.verifiers) verify(message, block.timestamp);
    else scheduleCommit(message, block.timestamp);
    return { kind: 'SourceFinalized', messageId, seen: lane.source.observe(block, null, null) };
  };

  const verify = (message: MessageInFlight, finalizedAt: number): void => {
    const { lane, messageId, outcome } = message;
    const items = lane.route.verifiers?.items ?? [];
    const optional: number[] = [];
    let verifiedAt = finalizedAt;
    items.forEach((verifier, index) => {
      const after = outcome.verificationsMs[index] ?? null;
      const block = after === null ? undefined : lane.dest.blockFrom(finalizedAt + after);
      const at = block?.timestamp ?? Number.POSITIVE_INFINITY;
      if (verifier.isRequired) verifiedAt = Math.max(verifiedAt, at);
      else optional.push(at);
      if (!block) return;
      inBlock(block, () => ({
        kind: 'VerifierCompleted',
        messageId,
        verifier: verifier.sourceAddress,
        data: derive.hexDigest(`verification of ${messageId} by ${verifier.sourceAddress}`),
        seen: lane.dest.observe(block, null, null),
      }));
    });
    const threshold = lane.route.verifiers?.optionalThreshold ?? 0;
    if (threshold > 0) {
      const enoughAt = optional.sort((a, b) => a - b)[threshold - 1] ?? Number.POSITIVE_INFINITY;
      verifiedAt = Math.max(verifiedAt, enoughAt);
    }
    if (Number.isFinite(verifiedAt)) scheduleExecution(message, verifiedAt);
  };

  const scheduleCommit = (message: MessageInFlight, finalizedAt: number): void => {
    const { lane } = message;
    lane.uncommitted.push(message);
    if (lane.isCommitDue) return;
    lane.isCommitDue = true;
    const intervalMs = lane.timing.commitIntervalSeconds * SECOND_MS;
    const rounds = Math.floor((finalizedAt - lane.commitPhaseMs) / intervalMs) + 1;
    const block = lane.dest.blockFrom(lane.commitPhaseMs + rounds * intervalMs);
    inBlock(block, () => commit(lane, block));
  };

  /** Commits all finalized messages under one merkle root, and blesses it on lanes that do. */
  const commit = (lane: LaneState, block: Block): Fact | undefined => {
    const messages = lane.uncommitted;
    const first = messages[0];
    const last = messages.at(-1);
    lane.uncommitted = [];
    lane.isCommitDue = false;
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
    if (lane.route.profile.assurance === 'blessed at once') {
      // One event reports both.
      inBlock(block, () => range('Blessed', committed));
    } else if (lane.route.profile.assurance === 'blessed later') {
      const blessing = lane.dest.blockFrom(block.timestamp + first.outcome.blessAfterMs);
      readyAt = blessing.timestamp;
      inBlock(blessing, () =>
        range('Blessed', lane.dest.observe(blessing, lane.hashes.bless(first.number), 1)),
      );
    }
    for (const message of messages) {
      if (message.outcome.isStuck) leaveStuck(message, block.timestamp);
      else scheduleExecution(message, readyAt);
    }
    return range('Committed', committed);
  };

  /** The message is not executed, except perhaps manually. */
  const leaveStuck = (message: MessageInFlight, committedAt: number): void => {
    const { lane, messageId } = message;
    const opening = lane.dest.blockFrom(committedAt + lane.timing.permissionlessAfterMinutes * MINUTE_MS);
    inBlock(opening, () => {
      scheduleManualExecution(message, 0, opening.timestamp);
      return { kind: 'ManualExecutionOpened', messageId, seen: lane.dest.observe(opening, null, null) };
    });
  };

  const scheduleExecution = (message: MessageInFlight, readyAt: number): void => {
    const { lane, outcome } = message;
    let executedAt = readyAt + outcome.executeAfterMs;
    const queue = message.inOrder ? lane.queues.get(message.sender) : undefined;
    if (queue) {
      executedAt = Math.max(executedAt, queue.lastExecution);
      queue.lastExecution = executedAt;
    }
    const block = lane.dest.blockFrom(executedAt);
    inBlock(block, () => {
      scheduleManualExecution(message, 0, block.timestamp);
      return executed(message, outcome.succeeds, executorObserves(message, block), 'executor');
    });
  };

  /** The executor needs only one transaction for each lane and block. */
  const executorObserves = ({ lane, number }: MessageInFlight, block: Block): Observation => {
    if (lane.execution?.blockNumber === block.number) {
      lane.execution.logIndex += 3;
    } else {
      const transactionHash = lane.hashes.execute(number);
      lane.execution = { blockNumber: block.number, transactionHash, logIndex: 3 };
    }
    return lane.dest.observe(block, lane.execution.transactionHash, lane.execution.logIndex);
  };

  const scheduleManualExecution = (message: MessageInFlight, attempt: number, since: number): void => {
    const { lane, number, outcome } = message;
    const execution = outcome.manualExecutions[attempt];
    if (!execution) return;
    const block = lane.dest.blockFrom(since + execution.afterMs);
    inBlock(block, () => {
      scheduleManualExecution(message, attempt + 1, block.timestamp);
      const transactionHash = lane.hashes.manualExecution(2 * number + attempt);
      const seen = lane.dest.observe(block, transactionHash, 3);
      return executed(message, execution.succeeds, seen, `rescuer ${number % RESCUERS}`);
    });
  };

  /**
   * On an EVM chain the outcome of a failed attempt comes with what it returned. Attempts of one message fail for the same
   * reason.
   *
   * @param caller derivation name of the account that sends the execution
   */
  const executed = (
    { messageId, lane, failing }: MessageInFlight,
    success: boolean,
    seen: Observation,
    caller: string,
  ): readonly Fact[] => {
    const outcome: Executed = { kind: 'Executed', messageId, success, seen };
    const { family, name } = lane.dest.network;
    if (success || !failing || family !== 'EVM') return [outcome];
    const failure = drawFailure(failing, derive.randomness(`failure of ${messageId}`));
    const account = derive.address(family, `${caller} on ${name}`);
    return [outcome, { kind: 'ExecutionDetails', messageId, ...failure, caller: account, seen }];
  };

  const inBlock = (block: Block, event: SimulatedEvent): void => {
    events.add(block.timestamp, block.minedAt, event);
  };

  const users = derive.randomness('crowd');
  followTimes(userTimes(traffic, users), (time) => sendAsUser(time, users));
  for (const { name, source, dest, intervalSeconds } of periodicSenders) {
    const lane = laneStates.find(
      ({ route }) => route.profile.source === source && route.profile.dest === dest,
    );
    if (!lane) throw new Error(`The periodic sender ${name} has no lane.`);
    const randomness = derive.randomness(name);
    followTimes(periodicTimes(traffic, intervalSeconds, randomness), (time) => {
      dispatch(lane, writer.draftPeriodic(lane.route, lane.nextNumber, name), time);
    });
  }

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

/** Hashes on the destination, by the (first) message number that they are about. */
function laneHashes({ network }: Chain, { source, dest }: LaneProfile, derive: Derivation) {
  const transactions = (what: string) =>
    derive.transactionHashes(network.family, `${what} ${source} to ${dest}`);
  return {
    root: derive.hashes('EVM', `roots ${source} to ${dest}`),
    commit: transactions('commit'),
    bless: transactions('bless'),
    execute: transactions('execute'),
    /** By attempt; a message has at most two. */
    manualExecution: transactions('rescue'),
  };
}

function nextNonce(lane: LaneState, sender: string): number {
  const queue = lane.queues.get(sender) ?? { nonce: 0, lastExecution: 0 };
  lane.queues.set(sender, queue);
  queue.nonce++;
  return queue.nonce;
}
