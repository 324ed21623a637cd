/**
 * The rows that the writer leaves of messages whose lives have ended, without the writer: the same steps, folded in memory, each
 * row computed once by the functions of the store. What the steps do to each other in the tables is here (`createSettlement`);
 * `settled.ts` compares the outcome with that of the writer, table by table.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  type ChainFact,
  factMessageId,
  isRangeFact,
  isRootFact,
  type RangeFact,
  type RootFact,
} from '../../src/domain/facts.ts';
import { foldFacts } from '../../src/domain/fold.ts';
import { statusRank } from '../../src/domain/lifecycle.ts';
import type { Message } from '../../src/domain/message.ts';
import {
  factId,
  messageFactColumns,
  messageFactValues,
  rootFactValues,
} from '../../src/store/facts/stored-fact.ts';
import type { BlockId } from '../../src/store/ledger/index-ledger.ts';
import {
  type Change,
  historyColumns,
  historyRow,
  MESSAGE_COLUMNS,
  messageValues,
  TOKEN_COLUMNS,
  tokenValues,
} from '../../src/store/write/changes.ts';
import type { CopyColumns, CopyValue } from '../../src/store/write/copy.ts';
import {
  laneFactColumns,
  laneFactRows,
  removedAttemptColumns,
  rootFactColumns,
} from '../../src/store/write/lane-facts.ts';
import { messageRow, storedSelector, tokenRows } from '../../src/store/write/message-row.ts';
import type { Lives } from './lives.ts';
import { createTimeline, type NetworkStep, type TimelineState } from './timeline.ts';
import { indexStepOf } from './writer.ts';

export interface TableRows {
  readonly table: string;
  readonly columns: CopyColumns;
  readonly rows: readonly (readonly CopyValue[])[];
}

/** What messages are counted under. */
export interface Total {
  readonly source: string;
  readonly dest: string;
  readonly day: string;
  readonly status: number;
  readonly ready: boolean;
}

export interface Settled {
  /** Positions begin at 1. */
  readonly tables: readonly TableRows[];
  /** How many positions of the history they take. */
  readonly changes: number;
  /** Counted up and possibly down to 0 again: the writer leaves a row of each. */
  readonly totals: readonly Total[];
  /** The blocks that a network holds, and the height below which they are final. */
  readonly networks: readonly {
    readonly network: string;
    readonly blocks: readonly BlockId[];
    readonly forgetBelow: number;
  }[];
}

/** The whole lives of the messages from `from.sent` to `end`. */
export function settle(lives: Lives, from: TimelineState, end: number): Settled {
  const timeline = createTimeline(lives, from, { end });
  const settlement = createSettlement();
  for (let steps = timeline.next(); steps; steps = timeline.next())
    for (const step of steps) settlement.record(step, timeline.at);
  return settlement.settled();
}

/** The rows with other positions in the history. */
export function shiftPositions({ columns, rows, ...table }: TableRows, by: bigint): TableRows {
  const place = Object.keys(columns).indexOf('position');
  if (place === -1) return { ...table, columns, rows };
  return { ...table, columns, rows: rows.map((row) => row.with(place, BigInt(row[place] as bigint) + by)) };
}

/** A merkle root: its commits and blessings that stand. */
interface Root {
  readonly commits: RangeFact[];
  readonly blessings: RootFact[];
  members: readonly Life[];
}

interface Life {
  readonly id: string;
  /** By id. */
  readonly facts: Map<string, ChainFact>;
  root: Root | undefined;
  message: Message | undefined;
  position: bigint;
}

