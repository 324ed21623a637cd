/**
 * The endpoints of a Solana network, and what the indexer asks of them. All of it is of finalized slots, and every answer is
 * checked for shape and plausibility.
 */
import { parseAddress, parseTransactionHash } from '../../domain/addresses.ts';
import type { Network } from '../../domain/networks/networks.ts';
import { RequestRejectedError } from '../engine/faults.ts';
import {
  createAnswerReader,
  fieldsOf,
  listOf,
  UnreadableDataError,
} from '../engine/json-rpc/answer-reader.ts';
import { type Endpoint, EndpointError, type RpcAnswer, type RpcCall } from '../engine/json-rpc/endpoint.ts';
import {
  createEndpointPool,
  type EndpointPool,
  type EndpointPoolOptions,
  type PooledNodeOptions,
} from '../engine/json-rpc/endpoint-pool.ts';
import { MAX_AHEAD_MS } from '../engine/timing.ts';
import type { Account } from './accounts.ts';
import { decodeBase64, readable } from './decode/borsh.ts';
import { createRepeatingEndpoint } from './repeated-requests.ts';
import type { SvmSource } from './settings.ts';
import { classifySvmRpcError, isPassing } from './svm-rpc-errors.ts';
import { countOf, parseTransaction, textOf } from './transaction.ts';

/** One endpoint for the duration of one piece of work. */
export type ChainNode = ReturnType<typeof createNode>;
export type Chain = EndpointPool<ChainNode>;

export function createChain(source: SvmSource, options: EndpointPoolOptions): Chain {
  return createEndpointPool(
    source,
    classifySvmRpcError,
    (endpoint, nodeOptions) => createNode(endpoint, source.network, nodeOptions),
    options,
  );
}

/** An entry of the list of an address's transactions. */
export interface SignatureInfo {
  readonly signature: string;
  readonly slot: number;
  readonly isFailed: boolean;
}

export interface FinalizedHead {
  readonly slot: number;
  /** Seconds since 1970. */
  readonly timestamp: number;
}

export interface SignatureQuery {
  readonly address: string;
  /** Only older ones than this signature. */
  readonly before?: string;
  readonly limit: number;
  /** A slot that the node must have reached: one that lags would answer with a shorter list. */
  readonly minContextSlot: number;
}

/** A transaction that the node has and rejects, for its version. */
export interface UnknownVersion {
  readonly signature: string;
  /** Which version, and what to do. */
  readonly problem: string;
}

const FINALIZED = { commitment: 'finalized' };
/** Version 0 has lookup tables; version 1 has none, and up to 4,096 bytes. */
export const MAX_TRANSACTION_VERSION = 1;
const REJECTED_VERSION = /version \((\d{1,3})\)/i;
/** Accounts that nodes give in one answer. */
const MAX_ACCOUNTS = 100;
/** How often a node is asked that is behind, as it may be one of several behind a balancer. */
const LAGGING_ATTEMPTS = 4;
/** Slots that are skipped have no time. Runs of skipped slots are short. */
const SLOTS_FOR_TIME = 8;
/** A node of another cluster is not asked again soon: only a change of the configuration helps. */
const WRONG_NETWORK_REST_MS = 300_000;

