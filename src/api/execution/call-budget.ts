/**
 * Budget of the calls that visitors cause on RPC endpoints: a rate and a number a day for each network, over all worker
 * processes of a server. Each process counts what it spends and what the others report. Calls of two processes at the same
 * moment may exceed the rate; the next ones wait longer. The counts are in memory: a process that is restarted begins with what
 * is reported to it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { ApiError } from '../../domain/errors.ts';
import type { NetworkInfo } from '../../domain/message.ts';
import type { WorkerPeers } from '../server/worker-peers.ts';

export type CallBudget = ReturnType<typeof createCallBudget>;

/** The calls may not be sent now; nothing was sent. */
export class BudgetError extends ApiError {
  constructor(message: string) {
    super('DIAGNOSIS_FAILED', message);
  }
}

export const DEFAULT_CALLS_PER_DAY = 20_000;
/** A visitor does not wait longer, and a diagnosis is given up after 30 s. */
const MAX_WAIT_MS = 15_000;

/** What was spent on one network. */
interface Account {
  /** UTC, `2026-01-31`. */
  day: string;
  spent: number;
  isReported: boolean;
  /** Fill level of the leaky bucket in calls, at `atMs` of the monotonic clock. */
  level: number;
  atMs: number;
  /** 0 until this process spends. */
  perSecond: number;
}

export function createCallBudget(options: {
  readonly log: Pick<FastifyBaseLogger, 'warn'>;
  /** For each network, from 00:00 UTC. */
  readonly perDay?: number | undefined;
  readonly peers?: WorkerPeers | undefined;
  readonly onCalls?: (calls: number) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}) {
  const { log, perDay = DEFAULT_CALLS_PER_DAY, peers, onCalls, now = Date.now } = options;
  const accounts = new Map<string, Account>();

  const accountOf = (chainSelector: string): Account => {
    const atMs = performance.now();
    const day = new Date(now()).toISOString().slice(0, 10);
    const known = accounts.get(chainSelector);
    const account = known ?? { day, spent: 0, isReported: false, level: 0, atMs, perSecond: 0 };
    accounts.set(chainSelector, account);
    account.level = Math.max(0, account.level - ((atMs - account.atMs) / 1000) * account.perSecond);
    account.atMs = atMs;
    if (account.day !== day) Object.assign(account, { day, spent: 0, isReported: false });
    return account;
  };

  peers?.onTokenUse('calls', (use) => {
    for (const [chainSelector, calls] of use) {
      const account = accountOf(chainSelector);
      account.level += calls;
      account.spent += calls;
    }
  });

  return {
    /** Waits until so many calls to a network may be sent. Throws a `BudgetError` where they may not, or not soon. */
    async spend(
      { chainSelector, name }: Pick<NetworkInfo, 'chainSelector' | 'name'>,
      calls: number,
      perSecond: number,
    ): Promise<void> {
      const account = accountOf(chainSelector);
      if (account.spent + calls > perDay) {
        if (!account.isReported)
          log.warn(
            `Diagnoses have used up the ${perDay} calls a day to the endpoints of ${name}; diagnosisCallsPerDay sets their number`,
          );
        account.isReported = true;
        throw new BudgetError(
          `The number of calls a day to the endpoints of ${name} is used up. Try again after 00:00 UTC.`,
        );
      }
      account.perSecond = perSecond;
      // A second's worth may be sent at once.
      const waitMs = ((account.level + calls - Math.max(1, perSecond)) / perSecond) * 1000;
      if (waitMs > MAX_WAIT_MS)
        throw new BudgetError(
          `Too many executions are being tried on ${name}, for the rate of its endpoints. Try again shortly.`,
        );
      account.level += calls;
      account.spent += calls;
      onCalls?.(calls);
      peers?.sendTokenUse('calls', [[chainSelector, calls]]);
      if (waitMs > 0) await delay(waitMs, undefined, { ref: false });
    },
  };
}
