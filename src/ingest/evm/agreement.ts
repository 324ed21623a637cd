/**
 * What the endpoints of a network must agree on: a block that becomes final, a long way that the head has gone, and a chain
 * that lacks a block which was final. One endpoint alone may be on a fork, or invent blocks.
 *
 * With one endpoint configured there is no other to ask: it is trusted, except that it cannot take back what was final.
 */
import type { BlockId } from '../../store/ledger/index-ledger.ts';
import { createEndpointWaits } from '../engine/confirmation.ts';
import { NodeError } from '../engine/faults.ts';
import type { Progress } from '../engine/progress.ts';
import type { Block, Chain, ChainNode, ChainTips } from './rpc/chain.ts';

/** An endpoint whose head is older does not know what the chain has now. */
const MAX_HEAD_AGE_MS = 600_000;

interface Agreed {
  /** The block that was asked about, or the newest that the other endpoint has too. */
  readonly common: BlockId;
  /** The newest block up to there that both call final. */
  readonly final: BlockId;
  /** No other endpoint could be asked for a long time, or there is none. */
  readonly isAlone: boolean;
}

export interface Disagreement {
  /** Why nothing is agreed on yet, for people. */
  readonly reason: string;
  /** Whether another endpoint has another block; otherwise none could be asked. */
  readonly isContradicted: boolean;
}

export type Agreement = ReturnType<typeof createAgreement>;

interface OtherView extends Omit<ChainTips, 'final'> {
  readonly node: ChainNode;
  /** Undefined where it has no tag for it. */
  readonly final: Block | undefined;
  /** A further block that it was asked for. */
  readonly further: Block | undefined;
}

/** @param acceptsDeepReorgs whether one endpoint is enough to take back blocks that were final */
export function createAgreement({ log, timing }: Progress, chain: Chain, acceptsDeepReorgs: boolean) {
  const waits = createEndpointWaits(timing.secondOpinionMs);
  let isAloneLogged = false;

  /**
   * What the other endpoints that answer show, one after the other.
   *
   * @param furtherNumberOf of a further block that the next one is asked for
   */
  const otherViews = (witness: ChainNode, number: number, furtherNumberOf: () => number | undefined) =>
    chain.opinions(witness, async (node): Promise<OtherView> => {
      const furtherNumber = furtherNumberOf();
      const tips = await tipsOf(node, number);
      const isFurtherThere = furtherNumber !== undefined && furtherNumber <= tips.head.number;
      const [further] = isFurtherThere ? await node.blocks([furtherNumber]) : [];
      return { node, ...tips, further };
    });

  /** What both chains have of a block and below; undefined where they differ. */
  const commonOf = async (node: ChainNode, block: BlockId, view: OtherView): Promise<BlockId | undefined> => {
    if (view.block) return view.block.hash === block.hash ? block : undefined;
    const [own] = await node.blocks([view.head.number]);
    return own?.hash === view.head.hash ? own : undefined;
  };

  const alone = ({ name }: ChainNode, block: BlockId, final: BlockId): Agreed | Disagreement => {
    const others = chain.health().filter((endpoint) => endpoint.name !== name);
    if (waits.isLeft(others.map((endpoint) => endpoint.name))) {
      const reason = `No second endpoint can be asked for block ${block.number}, which ${name} has`;
      return { reason, isContradicted: false };
    }
    if (!isAloneLogged)
      log(`No second endpoint can be asked: ${name} is trusted alone until one answers`, 'warn');
    isAloneLogged = true;
    return { common: block, final, isAlone: true };
  };

  return {
    /**
     * Asks the other endpoints for a block of `node`, one after the other. Throws a NodeError where two of them agree on
     * another block.
     *
     * @param final what `node` calls final
     * @param isEnough whether an endpoint that is somewhat behind will do; otherwise the next one is asked too
     */
    async on(node: ChainNode, block: BlockId, final: BlockId, isEnough: (agreed: Agreed) => boolean) {
      if (chain.health().length === 1) return { common: block, final, isAlone: true };
      let against: (BlockId & { readonly name: string }) | undefined;
      let best: Agreed | undefined;
      for await (const view of otherViews(node, block.number, () => against?.number)) {
        waits.answered(view.node.name);
        const common = await commonOf(node, block, view);
        if (common) {
          if (!view.block && Date.now() - view.head.timestamp * 1000 > MAX_HEAD_AGE_MS) continue;
          const agreedFinal = await lowerFinal(node, common, final, view.final);
          if (!agreedFinal) continue;
          const agreed = { common, final: agreedFinal, isAlone: false };
          if (!best || agreed.final.number > best.final.number) best = agreed;
          if (isEnough(agreed)) break;
          continue;
        }
        const { number, hash } = view.block ?? view.head;
        if (against && view.further?.hash === against.hash)
          throw new NodeError(
            `${node.name} has another block ${against.number} than ${against.name} and ${view.node.name}`,
          );
        against ??= { number, hash, name: view.node.name };
      }
      if (!best && !against) return alone(node, block, final);
      if (isAloneLogged) log('A second endpoint answers again');
      isAloneLogged = false;
      if (best && (!against || isEnough(best))) return best;
      const names = `${node.name} and ${against?.name}`;
      return {
        reason: `${names} have different blocks ${against?.number}; which is right needs a third endpoint`,
        isContradicted: true,
      };
    },

    /**
     * The newest final block of a chain without `lost`, which was final: `node` has that chain, and so has another endpoint.
     * Throws where none has: the node has another chain also below blocks that were final, and is not trusted.
     *
     * @param isNewer whether a head is newer than what was read, and not merely behind
     */
    async onOtherChain(node: ChainNode, final: BlockId, lost: BlockId, isNewer: (head: Block) => boolean) {
      if (acceptsDeepReorgs) return final;
      for await (const view of otherViews(node, final.number, () => lost.number)) {
        if (view.further?.hash === lost.hash)
          throw new NodeError(
            `${node.name} has another chain than the one that was read, which ${view.node.name} has`,
          );
        if (!view.further && !isNewer(view.head)) continue;
        const common = await commonOf(node, final, view);
        const agreedFinal = common && (await lowerFinal(node, common, final, view.final));
        if (agreedFinal) return agreedFinal;
      }
      throw new NodeError(
        `${node.name} lacks block ${lost.number} of the chain that was read, which was final. It is not trusted alone and ` +
          'nothing was erased: add an endpoint that has the same chain, or, where the chain was reset, set `acceptDeepReorgs: true`',
        'reorganization',
      );
    },
  };
}

/** An endpoint without the network's tag of final blocks can still say which blocks it has. */
async function tipsOf(node: ChainNode, number: number): Promise<Pick<OtherView, 'head' | 'final' | 'block'>> {
  try {
    return await node.tips(number);
  } catch (error) {
    if (!(error instanceof NodeError) || error.kind !== 'configuration') throw error;
    const head = await node.head();
    const [block] = number <= head.number ? await node.blocks([number]) : [];
    return { head, final: undefined, block };
  }
}

/**
 * The lower of what two endpoints call final; undefined where the other's is not in the chain that it shares with `node`. Some
 * call their first block final for want of a better one.
 */
async function lowerFinal(node: ChainNode, common: BlockId, final: BlockId, other: Block | undefined) {
  const own = final.number <= common.number ? final : common;
  if (!other || other.number === 0 || other.number >= own.number) return own;
  const [lower] = await node.blocks([other.number]);
  return lower?.hash === other.hash ? lower : undefined;
}
