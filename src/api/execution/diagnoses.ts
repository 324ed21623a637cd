/**
 * Diagnoses of stuck messages for HTTP: single-flight for each message, a cache of seconds, and bounds on how many
 * simulations run at once, how many calls they make, and how long they take. Rate limits of clients are checked at admission.
 */
import type { FastifyBaseLogger } from 'fastify';
import { ApiError } from '../../domain/errors.ts';
import { type DestinationCalls, type Diagnosis, diagnose } from '../../domain/manual-execution/diagnosis.ts';
import { isSkipped } from '../../domain/manual-execution/message-order.ts';
import { BudgetError, type CallBudget } from './call-budget.ts';
import { cacheCalls } from './call-cache.ts';
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

export interface Diagnoses {
  /** Whether an endpoint of the message's destination is configured. */
  canTry(execution: ReadyExecution): Promise<boolean>;
  /** Only where it can be tried. Throws an ApiError where it cannot be found out now. */
  diagnose(execution: ReadyExecution, gasLimit?: number): Promise<Diagnosis>;
}

export interface DiagnosesOptions {
  readonly destinations?: Destinations | undefined;
  readonly budget: CallBudget;
  readonly log: Pick<FastifyBaseLogger, 'warn'>;
  readonly onOutcome?: ((outcome: DiagnosisOutcome) => void) | undefined;
  readonly limits?: Partial<DiagnosisLimits>;
}

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

export interface DiagnosisLimits {
  /** Simulations at once; more are rejected. */
  readonly concurrent: number;
  /** Simulations of one diagnosis may take so long together. */
  readonly timeoutMs: number;
  /** How long a diagnosis is served again. */
  readonly ttlMs: number;
  /** Messages of which diagnoses are kept. */
  readonly maxMessages: number;
}

const defaultLimits: DiagnosisLimits = {
  concurrent: 8,
  timeoutMs: 30_000,
  ttlMs: 5_000,
  maxMessages: 500,
};

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

export function createDiagnoses({
  destinations,
  budget,
  log,
  onOutcome,
  limits,
}: DiagnosesOptions): Diagnoses {
  const { concurrent, timeoutMs, ttlMs, maxMessages } = { ...defaultLimits, ...limits };
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
    return { calls: cacheCalls(budgeted, cacheable, ttlMs), entries: new Map() };
  };

  /** A message that has changed since is another subject: it is tried anew. */
  const subjectOf = (execution: ReadyExecution): Promise<Subject> => {
    const key = `${execution.prepared.messageId} ${execution.message.status}`;
    const subject = subjects.get(key) ?? openSubject(execution);
    subjects.delete(key);
    subjects.set(key, subject);
    if (subjects.size > maxMessages) subjects.delete(subjects.keys().next().value as string);
    return subject;
  };

  const run = async (
    execution: ReadyExecution,
    gasLimit: number | undefined,
    calls: DestinationCalls | undefined,
  ): Promise<Diagnosis> => {
    const { name } = execution.message.destNetworkInfo;
    if (!calls) throw new Error(`No endpoint of ${name} is configured.`);
    if (running >= concurrent) {
      onOutcome?.('refused');
      throw new ApiError('DIAGNOSIS_FAILED', 'Too many executions are being tried. Try again shortly.');
    }
    running++;
    const timeout = AbortSignal.timeout(timeoutMs);
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
    canTry: async (execution) => (await destinationOf(execution)) !== undefined,
    async diagnose(execution, gasLimit) {
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
          entry.validUntil = performance.now() + ttlMs;
          if (outcome === 'executed' || outcome === 'not-yet' || isSkipped(reason))
            entries.set(ANY_GAS_LIMIT, entry);
        },
        () => entries.delete(gasLimit),
      );
      return entry.diagnosis;
    },
  };
}
