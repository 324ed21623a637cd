/**
 * The order in which an indexer at the head would bring the facts of all messages: ticks, in each of which every network is
 * read once. A message is sent in one tick and finalised, committed, blessed or verified, and executed in later ones, with
 * those of other messages in between.
 *
 * Chains and ticks have different clocks. Facts have the times of the chains: a message takes 25 minutes. How many other
 * messages come meanwhile depends on the ticks alone, so that a life is the same whether a year has few messages or many.
 *
 * What is under way is plain data, so that a run can be stopped and continued.
 */
import type { Fact, Snapshot } from '../../src/domain/facts.ts';
import { lanes } from '../data/world.ts';
import { type AbandonedKind, attemptsOf, blockAt, isAbandoned, type Lives, type Member } from './lives.ts';

export const MESSAGES_PER_TICK = 40;
/** From 1 to this many messages are committed under one root. */
const MAX_ROOT = 4;
/** From the send to finality. The same for all, because a root has consecutive messages. */
const FINAL_TICKS = 4;
/** On a quiet lane a root does not wait longer for more messages. */
const MAX_WAITING_TICKS = 3;

type Members = readonly [Member, ...Member[]];

/** What happens in a tick. `isAgain`: in the block that replaces an abandoned one. */
type Event =
  | {
      readonly kind: 'sent' | 'executed';
      readonly member: Member;
      readonly attempt: number;
      readonly isAgain: boolean;
    }
  | { readonly kind: 'committed'; readonly members: Members; readonly isAgain: boolean }
  | { readonly kind: 'blessed'; readonly members: Members }
  | { readonly kind: 'finalized' | 'policy'; readonly member: Member }
  | { readonly kind: 'verified'; readonly member: Member; readonly verifier: number };

interface WaitingMember extends Member {
  readonly since: number;
}

export interface TimelineState {
  readonly tick: number;
  readonly sent: number;
  /** By lane: the last sequence number, and final messages that are not committed yet. */
  readonly sequences: readonly number[];
  readonly waiting: readonly (readonly WaitingMember[])[];
  readonly due: readonly (readonly [tick: number, events: readonly Event[]])[];
}

type SeenFact = Exclude<Fact, Snapshot>;

/** What one network brings in a tick: one step of its indexer. */
export interface NetworkStep {
  readonly network: string;
  readonly facts: readonly SeenFact[];
  /** Hashes of blocks that were abandoned. */
  readonly orphaned: readonly string[];
}

/** Nothing is under way: all messages before have ended. `sequences` are the last ones of the lanes. */
export function stateAt(sent: number, sequences: readonly number[]): TimelineState {
  return {
    ...{ sent, sequences },
    tick: Math.floor(sent / MESSAGES_PER_TICK),
    waiting: lanes.map(() => []),
    due: [],
  };
}

export const beginning = stateAt(
  0,
  lanes.map(() => 0),
);

export interface TimelineOptions {
  /** No message is sent from this number on; the lives of those before are played to their ends. */
  readonly end?: number;
  /** Called once for each message, with its number on the lane. */
  readonly onSent?: (member: Member) => void;
}

