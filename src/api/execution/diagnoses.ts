/**
 * Diagnoses of stuck messages for HTTP: single-flight for each message, a cache of seconds, and bounds on how many
 * simulations run at once, how many calls they make, and how long they take. Rate limits of clients are checked at admission.
 */
import type { FastifyBaseLogger } from 'fastify';
import { ApiError } from '../../domain/errors.ts';
import {
  type CallOutcome,
  type DestinationCalls,
  type Diagnosis,
  diagnose,
} from '../../domain/manual-execution/diagnosis.ts';
import { isSkipped } from '../../domain/manual-execution/prepared-execution.ts';
import { BudgetError, type CallBudget } from './call-budget.ts';
import type { ReadyExecution } from './execution-preparation.ts';

export interface Destination {
  readonly calls: DestinationCalls;
  /** Calls a second that visitors may cause. */
  readonly callsPerSecond: number;
}

/** The networks on which executions can be simulated. */
export interface Destinations {
  /** By chain selector; undefined where no endpoint is configured. */
  destinationOf(chainSelector: string): Promise<Destination | undefined>;
}

export type Diagnoses = ReturnType<typeof createDiagnoses>;

/** `refused`: too many at once. `over-budget`: too many calls. `unanswered`: the endpoints did not answer in time. */
export const diagnosisOutcomes = [
  'succeeds',
  'fails',
  'not-yet',
  'executed',
  'refused',
  'over-budget',
  'unanswered',
] as const;
export type DiagnosisOutcome = (typeof diagnosisOutcomes)[number];

/** Simulations at once; more are rejected. */
const MAX_CONCURRENT = 8;
/** Simulations of one diagnosis may take so long together. */
const TIMEOUT_MS = 30_000;
/** How long a diagnosis is served again. */
const TTL_MS = 5_000;
/** Messages of which diagnoses are kept. */
const MAX_MESSAGES = 500;

interface Entry {
  readonly diagnosis: Promise<Diagnosis>;
  /** On the clock of performance.now(); infinite while it is under way. */
  validUntil: number;
}

/** A message in one state. */
interface Subject {
  /** Undefined where no endpoint is configured. */
  readonly calls: DestinationCalls | undefined;
  readonly entries: Map<number | undefined | typeof ANY_GAS_LIMIT, Entry>;
}

/** The key of an outcome that no gas limit changes. */
const ANY_GAS_LIMIT = 'any';

