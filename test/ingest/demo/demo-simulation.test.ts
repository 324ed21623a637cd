import { describe, expect, test } from 'vitest';
import {
  type ExecutionDetails,
  type Fact,
  factMessageId,
  isMessageFact,
  isRangeFact,
  type Lane,
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

  test('goes between real testnets, with Solana at either end', () => {
    const ends = (end: 'sourceNetworkInfo' | 'destNetworkInfo') =>
      new Set(sent.map(({ message }) => message[end].chainFamily));
    expect(ends('sourceNetworkInfo')).toEqual(new Set(['EVM', 'SVM']));
    expect(ends('destNetworkInfo')).toEqual(new Set(['EVM', 'SVM']));
    const { networks } = createSimulation(small);
    expect(networks.length).toBeGreaterThanOrEqual(12);
    for (const network of networks) expect(networkBySelector(network.selector)).toBe(network);
  });
});

describe('live traffic', () => {
  const facts = factsOf({ ...small, seed: 'live', liveMessagesPerMinute: 60 }, minutesLater(30));
  const live = facts.filter(isSent).filter((fact) => timeOf(fact) > startsAt.toISOString());
  const byMessage = factsByMessage(facts);

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
});
