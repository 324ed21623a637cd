/** The Solana family: CCIP 1.6, read from the transactions of router and off-ramp programs over JSON-RPC. */
import { combineChores } from '../chain/chores.ts';
import type { Beginning, ChainFamily, ConnectOptions, NetworkReader } from '../chain/family.ts';
import { createTokenChores } from '../chain/token-chores.ts';
import type { ChainNode } from './chain.ts';
import { createCompletenessCheck } from './checks/completeness-check.ts';
import { slotHash } from './decode/transaction-facts.ts';
import { createChain } from './endpoints.ts';
import { examineNetwork } from './examination.ts';
import { createHeadFollower } from './head-follower.ts';
import { createManualExecutionChores } from './manual-execution.ts';
import { readMintClaims } from './mint-claims.ts';
import { checkOffRamps, type ProgramBook, programsOf, readRouters, routerContract } from './programs.ts';
import { createSlotReader } from './reading.ts';
import type { SvmSource } from './settings.ts';
import { createSignatureLists } from './signature-lists.ts';
import { startSlotOf } from './start-slot.ts';

/** Entries in one page of a list; nodes give 1,000 at most. */
const PAGE_SIZE = 500;
/** Transactions of each program in one piece of history: enough to be worth a step, few enough for memory. */
const MAX_ENTRIES = 500;
/** A range that has to be read as a whole and has more is split. */
const MAX_ENTRIES_OF_WHOLE = 5_000;

export const svmFamily: ChainFamily<SvmSource> = { connect, examine: examineNetwork };

function connect(source: SvmSource, options: ConnectOptions): NetworkReader {
  const { store, progress, timing, endpointTiming, userAgent, signal, notice } = options;
  const { network, routers, offramps } = source;
  const { selector } = network;
  const chain = createChain(source, {
    userAgent,
    signal,
    notice,
    ...(endpointTiming && { timing: endpointTiming }),
  });
  const book = progress.book as ProgramBook;
  const lists = createSignatureLists(chain);
  let rmnRemotes: ReadonlyMap<string, string> = new Map();
  let lacksAttempts = false;
  const offRampNames = () =>
    [...book.contracts].flatMap(([name, { role }]) => (role === 'offRamp' ? [name] : []));
  const reader = createSlotReader({ network, chain, book, lists, rmnRemotes: () => rmnRemotes });
  const follower = createHeadFollower({ chain, reader, progress });
  const check = createCompletenessCheck({
    network,
    hasStart: source.start !== null,
    chain,
    store,
    progress,
    book,
  });
  const manualExecution = createManualExecutionChores({ selector, chain, store, progress, book });

  const begin = async (node: ChainNode): Promise<Beginning> => {
    const head = await node.head();
    rmnRemotes = await readRouters(node, routers, selector, head.slot);
    const newRouters = routers.filter((router) => !book.contracts.has(router));
    const known = new Set(programsOf(book.contracts.values()));
    const newOffRamps = offramps.filter((offRamp) => !known.has(offRamp));
    const { contracts, refused } = await checkOffRamps(node, newOffRamps, routers, head.slot);
    const start = await startSlotOf(node, source.start, head);
    return {
      final: { number: head.slot, hash: slotHash(head.slot) },
      start,
      // Where the off-ramps are configured, the routers' events before the start are not needed to find them.
      deployed: offramps.length > 0 ? start : undefined,
      newRouters,
      contracts: [...newRouters.map(routerContract), ...contracts],
      refused,
      readAgain: lacksAttempts ? offRampNames() : [],
    };
  };

  return {
    load(state) {
      book.load(state.contracts, routers);
      lacksAttempts = state.lacksAttempts;
      lists.load(state.anchors);
    },
    begin: () => chain.run(begin),
    follow: () => follower.follow(),
    // Lists can only be read from their newest end: a range is one piece, which stops early.
    nextPiece: (owed) => owed,
    readHistory({ from, to, contracts }, extent) {
      const head = progress.final?.number ?? to;
      const isWhole = extent === 'whole';
      return chain.share(
        (node) =>
          reader.read(node, {
            from,
            to,
            head,
            contracts,
            pageSize: PAGE_SIZE,
            maxEntries: isWhole ? MAX_ENTRIES_OF_WHOLE : MAX_ENTRIES,
            isWhole,
            isHead: false,
          }),
        head,
        check.avoidedEndpoints(),
      );
    },
    chores: combineChores(
      manualExecution,
      check,
      createTokenChores({
        selector,
        ledger: store.index,
        read: (tokens) => {
          const tip = progress.tip?.number ?? 0;
          return chain.run((node) => readMintClaims(node, tokens, tip), tip);
        },
        timing,
      }),
    ),
    health: () => chain.health(),
    close: () => chain.close(),
  };
}
