/** What the contracts of an EVM network say of themselves, compared with what was read of their history. */
import type { CheckLedger, Registration, StoredFinding } from '../../../store/ledger/index-ledger.ts';
import { createHistoryCheck, type HistoryCheck } from '../../engine/history-check.ts';
import type { Progress } from '../../engine/progress.ts';
import type { BloomTrust } from '../bloom-trust.ts';
import { currentNamings, type GenuineContract } from '../contracts/contracts.ts';
import type { Chain, Hex } from '../rpc/chain.ts';
import { readCounters } from './contract-counters.ts';
import { type ContractViews, compare, type ExecutedMessage } from './contradictions.ts';
import type { Doubts } from './doubts.ts';
import { knownByNow, unknownNamings } from './registry-log.ts';

export interface ConsistencyCheckOptions {
  /** CCIP's number for the network. */
  readonly selector: string;
  readonly routers: readonly Hex[];
  /** Whether a block or time is configured at which history starts. */
  readonly hasStart: boolean;
  readonly chain: Chain;
  readonly ledger: CheckLedger;
  readonly progress: Progress;
  readonly book: { readonly contracts: ReadonlyMap<Hex, GenuineContract> };
  readonly bloomTrust: Pick<BloomTrust, 'isConfirmed'>;
  readonly doubts: Pick<Doubts, 'expect' | 'confirmed'>;
  /** Messages that off-ramps of this network have executed, as far as the records do not know it. */
  readonly readExecuted: (tip: number) => Promise<readonly ExecutedMessage[]>;
}

export function createConsistencyCheck(options: ConsistencyCheckOptions): HistoryCheck {
  const { selector, routers, hasStart, chain, ledger, progress, book } = options;
  /** The endpoint that was asked last. What it says counts when another one, where there is one, says the same. */
  let lastAsked = '';

  const readViews = async (tip: number): Promise<ContractViews> => {
    const registrations = await ledger.registrations(selector);
    const executed = await options.readExecuted(tip);
    const isOther = chain.health().some(({ name, healthy }) => healthy && name !== lastAsked);
    return chain.run(
      async (node) => {
        lastAsked = node.name;
        const { number: counted } = await node.head();
        const [namings, counters] = await Promise.all([
          currentNamings(node, routers),
          readCounters(node, selector, book.contracts.values(), registrations),
        ]);
        const { number: head } = await node.head();
        return { namings, counters, executed, counted, head };
      },
      tip,
      isOther ? [lastAsked] : [],
    );
  };

  const compareViews = async (seen: ContractViews, finalBlock: number, open: readonly StoredFinding[]) => {
    const registrations = await ledger.registrations(selector);
    const startBlock = progress.startBlock ?? 0;
    const isBefore = ({ blockNumber }: Registration) => blockNumber !== null && blockNumber < startBlock;
    const compared = await compare(ledger, seen, {
      network: selector,
      routers,
      book: book.contracts,
      registrations,
      unknown: new Set(unknownNamings(open).map(({ address }) => address)),
      isWhole: !hasStart || (registrations.length > 0 && !registrations.some(isBefore)),
      startBlock,
      finalBlock,
      confirmed: options.doubts.confirmed,
    });
    if (compared.contradictions.some(({ body }) => body !== undefined)) options.doubts.expect();
    const wrongBlooms = options.bloomTrust.isConfirmed
      ? open.filter(({ kind }) => kind === 'bloom-wrong')
      : [];
    return { ...compared, resolved: [...knownByNow(open, book.contracts), ...wrongBlooms] };
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
