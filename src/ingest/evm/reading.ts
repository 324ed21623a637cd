/**
 * Reads a range of blocks: fetches logs, finds the contracts that the router registered in them, checks that the logs
 * are complete, and decodes them.
 *
 * Nothing is stored here. The result is what one step of a worker records.
 */
import { groupBy } from '../../store/group-by.ts';
import type { BlockId, RegisteredContract } from '../../store/ledger/index-ledger.ts';
import type { Reading } from '../engine/block-readings.ts';
import type { Claim, Confirmation, Opinion } from '../engine/confirmation.ts';
import type { ContractRegistry } from '../engine/contract-registry.ts';
import { NodeError, RangeTooLargeError, RequestRejectedError } from '../engine/faults.ts';
import { type BloomTrust, mayHaveLogs } from './bloom.ts';
import type { RegistryLog } from './checks/registry-log.ts';
import { watchedTopics } from './contracts/abi.ts';
import { agreedRegistrations, identifyTogether } from './contracts/contract-agreement.ts';
import { type GenuineContract, type Registration, registrationsIn } from './contracts/contracts.ts';
import type { Decoder } from './decode/decoder.ts';
import { sortLogs } from './rpc/answers.ts';
import type { Block, Chain, ChainLog, ChainNode, Hex } from './rpc/chain.ts';
import { AddressRequiredError } from './rpc/log-queries.ts';

/** What some blocks said, how many logs it took, and in which blocks trusted contracts have logs. */
export interface LogReading extends Reading {
  readonly logs: number;
  readonly blocks: readonly BlockId[];
}

export interface ReadRequest {
  readonly from: number;
  readonly to: number;
  /** Only logs of these; null: of all. */
  readonly contracts: readonly Hex[] | null;
  /** Whether to ask for the logs of the trusted contracts by their addresses, where those are not too many. */
  readonly isByAddress?: boolean;
  /** Whether other requests come before those for logs. */
  readonly isBulk?: boolean;
  /** The headers of all these blocks, where their logs are to be checked against them. */
  readonly headers?: readonly Block[];
  /** Whether the blocks may still be abandoned: what they name is then tied to them. */
  readonly mayBeAbandoned: boolean;
  /** Blocks that these replace: contracts registered in them are no longer known, and may be registered again. */
  readonly orphaned?: readonly string[];
}

/**
 * Addresses in one filter. With more, the topics alone are asked for: one answer with logs of other contracts is cheaper
 * than several without.
 */
const MAX_ADDRESSES = 100;

export type EvmContractRegistry = ContractRegistry<Hex, GenuineContract>;

export type BlockReader = ReturnType<typeof createBlockReader>;

