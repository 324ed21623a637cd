/**
 * Reads what happened in some slots: the lists of the trusted programs' transactions, the transactions, and what they say.
 *
 * All comes from one endpoint. Where an endpoint's logs lack an event that the instructions prove, another one is asked for
 * the same transaction. What a transaction says counts when a second endpoint has it too.
 */
import type { Fact } from '../../domain/facts.ts';
import type { RegisteredContract, UnreadableLog } from '../../store/ledger/index-ledger.ts';
import type { HistoryReading } from '../engine/block-readings.ts';
import type { Claim, Confirmation, Opinion } from '../engine/confirmation.ts';
import { NodeError, RangeTooLargeError } from '../engine/faults.ts';
import type { Span } from '../engine/pending-ranges.ts';
import {
  type OffRampRegistration,
  readTransaction,
  slotHash,
  type TransactionReading,
  type TrustedPrograms,
} from './decode/transaction-facts.ts';
import type { ChainNode, SignatureInfo, UnknownVersion } from './node.ts';
import {
  agreedCheck,
  checkRegistrations,
  programsOf,
  type SvmNetwork,
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
  /** Everything is taken from the node alone, for a comparison with what others read. */
  readonly isOpinion: boolean;
}

export type ReadSlots = (node: ChainNode, query: SlotQuery) => Promise<HistoryReading>;

type Witnessed = { readonly witness: ChainNode };
type Fetched = (SolanaTransaction | UnknownVersion) & Witnessed;