function createSettlement() {
  const lives = new Map<string, Life>();
  /** By lane and sequence number. */
  const numbered = new Map<string, Life>();
  const roots = new Map<string, Root>();
  /** Of all lives, by id, in the order in which they came. */
  const facts = new Map<string, ChainFact>();
  const factsOfBlocks = new Map<string, { readonly life: Life; readonly id: string }[]>();
  const history: ReturnType<typeof historyRow>[] = [];
  const removedAttempts: Readonly<Record<string, CopyValue>>[] = [];
  const totals = new Map<string, Total>();
  const networks = new Map<string, { readonly blocks: Map<number, string>; forgetBelow: number }>();
  const recordedAt = new Date().toISOString();
  let position = 0n;

  const lifeOf = (id: string): Life => {
    const known = lives.get(id);
    if (known) return known;
    const life: Life = { id, facts: new Map(), root: undefined, message: undefined, position };
    lives.set(id, life);
    return life;
  };
  const rootOf = (merkleRoot: string): Root => {
    const root = roots.get(merkleRoot) ?? { commits: [], blessings: [], members: [] };
    roots.set(merkleRoot, root);
    return root;
  };

  /** Removes the facts that were seen in a block; the lives that had them. */
  const retract = (blockHash: string): readonly Life[] => {
    const touched: Life[] = [];
    for (const { life, id } of factsOfBlocks.get(blockHash) ?? []) {
      const fact = life.facts.get(id);
      if (!fact) continue;
      life.facts.delete(id);
      facts.delete(id);
      touched.push(life);
      if (fact.kind === 'Executed' || fact.kind === 'ExecutionDetails')
        removedAttempts.push({ ...messageFactValues(fact, id), removed_at: recordedAt });
    }
    factsOfBlocks.delete(blockHash);
    for (const { commits, blessings, members } of roots.values())
      for (const seenFacts of [commits, blessings]) {
        const index = seenFacts.findIndex(({ seen }) => seen.blockHash === blockHash);
        if (index === -1) continue;
        seenFacts.splice(index, 1);
        touched.push(...members);
      }
    return touched;
  };

  const addRange = (fact: RangeFact): readonly Life[] => {
    const root = rootOf(fact.merkleRoot);
    root.commits.push(fact);
    const members: Life[] = [];
    for (let number = BigInt(fact.fromSequenceNumber); number <= BigInt(fact.toSequenceNumber); number++) {
      const life = numbered.get(`${fact.lane.onramp},${number}`);
      if (!life) throw new Error(`Message ${number} of ${fact.lane.onramp} is committed before it is sent.`);
      life.root = root;
      members.push(life);
    }
    root.members = members;
    return members;
  };

  const holdBlocks = (step: NetworkStep, at: number): void => {
    const { blocks, forgetBelow } = indexStepOf(step, at);
    const held = networks.get(step.network)?.blocks ?? new Map<number, string>();
    if (step.orphaned.length > 0)
      for (const [number, hash] of held) if (step.orphaned.includes(hash)) held.delete(number);
    for (const { number, hash } of blocks) held.set(number, hash);
    networks.set(step.network, { blocks: held, forgetBelow });
  };

  /** The history of a change, if there is one. */
  const fold = (life: Life, toStore: { readonly id: string; readonly fact: ChainFact }[]): void => {
    const { id, facts: chainFacts, message: before, root } = life;
    const ranges = root ? rangesOf(root) : [];
    const known = { id, chainFacts, ranges, toStore, snapshot: undefined, derived: [] };
    const message = foldFacts([...chainFacts.values(), ...ranges]);
    if (!message) throw new Error(`Message 0x${id} is not known to have been sent.`);
    if (before && isDeepStrictEqual(before, message)) return;
    position++;
    Object.assign(life, { message, position });
    const change: Change['change'] = before ? 'updated' : 'created';
    const stored = before && { counted: { status: statusRank(before.status) } };
    history.push(
      historyRow({ change, message, known: { ...known, stored } }, position, recordedAt, NOTHING_REMOVED),
    );
    const { sourceNetworkInfo, destNetworkInfo, sendTimestamp, status, readyForManualExecution } = message;
    const total = {
      source: storedSelector(sourceNetworkInfo.chainSelector),
      dest: storedSelector(destNetworkInfo.chainSelector),
      day: sendTimestamp.slice(0, 10),
      status: statusRank(status),
      ready: readyForManualExecution,
    };
    totals.set(Object.values(total).join(), total);
  };

  return {
    /** In the order of `applyFacts`, so that positions are the same. */
    record(step: NetworkStep, at: number): void {
      const retracted = step.orphaned.flatMap(retract);
      holdBlocks(step, at);
      const touched = new Map<Life, { readonly id: string; readonly fact: ChainFact }[]>();
      for (const fact of step.facts) {
        if (isRangeFact(fact) || isRootFact(fact)) continue;
        const life = lifeOf(factMessageId(fact).slice(2));
        const stored = { id: factId(JSON.stringify(fact)), fact };
        life.facts.set(stored.id, fact);
        facts.set(stored.id, fact);
        touched.set(life, [...(touched.get(life) ?? []), stored]);
        if (fact.kind === 'Sent') numbered.set(`${fact.message.onramp},${fact.message.sequenceNumber}`, life);
        const inBlock = factsOfBlocks.get(fact.seen.blockHash) ?? [];
        inBlock.push({ life, id: stored.id });
        factsOfBlocks.set(fact.seen.blockHash, inBlock);
      }
      const committed = step.facts.filter(isRangeFact).flatMap(addRange);
      const blessed = step.facts.filter(isRootFact).flatMap((fact) => {
        const root = rootOf(fact.merkleRoot);
        root.blessings.push(fact);
        return root.members;
      });
      for (const life of [...retracted, ...committed, ...blessed])
        if (!touched.has(life)) touched.set(life, []);
      for (const [life, toStore] of touched) fold(life, toStore);
    },

    settled(): Settled {
      const rowsOf = (
        table: string,
        columns: CopyColumns,
        rows: readonly Readonly<Record<string, unknown>>[],
      ) => ({
        ...{ table, columns },
        rows: rows.map((row) => Object.keys(columns).map((name) => row[name] as CopyValue)),
      });
      const all = [...lives.values()];
      const messages = all.flatMap(({ message }) => message ?? []);
      return {
        changes: Number(position),
        tables: [
          {
            table: 'message',
            columns: MESSAGE_COLUMNS,
            rows: all.map(({ message, position }) =>
              messageValues({ row: messageRow(message as Message), isSnapshot: false, position }),
            ),
          },
          {
            table: 'message_token',
            columns: TOKEN_COLUMNS,
            rows: messages.flatMap(tokenRows).map(tokenValues),
          },
          rowsOf(
            'fact',
            messageFactColumns,
            [...facts].map(([id, fact]) => ({ ...messageFactValues(fact, id) })),
          ),
          rowsOf(
            'lane_fact',
            laneFactColumns,
            [...roots.values()].flatMap(({ commits }) => commits.flatMap(laneFactRows)),
          ),
          rowsOf(
            'root_blessing',
            rootFactColumns,
            [...roots.values()].flatMap(({ blessings }) => blessings.map(rootFactValues)),
          ),
          rowsOf('removed_attempt', removedAttemptColumns, removedAttempts),
          rowsOf('history', historyColumns, history),
        ],
        totals: [...totals.values()],
        networks: [...networks].map(([network, { blocks, forgetBelow }]) => ({
          ...{ network, forgetBelow },
          blocks: [...blocks].flatMap(([number, hash]) => (number < forgetBelow ? [] : { number, hash })),
        })),
      };
    },
  };
}

const NOTHING_REMOVED: ReadonlyMap<string, string> = new Map();

/** A blessing that names a root blesses what was committed under it. */
function rangesOf({ commits, blessings }: Root): RangeFact[] {
  return [
    ...commits,
    ...commits.flatMap((range) =>
      blessings.map(({ seen }) => ({ ...range, kind: 'Blessed' as const, seen })),
    ),
  ];
}