export function createBlockReader(
  chain: Chain,
  registry: EvmContractRegistry,
  decoder: Decoder,
  registryLog: RegistryLog,
  bloomTrust: BloomTrust,
  confirmLogs: ConfirmLogs,
) {
  const { network } = chain;

  /**
   * Contracts named by these, and by those in turn, that the registry does not have. `doubt`: whether a node may not know yet
   * what was named just now, and whether contracts on which endpoints do not agree are left out, to be found again in
   * the routers' history.
   */
  const adopt = async (
    node: ChainNode,
    registrations: readonly (Registration & { readonly blockHash: Hex | null })[],
    known: Map<Hex, GenuineContract>,
    doubt: 'new' | 'old' | 'left out',
  ) => {
    const unknown = registrations.filter(({ address }) => !known.has(address));
    if (unknown.length === 0) return { contracts: [], rejected: [], disputed: [] };
    const { contracts, rejected, disputed } = await identifyTogether(chain, node, unknown, network);
    await registryLog.note({ disputed });
    const missing = rejected.find(({ isSilent }) => isSilent);
    if (doubt === 'new' && missing) {
      const { role, address } = missing.registration;
      throw new NodeError(`${node.name} does not know the ${role} ${address} yet: ${missing.reason}`);
    }
    const [dispute] = disputed;
    if (doubt !== 'left out' && dispute) throw new NodeError(dispute.detail);
    // Contracts that are reached through a named one stand and fall with it.
    const blockHashes = new Map(unknown.map(({ address, blockHash }) => [address, blockHash]));
    for (const { address, namedBy } of contracts) {
      if (!blockHashes.has(address)) blockHashes.set(address, blockHashes.get(namedBy) ?? null);
    }
    const named = contracts
      .filter(({ address }) => !known.has(address))
      .map((contract) => ({
        address: contract.address,
        namedBy: contract.role === 'router' ? null : contract.namedBy,
        blockHash: blockHashes.get(contract.address) ?? null,
        body: contract,
      }));
    for (const contract of contracts) known.set(contract.address, contract);
    const agreed = [...contracts, ...rejected.map(({ registration }) => registration)];
    await registryLog.note({ rejected, agreed: agreed.map(({ address }) => address) });
    return {
      contracts: named,
      disputed,
      rejected: rejected.map(
        ({ registration, reason }) => `${registration.role} ${registration.address}: ${reason}`,
      ),
    };
  };

  /** Contracts that are named outside of what is read now, by views or at an earlier time. */
  const adoptNamed = (node: ChainNode, registrations: readonly Registration[]) => {
    const named = registrations.map((registration) => ({ ...registration, blockHash: null }));
    return adopt(node, named, new Map(registry.contracts), 'left out');
  };

  return {
    async read(node: ChainNode, request: ReadRequest): Promise<LogReading> {
      const { from, to, contracts: only, isByAddress, isBulk, headers, mayBeAbandoned } = request;
      const { orphaned = [] } = request;
      const blocks = new Map((headers ?? []).map((header) => [header.hash, header]));
      const known = new Map(registry.without(orphaned));
      const readLogs = async (addresses: readonly Hex[] | null): Promise<readonly ChainLog[]> => {
        const found = await node.logs({
          fromBlock: from,
          toBlock: to,
          topics: watchedTopics,
          ...(addresses && { addresses }),
          ...(isBulk && { isBulk }),
        });
        if (headers) rejectOtherBlocks(node, found, blocks);
        // Of blocks that may be abandoned the headers are asked for: they show that the logs are of this chain.
        return mayBeAbandoned ? found.map(({ blockTimestamp, ...log }) => log) : found;
      };
      const isPreferred = isByAddress && known.size <= MAX_ADDRESSES;
      const isNeeded = node.logLimits.needsAddress;
      let trusted = only === null && (isPreferred || isNeeded) ? [...known.keys()] : null;
      let logs = await readLogs(only ?? trusted).catch((error: unknown) => {
        if (!(error instanceof AddressRequiredError) || only !== null || trusted !== null) throw error;
        trusted = [...known.keys()];
        return readLogs(trusted);
      });

      const contracts: RegisteredContract[] = [];
      const rejected: string[] = [];
      const searched = new Set<ChainLog>();
      for (;;) {
        // A contract that was named in this range may have named others in it.
        const found = logs.flatMap((log) => {
          const emitter = known.get(log.address);
          return emitter && !searched.has(log) ? [{ log, emitter }] : [];
        });
        for (const { log } of found) searched.add(log);
        const trustedLogs = found.map(({ log }) => log);
        await confirmLogs(node, trustedLogs, !mayBeAbandoned);
        const registrations = found.flatMap(({ log, emitter }) =>
          registrationsIn(log, emitter).map((registration) => ({
            ...registration,
            blockNumber: log.blockNumber,
            blockHash: mayBeAbandoned ? log.blockHash : null,
          })),
        );
        await registryLog.note({ registrations });
        const adopted = await adopt(node, registrations, known, mayBeAbandoned ? 'new' : 'old');
        rejected.push(...adopted.rejected);
        if (adopted.contracts.length === 0) break;
        contracts.push(...adopted.contracts);
        if (trusted) {
          const more = await readLogs(adopted.contracts.map(({ address }) => address as Hex));
          logs = sortLogs([...logs, ...more]);
        }
      }
      // Contracts that were named in these blocks may have logs here too, and the blocks are not read again for them.
      if (headers && (await bloomTrust.allows(logs, blocks)))
        await rejectMissingLogs(chain, node, logs, headers, only ?? [...known.keys()]);

      const decoded = await decoder.decode(node, logs, known, blocks);
      return {
        facts: decoded.facts,
        contracts,
        unreadable: decoded.unreadable.map(({ log, reason }) => ({ ...log, reason })),
        untrusted: decoded.untrusted,
        logs: logs.length,
        blocks: blocksOf(logs.filter(({ address }) => known.has(address))),
        routerBlock: logs.find((log) => known.get(log.address)?.role === 'router')?.blockNumber,
        rejected,
      };
    },

    /** The routers themselves, and the contracts that they name at present. */
    async readCurrent(node: ChainNode, routers: readonly Hex[]) {
      const named = await agreedRegistrations(chain, node, routers);
      await registryLog.note({
        registrations: named.map((registration) => ({ ...registration, blockNumber: null })),
      });
      const ofRouters = routers.map((address) => ({ address, role: 'router' as const, namedBy: address }));
      const current = await adoptNamed(node, [...ofRouters, ...named]);
      const unknownRouter = routers.find(
        (router) => !current.contracts.some(({ address }) => address === router),
      );
      if (unknownRouter) {
        const dispute = current.disputed.find(({ registration }) => registration.address === unknownRouter);
        if (dispute) throw new NodeError(dispute.detail);
        const reason = current.rejected.find((text) => text.includes(unknownRouter)) ?? unknownRouter;
        throw new NodeError(
          `${node.name}: ${reason}. Check \`routers\` in the configuration`,
          'configuration',
        );
      }
      return current;
    },

    /** Contracts that an earlier version did not know, identified again. */
    identifyAgain: adoptNamed,
  };
}

