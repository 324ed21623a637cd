import { describe, expect, test } from 'vitest';
import {
  type ExecutionDetails,
  type Fact,
  factMessageId,
  isMessageFact,
  isRangeFact,
  isRootFact,
  type Lane,
  type RangeFact,
  type Sent,
} from '../../../src/domain/facts.ts';
import { failureReason } from '../../../src/domain/failures/failure-reason.ts';
import { foldFacts } from '../../../src/domain/fold.ts';
import { type Status, statuses } from '../../../src/domain/lifecycle.ts';
import type { Message } from '../../../src/domain/message.ts';
import { networkBySelector } from '../../../src/domain/networks/networks.ts';
import { parseMessage } from '../../../src/domain/records/message-parser.ts';
import { createSimulation, type SimulationOptions } from '../../../src/ingest/demo/simulation.ts';

const startsAt = new Date('2026-03-02T10:00:00Z');
const small: SimulationOptions = { seed: 'small', startsAt, historyMessages: 600, historyDays: 3 };

function minutesLater(minutes: number): Date {
  return new Date(startsAt.getTime() + minutes * 60_000);
}

function factsOf(options: SimulationOptions, until = minutesLater(5)): Fact[] {
  return [...createSimulation(options).factsUntil(until)].flat();
}

function timeOf(fact: Fact): string {
  if (fact.kind === 'Snapshot') throw new Error('A simulated chain tells no snapshots.');
  return fact.seen.at;
}

const isSent = (fact: Fact): fact is Sent => fact.kind === 'Sent';
const isDetails = (fact: Fact): fact is ExecutionDetails => fact.kind === 'ExecutionDetails';

function laneKey(lane: Lane): string {
  return `${lane.sourceChainSelector} ${lane.destChainSelector} ${lane.onramp}`;
}

