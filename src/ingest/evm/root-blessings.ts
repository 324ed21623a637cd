/**
 * Blessings that no event in the history tells: by a legacy RMN behind the present one, by an RMN for whose commit store
 * every root is blessed (`PermaBlessedCommitStoreAdded`), or before the configured start. The commit store itself is asked
 * about roots of 1.2 and 1.5 lanes whose messages still wait.
 */
import type { Observation, RangeFact, RootFact } from '../../domain/facts.ts';
import { answerOf, callOf, isBlessed } from './contracts/abi.ts';
import type { GenuineContract } from './contracts/contracts.ts';
import type { Chain, Hex } from './rpc/chain.ts';

/** An event usually comes within minutes of the commit; the same root is not asked about more often than this. */
const ASK_AFTER_MS = 600_000;
const MAX_REMEMBERED = 10_000;

export interface BlessingQuestion {
  readonly commit: RangeFact;
  readonly offRamp: GenuineContract;
}

export interface RootBlessings {
  /** @param seen what the answers rest on: no log tells them */
  ask(questions: readonly BlessingQuestion[], seen: Observation, tip: number): Promise<readonly RootFact[]>;
}

export function createRootBlessings(chain: Chain): RootBlessings {
  const askedAtMs = new Map<string, number>();
  return {
    async ask(questions, seen, tip) {
      const nowMs = Date.parse(seen.at);
      const roots = new Map<string, { readonly merkleRoot: string; readonly commitStore: Hex }>();
      for (const { commit, offRamp } of questions) {
        const { merkleRoot } = commit;
        const lastMs = Math.max(Date.parse(commit.seen.at), askedAtMs.get(merkleRoot) ?? 0);
        if ('commitStore' in offRamp && nowMs - lastMs >= ASK_AFTER_MS)
          roots.set(merkleRoot, { merkleRoot, commitStore: offRamp.commitStore });
      }
      if (roots.size === 0) return [];
      const asked = [...roots.values()];
      const calls = asked.map(({ merkleRoot, commitStore }) =>
        callOf(isBlessed, commitStore, merkleRoot as Hex),
      );
      const answers = await chain.run((node) => node.calls(calls), tip);
      if (askedAtMs.size >= MAX_REMEMBERED) askedAtMs.clear();
      for (const { merkleRoot } of asked) askedAtMs.set(merkleRoot, nowMs);
      return asked
        .filter((_, index) => answerOf(isBlessed, answers[index])?.[0] === true)
        .map(({ merkleRoot }) => ({ kind: 'RootBlessed', merkleRoot, seen }));
    },
  };
}