/** @param rmnRemotes the program to which each router hands copies of its events */
export function createSlotReader(
  { source: { network }, chain, registry, confirmation, progress }: SvmNetwork,
  lists: SignatureLists,
  rmnRemotes: () => ReadonlyMap<string, string>,
): ReadSlots {
  let isAloneLogged = false;
  const logAlone = (witness: string, what: string) => {
    const line = `No other endpoint keeps what would confirm ${what}: ${witness} is trusted alone for what is that old`;
    if (!isAloneLogged) progress.log(line, 'warn');
    isAloneLogged = true;
  };
  const read = (transaction: SolanaTransaction, programs: TrustedPrograms) =>
    readTransaction(transaction, network, programs, timeOf(transaction));

  /** In the order asked for, with the time of each block. */
  const fetch = async (node: ChainNode, entries: readonly SignatureInfo[]) => {
    const transactions = entries.length === 0 ? [] : await node.transactions(entries);
    const fetched = new Map<string, Fetched>();
    for (const transaction of transactions)
      fetched.set(transaction.signature, { ...(await withTime(node, transaction)), witness: node });
    return fetched;
  };

  /** The same. A transaction that the node rejects for its version is taken from another endpoint, where that has it. */
  const fetchReadable = async (node: ChainNode, entries: readonly SignatureInfo[]) => {
    const fetched = await fetch(node, entries);
    const unknown = entries.filter(({ signature }) => !('logs' in (fetched.get(signature) ?? {})));
    if (unknown.length === 0) return fetched;
    const others = await chain.secondOpinion(node, (other) => fetch(other, unknown));
    return new Map([...fetched, ...[...(others ?? [])].filter(([, other]) => 'logs' in other)]);
  };

  /** What a transaction says; where it contradicts itself, what it says on another endpoint. */
  const decode = async (
    transaction: SolanaTransaction & Witnessed,
    programs: TrustedPrograms,
    isOpinion: boolean,
  ): Promise<Decoded> => {
    const { witness, signature } = transaction;
    const reading = read(transaction, programs);
    if (!reading.isContradictory) return { transaction, reading, witness };
    if (isOpinion) throw new NodeError(`${witness.name}: it has ${signature} in part`);
    const second = await chain.secondOpinion(witness, async (other) => {
      const [fetched] = (await fetch(other, [transaction])).values();
      return fetched && 'logs' in fetched
        ? { transaction, reading: read(fetched, programs), witness: fetched.witness }
        : undefined;
    });
    return second && !second.reading.isContradictory ? second : { transaction, reading, witness };
  };

  return async (node, query) => {
    const trusted = new Map(registry.contracts);
    const named = new Map<string, RegisteredContract>();
    const rejected = new Set<string>();
    const listed = new Map<string, SignatureList>();
    const transactions = new Map<string, Fetched>();
    let decoded: Decoded[] = [];
    let programs = trustedPrograms(trusted.values(), rmnRemotes());
    const { isOpinion } = query;
    let { from } = query;

    // An off-ramp that is named here is read here too. It may name nothing further, but another transaction may.
    for (let isNew = true; isNew; ) {
      const addresses = addressesOf(query.contracts, query.contracts ? registry.contracts : trusted);
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
      programs = trustedPrograms(trusted.values(), rmnRemotes());
      const entries = entriesToFetch(listed, from, programs);
      const unread = entries.filter(({ signature }) => !transactions.has(signature));
      for (const [signature, fetched] of await (isOpinion ? fetch : fetchReadable)(node, unread))
        transactions.set(signature, fetched);

      decoded = [];
      for (const { signature } of entries) {
        const transaction = transactions.get(signature);
        if (!transaction || !('logs' in transaction)) continue;
        decoded.push(await decode(transaction, programs, isOpinion));
      }
      const unknown = unknownRegistrations(
        decoded.flatMap(({ reading }) => reading.registrations),
        trusted,
      );
      const check = (one: ChainNode) => checkRegistrations(one, unknown, query.head);
      const checked = isOpinion
        ? await check(node)
        : await agreedCheck(confirmation, node, unknown, query.head, check);
      for (const reason of checked.rejected) rejected.add(reason);
      for (const contract of checked.contracts) {
        named.set(contract.address, contract);
        trusted.set(contract.address, contract.body as TrustedProgram);
      }
      isNew = checked.contracts.length > 0;
    }

    const unconfirmed = isOpinion
      ? []
      : await confirmTransactions(confirmation, decoded, logAlone, async (other, found) => {
          const transaction = await withTime(other, found);
          return 'logs' in transaction ? read(transaction, programs) : undefined;
        });
    const anchors = [...listed].flatMap(([address, { entries }]) =>
      lists.confirm(
        address,
        entries.filter(({ signature, slot }) => slot >= from && transactions.has(signature)),
        query.isHead,
      ),
    );
    const readings = decoded.map(({ reading }) => reading);
    const facts: readonly Fact[] = readings.flatMap((reading) => reading.facts);
    const unreadable = [
      ...readings.flatMap((reading) => reading.unreadable),
      ...unknownVersions(listed, from, transactions),
    ];
    const routerSlots = decoded
      .filter((one) => one.reading.hasRouterEvent)
      .map((one) => one.transaction.slot);
    return {
      facts,
      unreadable,
      unconfirmed,
      contracts: [...named.values()],
      rejected: [...rejected],
      anchors,
      untrusted: readings.reduce((sum, { untrusted }) => sum + untrusted, 0),
      routerBlock: routerSlots.length === 0 ? undefined : Math.min(...routerSlots),
      from,
      isFinal: true,
      blocks: [],
      items: facts.length + unreadable.length,
    };
  };
}

/** Registrations of pairs that are not trusted yet. */
function unknownRegistrations(
  registrations: readonly OffRampRegistration[],
  trusted: ReadonlyMap<string, TrustedProgram>,
): readonly OffRampRegistration[] {
  const keyOf = (router: string, program: string, source: string) => `${router} ${program} ${source}`;
  const known = new Set(
    [...trusted.values()].map((one) => one.role === 'offRamp' && keyOf(one.router, one.program, one.source)),
  );
  return registrations.filter(
    ({ router, offRamp, sourceSelector }) => !known.has(keyOf(router, offRamp, sourceSelector.toString())),
  );
}

/** Names of the ledger, programs or allowed off-ramps, as addresses of programs. */
function addressesOf(contracts: readonly string[] | null, registry: ReadonlyMap<string, TrustedProgram>) {
  if (contracts === null) return programsOf(registry.values());
  return [...new Set(contracts.map((address) => registry.get(address)?.program ?? address))];
}

