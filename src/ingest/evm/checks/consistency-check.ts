/** What the contracts of an EVM network say of themselves, compared with what was read of their history. */
import type { CheckLedger, RampRegistration, StoredFinding } from '../../../store/ledger/index-ledger.ts';
import { createHistoryCheck, type HistoryCheck } from '../../engine/history-check.ts';
import type { Progress } from '../../engine/progress.ts';
import type { BloomTrust } from '../bloom-trust.ts';
import { currentRegistrations, type GenuineContract } from '../contracts/contracts.ts';
import type { Chain, Hex } from '../rpc/chain.ts';
import { readCounters } from './contract-counters.ts';
import { type ContractViews, compare, type ExecutedMessage } from './contradictions.ts';
import { knownByNow, unknownRegistrations } from './registry-log.ts';
import type { UnconfirmedBlocks } from './unconfirmed-blocks.ts';

export interface ConsistencyCheckOptions {
  /** CCIP's number for the network. */
  readonly selector: string;
  readonly routers: readonly Hex[];
  /** Whether a block or time is configured at which history starts. */
  readonly hasStart: boolean;
  readonly chain: Chain;
  readonly ledger: CheckLedger;
  readonly progress: Progress;
  readonly registry: { readonly contracts: ReadonlyMap<Hex, GenuineContract> };
  readonly bloomTrust: Pick<BloomTrust, 'isConfirmed'>;
  readonly unconfirmed: Pick<UnconfirmedBlocks, 'expect' | 'confirmed'>;
  /** Messages that off-ramps of this network have executed, as far as the records do not know it. */
  readonly readExecuted: (tip: number) => Promise<readonly ExecutedMessage[]>;
}

export function createConsistencyCheck(options: ConsistencyCheckOptions): HistoryCheck {
  const { selector, routers, hasStart, chain, ledger, progress, registry } = options;
  /** The endpoint that was asked last. What it says counts when another one, where there is one, says the same. */
  let lastAsked = '';

  const readViews = async (tip: number): Promise<ContractViews> => {
    const recorded = await ledger.registrations(selector);
    const executed = await options.readExecuted(tip);
    const isOther = chain.health().some(({ name, healthy }) => healthy && name !== lastAsked);
    return chain.run(
      async (node) => {
        lastAsked = node.name;
        const { number: counted } = await node.head();
        const [registrations, counters] = await Promise.all([
          currentRegistrations(node, routers),
          readCounters(node, selector, registry.contracts.values(), recorded),
        ]);
        const { number: head } = await node.head();
        return { registrations, counters, executed, counted, head };
      },
      tip,
      isOther ? [lastAsked] : [],
    );
  };

  const compareViews = async (seen: ContractViews, finalBlock: number, open: readonly StoredFinding[]) => {
    const registrations = await ledger.registrations(selector);
    const startBlock = progress.head.startBlock ?? 0;
    const isBefore = ({ blockNumber }: RampRegistration) => blockNumber !== null && blockNumber < startBlock;
    const compared = await compare(ledger, seen, {
      network: selector,
      routers,
      registry: registry.contracts,
      registrations,
      unknown: new Set(unknownRegistrations(open).map(({ address }) => address)),
      isWhole: !hasStart || (registrations.length > 0 && !registrations.some(isBefore)),
      startBlock,
      finalBlock,
      confirmed: options.unconfirmed.confirmed,
    });
    if (compared.contradictions.some(({ body }) => body !== undefined)) options.unconfirmed.expect();
    const wrongBlooms = options.bloomTrust.isConfirmed
      ? open.filter(({ kind }) => kind === 'bloom-wrong')
      : [];
    return { ...compared, resolved: [...knownByNow(open, registry.contracts), ...wrongBlooms] };
  };

  return createHistoryCheck({
    selector,
    ledger,
    progress,
    health: () => chain.health(),
    words: { counted: 'contracts', units: 'blocks' },
    readViews,
    compare: compareViews,
  });
}
