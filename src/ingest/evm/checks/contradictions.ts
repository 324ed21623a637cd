/**
 * Compares what the contracts of a network say of themselves with what was read from their history.
 *
 * Only with everything read is a difference a contradiction: an endpoint that has pruned old logs answers with an empty
 * list and no error, and its silence would otherwise count as absence.
 */
import { type MissingNumbers, missingNumbers } from '../../../domain/missing-numbers.ts';
import { networkBySelector } from '../../../domain/networks/networks.ts';
import type {
  BlockRange,
  CheckLedger,
  LaneCounter,
  LaneKey,
  RampRegistration,
} from '../../../store/ledger/index-ledger.ts';
import type { Contradiction } from '../../engine/rescans.ts';
import type { GenuineContract, Registration } from '../contracts/contracts.ts';
import type { Hex } from '../rpc/chain.ts';
import type { ContractCounter } from './contract-counters.ts';
import type { ListedBlocks } from './unconfirmed-blocks.ts';

/** Of more, the others are found when these have been reviewed. */
const MAX_REVIEWED_BLOCKS = 1_000;

/** What the contracts say, read from one endpoint. */
export interface ContractViews {
  readonly registrations: readonly Registration[];
  readonly counters: readonly Omit<ContractCounter, 'isWhole'>[];
  readonly executed: readonly ExecutedMessage[];
  /** The head of the endpoint before it was asked: the counters include everything up to here. */
  readonly counted: number;
  /** The head of the endpoint after it was asked: what was read must reach up to here before it is compared. */
  readonly head: number;
}

/** A message that its off-ramp has executed, by the off-ramp's own word. */
export interface ExecutedMessage {
  readonly messageId: string;
  readonly offRamp: Hex;
}

export interface Comparison {
  readonly network: string;
  readonly routers: readonly Hex[];
  readonly registry: ReadonlyMap<Hex, GenuineContract>;
  readonly registrations: readonly RampRegistration[];
  /** Addresses of contracts that were registered and are not known to this version. */
  readonly unknown: ReadonlySet<string>;
  /** Whether everything since the routers' first event is expected: history does not start later. */
  readonly isWhole: boolean;
  readonly startBlock: number;
  readonly finalBlock: number;
  /** Hashes of blocks whose events two endpoints have confirmed: there the counter is wrong. */
  readonly confirmed: ReadonlySet<string>;
}

export interface Compared {
  readonly counters: readonly LaneCounter[];
  readonly contradictions: readonly Contradiction[];
}

export async function compare(
  ledger: CheckLedger,
  views: ContractViews,
  comparison: Comparison,
): Promise<Compared> {
  const committed = await ledger.committedEnds(comparison.network);
  const counters = expectedCounters(views.counters, committed, comparison);
  // Everything up to the views has been read since: executions that the records have by now are not missing.
  const unseen = await ledger.belowStatus(
    views.executed.map(({ messageId }) => messageId),
    'FAILED',
  );
  const contradictions: Contradiction[] = [
    ...missingRegistrations(views.registrations, comparison),
    ...unknownOnRamps(committed, comparison),
    ...missingExecutions(
      views.executed.filter(({ messageId }) => unseen.has(messageId)),
      comparison,
    ),
  ];
  for (const counter of counters) {
    const found = await missingOf(ledger, counter, comparison);
    if (found) contradictions.push(found);
  }
  for (const counter of views.counters) {
    const found = await inventedOf(ledger, counter, views.counted, comparison);
    if (found) contradictions.push(found);
  }
  return { counters, contradictions };
}

/** The highest number of a lane that was committed elsewhere. */
type CommittedEnd = LaneKey & { readonly last: string };

/** What commits elsewhere have taken in must have been sent here. */
function expectedCounters(
  counters: ContractViews['counters'],
  committed: readonly CommittedEnd[],
  { isWhole }: Comparison,
): readonly ContractCounter[] {
  return counters.map((counter) => {
    const end = counter.kind === 'sent' ? committed.find((lane) => isSameLane(lane, counter)) : undefined;
    const isHigher = end !== undefined && BigInt(end.last) > BigInt(counter.lastNumber);
    return { ...counter, isWhole, ...(isHigher && { lastNumber: end.last }) };
  });
}

function isSameLane(a: LaneKey, b: LaneKey): boolean {
  return a.sourceSelector === b.sourceSelector && a.destSelector === b.destSelector && a.onramp === b.onramp;
}

function missingRegistrations(
  current: readonly Registration[],
  comparison: Comparison,
): readonly Contradiction[] {
  const isRegistered = ({ address, selector }: Registration) =>
    comparison.registrations.some(
      ({ contract, remote, blockNumber }) =>
        contract === address && remote === selector && blockNumber !== null,
    );
  return current
    .filter((registration) => !isRegistered(registration))
    .map(({ address, role, selector = '', namedBy }) => ({
      kind: 'registrations-missing',
      subject: `${role} ${address} ${selector}`,
      detail:
        `Router ${namedBy} names the ${roleWords[role]} ${address} for ${nameOf(selector)}, but the router's history ` +
        'that was read has no event that registered it',
      range: routerRange(comparison),
    }));
}

const roleWords: Readonly<Record<string, string>> = { onRamp: 'on-ramp', offRamp: 'off-ramp' };

