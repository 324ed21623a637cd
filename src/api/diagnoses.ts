/**
 * Diagnoses of stuck messages for HTTP: single-flight for each message, a cache of seconds, and bounds on how many
 * simulations run at once, how many start, and how long they take. Rate limits of clients are checked at admission.
 */
import type { FastifyBaseLogger } from 'fastify';
import { ApiError } from '../domain/errors.ts';
import { type DestinationCalls, type Diagnosis, diagnose } from '../domain/manual-execution/diagnosis.ts';
import type { ReadyExecution } from './execution-preparation.ts';

/** The networks on which executions can be simulated. */
export interface Destinations {
  /** By chain selector; undefined where no endpoint is configured. */
  callsOf(chainSelector: string): Promise<DestinationCalls | undefined>;
}

export interface Diagnoses {
  /** Whether an endpoint of the message's destination is configured. */
  canTry(execution: ReadyExecution): Promise<boolean>;
  /** Only where it can be tried. Throws an ApiError where it cannot be found out now. */
  diagnose(execution: ReadyExecution, gasLimit?: number): Promise<Diagnosis>;
}

export interface DiagnosesOptions {
  readonly destinations?: Destinations | undefined;
  readonly log: Pick<FastifyBaseLogger, 'warn'>;
  readonly onOutcome?: ((outcome: DiagnosisOutcome) => void) | undefined;
  readonly limits?: Partial<DiagnosisLimits>;
}

/** `refused`: too many at once. `unanswered`: the endpoints did not answer in time. */
export const diagnosisOutcomes = [
  'succeeds',
  'fails',
  'not-yet',
  'executed',
  'refused',
  'unanswered',
] as const;
export type DiagnosisOutcome = (typeof diagnosisOutcomes)[number];

export interface DiagnosisLimits {
  /** Simulations at once; more are refused. */
  readonly concurrent: number;
  /** Simulations of one diagnosis may take so long together. */
  readonly timeoutMs: number;
  /** How long a diagnosis is served again. */
  readonly keptMs: number;
  readonly keptEntries: number;
}

const defaultLimits: DiagnosisLimits = {
  concurrent: 8,
  timeoutMs: 30_000,
  keptMs: 5_000,
  keptEntries: 500,
};

interface Entry {
  readonly diagnosis: Promise<Diagnosis>;
  /** On the clock of performance.now(); infinite while it is under way. */
  validUntil: number;
}

export function createDiagnoses({ destinations, log, onOutcome, limits }: DiagnosesOptions): Diagnoses {
  const { concurrent, timeoutMs, keptMs, keptEntries } = { ...defaultLimits, ...limits };
  const entries = new Map<string, Entry>();
  let running = 0;

  const callsOf = async ({ message }: ReadyExecution) =>
    destinations?.callsOf(message.destNetworkInfo.chainSelector);

  const run = async (execution: ReadyExecution, gasLimit: number | undefined): Promise<Diagnosis> => {
    const { name } = execution.message.destNetworkInfo;
    const calls = await callsOf(execution);
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
      onOutcome?.('unanswered');
      // The error names the endpoint: it is for the operator only.
      log.warn({ err: { message: (error as Error).message } }, `An execution on ${name} could not be tried`);
      throw new ApiError(
        'DIAGNOSIS_FAILED',
        `The endpoints of ${name} did not answer, or not in time. Try again shortly.`,
      );
    }
  };

  return {
    canTry: async (execution) => (await callsOf(execution)) !== undefined,
    diagnose(execution, gasLimit) {
      const { message, prepared } = execution;
      // A message that has changed since is tried anew.
      const key = `${prepared.messageId} ${message.status} ${gasLimit ?? ''}`;
      const known = entries.get(key);
      if (known && known.validUntil > performance.now()) return known.diagnosis;
      const entry: Entry = { diagnosis: run(execution, gasLimit), validUntil: Number.POSITIVE_INFINITY };
      entries.delete(key);
      entries.set(key, entry);
      if (entries.size > keptEntries) entries.delete(entries.keys().next().value as string);
      entry.diagnosis.then(
        () => {
          entry.validUntil = performance.now() + keptMs;
        },
        () => {
          if (entries.get(key) === entry) entries.delete(key);
        },
      );
      return entry.diagnosis;
    },
  };
}
