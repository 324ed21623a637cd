/**
 * What a transaction says: from its logs and instructions to facts.
 *
 * Logs come first. Instructions are never cut, so they show whether something is missing in the logs, and take their place
 * where they can: a send by its copy to rmn_remote, a commit and an execution by the instruction of a transaction that
 * succeeded. What can be found in neither is handed back as unreadable.
 *
 * Of a failed transaction nothing has happened. The off-ramp logs a root before it checks signatures, so a failed commit
 * may show any root. Only an execution counts, as an attempt: it stands behind the merkle proof.
 */
import { base58, base64 } from '@scure/base';
import type { Executed, Fact, Observation, RangeFact } from '../../../domain/facts.ts';
import type { Network } from '../../../domain/networks.ts';
import type { UnreadableLog } from '../../../store/ledger/index-ledger.ts';
import {
  committedFact,
  knownNetwork,
  onRampOf,
  refuseOtherSource,
  shortened,
  UnreadableLogError,
} from '../../chain/event-facts.ts';
import type { SolanaTransaction } from '../transaction.ts';
import { hexOf, UnreadableDataError } from './borsh.ts';
import { type CcipEvent, type EventName, eventNameOf, type MerkleRoot, readEvent } from './events.ts';
import { executionDetails } from './execution-details.ts';
import {
  type CcipInstruction,
  type InstructionName,
  instructionNameOf,
  readInstruction,
  relayedEvent,
  selfEmittedEventName,
} from './instructions.ts';
import { type ProgramLogs, readProgramLogs } from './program-logs.ts';
import { keptTopics, renumberingEvents } from './renumbering.ts';
import { sentMessage } from './sent-message.ts';

/** Whom to believe. */
export interface TrustedPrograms {
  /** The program to which a router hands copies of its events; undefined for a program that is not a router. */
  rmnRemoteOf(program: string): string | undefined;
  isRouter(program: string): boolean;
  isOffRamp(program: string): boolean;
  /** Whether a router lets the off-ramp deliver messages of this source. */
  isAllowed(offRamp: string, sourceSelector: bigint): boolean;
}

/** A router lets an off-ramp deliver messages of a source. */
export interface OffRampNaming {
  readonly router: string;
  readonly offRamp: string;
  readonly sourceSelector: bigint;
}

export interface TransactionReading {
  readonly facts: readonly Fact[];
  readonly namings: readonly OffRampNaming[];
  readonly unreadable: readonly UnreadableLog[];
  /** Events of an off-ramp for sources that no router lets it deliver from. */
  readonly foreign: number;
  /** Whether a router has emitted an event. */
  readonly hasRouterEvent: boolean;
  /**
   * Whether its logs, which were not cut, lack an event that its instructions prove. The node may have left it out:
   * another one may have it.
   */
  readonly isContradictory: boolean;
}

/** An event, and where it stands. */
interface Found<E extends CcipEvent = CcipEvent> {
  readonly program: string;
  readonly logIndex: number;
  readonly event: E;
}

type EventOf<Name extends EventName, Event = CcipEvent> = Event extends { readonly name: infer Names }
  ? Name extends Names
    ? Event
    : never
  : never;

/** An instruction of a trusted program that changes what is recorded. */
interface Call {
  readonly program: string;
  /** The index of a log that would stand behind all lines: what has no line is seen here. */
  readonly logIndex: number;
  /** Base58. */
  readonly data: string;
  readonly name: InstructionName;
  /** Undefined where its data cannot be read. */
  readonly call: CcipInstruction | undefined;
}

/** A transaction taken apart, and what has been made of it so far. */
interface Context {
  readonly transaction: SolanaTransaction;
  readonly network: Network;
  readonly programs: TrustedPrograms;
  readonly at: string;
  readonly logs: ProgramLogs;
  readonly found: readonly Found[];
  readonly calls: readonly Call[];
  readonly report: {
    readonly facts: Fact[];
    readonly namings: OffRampNaming[];
    readonly unreadable: UnreadableLog[];
    foreign: number;
    isContradictory: boolean;
  };
}

const STATE_SUCCESS = 2;
const STATE_FAILURE = 3;
const MAX_REASON = 500;

