/**
 * The newest finalized slot that endpoints agree on. What is recorded as read is never read again, and a slot that is recorded
 * makes every endpoint below it count as behind: one endpoint alone must not move the head far ahead.
 */
import { NodeError } from '../chain/faults.ts';
import type { LoneEndpoint } from '../chain/lone-endpoint.ts';
import type { Chain, ChainNode, FinalizedHead } from './chain.ts';

/** Slots that the head may advance by the word of one endpoint: ten minutes. */
export const MAX_LONE_SLOTS = 1_500;
/** An endpoint whose head is so much older, in seconds, is behind and cannot tell. */
const MAX_LAG_SECONDS = 600;

export interface HeadAgreement {
  /**
   * The head of `node`. Far beyond `tip`, or where there is none yet, it needs a second endpoint that is about as far. Throws a
   * NodeError where the others are not.
   */
  head(node: ChainNode, tip: number | undefined): Promise<FinalizedHead>;
}

export function createHeadAgreement(
  chain: Pick<Chain, 'health' | 'secondOpinion'>,
  lone: LoneEndpoint,
): HeadAgreement {
  return {
    async head(node, tip) {
      const head = await node.head();
      const isNear = tip !== undefined && head.slot - tip <= MAX_LONE_SLOTS;
      if (isNear || chain.health().length === 1) return head;
      const latest = Math.min(head.timestamp, Date.now() / 1_000);
      const asked = [node];
      let lower: { readonly other: ChainNode; readonly slot: number } | undefined;
      for (;;) {
        const answer = await chain.secondOpinion(asked, async (other) => ({
          other,
          ...(await other.head()),
        }));
        if (!answer) break;
        asked.push(answer.other);
        const isBehind = answer.timestamp < latest - MAX_LAG_SECONDS;
        if (answer.slot >= head.slot - MAX_LONE_SLOTS) {
          lone.wasAsked();
          return head;
        }
        if (!isBehind) lower ??= answer;
      }
      if (lower) {
        lone.wasAsked();
        throw new NodeError(
          `${node.name} shows slot ${head.slot}, and ${lower.other.name} is only at ${lower.slot}`,
        );
      }
      if (lone.isBelieved(node.name)) return head;
      throw new NodeError(`No second endpoint can be asked for slot ${head.slot}, which ${node.name} shows`);
    },
  };
}