/** Lanes that were committed elsewhere, from on-ramps of this network that no router here has registered. */
function unknownOnRamps(
  committed: readonly CommittedEnd[],
  comparison: Comparison,
): readonly Contradiction[] {
  const { registry, unknown } = comparison;
  return committed
    .filter(({ onramp }) => registry.get(`0x${onramp}`)?.role !== 'onRamp' && !unknown.has(`0x${onramp}`))
    .map(({ destSelector, onramp, last }) => ({
      kind: 'onramp-unknown',
      subject: `0x${onramp} ${destSelector}`,
      detail:
        `${nameOf(destSelector)} has committed messages up to ${last} of the on-ramp 0x${onramp}, which no configured ` +
        'router has registered: its registration was not found, or a router is missing in the configuration',
      range: routerRange(comparison),
    }));
}

/** Everything that the routers have registered, from the beginning. */
function routerRange({ routers, finalBlock }: Comparison): BlockRange {
  return { from: 0, to: finalBlock, purpose: 'routers', contracts: routers };
}

function missingExecutions(
  executed: readonly ExecutedMessage[],
  { startBlock, finalBlock }: Comparison,
): readonly Contradiction[] {
  const offRamps = new Set(executed.map(({ offRamp }) => offRamp));
  return [...offRamps].map((offRamp) => {
    const own = executed.filter((message) => message.offRamp === offRamp);
    const example = own[0]?.messageId ?? '';
    return {
      kind: 'executions-missing',
      subject: offRamp,
      detail:
        `Off-ramp ${offRamp} has executed ${own.length === 1 ? '' : `${own.length} messages, among them `}0x${example}, ` +
        'but the event was not found in its history',
      range: contractRange(offRamp, startBlock, finalBlock),
    };
  });
}

async function missingOf(
  ledger: CheckLedger,
  counter: ContractCounter,
  comparison: Comparison,
): Promise<Contradiction | undefined> {
  const isSent = counter.kind === 'sent';
  const runs = await (isSent ? ledger.sentRuns(counter) : ledger.committedRuns(counter));
  const missing = missingNumbers(runs, counter);
  if (!missing) return undefined;
  const { contract, lastNumber, sourceSelector, destSelector } = counter;
  // What is kept because it could not be decoded is not missing from the history.
  const unreadable = await ledger.unreadableLogs(comparison.network, contract);
  if (missing.count <= BigInt(unreadable)) return undefined;
  const { startBlock, finalBlock } = comparison;
  const numbers = `${missing.count} of them (${rangeWords(missing)})`;
  if (isSent) {
    return {
      kind: 'messages-missing',
      subject: `${contract} ${destSelector}`,
      detail: `On-ramp ${contract} has sent ${lastNumber} messages to ${nameOf(destSelector)}; ${numbers} were not found in its history`,
      range: await rangeOfMissing(ledger, counter, missing, comparison),
    };
  }
  return {
    kind: 'commits-missing',
    subject: `${contract} ${sourceSelector}`,
    detail: `${lastNumber} messages from ${nameOf(sourceSelector)} are committed on ${contract}; the commits of ${numbers} were not found in its history`,
    range: contractRange(contract, startBlock, finalBlock),
  };
}

/** Numbers above what the contract itself has counted, in blocks up to the head at which it was asked. */
async function inventedOf(
  ledger: CheckLedger,
  counter: Omit<ContractCounter, 'isWhole'>,
  counted: number,
  { network, confirmed }: Comparison,
): Promise<Contradiction | undefined> {
  const above = await ledger.blocksAbove(network, { ...counter, isWhole: false }, MAX_REVIEWED_BLOCKS);
  const blocks = above.filter(({ number, hash }) => number <= counted && !confirmed.has(hash));
  if (blocks.length === 0) return undefined;
  const { contract, lastNumber, sourceSelector, destSelector, kind } = counter;
  const isSent = kind === 'sent';
  const where = `from block ${Math.min(...blocks.map(({ number }) => number))} on`;
  return {
    kind: isSent ? 'messages-invented' : 'commits-invented',
    subject: `${contract} ${isSent ? destSelector : sourceSelector}`,
    detail: isSent
      ? `On-ramp ${contract} has sent ${lastNumber} messages to ${nameOf(destSelector)}, but an endpoint has shown higher numbers, ${where}`
      : `${lastNumber} messages from ${nameOf(sourceSelector)} are committed on ${contract}, but an endpoint has shown commits of higher numbers, ${where}`,
    range: undefined,
    body: { blocks, more: 0 } satisfies ListedBlocks,
  };
}

/** Between the messages around the gap, where those are recorded. */
async function rangeOfMissing(
  ledger: CheckLedger,
  counter: ContractCounter,
  { lowest, highest }: MissingNumbers,
  { startBlock, finalBlock }: Comparison,
): Promise<BlockRange | undefined> {
  const before = await ledger.sendBlock(counter, (lowest - 1n).toString());
  const after = await ledger.sendBlock(counter, (highest + 1n).toString());
  return contractRange(counter.contract, before ?? startBlock, Math.min(after ?? finalBlock, finalBlock));
}

function contractRange(contract: Hex, from: number, to: number): BlockRange | undefined {
  return from > to ? undefined : { from, to, purpose: 'contracts', contracts: [contract] };
}

/** @example rangeWords({ lowest: 1n, highest: 160n }) // '1…160' */
function rangeWords({ lowest, highest }: Pick<MissingNumbers, 'lowest' | 'highest'>): string {
  return lowest === highest ? String(lowest) : `${lowest}…${highest}`;
}

function nameOf(selector: string): string {
  return networkBySelector(selector)?.name ?? `chain ${selector}`;
}
