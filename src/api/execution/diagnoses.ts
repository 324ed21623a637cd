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
import { createExpiringCache } from '../server/expiring-cache.ts';
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
/** How long a diagnosis is served again, and how many are kept. */
const TTL_MS = 5_000;
const MAX_KEPT = 500;

export function createDiagnoses(options: {
  readonly destinations?: Destinations | undefined;
  readonly budget: CallBudget;
  readonly log: Pick<FastifyBaseLogger, 'warn'>;
  readonly onOutcome?: (outcome: DiagnosisOutcome) => void;
}) {
  const { destinations, budget, log, onOutcome } = options;
  const trials = createExpiringCache<Diagnosis>(TTL_MS, MAX_KEPT);
  const callOutcomes = createExpiringCache<CallOutcome>(TTL_MS, MAX_KEPT);
  let running = 0;

  const destinationOf = async ({ message }: ReadyExecution) =>
    destinations?.destinationOf(message.destNetworkInfo.chainSelector);

  /**
   * The calls of a message, within the budget. Those that no gas limit changes, such as the one for its state, are cached:
   * visitors try several limits, and each trial would ask again.
   */
  const callsOf = (execution: ReadyExecution, { calls, callsPerSecond }: Destination): DestinationCalls => {
    const { stateCall, thresholdCall, order } = execution.prepared;
    const cacheable = [stateCall, thresholdCall?.data, order?.nonceCall, order?.managerCall?.data];
    const spend = (count: number) => budget.spend(execution.message.destNetworkInfo, count, callsPerSecond);
    return {
      async simulate(asked) {
        const keys = asked.map(({ data }) => `${subjectOf(execution)} ${data}`);
        const known = keys.map(callOutcomes.find);
        const missing = asked.filter((_, place) => known[place] === undefined);
        // The block is that of the calls which are sent now.
        const sent = missing.length > 0 ? missing : asked;
        // The newest block is asked for too.
        const answer = spend(sent.length + 1).then(() => calls.simulate(sent));
        const outcomes = asked.map((call, place): Promise<CallOutcome> => {
          const earlier = known[place];
          if (earlier && missing.length > 0) return earlier;
          const outcome = answer.then(({ outcomes }) => outcomes[sent.indexOf(call)] as CallOutcome);
          if (!earlier && cacheable.includes(call.data)) callOutcomes.add(keys[place] ?? '', outcome);
          return outcome;
        });
        const [{ block }, ...found] = await Promise.all([answer, ...outcomes]);
        return { block, outcomes: found };
      },
      async estimateGas(asked) {
        await spend(asked.length);
        return calls.estimateGas(asked);
      },
    };
  };

  const run = async (execution: ReadyExecution, gasLimit: number | undefined): Promise<Diagnosis> => {
    const { name } = execution.message.destNetworkInfo;
    const destination = await destinationOf(execution);
    if (!destination) throw new Error(`No endpoint of ${name} is configured.`);
    if (running >= MAX_CONCURRENT) {
      onOutcome?.('refused');
      throw new ApiError('DIAGNOSIS_FAILED', 'Too many executions are being tried. Try again shortly.');
    }
    running++;
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const expired = new Promise<never>((_, reject) => {
      timeout.addEventListener('abort', () => reject(timeout.reason), { once: true });
    });
    const trial = diagnose(execution.prepared, callsOf(execution, destination), {
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
      const forAnyGasLimit = `${subjectOf(execution)} any`;
      const known = trials.find(forAnyGasLimit);
      if (known) return known;
      const trial = trials.get(`${subjectOf(execution)} ${gasLimit}`, () => run(execution, gasLimit));
      const { outcome, reason } = await trial;
      const isForAny = outcome === 'executed' || outcome === 'not-yet' || isSkipped(reason);
      return isForAny ? trials.get(forAnyGasLimit, () => trial) : trial;
    },
  };
}

/** A message that has changed since is another subject: it is tried anew. */
function subjectOf({ prepared, message }: ReadyExecution): string {
  return `${prepared.messageId} ${message.status}`;
}
