/**
 * Reads what happened in some slots: the lists of the trusted programs' transactions, the transactions, and what they say.
 *
 * All comes from one endpoint. Where an endpoint's logs lack an event that the instructions prove, another one is asked for
 * the same transaction.
 */
import type { Fact } from '../../domain/facts.ts';
import type { Network } from '../../domain/networks.ts';
import type { Anchor, NamedContract, UnreadableLog } from '../../store/ledger/index-ledger.ts';
import type { HistoryReading } from '../chain/family.ts';
import { NodeError, RangeTooLargeError } from '../chain/faults.ts';
import type { Span } from '../chain/owed-ranges.ts';
import type { Chain, ChainNode, SignatureInfo, UnknownVersion } from './chain.ts';
import {
  readTransaction,
  slotHash,
  type TransactionReading,
  type TrustedPrograms,
} from './decode/transaction-facts.ts';
import {
  checkNamings,
  type ProgramBook,
  programsOf,
  type TrustedProgram,
  trustedPrograms,
} from './programs.ts';
import type { SignatureList, SignatureLists } from './signature-lists.ts';
import type { SolanaTransaction } from './transaction.ts';

export interface SlotQuery extends Span {
  /** The slot that the node must have reached. */
  readonly head: number;
  /** The programs or allowed off-ramps to read; null for all that are trusted. */
  readonly contracts: readonly string[] | null;
  readonly pageSize: number;
  /** Entries of each program's list, at most, beyond which it stops early. */
  readonly maxEntries: number;
  /** Stopping early is an error. */
  readonly isWhole: boolean;
  readonly isHead: boolean;
}

export interface SlotReader {
  read(node: ChainNode, query: SlotQuery): Promise<HistoryReading>;
}

export interface SlotReaderOptions {
  readonly network: Network;
  readonly chain: Chain;
  readonly book: ProgramBook;
  readonly lists: SignatureLists;
  /** The program to which each router hands copies of its events. */
  readonly rmnRemotes: () => ReadonlyMap<string, string>;
}

type Fetched = SolanaTransaction | UnknownVersion;

export function createSlotReader({ network, chain, book, lists, rmnRemotes }: SlotReaderOptions): SlotReader {
  /** In the order asked for, with the time of each block. */
  const fetch = async (
    node: ChainNode,
    entries: readonly SignatureInfo[],
  ): Promise<ReadonlyMap<string, Fetched>> => {
    const transactions = entries.length === 0 ? [] : await node.transactions(entries);
    const fetched = new Map<string, Fetched>();
    for (const transaction of transactions)
      fetched.set(transaction.signature, await withTime(node, transaction));
    return fetched;
  };

  /** The same. A transaction that the node refuses for its version is taken from another endpoint, where that has it. */
  const fetchReadable = async (
    node: ChainNode,
    entries: readonly SignatureInfo[],
  ): Promise<ReadonlyMap<string, Fetched>> => {
    const fetched = await fetch(node, entries);
    const unknown = entries.filter(({ signature }) => !('logs' in (fetched.get(signature) ?? {})));
    if (unknown.length === 0) return fetched;
    const others = await chain.secondOpinion(node, (other) => fetch(other, unknown));
    return new Map([...fetched, ...[...(others ?? [])].filter(([, other]) => 'logs' in other)]);
  };

  /** What a transaction says; where it contradicts itself, what it says on another endpoint. */
  const decode = async (
    node: ChainNode,
    transaction: SolanaTransaction,
    programs: TrustedPrograms,
  ): Promise<TransactionReading> => {
    const read = (given: SolanaTransaction) => readTransaction(given, network, programs, timeOf(given));
    const reading = read(transaction);
    if (!reading.isContradictory) return reading;
    const second = await chain.secondOpinion(node, async (other) => {
      const entry = {
        signature: transaction.signature,
        slot: transaction.slot,
        isFailed: transaction.isFailed,
      };
      const [fetched] = (await fetch(other, [entry])).values();
      return fetched && 'logs' in fetched ? read(fetched) : undefined;
    });
    return second && !second.isContradictory ? second : reading;
  };

  return {
    async read(node, query) {
      const trusted = new Map(book.contracts);
      const named = new Map<string, NamedContract>();
      const refused = new Set<string>();
      const listed = new Map<string, SignatureList>();
      const transactions = new Map<string, Fetched>();
      let readings = new Map<string, TransactionReading>();
      let from = query.from;

      // An off-ramp that is named here is read here too. It may name nothing further, but another transaction may.
      for (let isNew = true; isNew; ) {
        const addresses = addressesOf(query.contracts, query.contracts ? book.contracts : trusted);
        for (const address of addresses.filter((program) => !listed.has(program))) {
          const list = await lists.list(node, { ...query, address });
          listed.set(address, list);
          from = Math.max(from, list.from);
        }
        if (query.isWhole && from > query.from) {
          throw new RangeTooLargeError(
            `slots ${query.from} to ${query.to} have too many transactions for one step`,
          );
        }
        const programs = trustedPrograms(trusted.values(), rmnRemotes());
        const entries = entriesToFetch(listed, from, programs);
        const unread = entries.filter(({ signature }) => !transactions.has(signature));
        for (const [signature, fetched] of await fetchReadable(node, unread))
          transactions.set(signature, fetched);

        readings = new Map();
        for (const { signature } of entries) {
          const transaction = transactions.get(signature);
          if (!transaction || !('logs' in transaction)) continue;
          readings.set(signature, await decode(node, transaction, programs));
        }
        const namings = [...readings.values()].flatMap(({ namings }) => namings);
        const checked = await checkUnknown(node, namings, trusted, query.head);
        for (const refusal of checked.refused) refused.add(refusal);
        for (const contract of checked.contracts) {
          named.set(contract.address, contract);
          trusted.set(contract.address, contract.body as TrustedProgram);
        }
        isNew = checked.contracts.length > 0;
      }

      const anchors = [...listed].flatMap(([address, { entries }]) =>
        lists.confirm(
          address,
          entries.filter(({ signature, slot }) => slot >= from && transactions.has(signature)),
          query.isHead,
        ),
      );
      return summary(query, from, listed, transactions, readings, {
        contracts: [...named.values()],
        refused: [...refused],
        anchors,
      });
    },
  };
}