export function createDiagnoses(options: {
  readonly destinations?: Destinations | undefined;
  readonly budget: CallBudget;
  readonly log: Pick<FastifyBaseLogger, 'warn'>;
  readonly onOutcome?: (outcome: DiagnosisOutcome) => void;
}) {
  const { destinations, budget, log, onOutcome } = options;
  const subjects = new Map<string, Promise<Subject>>();
  let running = 0;

  const destinationOf = async ({ message }: ReadyExecution) =>
    destinations?.destinationOf(message.destNetworkInfo.chainSelector);

  const openSubject = async (execution: ReadyExecution): Promise<Subject> => {
    const { destNetworkInfo } = execution.message;
    const destination = await destinationOf(execution);
    if (!destination) return { calls: undefined, entries: new Map() };
    const { calls, callsPerSecond } = destination;
    const spend = (count: number) => budget.spend(destNetworkInfo, count, callsPerSecond);
    const budgeted: DestinationCalls = {
      async simulate(asked) {
        // The newest block is asked for too.
        await spend(asked.length + 1);
        return calls.simulate(asked);
      },
      async estimateGas(asked) {
        await spend(asked.length);
        return calls.estimateGas(asked);
      },
    };
    const { stateCall, thresholdCall, order } = execution.prepared;
    const cacheable = [stateCall, thresholdCall?.data, order?.nonceCall, order?.managerCall?.data].flatMap(
      (data) => data ?? [],
    );
    return { calls: cacheCalls(budgeted, cacheable), entries: new Map() };
  };

  /** A message that has changed since is another subject: it is tried anew. */
  const subjectOf = (execution: ReadyExecution): Promise<Subject> => {
    const key = `${execution.prepared.messageId} ${execution.message.status}`;
    const subject = subjects.get(key) ?? openSubject(execution);
    subjects.delete(key);
    subjects.set(key, subject);
    if (subjects.size > MAX_MESSAGES) subjects.delete(subjects.keys().next().value as string);
    return subject;
  };

  const run = async (
    execution: ReadyExecution,
    gasLimit: number | undefined,
    calls: DestinationCalls | undefined,
  ): Promise<Diagnosis> => {
    const { name } = execution.message.destNetworkInfo;
    if (!calls) throw new Error(`No endpoint of ${name} is configured.`);
    if (running >= MAX_CONCURRENT) {
      onOutcome?.('refused');
      throw new ApiError('DIAGNOSIS_FAILED', 'Too many executions are being tried. Try again shortly.');
    }
    running++;
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const expired = new Promise<never>((_, reject) => {
      timeout.addEventListener('abort', () => reject(timeout.reason), { once: true });
    });
    const trial = diagnose(execution.prepared, calls, {
      gasLimit: gasLimit === undefined ? undefined : BigInt(gasLimit),
      committedAt: execution.committedAt,
      signal: timeout,
    });
    // Counted until it really ends: an endpoint may answer later than we wait.
    trial.catch(() => undefined).finally(() => running--);
    try {
      const diagnosis = await Promise.race([trial, expired]);
      onOutcome?.(diagnosis.outcome);
      return diagnosis;
    } catch (error) {
      const isOverBudget = error instanceof BudgetError;
      onOutcome?.(isOverBudget ? 'over-budget' : 'unanswered');
      if (isOverBudget) throw error;
      // The error names the endpoint: it is for the operator only.
      log.warn({ err: { message: (error as Error).message } }, `An execution on ${name} could not be tried`);
      throw new ApiError(
        'DIAGNOSIS_FAILED',
        `The endpoints of ${name} did not answer, or not in time. Try again shortly.`,
      );
    }
  };

  return {
    /** Whether an endpoint of the message's destination is configured. */
    canTry: async (execution: ReadyExecution) => (await destinationOf(execution)) !== undefined,
    /** Only where it can be tried. Throws an ApiError where it cannot be found out now. */
    async diagnose(execution: ReadyExecution, gasLimit?: number): Promise<Diagnosis> {
      const { calls, entries } = await subjectOf(execution);
      for (const [key, { validUntil }] of entries) if (validUntil <= performance.now()) entries.delete(key);
      const known = entries.get(ANY_GAS_LIMIT) ?? entries.get(gasLimit);
      if (known) return known.diagnosis;
      const entry: Entry = {
        diagnosis: run(execution, gasLimit, calls),
        validUntil: Number.POSITIVE_INFINITY,
      };
      entries.set(gasLimit, entry);
      entry.diagnosis.then(
        ({ outcome, reason }) => {
          entry.validUntil = performance.now() + TTL_MS;
          if (outcome === 'executed' || outcome === 'not-yet' || isSkipped(reason))
            entries.set(ANY_GAS_LIMIT, entry);
        },
        () => entries.delete(gasLimit),
      );
      return entry.diagnosis;
    },
  };
}

/**
 * Caches those simulated calls of one message that no gas limit changes, such as the one for its state: visitors try several
 * limits, and each trial would ask again.
 *
 * @param cacheable the data of those calls
 */
function cacheCalls(destination: DestinationCalls, cacheable: readonly string[]): DestinationCalls {
  const known = new Map<string, { readonly outcome: Promise<CallOutcome>; readonly validUntil: number }>();
  return {
    async simulate(calls) {
      for (const [data, { validUntil }] of known) if (validUntil <= performance.now()) known.delete(data);
      const missing = calls.filter(({ data }) => !known.has(data));
      // The block is that of the calls which are sent now.
      const sent = missing.length > 0 ? missing : calls;
      const answer = destination.simulate(sent);
      const validUntil = performance.now() + TTL_MS;
      const outcomes = calls.map((call): Promise<CallOutcome> => {
        const earlier = known.get(call.data);
        if (earlier && missing.length > 0) return earlier.outcome;
        const outcome = answer.then(({ outcomes }) => outcomes[sent.indexOf(call)] as CallOutcome);
        if (!cacheable.includes(call.data)) return outcome;
        known.set(call.data, { outcome, validUntil });
        // The waiting callers see the failure; the next one asks again.
        outcome.catch(() => known.delete(call.data));
        return outcome;
      });
      const [{ block }, ...found] = await Promise.all([answer, ...outcomes]);
      return { block, outcomes: found };
    },
    estimateGas: (calls) => destination.estimateGas(calls),
  };
}