export function createNode(given: Endpoint, network: Network, { now, onHead }: PooledNodeOptions) {
  const endpoint = createRepeatingEndpoint(given);
  const { name } = given;
  const { fault, parsed, resultOf } = createAnswerReader(name);

  const ask = async (method: string, ...params: readonly unknown[]): Promise<unknown> => {
    const [answer] = await endpoint.ask([{ method, params }]);
    return resultOf(answer, method);
  };

  const slotOf = (method: string, value: unknown): number => parsed(method, () => countOf(value, 'slot'));

  /**
   * Asks a node that has reached a slot. Some ignore `minContextSlot`, and behind a balancer each request may get to
   * another node; the calls of one request get to the same, and its slot shows how far it is.
   */
  const askAt = async (minContextSlot: number, calls: readonly RpcCall[]): Promise<readonly RpcAnswer[]> => {
    let slot = -1;
    for (let attempt = 0; attempt < LAGGING_ATTEMPTS && slot < minContextSlot; attempt++) {
      const [slotAnswer, ...answers] = await endpoint.ask([
        { method: 'getSlot', params: [FINALIZED] },
        ...calls,
      ]);
      slot = slotOf('getSlot', resultOf(slotAnswer, 'getSlot'));
      if (slot >= minContextSlot) return answers;
    }
    throw fault('getSlot', `its newest slot ${slot} is behind slot ${minContextSlot}`, 'behind');
  };

  const isFuture = (seconds: number): boolean => seconds * 1_000 > now() + MAX_AHEAD_MS;

  /** Throws where a slot has a time that lies in the future: a message with such a time would be the newest for ever. */
  const rejectFuture = (method: string, slot: number | undefined, seconds: number): void => {
    if (isFuture(seconds)) throw fault(method, `slot ${slot} has the time ${seconds}, in the future`);
  };

  /** The time of a slot in seconds; undefined where the slot has no block, or the node no longer has it. */
  const timeOfSlot = async (slots: readonly number[]): Promise<number | undefined> => {
    const method = 'getBlockTime';
    const answers = await endpoint.ask(slots.map((slot) => ({ method, params: [slot] })));
    for (const [index, answer] of answers.entries()) {
      const isMissing = 'error' in answer && ['unknown', 'pruned', 'invalid'].includes(answer.error.kind);
      if (isMissing || ('result' in answer && answer.result === null)) continue;
      const seconds = parsed(method, () => countOf(resultOf(answer, method), 'time'));
      rejectFuture(method, slots[index], seconds);
      return seconds;
    }
    return undefined;
  };

  /** The newest finalized slot. */
  const head = async (): Promise<FinalizedHead> => {
    const slot = slotOf('getSlot', await ask('getSlot', FINALIZED));
    const below = Array.from({ length: 4 }, (_, index) => slot - 1 - index).filter((number) => number >= 0);
    const timestamp = (await timeOfSlot([slot])) ?? (await timeOfSlot(below));
    if (timestamp === undefined) throw fault('getBlockTime', `it has no time for its newest slot ${slot}`);
    onHead(slot);
    return { slot, timestamp };
  };

  /** Whether a node that has reached a slot, and keeps it, does not have a transaction. */
  const isAbsent = async (signature: string, slot: number): Promise<boolean> => {
    const first = 'getFirstAvailableBlock';
    const [found, available] = await askAt(slot, [transactionCall(signature), { method: first, params: [] }]);
    const isNull = found !== undefined && 'result' in found && found.result === null;
    return isNull && slotOf(first, resultOf(available, first)) <= slot;
  };

  const askTransactions = (signatures: readonly { readonly signature: string }[]) =>
    endpoint.askUntil(
      signatures.map(({ signature }) => transactionCall(signature)),
      isTransactionThere,
    );

  return {
    /** Host of the endpoint, for people; never its path or credentials. */
    name,

    /** Whether it is a node of this network at all, and how far it is. */
    async checkIn(): Promise<FinalizedHead> {
      const hash = await ask('getGenesisHash');
      if (hash !== network.chainId) {
        throw new EndpointError(
          `${name}: it has the genesis hash ${typeof hash === 'string' ? hash.slice(0, 60) : 'of no cluster'}; ` +
            `${network.name} has ${network.chainId}`,
          'wrong-chain',
          WRONG_NETWORK_REST_MS,
        );
      }
      return head();
    },

    head,

    /** The time of the first slot with a block at or above this one, in seconds since 1970; undefined where it has none. */
    timeAt: (slot: number) => timeOfSlot(Array.from({ length: SLOTS_FOR_TIME }, (_, index) => slot + index)),

    /** The lowest slot whose block it has. */
    async firstAvailableSlot(): Promise<number> {
      return slotOf('getFirstAvailableBlock', await ask('getFirstAvailableBlock'));
    },

    /** Newest first, none twice. A short list, or an empty one, does not prove that there is no more. */
    async signatures(query: SignatureQuery): Promise<readonly SignatureInfo[]> {
      const { address, before, limit, minContextSlot } = query;
      const method = 'getSignaturesForAddress';
      const options = { ...FINALIZED, limit, minContextSlot, ...(before !== undefined && { before }) };
      const [answer] = await askAt(minContextSlot, [{ method, params: [address, options] }]);
      const result = resultOf(answer, method);
      const entries = parsed(method, () => listOf(result, 'list of signatures').map(parseSignature));
      if (entries.length > limit) throw fault(method, `${entries.length} signatures instead of ${limit}`);
      for (const [index, { slot, signature }] of entries.entries()) {
        const earlier = entries[index - 1];
        if (earlier && earlier.slot < slot) throw fault(method, 'a list that is not in the order of slots');
        if (signature === before)
          throw fault(method, 'a list that begins with the signature to continue from');
      }
      // Where a list is put together from two storages, some nodes have an entry of both.
      return [...new Map(entries.map((entry) => [entry.signature, entry])).values()];
    },

    /** Whether it knows a transaction. Lists behind an unknown one are empty on older nodes. */
    async knows(signature: string): Promise<boolean> {
      const [answer] = await askTransactions([{ signature }]);
      return versionProblem(answer) !== undefined || resultOf(answer, 'getTransaction') !== null;
    },

    /** In the order asked for; a missing transaction is the node's fault. */
    async transactions(signatures: readonly SignatureInfo[]) {
      const method = 'getTransaction';
      const answers = await askTransactions(signatures);
      return signatures.map(({ signature, slot, isFailed }, index) => {
        const problem = versionProblem(answers[index]);
        if (problem !== undefined) return { signature, problem };
        const result = resultOf(answers[index], method);
        if (result === null) {
          const what = `it lists ${signature} and does not have it`;
          throw fault(method, what, 'history-missing', RequestRejectedError);
        }
        const transaction = parsed(method, () => parseTransaction(result, signature));
        if (transaction.slot !== slot || transaction.isFailed !== isFailed) {
          throw fault(method, `${signature} is another transaction than the one it has listed`);
        }
        rejectFuture(method, slot, transaction.blockTime ?? 0);
        return transaction;
      });
    },

    /**
     * In the order asked for: a transaction; `absent` where the node keeps its slot and does not have it there; `unknown`
     * where it cannot tell. Its slot is where another endpoint has it.
     */
    async find(signatures: readonly Pick<SignatureInfo, 'signature' | 'slot'>[]) {
      const answers = await askTransactions(signatures);
      return Promise.all(
        signatures.map(async ({ signature, slot }, index) => {
          const answer = answers[index];
          const problem = versionProblem(answer);
          if (problem !== undefined) return { signature, problem };
          const rpcError = answer && 'error' in answer ? answer.error : undefined;
          if (rpcError?.kind === 'pruned' && !isPassing(rpcError)) return 'unknown';
          const result = resultOf(answer, 'getTransaction');
          if (result === null) return (await isAbsent(signature, slot)) ? 'absent' : 'unknown';
          const transaction = readable(() => parseTransaction(result, signature));
          return !transaction || isFuture(transaction.blockTime ?? 0) ? 'unknown' : transaction;
        }),
      );
    },

    /**
     * In the order asked for; undefined for an account that does not exist.
     *
     * @param maxBytes of each account's data, from its beginning; all of it where it is left out
     */
    async accounts(addresses: readonly string[], minContextSlot: number, maxBytes?: number) {
      const method = 'getMultipleAccounts';
      const parts: string[][] = [];
      for (let at = 0; at < addresses.length; at += MAX_ACCOUNTS) {
        parts.push(addresses.slice(at, at + MAX_ACCOUNTS));
      }
      const options = {
        ...FINALIZED,
        encoding: 'base64',
        minContextSlot,
        ...(maxBytes !== undefined && { dataSlice: { offset: 0, length: maxBytes } }),
      };
      const answers = await askAt(
        minContextSlot,
        parts.map((part) => ({ method, params: [part, options] })),
      );
      return parts.flatMap((part, index) =>
        parsed(method, () => {
          const { value } = fieldsOf(resultOf(answers[index], method), 'accounts');
          const accounts = listOf(value, 'accounts');
          if (accounts.length !== part.length) throw new UnreadableDataError('another number of accounts');
          return accounts.map((account) => (account === null ? undefined : parseAccount(account)));
        }),
      );
    },
  };
}