function laneOf({ message }: Sent): Lane {
  return {
    sourceChainSelector: message.sourceNetworkInfo.chainSelector,
    destChainSelector: message.destNetworkInfo.chainSelector,
    onramp: message.onramp,
  };
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

/** For each message the facts that bear on it, in order of time: its own and the ranges that cover it. */
function factsByMessage(facts: readonly Fact[]): Map<string, Fact[]> {
  const own = new Map<string, Fact[]>(facts.filter(isSent).map(({ message }) => [message.messageId, []]));
  for (const fact of facts) if (isMessageFact(fact)) own.get(factMessageId(fact))?.push(fact);
  const ranges = groupBy(facts.filter(isRangeFact), (fact) => laneKey(fact.lane));
  for (const sent of facts.filter(isSent)) {
    const number = Number(sent.message.sequenceNumber);
    const covering = (ranges.get(laneKey(laneOf(sent))) ?? []).filter(
      (range) => Number(range.fromSequenceNumber) <= number && number <= Number(range.toSequenceNumber),
    );
    const mine = own.get(sent.message.messageId);
    mine?.push(...covering);
    // Stable: facts of the same moment keep their order, and a commit comes before its blessing.
    mine?.sort((a, b) => (timeOf(a) < timeOf(b) ? -1 : timeOf(a) > timeOf(b) ? 1 : 0));
  }
  return own;
}

function recordsOf(byMessage: ReadonlyMap<string, readonly Fact[]>): Message[] {
  return [...byMessage.values()].map((mine) => {
    const record = foldFacts(mine);
    if (!record) throw new Error('A message without its sending.');
    return record;
  });
}

/** The statuses that a message goes through, one after the other. */
function journey(facts: readonly Fact[]): Status[] {
  const passed = facts.map((_, index) => foldFacts(facts.slice(0, index + 1))?.status ?? 'SENT');
  return passed.filter((status, index) => status !== passed[index - 1]);
}

describe('the same world every time', () => {
  test('the same seed and start give the same facts, byte for byte', () => {
    expect(JSON.stringify(factsOf(small))).toBe(JSON.stringify(factsOf(small)));
  });

  test('another seed gives other messages between other addresses', () => {
    const sent = factsOf(small).filter(isSent);
    const others = factsOf({ ...small, seed: 'other' }).filter(isSent);
    const seen = new Set(sent.flatMap(({ message }) => [message.messageId, message.sender, message.onramp]));
    expect(
      others.filter(({ message }) =>
        [message.messageId, message.sender, message.onramp].some((x) => seen.has(x)),
      ),
    ).toEqual([]);
  });

  test('message ids follow from seed, lane and number, whenever the simulation starts', () => {
    const idsFrom = (start: Date) =>
      new Map(
        factsOf({ ...small, startsAt: start }, start)
          .filter(isSent)
          .map((sent) => [`${laneKey(laneOf(sent))} ${sent.message.sequenceNumber}`, sent.message.messageId]),
      );
    const ids = idsFrom(startsAt);
    const laterIds = idsFrom(new Date('2026-05-20T03:21:09.876Z'));
    const common = [...ids.keys()].filter((key) => laterIds.has(key));
    expect(common.length).toBeGreaterThan(300);
    for (const key of common) expect(laterIds.get(key)).toBe(ids.get(key));
  });

  test('many small steps give the same facts as one long one, each what lies after the last and up to its own time', () => {
    const simulation = createSimulation(small);
    const facts: Fact[] = [];
    let last = '';
    // In steps of two hours up to the start, then of less than a second.
    for (let minutes = -4 * 24 * 60; minutes < 5; ) {
      const time = minutesLater(minutes);
      minutes = minutes < 0 ? Math.min(0, minutes + 129.6) : minutes + 0.7 / 60;
      for (const fact of [...simulation.factsUntil(time)].flat()) {
        expect(timeOf(fact) > last && timeOf(fact) <= time.toISOString()).toBe(true);
        facts.push(fact);
      }
      last = time.toISOString();
    }
    facts.push(...[...simulation.factsUntil(minutesLater(5))].flat());
    expect(facts).toEqual(factsOf(small));
    expect([...simulation.factsUntil(startsAt)]).toEqual([]);
  });

  test('no batch is larger than asked, and an iteration that breaks off loses nothing', () => {
    const simulation = createSimulation(small);
    const batches: (readonly Fact[])[] = [];
    for (const batch of simulation.factsUntil(minutesLater(5), 7)) if (batches.push(batch) === 3) break;
    batches.push(...simulation.factsUntil(minutesLater(5), 7));
    expect(batches.every((batch) => batch.length <= 7 && batch.length > 0)).toBe(true);
    expect(batches.flat()).toEqual(factsOf(small));
  });

  test('a history that would begin before the networks did is refused', () => {
    expect(() => createSimulation({ seed: 'x', startsAt: new Date(0) })).toThrow(RangeError);
    expect(() => createSimulation({ seed: 'x', startsAt: new Date(Number.NaN) })).toThrow(RangeError);
  });

  test('without history or without live traffic there is just the other', () => {
    const onlyLive = factsOf({ ...small, historyMessages: 0 }).filter(isSent);
    expect(onlyLive.length).toBeGreaterThan(100);
    expect(onlyLive.every((sent) => timeOf(sent) >= startsAt.toISOString())).toBe(true);
    const onlyHistory = factsOf({ ...small, liveMessagesPerMinute: 0 }, minutesLater(600)).filter(isSent);
    expect(onlyHistory.length).toBeGreaterThan(500);
    // The last transaction may reach its block, and the rest of its flurry follow, moments after the start.
    expect(onlyHistory.every((sent) => timeOf(sent) <= minutesLater(1).toISOString())).toBe(true);
  });
});

describe('a history', () => {
  const historyMessages = 6_000;
  const facts = factsOf({ seed: 'history', startsAt, historyMessages, historyDays: 14 }, startsAt);
  const sent = facts.filter(isSent);
  const byMessage = factsByMessage(facts);
  const records = recordsOf(byMessage);

  test('has about as many messages as asked, within its days', () => {
    expect(sent.length).toBeGreaterThan(historyMessages * 0.95);
    expect(sent.length).toBeLessThan(historyMessages * 1.05);
    expect(timeOf(sent[0] as Fact) >= minutesLater(-14 * 24 * 60).toISOString()).toBe(true);
    expect(timeOf(facts.at(-1) as Fact) <= startsAt.toISOString()).toBe(true);
  });

  test('is told in order of time, on each network in order of blocks, with one time and one hash per block', {
    tags: 'slow',
  }, () => {
    const heights = new Map<string, number>();
    const blocks = new Map<string, string>();
    let last = '';
    for (const fact of facts) {
      if (fact.kind === 'Snapshot') continue;
      const { network, blockNumber, blockHash, at } = fact.seen;
      expect(at >= last).toBe(true);
      expect(blockNumber).toBeGreaterThanOrEqual(heights.get(network) ?? 0);
      const said = `${blockHash} ${at}`;
      expect(blocks.get(`${network} ${blockNumber}`) ?? said).toBe(said);
      last = at;
      heights.set(network, blockNumber);
      blocks.set(`${network} ${blockNumber}`, said);
    }
  });

  test('folds to valid records that are canonical already', () => {
    expect(records).toHaveLength(sent.length);
    for (const record of records) {
      expect(parseMessage(record)).toEqual({
        ok: true,
        message: record,
        ignored: [],
        derived: [],
        kept: [],
        unknown: [],
      });
    }
  });

  test('has all three versions, each with its own kind of facts', () => {
    const kindsOf = (version: string) => {
      const mine = new Set(
        sent.filter(({ message }) => message.version === version).map(({ message }) => message.messageId),
      );
      const told = [...byMessage].flatMap(([messageId, facts]) => (mine.has(messageId) ? facts : []));
      return new Set(told.map((fact) => fact.kind));
    };
    const common = ['Sent', 'SourceFinalized', 'Executed', 'ExecutionDetails'];
    const committed = new Set([...common, 'Committed', 'Blessed', 'ManualExecutionOpened']);
    expect(kindsOf('1.5.0')).toEqual(committed);
    expect(kindsOf('1.6.0')).toEqual(committed);
    expect(kindsOf('2.0.0')).toEqual(new Set([...common, 'VerifierCompleted']));
  });

  test('has messages in every status, and some to execute by hand: failed ones and forgotten ones', () => {
    expect(new Set(records.map((record) => record.status))).toEqual(new Set(statuses));
    const ready = records.filter((record) => record.readyForManualExecution);
    expect(ready.some((record) => record.status === 'FAILED')).toBe(true);
    expect(ready.some((record) => record.status === 'COMMITTED' || record.status === 'BLESSED')).toBe(true);
  });

  test('fails for reasons that fit the message: of its receiver, or of the pools of its tokens', () => {
    const sent = new Map(facts.filter(isSent).map(({ message }) => [message.messageId, message]));
    const reasons = facts.filter(isDetails).map((details) => {
      const message = sent.get(details.messageId);
      if (!message) throw new Error('A failure without its sending.');
      const gasLimit = 'gasLimit' in message.extraArgs ? BigInt(message.extraArgs.gasLimit) : 0n;
      const reason = failureReason({
        returnData: Buffer.from(details.returnData?.slice(2) ?? '', 'hex'),
        gasLimit,
        ...(details.gasUsed !== null && { gasUsed: BigInt(details.gasUsed) }),
      });
      const [wrapper] = reason.wrappers;
      expect(wrapper?.name).toMatch(/^(ReceiverError|TokenHandlingError)$/);
      if (wrapper?.name === 'TokenHandlingError') expect(message.tokenAmounts).not.toEqual([]);
      else expect(message.data !== '0x' || message.tokenAmounts.length === 0).toBe(true);
      expect(details.caller).toMatch(/^0x/);
      return reason.code;
    });
    expect(new Set(reasons)).toEqual(
      new Set([
        'out-of-gas',
        'unknown-error',
        'Error',
        'Panic',
        'EnforcedPause',
        'SenderNotAllowlisted',
        'SourceChainNotAllowlisted',
        'TokenRateLimitReached',
        'TokenMaxCapacityExceeded',
        'InsufficientLiquidity',
      ]),
    );
  });

  test('fails two to four times in a hundred, and some of it is repaired by hand', () => {
    const executions = groupBy(
      facts.filter((fact) => fact.kind === 'Executed'),
      (fact) => fact.messageId,
    );
    const failed = [...executions.values()].filter((attempts) => attempts.some(({ success }) => !success));
    const repaired = failed.filter((attempts) => attempts.at(-1)?.success);
    expect(failed.length / records.length).toBeGreaterThan(0.02);
    expect(failed.length / records.length).toBeLessThan(0.04);
    expect(repaired.length).toBeGreaterThan(failed.length * 0.25);
    expect(repaired.length).toBeLessThan(failed.length * 0.75);
    for (const attempts of executions.values()) {
      expect(attempts.slice(0, -1).every(({ success }) => !success)).toBe(true);
    }
  });

  test('numbers each lane 1, 2, 3 … without a hole, and no id comes twice', () => {
    expect(new Set(sent.map(({ message }) => message.messageId)).size).toBe(sent.length);
    const lanes = groupBy(sent, (fact) => laneKey(laneOf(fact)));
    expect(lanes.size).toBeGreaterThanOrEqual(25);
    for (const messages of lanes.values()) {
      expect(messages.map(({ message }) => message.sequenceNumber)).toEqual(
        messages.map((_, index) => String(index + 1)),
      );
    }
  });

  test('commits each lane in contiguous roots, and blesses only what is committed', () => {
    const roots = facts.filter(isRangeFact);
    const text = ({ lane, fromSequenceNumber, toSequenceNumber, merkleRoot }: RangeFact) =>
      `${laneKey(lane)} ${fromSequenceNumber} ${toSequenceNumber} ${merkleRoot}`;
    const committed = roots.filter(({ kind }) => kind === 'Committed');
    for (const ranges of groupBy(committed, ({ lane }) => laneKey(lane)).values()) {
      let next = 1;
      for (const range of ranges) {
        expect(Number(range.fromSequenceNumber)).toBe(next);
        expect(Number(range.toSequenceNumber)).toBeGreaterThanOrEqual(next);
        next = Number(range.toSequenceNumber) + 1;
      }
    }
    expect(committed.some((range) => range.toSequenceNumber !== range.fromSequenceNumber)).toBe(true);
    const known = new Set(committed.map(text));
    expect(roots.filter((range) => range.kind === 'Blessed' && !known.has(text(range)))).toEqual([]);
  });

  test('leaves no old message behind unless it was meant to be stuck', () => {
    const dayAgo = minutesLater(-24 * 60).toISOString();
    const old = records.filter((record) => record.sendTimestamp < dayAgo);
    const waiting = old.filter(({ status }) => status !== 'SUCCESS' && status !== 'FAILED');
    expect(waiting.every((record) => record.readyForManualExecution || record.status === 'VERIFYING')).toBe(
      true,
    );
    expect(waiting.length).toBeLessThan(old.length * 0.01);
  });

  test('sees each fact on the network where it happened', () => {
    const ends = new Map(sent.map((fact) => [fact.message.messageId, laneOf(fact)]));
    for (const fact of facts) {
      if (fact.kind === 'Snapshot' || isRootFact(fact)) continue;
      const lane = isRangeFact(fact) ? fact.lane : ends.get(factMessageId(fact));
      const atSource = fact.kind === 'Sent' || fact.kind === 'SourceFinalized';
      expect(fact.seen.network).toBe(atSource ? lane?.sourceChainSelector : lane?.destChainSelector);
    }
  });

  test('goes between real testnets, with Solana at either end', () => {
    const ends = (end: 'sourceNetworkInfo' | 'destNetworkInfo') =>
      new Set(sent.map(({ message }) => message[end].chainFamily));
    expect(ends('sourceNetworkInfo')).toEqual(new Set(['EVM', 'SVM']));
    expect(ends('destNetworkInfo')).toEqual(new Set(['EVM', 'SVM']));
    const { networks } = createSimulation(small);
    expect(networks.length).toBeGreaterThanOrEqual(12);
    for (const network of networks) expect(networkBySelector(network.selector)).toBe(network);
  });

  test('counts nonces per sender and lane; out of order it is 0, and from 2.0 on there is none', () => {
    const nonces = new Map<string, number>();
    for (const fact of sent) {
      const { message } = fact;
      if (message.version === '2.0.0') {
        expect(message.nonce).toBeNull();
        expect(message.extraArgs.allowOutOfOrderExecution).toBe(true);
      } else if (message.extraArgs.allowOutOfOrderExecution) {
        expect(message.nonce).toBe('0');
      } else {
        const key = `${laneKey(laneOf(fact))} ${message.sender}`;
        nonces.set(key, (nonces.get(key) ?? 0) + 1);
        expect(message.nonce).toBe(String(nonces.get(key)));
      }
    }
    expect(Math.max(...nonces.values())).toBeGreaterThan(10);
  });

  test('executes messages in order of their nonces where order was asked for', () => {
    const firstExecution = new Map<string, number>();
    facts.forEach((fact, index) => {
      if (fact.kind === 'Executed' && !firstExecution.has(fact.messageId)) {
        firstExecution.set(fact.messageId, index);
      }
    });
    const ordered = sent.filter(({ message }) => message.nonce !== null && message.nonce !== '0');
    for (const queue of groupBy(
      ordered,
      (fact) => `${laneKey(laneOf(fact))} ${fact.message.sender}`,
    ).values()) {
      const places = queue.map(
        ({ message }) => firstExecution.get(message.messageId) ?? Number.MAX_SAFE_INTEGER,
      );
      expect(places).toEqual(places.toSorted((a, b) => a - b));
    }
  });

  test('itemises fees from 2.0 on, to the last unit', () => {
    for (const { message } of sent) {
      const { totalAmount, items } = message.fees.fixedFeesDetails;
      if (message.version !== '2.0.0') {
        expect(items).toBeUndefined();
        continue;
      }
      expect(items?.reduce((sum, item) => sum + BigInt(item.amount), 0n)).toBe(BigInt(totalAmount));
      expect(items?.map((item) => item.feeType)).toEqual([
        ...(message.verifiers?.items ?? []).map(() => 'VERIFIER'),
        ...message.tokenAmounts.map(() => 'TOKEN_POOL'),
        'EXECUTOR',
        'NETWORK',
      ]);
    }
  });

  test('carries none, one and two tokens, data or none, and the extra arguments of its destination', () => {
    for (const { message } of sent)
      expect('computeUnits' in message.extraArgs).toBe(message.destNetworkInfo.chainFamily === 'SVM');
    expect(new Set(sent.map(({ message }) => message.tokenAmounts.length))).toEqual(new Set([0, 1, 2]));
    expect(sent.some(({ message }) => message.data === '0x')).toBe(true);
    expect(sent.some(({ message }) => (message.data?.length ?? 0) > 66)).toBe(true);
    expect(sent.some(({ message }) => message.finality > 0)).toBe(true);
  });

  test('puts several messages into one transaction now and then, told apart by their logs', () => {
    const transactions = [...groupBy(sent, ({ message }) => message.sendTransactionHash).values()];
    const shared = transactions.filter((messages) => messages.length > 1);
    expect(shared.length).toBeGreaterThan(10);
    for (const messages of shared) {
      expect(new Set(messages.map(({ message }) => message.sendLogIndex)).size).toBe(messages.length);
      expect(new Set(messages.map(({ seen }) => seen.blockHash)).size).toBe(1);
    }
  });

  test('has a cast of about 300 addresses, a few of them busy, and senders that are not the origin', () => {
    const appearances = new Map<string, number>();
    for (const { message } of sent) {
      for (const address of new Set([message.origin, message.sender, message.receiver])) {
        appearances.set(address, (appearances.get(address) ?? 0) + 1);
      }
    }
    expect(appearances.size).toBeGreaterThan(240);
    expect(appearances.size).toBeLessThan(360);
    const counts = [...appearances.values()].sort((a, b) => b - a);
    expect(counts[0]).toBeGreaterThan(20 * (counts[150] ?? 0));
    expect(sent.some(({ message }) => message.sender !== message.origin)).toBe(true);
  });
});

describe('live traffic', () => {
  const facts = factsOf({ ...small, seed: 'live', liveMessagesPerMinute: 60 }, minutesLater(30));
  const live = facts.filter(isSent).filter((fact) => timeOf(fact) > startsAt.toISOString());
  const byMessage = factsByMessage(facts);

  test('comes at about the rate that was asked for', () => {
    expect(live.length / 30).toBeGreaterThan(54);
    expect(live.length / 30).toBeLessThan(66);
  });

  test('moves through all stages of its version', () => {
    const journeys = new Set(
      live.map(({ message }) =>
        [message.version, ...journey(byMessage.get(message.messageId) ?? [])].join(' '),
      ),
    );
    expect(journeys).toContain('1.5.0 SENT SOURCE_FINALIZED COMMITTED BLESSED SUCCESS');
    expect(journeys).toContain('1.6.0 SENT SOURCE_FINALIZED COMMITTED BLESSED SUCCESS');
    expect(journeys).toContain('1.6.0 SENT SOURCE_FINALIZED COMMITTED SUCCESS');
    expect(journeys).toContain('2.0.0 SENT VERIFYING VERIFIED SUCCESS');
    expect(journeys).toContain('2.0.0 SENT VERIFYING VERIFIED FAILED');
  });

  test('mostly arrives within 20 to 120 seconds, some of it after 3 to 8 minutes', () => {
    const deliveries = live
      .filter((fact) => timeOf(fact) < minutesLater(15).toISOString())
      .flatMap(({ message }) => foldFacts(byMessage.get(message.messageId) ?? [])?.deliveryTime ?? []);
    const share = (from: number, to: number) =>
      deliveries.filter((time) => time >= from * 1_000 && time <= to * 1_000).length / deliveries.length;
    expect(share(20, 120)).toBeGreaterThan(0.75);
    expect(share(180, 480)).toBeGreaterThan(0.02);
  });
});
