/**
 * What a transaction says: from its logs and instructions to facts.
 *
 * Logs come first. Instructions are never cut, so they show whether something is missing in the logs, and take their place
 * where they can: a send by its copy to rmn_remote, a commit and an execution by the instruction of a transaction that
 * succeeded. What can be found in neither is handed back as unreadable. An event and an instruction belong together where
 * they are of the same call.
 *
 * Of a failed transaction nothing has happened. The off-ramp logs a root before it checks signatures, so a failed commit
 * may show any root. Only an execution counts, as an attempt: its event stands behind the merkle proof. It counts where
 * the off-ramp's own call failed: anybody can have it execute a message and let the transaction fail afterwards.
 */
import type { Executed, Fact, Observation, RangeFact } from '../../../domain/facts.ts';
import type { Network } from '../../../domain/networks/networks.ts';
import type { UnreadableLog } from '../../../store/ledger/index-ledger.ts';
import {
  committedFact,
  knownNetwork,
  onRampOf,
  rejectOtherSource,
  shortened,
  UnreadableLogError,
} from '../../engine/event-facts.ts';
import { UnreadableDataError } from '../../engine/json-rpc/answer-reader.ts';
import type { Instruction, SolanaTransaction } from '../transaction.ts';
import { decodeBase58, decodeBase64, hexOf, readable } from './borsh.ts';
import { calledRole, executionDetails } from './execution-details.ts';
import {
  type EventName,
  type EventOf,
  eventNameOf,
  type InstructionName,
  type InstructionOf,
  instructionNameOf,
  type MerkleRoot,
  readEvent,
  readInstruction,
  relayedEvent,
  selfEmittedEventName,
} from './layouts.ts';
import { type Frame, type ProgramLogs, readProgramLogs } from './program-logs.ts';
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
export interface OffRampRegistration {
  readonly router: string;
  readonly offRamp: string;
  readonly sourceSelector: bigint;
}

export interface TransactionReading {
  readonly facts: readonly Fact[];
  readonly registrations: readonly OffRampRegistration[];
  readonly unreadable: readonly UnreadableLog[];
  /** Events of an off-ramp for sources that no router lets it deliver from. */
  readonly untrusted: number;
  readonly hasRouterEvent: boolean;
  /**
   * Whether its logs, which were not cut, lack an event that its instructions prove, its instructions lack a call of the
   * logs, or one of a trusted program cannot be decoded. That may be the node's fault: another one may have it.
   */
  readonly isContradictory: boolean;
}

interface Found<Name extends EventName = EventName> {
  readonly program: string;
  readonly logIndex: number;
  /** The call that emitted it; undefined where the node's instructions lack it. */
  readonly instruction: Instruction | undefined;
  /** Whether that call failed. False where that cannot be told. */
  readonly isFailed: boolean;
  readonly event: EventOf<Name>;
}

/** An instruction of a trusted program that changes what is recorded. */
interface Call<Name extends InstructionName = InstructionName> {
  readonly program: string;
  /** The index of a log that would stand behind all lines: what has no line is seen here. */
  readonly logIndex: number;
  /** Base58. */
  readonly data: string;
  readonly instruction: Instruction;
  readonly call: InstructionOf<Name>;
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
    readonly registrations: OffRampRegistration[];
    readonly unreadable: UnreadableLog[];
    untrusted: number;
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
  ...renumberingEvents,
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
    registrations: [],
    unreadable: [],
    untrusted: 0,
    isContradictory: false,
  };
  const empty: Context = { transaction, network, programs, at, logs, found: [], calls: [], report };
  const found = readEvents(empty);
  if (transaction.isFailed) {
    readAttempts({ ...empty, found });
    // A failed transaction has changed nothing: what of it cannot be read is not missing.
    return { ...report, unreadable: [], hasRouterEvent: false };
  }
  const context = { ...empty, found, calls: readCalls(empty) };
  readSends(context);
  readCommits(context);
  readExecutions(context);
  readLaneEvents(context);
  return { ...report, hasRouterEvent: found.some(({ program }) => programs.isRouter(program)) };
}

