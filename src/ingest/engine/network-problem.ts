/** The problem that keeps a network from progress at present: published, logged once, and escalated when it lasts. */

import type { LogLineLevel } from '../../base/log.ts';
import { operatorProblems, type ProblemKind } from '../../domain/networks/indexing-problem.ts';
import { NodeError, problemKindOf, reasonOf } from './faults.ts';

export interface Problem {
  /** For the operator: it may name hosts. */
  readonly text: string;
  readonly kind: ProblemKind;
}

export interface NetworkProblem {
  readonly current: Problem | null;
  set(error: unknown): void;
  clear(): void;
}

export interface NetworkProblemOptions {
  /** A problem that lasts this long is logged as an error. */
  readonly escalateAfterMs: number;
  readonly log: (line: string, level?: LogLineLevel) => void;
}

export function createNetworkProblem({ escalateAfterMs, log }: NetworkProblemOptions): NetworkProblem {
  /** `since` is on performance.now()'s clock. */
  let current: (Problem & { readonly since: number; readonly isEscalated: boolean }) | null = null;
  const lastedMs = () => (current === null ? 0 : performance.now() - current.since);
  const duration = () => `${Math.round(lastedMs() / 1000)} s`;
  return {
    get current() {
      return current;
    },
    set(error) {
      const text = reasonOf(error);
      const kind = problemKindOf(error);
      // Faults of endpoints were logged when the endpoints were set back.
      if (current === null && !(error instanceof NodeError)) {
        log(text, operatorProblems.has(kind) ? 'error' : 'warn');
      }
      const { since = performance.now(), isEscalated = false } = current ?? {};
      const escalates = !isEscalated && lastedMs() >= escalateAfterMs;
      if (escalates) {
        log(`Nothing could be read for ${duration()}; still retrying. Last problem: ${text}`, 'error');
      }
      current = { text, kind, since, isEscalated: isEscalated || escalates };
    },
    clear() {
      if (current?.isEscalated) log(`Reading goes on, after ${duration()}`);
      current = null;
    },
  };
}