function blocksOf(logs: readonly ChainLog[]): readonly BlockId[] {
  const hashes = new Map(logs.map(({ blockHash, blockNumber }) => [blockHash, blockNumber]));
  return [...hashes].map(([hash, number]) => ({ number, hash }));
}

/** Logs of a block that is not the one at this height in the node's own chain. */
function rejectOtherBlocks(node: ChainNode, logs: readonly ChainLog[], blocks: ReadonlyMap<Hex, Block>) {
  for (const { blockHash, blockNumber } of logs) {
    if (blocks.get(blockHash)?.number === blockNumber) continue;
    throw new NodeError(`${node.name} shows logs of block ${blockNumber} that are not of its own block`);
  }
}

/**
 * Asks again for each block whose bloom filter may contain our logs: from the same node, then from another endpoint, or by
 * receipts where there is no other. If any of them has more logs than the answer for the range, that answer was incomplete.
 * Otherwise the filter was a false positive, or all logs are there.
 */
async function rejectMissingLogs(
  chain: Chain,
  node: ChainNode,
  logs: readonly ChainLog[],
  headers: readonly Block[],
  emitters: readonly Hex[],
): Promise<void> {
  const trusted = new Set(emitters);
  const shown = new Map<Hex, number>();
  for (const { address, blockHash } of logs) {
    if (trusted.has(address)) shown.set(blockHash, (shown.get(blockHash) ?? 0) + 1);
  }
  const suspects = headers.filter(({ logsBloom }) => mayHaveLogs(logsBloom, emitters, watchedTopics));
  const highest = suspects.at(-1);
  if (!highest) return;
  const hashes = suspects.map(({ hash }) => hash);
  const rejectWhereMore = (others: readonly (readonly ChainLog[])[]) => {
    for (const [index, { hash, number }] of suspects.entries()) {
      const found = (others[index] ?? []).filter(({ address }) => trusted.has(address)).length;
      if (found > (shown.get(hash) ?? 0))
        throw new NodeError(`${node.name} left out logs of block ${number}`);
    }
  };
  rejectWhereMore(await node.logsOfBlocks(hashes, watchedTopics, emitters));
  const second = await chain.secondOpinion(
    node,
    async (other) => {
      // Some show no logs of blocks that they do not have, instead of saying so.
      if (!(await other.blockByHash(highest.hash))) {
        throw new NodeError(`${other.name} has no block ${highest.hash}, which ${node.name} has`);
      }
      return other.logsOfBlocks(hashes, watchedTopics, emitters);
    },
    highest.number,
  );
  rejectWhereMore(second ?? (await node.receiptLogs(hashes, watchedTopics)) ?? []);
}

// ---- Logs of trusted contracts, held against the logs of a second endpoint. An endpoint that has the block and not the logs
// denies them. Where no other can tell, because it is away or no longer has logs that old, the logs count, and their blocks
// are noted for a review (checks/unconfirmed-blocks.ts).

type ConfirmLogs = ReturnType<typeof createLogConfirmation>;

/** The logs of a block that an endpoint has shown. */
interface LogClaim extends Claim {
  readonly number: number;
  readonly hash: Hex;
  readonly logs: readonly ChainLog[];
}