export function createTimeline(
  lives: Lives,
  from: TimelineState,
  { end = lives.world.size, onSent }: TimelineOptions = {},
) {
  let { tick, sent } = from;
  const sequences = [...from.sequences];
  const waiting = from.waiting.map((members) => [...members]);
  const due = new Map(from.due.map(([at, events]) => [at, [...events]]));

  const after = (ticks: number, event: Event): void => {
    const events = due.get(tick + ticks);
    if (events) events.push(event);
    else due.set(tick + ticks, [event]);
  };

  const send = (): void => {
    const n = sent++;
    const lane = lives.laneOf(n).number;
    const sequence = (sequences[lane] ?? 0) + 1;
    sequences[lane] = sequence;
    const member = { n, sequence };
    onSent?.(member);
    after(0, { kind: 'sent', member, attempt: 0, isAgain: false });
  };

  /** Roots of 1 to `MAX_ROOT` messages, by the number of the first. */
  const commitWaiting = (): void => {
    for (const members of waiting)
      for (let [first] = members; first; [first] = members) {
        const size = 1 + (first.n % MAX_ROOT);
        if (members.length < size && tick - first.since < MAX_WAITING_TICKS) break;
        const root = members.splice(0, size).map(({ n, sequence }): Member => ({ n, sequence }));
        after(0, { kind: 'committed', members: root as unknown as Members, isAgain: false });
      }
  };

  /** The facts of an event; what follows from it is put into later ticks. */
  const happen = (event: Event, orphan: (fact: SeenFact) => void): readonly SeenFact[] => {
    /** True where the event is in a block that will be abandoned. */
    const comesAgain = (kind: AbandonedKind, n: number): boolean => {
      if (!('isAgain' in event) || event.isAgain || !isAbandoned(kind, n)) return false;
      after(1, { ...event, isAgain: true });
      return true;
    };
    switch (event.kind) {
      case 'sent': {
        const { member, isAgain } = event;
        const fact = lives.sent(member, isAgain ? 1 : 0);
        if (isAgain) orphan(lives.sent(member, 0));
        if (!comesAgain('sent', member.n))
          after(isAgain ? FINAL_TICKS - 1 : FINAL_TICKS, { kind: 'finalized', member });
        return [fact];
      }
      case 'finalized': {
        const { member } = event;
        const { version, number } = lives.laneOf(member.n);
        if (version === '2.0.0') after(1, { kind: 'policy', member });
        else {
          waiting[number]?.push({ ...member, since: tick });
          // A message that was sent again becomes final in the tick of its neighbours, and behind them.
          waiting[number]?.sort((one, other) => one.sequence - other.sequence);
        }
        return [lives.finalized(member)];
      }
      case 'committed': {
        const { members, isAgain } = event;
        const [{ n }] = members;
        const fact = lives.committed(members, isAgain ? 1 : 0);
        if (isAgain) orphan(lives.committed(members, 0));
        if (comesAgain('committed', n)) return [fact];
        if (lives.laneOf(n).version === '1.5.0') after(1, { kind: 'blessed', members });
        else for (const member of members) after(1 + (member.n % 3), executionOf(member, 0));
        return [fact];
      }
      case 'blessed': {
        for (const member of event.members) after(1 + (member.n % 3), executionOf(member, 0));
        return [lives.blessed(event.members)];
      }
      case 'policy': {
        for (let verifier = 0; verifier < lives.verifierCount(event.member.n); verifier++)
          after(1 + verifier, { kind: 'verified', member: event.member, verifier });
        after(4, executionOf(event.member, 0));
        return [lives.policy(event.member)];
      }
      case 'verified':
        return [lives.verified(event.member, event.verifier)];
      case 'executed': {
        const { member, attempt, isAgain } = event;
        const facts = lives.executed(member, attempt, isAgain ? 1 : 0);
        if (isAgain) orphan(lives.executed(member, attempt, 0)[0]);
        const isLast = attempt + 1 >= attemptsOf(member.n).length;
        if (!(attempt === 0 && comesAgain('executed', member.n)) && !isLast)
          after(5 + (member.n % 20), executionOf(member, attempt + 1));
        return facts;
      }
    }
  };

  return {
    /** Messages that were sent so far. */
    get sent() {
      return sent;
    },
    /** The time of the chains (ms since 1970). */
    get at() {
      return lives.world.envelope(Math.max(0, sent - 1)).sentAtMs;
    },
    state: (): TimelineState => ({
      ...{ tick, sent, waiting, sequences },
      due: [...due],
    }),

    /** The steps of the next tick, one for each network that has something; undefined after the last. */
    next(): readonly NetworkStep[] | undefined {
      if (sent === end && due.size === 0 && waiting.every(({ length }) => length === 0)) return undefined;
      while (sent < Math.min(end, (tick + 1) * MESSAGES_PER_TICK)) send();
      commitWaiting();
      const steps = new Map<string, { facts: SeenFact[]; orphaned: string[] }>();
      const stepOf = (network: string) => {
        const step = steps.get(network) ?? { facts: [], orphaned: [] };
        steps.set(network, step);
        return step;
      };
      for (const event of due.get(tick) ?? []) {
        const facts = happen(event, ({ seen }) => stepOf(seen.network).orphaned.push(seen.blockHash));
        for (const fact of facts) stepOf(fact.seen.network).facts.push(fact);
      }
      due.delete(tick);
      tick++;
      return [...steps].map(([network, step]) => ({ network, ...step }));
    },
  };

  function executionOf(member: Member, attempt: number): Event {
    return { kind: 'executed', member, attempt, isAgain: false };
  }
}

/** The height below which blocks of a network are final. */
export function finalHeight(at: number): number {
  return blockAt(at - 15 * 60_000);
}