const routerEvents: ReadonlySet<EventName> = new Set<EventName>([
  'CCIPMessageSent',
  'OfframpAdded',
  'OfframpRemoved',
  'CcipVersionForDestChainVersionBumped',
  'CcipVersionForDestChainVersionRolledBack',
]);

/** @param at ISO 8601 time of the transaction's block */
export function readTransaction(
  transaction: SolanaTransaction,
  network: Network,
  programs: TrustedPrograms,
  at: string,
): TransactionReading {
  const logs = readProgramLogs(transaction.logs);
  const report: Context['report'] = {
    facts: [],
    namings: [],
    unreadable: [],
    foreign: 0,
    isContradictory: false,
  };
  const found: Found[] = [];
  const calls: Call[] = [];
  const context: Context = { transaction, network, programs, at, logs, found, calls, report };
  found.push(...readEvents(context));
  if (transaction.isFailed) {
    readAttempts(context);
    // A failed transaction has changed nothing: what of it cannot be read is not missing.
    return { ...report, unreadable: [], hasRouterEvent: false };
  }
  calls.push(...readCalls(context));
  readSends(context);
  readCommits(context);
  readExecutions(context);
  readLaneEvents(context);
  return { ...report, hasRouterEvent: found.some(({ program }) => programs.isRouter(program)) };
}

// ---- Parts of a transaction

function readEvents(context: Context): readonly Found[] {
  const { programs, logs } = context;
  return logs.emitted.flatMap(({ program, logIndex, base64: text }) => {
    const isRouter = programs.isRouter(program);
    const data = isRouter || programs.isOffRamp(program) ? decoded(() => base64.decode(text)) : undefined;
    const name = data && eventNameOf(data);
    if (!data || !name || routerEvents.has(name) !== isRouter) return [];
    const found: Found[] = [];
    attempt(context, { program, logIndex, data: text }, name, () =>
      found.push({ program, logIndex, event: readEvent(name, data) }),
    );
    return found;
  });
}

function eventsOf<Name extends EventName>({ found }: Context, name: Name): readonly Found<EventOf<Name>>[] {
  return found.filter((entry): entry is Found<EventOf<Name>> => entry.event.name === name);
}

function readCalls(context: Context): readonly Call[] {
  const { transaction, programs } = context;
  return transaction.instructions.flatMap(({ program, caller, data }, index) => {
    const isRouter = programs.isRouter(program);
    const isTrusted = isRouter || programs.isOffRamp(program);
    const bytes = isTrusted ? decoded(() => base58.decode(data)) : undefined;
    if (!bytes) return [];
    const place = { program, logIndex: transaction.logs.length + index, data };
    const selfEmitted = caller === program ? selfEmittedEventName(bytes) : undefined;
    if (selfEmitted) keep(context, place, `${selfEmitted}: events of CCIP 2.0 cannot be decoded yet`);
    const name = instructionNameOf(bytes);
    if (!name || (name === 'ccip_send') !== isRouter) return [];
    return [{ ...place, name, call: decoded(() => readInstruction(name, bytes)) }];
  });
}

function callsOf({ calls }: Context, ...names: readonly InstructionName[]): readonly Call[] {
  return calls.filter(({ name }) => names.includes(name));
}

// ---- From parts to facts

function readAttempts(context: Context): void {
  const attempts = new Set<string>();
  for (const { program, logIndex, event } of eventsOf(context, 'ExecutionStateChanged')) {
    const { messageId, sourceChainSelector } = event;
    if (attempts.has(messageId) || !isAllowed(context, program, sourceChainSelector)) continue;
    attempts.add(messageId);
    keepExecution(context, program, { messageId, success: false, logIndex });
  }
}