/** A failed transaction of a router has sent nothing; one of an off-ramp may be an attempt to execute. */
function entriesToFetch(listed: ReadonlyMap<string, SignatureList>, from: number, programs: TrustedPrograms) {
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
async function withTime<T extends SolanaTransaction | UnknownVersion>(node: ChainNode, transaction: T) {
  if (!('logs' in transaction) || transaction.blockTime !== null) return transaction;
  const blockTime = await node.timeAt(transaction.slot);
  if (blockTime === undefined)
    throw new NodeError(`${node.name}: it has no time for slot ${transaction.slot}`);
  return { ...transaction, blockTime };
}

function timeOf({ blockTime }: SolanaTransaction): string {
  return new Date((blockTime ?? 0) * 1_000).toISOString();
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

// ---- What transactions say, held against what they say on a second endpoint

/** A transaction, what it says, and the endpoint that has shown it. */
interface Decoded {
  readonly transaction: Pick<SolanaTransaction, 'signature' | 'slot'>;
  readonly reading: TransactionReading;
  readonly witness: ChainNode;
}

interface TransactionClaim extends Claim {
  readonly signature: string;
  readonly slot: number;
  readonly said: string;
}

/** What it says of a transaction that an endpoint has; undefined where it cannot be read. */
type ReadFound = (
  other: ChainNode,
  found: Exclude<Awaited<ReturnType<ChainNode['find']>>[number], string>,
) => Promise<TransactionReading | undefined>;

/**
 * Confirms every transaction that says something. Throws a NodeError where one is denied. Returns the slots of those that
 * only one endpoint has shown while others were away.
 */
async function confirmTransactions(
  confirmation: Confirmation<ChainNode>,
  decoded: readonly Decoded[],
  logAlone: (witness: string, what: string) => void,
  readFound: ReadFound,
): Promise<NonNullable<HistoryReading['unconfirmed']>> {
  const opinionsOn = async (other: ChainNode, claims: readonly TransactionClaim[]) => {
    const found = await other.find(claims);
    return Promise.all(
      claims.map(async ({ said }, index): Promise<Opinion> => {
        const own = found[index];
        if (own === 'absent') return 'denies';
        const reading = own === undefined || own === 'unknown' ? undefined : await readFound(other, own);
        if (!reading) return 'lacks';
        if (sayingOf(reading) === said) return 'has';
        // An endpoint without logs, inner instructions or stack heights has a part of what a transaction says.
        return reading.isContradictory || reading.unreadable.length > 0 ? 'lacks' : 'denies';
      }),
    );
  };

  const unconfirmed = new Map<number, string>();
  for (const witness of new Set(decoded.map((one) => one.witness))) {
    const claims = decoded
      .filter(
        (one) => one.witness === witness && one.reading.facts.length + one.reading.registrations.length > 0,
      )
      .map(({ transaction: { signature, slot }, reading }) => ({
        signature,
        slot,
        said: sayingOf(reading),
        what: `the transaction ${signature} in slot ${slot}`,
      }));
    const minimumHead = Math.max(...claims.map(({ slot }) => slot));
    const left = await confirmation.confirm(witness, claims, { opinionsOn, minimumHead });
    // Where all others were asked and none keeps the slot, none ever will.
    for (const { slot, what } of left.claims)
      if (left.areAllAsked) logAlone(witness.name, what);
      else
        unconfirmed.set(
          slot,
          `${witness.name} alone has shown ${what}; it is recorded, and is to be confirmed`,
        );
  }
  return [...unconfirmed].map(([number, reason]) => ({ number, reason }));
}

/** What endpoints may have or not: old nodes lack compute units and stack heights, and lines are counted by what is there. */
const optionalKeys: ReadonlySet<string> = new Set(['logIndex', 'sendLogIndex', 'gasUsed', 'roles']);

/** The same text for the same facts. */
export function sayingOf({ facts, registrations }: Pick<TransactionReading, 'facts' | 'registrations'>) {
  return JSON.stringify([facts, registrations], (key, value: unknown) => {
    if (optionalKeys.has(key)) return undefined;
    return typeof value === 'bigint' ? value.toString() : value;
  });
}