// ---- Parts of a transaction

function readEvents(context: Context): readonly Found[] {
  const { programs, logs, transaction, report } = context;
  return logs.emitted.flatMap(({ frame, logIndex, base64: text }) => {
    const { program } = frame;
    const isRouter = programs.isRouter(program);
    if (!isRouter && !programs.isOffRamp(program)) return [];
    const place = { program, logIndex, data: text };
    const data = attempt(context, place, 'an event', () => decodeBase64(text));
    const name = data && eventNameOf(data);
    if (!data || !name || routerEvents.has(name) !== isRouter) return [];
    const event = attempt(context, place, name, () => readEvent(name, data));
    const instruction = transaction.instructions.filter((one) => one.program === program)[frame.order];
    if (!instruction) report.isContradictory = true;
    const isFailed = hasFailed(frame, instruction, transaction);
    return event ? [{ program, logIndex, event, instruction, isFailed }] : [];
  });
}

/** Where its last line was cut off, a call at the top level has failed if its instruction has. */
function hasFailed(
  { outcome, depth }: Frame,
  instruction: Instruction | undefined,
  { failedIndex }: SolanaTransaction,
): boolean {
  if (outcome !== undefined) return outcome === 'failed';
  return depth === 1 && failedIndex !== undefined && instruction?.outerIndex === failedIndex;
}

function eventsOf<Name extends EventName>({ found }: Context, ...names: readonly Name[]) {
  return found.filter((entry): entry is Found<Name> => names.some((name) => name === entry.event.name));
}

function readCalls(context: Context): readonly Call[] {
  const { transaction, programs, report } = context;
  return transaction.instructions.flatMap((instruction, index) => {
    const { program, caller, data } = instruction;
    const isRouter = programs.isRouter(program);
    if (!isRouter && !programs.isOffRamp(program)) return [];
    const place = { program, logIndex: transaction.logs.length + index, data };
    const bytes = attempt(context, place, 'an instruction', () => decodeBase58(data));
    const selfEmitted = bytes && caller?.program === program ? selfEmittedEventName(bytes) : undefined;
    if (selfEmitted) keep(context, place, `${selfEmitted}: events of CCIP 2.0 cannot be decoded yet`);
    const name = bytes && instructionNameOf(bytes);
    if (bytes && (!name || (name === 'ccip_send') !== isRouter)) return [];
    const call = bytes && name && attempt(context, place, name, () => readInstruction(name, bytes));
    if (!call) report.isContradictory = true;
    return call ? [{ ...place, instruction, call }] : [];
  });
}

function callsOf<Name extends InstructionName>({ calls }: Context, ...names: readonly Name[]) {
  return calls.filter((entry): entry is Call<Name> => names.some((name) => name === entry.call.name));
}

// ---- From parts to facts