function readSends(context: Context): void {
  const { transaction, network, report } = context;
  const sends = [...eventsOf(context, 'CCIPMessageSent')];
  for (const copy of relayedSends(context)) {
    const { messageId } = copy.event.message.header;
    if (!sends.some(({ event }) => event.message.header.messageId === messageId)) sends.push(copy);
  }
  const sendCalls = callsOf(context, 'ccip_send');
  for (const router of new Set(sendCalls.map(({ program }) => program))) {
    const own = sendCalls.filter(({ program }) => program === router);
    for (const call of own.slice(sends.filter(({ program }) => program === router).length))
      keepMissing(context, call, 'a message was sent, and its event was not found');
  }
  const unused = [...sendCalls];
  for (const { program, logIndex, event } of sends) {
    attempt(context, { program, logIndex, data: '' }, 'CCIPMessageSent', () => {
      refuseOtherSource(event.message.header.sourceChainSelector, network);
      report.facts.push(
        sentMessage(event, {
          router: program,
          network,
          mints: takeMints(unused, event),
          origin: transaction.feePayer,
          seen: observed(context, logIndex),
        }),
      );
    });
  }
}

/** The mints of the instruction that sent this message, by destination and amounts; it is then used up. */
function takeMints(
  unused: Call[],
  { destChainSelector, message }: EventOf<'CCIPMessageSent'>,
): readonly string[] {
  const amounts = message.tokenAmounts.map(({ amount }) => amount).join();
  const place = unused.findIndex(
    ({ call }) =>
      call?.name === 'ccip_send' &&
      call.destChainSelector === destChainSelector &&
      call.tokens.map(({ amount }) => amount).join() === amounts,
  );
  const [taken] = place < 0 ? [] : unused.splice(place, 1);
  return taken?.call?.name === 'ccip_send' ? taken.call.tokens.map(({ mint }) => mint) : [];
}

/** Copies of sends in calls of a router to its rmn_remote, which cannot be cut. */
function relayedSends({ transaction, programs }: Context): readonly Found<EventOf<'CCIPMessageSent'>>[] {
  return transaction.instructions.flatMap(({ program, caller, data }, index) => {
    if (caller === undefined || programs.rmnRemoteOf(caller) !== program) return [];
    // One that cannot be read is no loss: the event of the logs counts, and its absence is noticed.
    const event = decoded(() => {
      const copy = relayedEvent(base58.decode(data));
      return copy && eventNameOf(copy) === 'CCIPMessageSent' ? readEvent('CCIPMessageSent', copy) : undefined;
    });
    const logIndex = transaction.logs.length + index;
    return event?.name === 'CCIPMessageSent' ? [{ program: caller, logIndex, event }] : [];
  });
}

function readCommits(context: Context): void {
  const { network, report, logs } = context;
  const roots = eventsOf(context, 'CommitReportAccepted').flatMap(({ program, logIndex, event }) =>
    event.root ? [{ program, logIndex, root: event.root }] : [],
  );
  const isCut = logs.isTruncated || logs.problem !== undefined;
  for (const call of callsOf(context, 'commit')) {
    const root = call.call?.name === 'commit' ? call.call.root : undefined;
    if (!call.call && isCut && roots.length === 0)
      keepMissing(context, call, 'a commit whose data cannot be read');
    const isKnown = roots.some(
      (known) => known.program === call.program && known.root.merkleRoot === root?.merkleRoot,
    );
    if (root && !isKnown) roots.push({ program: call.program, logIndex: call.logIndex, root });
  }
  for (const { program, logIndex, root } of roots) {
    if (!isAllowed(context, program, root.sourceChainSelector)) continue;
    attempt(context, { program, logIndex, data: '' }, 'CommitReportAccepted', () =>
      report.facts.push(committedRoot(root, program, network, observed(context, logIndex))),
    );
  }
}

function keepExecution(
  context: Context,
  offRamp: string,
  { messageId, success, logIndex }: Pick<Executed, 'messageId' | 'success'> & { readonly logIndex: number },
): void {
  const { report, transaction } = context;
  const seen = observed(context, logIndex);
  report.facts.push({ kind: 'Executed', messageId, success, seen });
  report.facts.push(executionDetails(messageId, offRamp, transaction, seen));
}