function transactionCall(signature: string): RpcCall {
  const version = { maxSupportedTransactionVersion: MAX_TRANSACTION_VERSION };
  return { method: 'getTransaction', params: [signature, { ...FINALIZED, encoding: 'json', ...version }] };
}

/** Which version a node rejects, and what to do; undefined where it rejects none. */
function versionProblem(answer: RpcAnswer | undefined): string | undefined {
  if (!answer || !('error' in answer) || answer.error.kind !== 'version') return undefined;
  const [, version = 'unknown'] = REJECTED_VERSION.exec(answer.error.message) ?? [];
  const remedy =
    Number(version) <= MAX_TRANSACTION_VERSION
      ? `the endpoint rejects it although versions up to ${MAX_TRANSACTION_VERSION} were asked for; use another one`
      : `this Lanescan reads versions up to ${MAX_TRANSACTION_VERSION}; upgrade it`;
  return `a transaction of version ${version}: ${remedy}. It is read again at every start`;
}

/** Behind a balancer another node may have a transaction that this one has listed. */
function isTransactionThere(answer: RpcAnswer): boolean {
  return 'error' in answer ? !isPassing(answer.error) : answer.result !== null;
}

function parseSignature(value: unknown): SignatureInfo {
  const entry = fieldsOf(value, 'entry of a list');
  const signature = textOf(entry.signature, 'signature');
  if (!parseTransactionHash(signature, 'SVM'))
    throw new UnreadableDataError('a text that is not a signature');
  return { signature, slot: countOf(entry.slot, 'slot'), isFailed: entry.err != null };
}

function parseAccount(value: unknown): Account {
  const account = fieldsOf(value, 'account');
  const [data] = listOf(account.data, 'data of an account');
  const owner = textOf(account.owner, 'owner');
  if (!parseAddress(owner, 'SVM')) throw new UnreadableDataError('an owner that is not an address');
  return { owner, data: decodeBase64(textOf(data, 'data')) };
}