/** @param noteUnconfirmed called with blocks whose logs only one endpoint has shown, before they are stored */
export function createLogConfirmation(
  confirmation: Confirmation<ChainNode>,
  noteUnconfirmed: (witness: string, blocks: readonly BlockId[]) => Promise<void>,
) {
  /** How many blocks endpoints have accepted in one request, by name, where they rejected more. */
  const longest = new Map<string, number>();

  /** Logs of these blocks by as few requests as the endpoint allows. Those that it does not show are left. */
  const notShown = async (other: ChainNode, claims: readonly LogClaim[]): Promise<readonly LogClaim[]> => {
    const addresses = [...new Set(claims.flatMap(({ logs }) => logs.map(({ address }) => address)))];
    const left: LogClaim[] = [];
    let waiting = claims;
    for (;;) {
      const [first] = waiting;
      if (!first) return left;
      const end = first.number + (longest.get(other.name) ?? Infinity);
      const span = waiting.filter(({ number }) => number < end);
      const toBlock = span.at(-1)?.number ?? first.number;
      const request = { fromBlock: first.number, toBlock, topics: watchedTopics, addresses, isBulk: true };
      try {
        const shown = keysOf(await other.logs(request));
        left.push(...span.filter((claim) => !isShown(claim, shown)));
      } catch (error) {
        if (!(error instanceof RangeTooLargeError)) throw error;
        const blocks = toBlock - first.number + 1;
        if (blocks > 1) {
          longest.set(other.name, Math.max(1, Math.min(error.acceptedBlocks ?? Infinity, blocks >> 1)));
          continue;
        }
        left.push(first);
      }
      waiting = waiting.slice(span.length);
    }
  };

  /** By the block's hash: whether the endpoint has the block, and if it does not show the logs, whether it has any. */
  const opinionOn = async (other: ChainNode, claim: LogClaim, isFinal: boolean): Promise<Opinion> => {
    const { number, hash, logs } = claim;
    const header = await other.blockByHash(hash);
    if (!header) {
      if (!isFinal) return 'lacks';
      const [block] = await other.blocks([number]);
      return block?.hash === hash ? 'lacks' : 'denies';
    }
    const addresses = [...new Set(logs.map(({ address }) => address))];
    const [found = []] = await other.logsOfBlocks([hash], watchedTopics, addresses);
    if (isShown(claim, keysOf(found))) return 'has';
    const [inReceipts = []] = (await other.receiptLogs([hash], watchedTopics)) ?? [];
    if (isShown(claim, keysOf(inReceipts))) return 'has';
    if (found.length > 0 || inReceipts.length > 0) return 'denies';
    // One that has pruned its logs answers with none, although the block's filter says that there are some.
    const isEmpty = /^0x0*$/.test(header.logsBloom);
    const hasLogs = await other.hasLogs(hash);
    const mayHave = ({ address, topics }: ChainLog) =>
      topics.every((topic) => mayHaveLogs(header.logsBloom, [address], [topic]));
    const lacks = hasLogs === undefined ? logs.every(mayHave) : !hasLogs && !isEmpty;
    return lacks ? 'lacks' : 'denies';
  };

  const opinionsOn = async (other: ChainNode, claims: readonly LogClaim[], isFinal: boolean) => {
    const opinions = new Map<Hex, Opinion>();
    try {
      const hidden = isFinal ? await notShown(other, claims) : claims;
      for (const claim of claims) if (!hidden.includes(claim)) opinions.set(claim.hash, 'has');
      for (const claim of hidden) opinions.set(claim.hash, await opinionOn(other, claim, isFinal));
    } catch (error) {
      // It works, and does not answer for these blocks.
      if (!(error instanceof RequestRejectedError)) throw error;
    }
    return claims.map(({ hash }) => opinions.get(hash) ?? 'lacks');
  };

  /**
   * Throws a NodeError where another endpoint denies one of these logs.
   *
   * @param isFinal whether the blocks cannot be abandoned any more
   */
  return async (node: ChainNode, logs: readonly ChainLog[], isFinal: boolean): Promise<void> => {
    const claims = claimsOf(logs);
    const unconfirmed = await confirmation.confirm(node, claims, {
      opinionsOn: (other, left) => opinionsOn(other, left, isFinal),
      minimumHead: isFinal ? claims.at(-1)?.number : undefined,
      isNew: !isFinal,
    });
    const blocks = unconfirmed.claims.map(({ number, hash }) => ({ number, hash }));
    if (blocks.length > 0) await noteUnconfirmed(node.name, blocks);
  };
}

function claimsOf(shown: readonly ChainLog[]): readonly LogClaim[] {
  return [...groupBy(shown, ({ blockHash }) => blockHash)].map(([hash, logs]) => {
    const number = logs[0]?.blockNumber ?? 0;
    return { number, hash, logs, what: `logs of block ${number}` };
  });
}

/** What a log says. Its index is left out: some nodes count it in the block, some in the transaction. */
export function keyOf({ blockHash, transactionHash, address, topics, data }: ChainLog): string {
  return [blockHash, transactionHash, address, ...topics, data].join(' ');
}

function keysOf(logs: readonly ChainLog[]): ReadonlySet<string> {
  return new Set(logs.map(keyOf));
}

function isShown({ logs }: LogClaim, shown: ReadonlySet<string>): boolean {
  return logs.every((log) => shown.has(keyOf(log)));
}