/** Checks namings of pairs that are not trusted yet. */
async function checkUnknown(
  node: ChainNode,
  namings: TransactionReading['namings'],
  trusted: ReadonlyMap<string, TrustedProgram>,
  head: number,
) {
  const known = [...trusted.values()];
  const unknown = namings.filter(
    ({ router, offRamp, sourceSelector }) =>
      !known.some(
        (contract) =>
          contract.role === 'offRamp' &&
          contract.program === offRamp &&
          contract.router === router &&
          contract.source === sourceSelector.toString(),
      ),
  );
  return unknown.length === 0 ? { contracts: [], refused: [] } : checkNamings(node, unknown, head);
}

/** Names of the ledger, programs or allowed off-ramps, as addresses of programs. */
function addressesOf(
  contracts: readonly string[] | null,
  book: ReadonlyMap<string, TrustedProgram>,
): readonly string[] {
  if (contracts === null) return programsOf(book.values());
  return [...new Set(contracts.map((address) => book.get(address)?.program ?? address))];
}

/** A failed transaction of a router has sent nothing; one of an off-ramp may be an attempt to execute. */
function entriesToFetch(
  listed: ReadonlyMap<string, SignatureList>,
  from: number,
  programs: TrustedPrograms,
): readonly SignatureInfo[] {
  const chosen = new Map<string, SignatureInfo>();
  for (const [program, { entries }] of listed) {
    for (const entry of entries) {
      if (entry.slot < from || (entry.isFailed && programs.isRouter(program))) continue;
      chosen.set(entry.signature, entry);
    }
  }
  return [...chosen.values()];
}

/** The time of its block, from the node where the transaction does not have it. */
async function withTime(node: ChainNode, transaction: Fetched): Promise<Fetched> {
  if (!('logs' in transaction) || transaction.blockTime !== null) return transaction;
  const blockTime = await node.timeAt(transaction.slot);
  if (blockTime === undefined)
    throw new NodeError(`${node.name}: it has no time for slot ${transaction.slot}`);
  return { ...transaction, blockTime };
}

function timeOf({ blockTime }: SolanaTransaction): string {
  return new Date((blockTime ?? 0) * 1_000).toISOString();
}

function summary(
  { to }: SlotQuery,
  from: number,
  listed: ReadonlyMap<string, SignatureList>,
  transactions: ReadonlyMap<string, Fetched>,
  readings: ReadonlyMap<string, TransactionReading>,
  rest: {
    readonly contracts: readonly NamedContract[];
    readonly refused: readonly string[];
    readonly anchors: readonly Anchor[];
  },
): HistoryReading {
  const facts: Fact[] = [];
  const unreadable: UnreadableLog[] = [];
  let foreign = 0;
  let routerBlock: number | undefined;
  for (const [signature, reading] of readings) {
    const transaction = transactions.get(signature);
    const slot = transaction && 'slot' in transaction ? transaction.slot : to;
    facts.push(...reading.facts);
    unreadable.push(...reading.unreadable);
    foreign += reading.foreign;
    if (reading.hasRouterEvent) routerBlock = Math.min(routerBlock ?? slot, slot);
  }
  unreadable.push(...unknownVersions(listed, from, transactions));
  return {
    ...rest,
    facts,
    unreadable,
    foreign,
    routerBlock,
    from,
    isFinal: true,
    blocks: [],
    items: facts.length + unreadable.length,
  };
}

function unknownVersions(
  listed: ReadonlyMap<string, SignatureList>,
  from: number,
  transactions: ReadonlyMap<string, Fetched>,
): readonly UnreadableLog[] {
  const logs = new Map<string, UnreadableLog>();
  for (const [address, { entries }] of listed) {
    for (const { signature, slot } of entries) {
      const transaction = transactions.get(signature);
      if (slot < from || !transaction || 'logs' in transaction) continue;
      logs.set(signature, {
        blockNumber: slot,
        blockHash: slotHash(slot),
        transactionHash: signature,
        logIndex: 0,
        address,
        topics: [],
        data: '',
        reason: transaction.problem,
      });
    }
  }
  return [...logs.values()];
}