function readAttempts(context: Context): void {
  const attempts = new Set<string>();
  for (const { program, logIndex, event, isFailed } of eventsOf(context, 'ExecutionStateChanged')) {
    const { messageId, sourceChainSelector } = event;
    if (!isFailed || attempts.has(messageId) || !isAllowed(context, program, sourceChainSelector)) continue;
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
  for (const call of sendCalls) {
    if (!sends.some(({ instruction }) => instruction === call.instruction))
      keepMissing(context, call, 'a message was sent, and its event was not found');
  }
  for (const { program, logIndex, event, instruction } of sends) {
    const call = sendCalls.find((own) => own.instruction === instruction)?.call;
    attempt(context, { program, logIndex, data: '' }, 'CCIPMessageSent', () => {
      rejectOtherSource(event.message.header.sourceChainSelector, network);
      report.facts.push(
        sentMessage(event, {
          router: program,
          network,
          mints: call?.tokens.map(({ mint }) => mint) ?? [],
          origin: transaction.feePayer,
          seen: observed(context, logIndex),
        }),
      );
    });
  }
}

/** Copies of sends in calls of a router to its rmn_remote, which cannot be cut. */
function relayedSends({ transaction, programs }: Context): readonly Found<'CCIPMessageSent'>[] {
  return transaction.instructions.flatMap(({ program, caller, data }, index) => {
    if (caller === undefined || programs.rmnRemoteOf(caller.program) !== program) return [];
    // One that cannot be read is no loss: the event of the logs counts, and its absence is noticed.
    const event = readable(() => {
      const copy = relayedEvent(decodeBase58(data));
      return copy && eventNameOf(copy) === 'CCIPMessageSent' ? readEvent('CCIPMessageSent', copy) : undefined;
    });
    if (event?.name !== 'CCIPMessageSent') return [];
    const logIndex = transaction.logs.length + index;
    return [{ program: caller.program, logIndex, event, instruction: caller, isFailed: false }];
  });
}

function readCommits(context: Context): void {
  const { network, report } = context;
  const roots = eventsOf(context, 'CommitReportAccepted').flatMap(({ program, logIndex, event }) =>
    event.root ? [{ program, logIndex, root: event.root }] : [],
  );
  for (const { program, logIndex, call } of callsOf(context, 'commit')) {
    const { root } = call;
    const isKnown = roots.some(
      (known) => known.program === program && known.root.merkleRoot === root?.merkleRoot,
    );
    if (root && !isKnown) roots.push({ program, logIndex, root });
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
  const changes = eventsOf(context, 'ExecutionStateChanged');
  const ended = changes.filter(({ event: { state } }) => state === STATE_SUCCESS || state === STATE_FAILURE);
  for (const { program, logIndex, event } of ended) {
    const { messageId, sourceChainSelector, state } = event;
    if (!isAllowed(context, program, sourceChainSelector)) continue;
    keepExecution(context, program, { messageId, success: state === STATE_SUCCESS, logIndex });
  }
  const settled = [...ended, ...eventsOf(context, 'SkippedAlreadyExecutedMessage')];
  for (const call of callsOf(context, 'execute', 'manually_execute')) {
    const isOfCall = ({ instruction }: Found) => instruction === call.instruction;
    if (settled.some(isOfCall)) continue;
    const executed = changes.find(isOfCall)?.event ?? deliveredMessage(context, call);
    if (!executed) {
      keepMissing(context, call, 'an execution, or a message that the off-ramp skipped as executed before');
    } else if (isAllowed(context, call.program, executed.sourceChainSelector)) {
      keepExecution(context, call.program, { ...executed, success: true, logIndex: call.logIndex });
    }
  }
}

/**
 * The message of an instruction whose off-ramp went on to call a receiver or a pool; undefined where it did not, or the
 * report is in an account of its own. A number that was executed before is skipped without a look at the message, which
 * may be any: the report alone proves nothing.
 */
function deliveredMessage(
  { transaction }: Context,
  { instruction, call: { report } }: Call<'execute' | 'manually_execute'>,
): Pick<EventOf<'ExecutionStateChanged'>, 'messageId' | 'sourceChainSelector'> | undefined {
  const isDelivered = transaction.instructions.some(
    (called) => called.caller === instruction && ['receiver', 'pool'].includes(calledRole(called) ?? ''),
  );
  return isDelivered ? report?.message.header : undefined;
}

/** What routers say of off-ramps and of the numbering of lanes. */
function readLaneEvents(context: Context): void {
  for (const { program, event } of eventsOf(context, 'OfframpAdded')) {
    const { offramp: offRamp, sourceChainSelector: sourceSelector } = event;
    context.report.registrations.push({ router: program, offRamp, sourceSelector });
  }
  for (const { program, logIndex, event } of eventsOf(context, ...renumberingEvents)) {
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
  if (!isAllowed) report.untrusted++;
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

/** What `read` returns; undefined where it cannot be read, which is kept. */
function attempt<T>(context: Context, place: Place, what: string, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof UnreadableDataError || error instanceof UnreadableLogError)) throw error;
    keep(context, place, `${what}: ${error.message}`);
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