function readExecutions(context: Context): void {
  const ended = eventsOf(context, 'ExecutionStateChanged').filter(
    ({ event: { state } }) => state === STATE_SUCCESS || state === STATE_FAILURE,
  );
  for (const { program, logIndex, event } of ended) {
    const { messageId, sourceChainSelector, state } = event;
    if (!isAllowed(context, program, sourceChainSelector)) continue;
    keepExecution(context, program, { messageId, success: state === STATE_SUCCESS, logIndex });
  }
  const skipped = eventsOf(context, 'SkippedAlreadyExecutedMessage');
  const calls = callsOf(context, 'execute', 'manually_execute');
  if (ended.length + skipped.length >= calls.length) return;
  for (const call of calls) {
    const report = call.call && 'report' in call.call ? call.call.report : undefined;
    if (!report) {
      keepMissing(context, call, 'an execution whose report is in an account of its own');
      continue;
    }
    const { sourceChainSelector } = report;
    const { messageId, sequenceNumber } = report.message.header;
    const isSeen = [...ended, ...skipped].some(
      ({ event }) =>
        event.sourceChainSelector === sourceChainSelector && event.sequenceNumber === sequenceNumber,
    );
    if (isSeen || !isAllowed(context, call.program, sourceChainSelector)) continue;
    keepExecution(context, call.program, { messageId, success: true, logIndex: call.logIndex });
  }
}

/** What routers say of off-ramps and of the numbering of lanes. */
function readLaneEvents(context: Context): void {
  for (const { program, event } of eventsOf(context, 'OfframpAdded')) {
    const { offramp: offRamp, sourceChainSelector: sourceSelector } = event;
    context.report.namings.push({ router: program, offRamp, sourceSelector });
  }
  const renumberings = renumberingEvents.flatMap((name) => eventsOf(context, name));
  for (const { program, logIndex, event } of renumberings) {
    const { name, destChainSelector, previousSequenceNumber, newSequenceNumber } = event;
    keep(
      context,
      { program, logIndex, data: '' },
      `${name}: the sequence number of the lane to ${destChainSelector} was set from ` +
        `${previousSequenceNumber} to ${newSequenceNumber}: messages before and after it may have the same numbers`,
      keptTopics(event),
    );
  }
}

// ---- Observations, and what cannot be read

function observed({ network, transaction, at }: Context, logIndex: number): Observation {
  return {
    network: network.selector,
    blockNumber: transaction.slot,
    blockHash: slotHash(transaction.slot),
    transactionHash: transaction.signature,
    logIndex,
    at,
  };
}

function isAllowed({ programs, report }: Context, offRamp: string, source: bigint): boolean {
  const isAllowed = programs.isAllowed(offRamp, source);
  if (!isAllowed) report.foreign++;
  return isAllowed;
}

type Place = Pick<Call, 'program' | 'logIndex' | 'data'>;

function keep(
  { transaction, report }: Context,
  { program, logIndex, data }: Place,
  reason: string,
  topics: readonly string[] = [],
): void {
  report.unreadable.push({
    blockNumber: transaction.slot,
    blockHash: slotHash(transaction.slot),
    transactionHash: transaction.signature,
    logIndex,
    address: program,
    topics,
    data,
    reason: shortened(reason, MAX_REASON),
  });
}

function keepMissing(context: Context, place: Place, what: string): void {
  const { isTruncated, problem } = context.logs;
  if (!isTruncated) context.report.isContradictory = true;
  keep(context, place, `${what}: ${problem ?? (isTruncated ? 'the logs are cut off' : 'the logs lack it')}`);
}

/** Runs `read`; what cannot be read is kept. */
function attempt(context: Context, place: Place, what: string, read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof UnreadableDataError || error instanceof UnreadableLogError)) throw error;
    keep(context, place, `${what}: ${error.message}`);
  }
}

/** Undefined where it cannot be decoded. */
function decoded<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}

/** On a chain that is read when it is final, the number of a slot is the name of its block. */
export function slotHash(slot: number): string {
  return `slot ${slot}`;
}

function committedRoot(
  { sourceChainSelector, onRampAddress, minSeqNr, maxSeqNr, merkleRoot }: MerkleRoot,
  offRamp: string,
  network: Network,
  seen: Observation,
): RangeFact {
  const source = knownNetwork(sourceChainSelector, 'source');
  return committedFact(
    { min: minSeqNr, max: maxSeqNr, merkleRoot, offramp: offRamp },
    {
      sourceChainSelector: source.selector,
      destChainSelector: network.selector,
      onramp: onRampOf(hexOf(onRampAddress), source),
    },
    seen,
  );
}
