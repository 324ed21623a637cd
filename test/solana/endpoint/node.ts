/** A Solana JSON-RPC endpoint on a real socket: it answers from a ledger the way a profile does. */
import { readable } from '../../../src/ingest/svm/decode/borsh.ts';
import {
  isOneIn,
  type JsonRpcCall,
  type JsonRpcServer,
  RpcError,
  type ServedEndpoint,
  startJsonRpcServer,
} from '../../json-rpc-server.ts';
import type { RpcErrorReply } from '../../virtual-chain/endpoint-profile.ts';
import { fromBase58, toBase58 } from '../runtime/bytes.ts';
import type { LedgerTransaction } from '../runtime/runtime.ts';
import type { Ledger, LedgerAccount, Place, SignatureEntry } from '../runtime/virtual-cluster.ts';
import { archiveNode, type SolanaProfile } from './solana-profile.ts';

type Commitment = 'processed' | 'confirmed' | 'finalized';

interface Config {
  readonly commitment?: Commitment;
  readonly minContextSlot?: number;
  readonly before?: string;
  readonly until?: string;
  readonly limit?: number;
  readonly maxSupportedTransactionVersion?: number;
  readonly encoding?: string;
  readonly dataSlice?: { readonly offset: number; readonly length: number };
  readonly filters?: readonly AccountFilter[];
  readonly withContext?: boolean;
}

type AccountFilter =
  | { readonly dataSize: number }
  | { readonly memcmp: { readonly offset: number; readonly bytes: string; readonly encoding?: string } };

/** Slots that a finalized slot is below the newest one. */
export const FINALITY_SLOTS = 32;
const CONFIRMATION_SLOTS = 2;
const MAX_SIGNATURES = 1_000;
const MAX_ACCOUNTS = 100;

const faults = {
  cleanedUp: {
    code: -32001,
    message: 'Block {slot} cleaned up, does not exist on node. First available block: {first}',
  },
  blockNotAvailable: { code: -32004, message: 'Block not available for slot {slot}' },
  slotSkipped: {
    code: -32007,
    message: 'Slot {slot} was skipped, or missing due to ledger jump to recent snapshot',
  },
  unsupportedVersion: {
    code: -32015,
    message:
      'Transaction version ({version}) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": {version}',
  },
  minContextSlot: { code: -32016, message: 'Minimum context slot has not been reached' },
  unknownSignature: { code: -32020, message: 'Transaction {signature} not found' },
  methodNotFound: { code: -32601, message: 'Method not found' },
} as const satisfies Record<string, RpcErrorReply>;

const invalid = (message: string) => new RpcError({ code: -32602, message });

export type SolanaProvider = JsonRpcServer<SolanaProfile>;

export const startSolanaProvider = (ledger: Ledger, profile = archiveNode): Promise<SolanaProvider> =>
  startJsonRpcServer({ profile, answererOf: (endpoint) => createNode(ledger, endpoint) });

/** What answers the calls; it throws a RpcError where the answer is an error. What happens now and then goes by requests. */
function createNode(ledger: Ledger, endpoint: ServedEndpoint<SolanaProfile>): (call: JsonRpcCall) => unknown {
  let pages = 0;
  let entries = 0;
  let transactions = 0;
  let deepCalls = 0;

  const headSlot = (): number => {
    const { lag } = endpoint.profile;
    const isBehind = lag !== undefined && isOneIn(lag.every ?? 1, endpoint.requests);
    return ledger.slotAtOrBelow(ledger.head - (isBehind ? lag.slots : 0));
  };
  const slotOf = (commitment: Commitment = 'finalized'): number => {
    const head = headSlot();
    if (commitment === 'processed') return head;
    return ledger.slotAtOrBelow(head - (commitment === 'confirmed' ? CONFIRMATION_SLOTS : FINALITY_SLOTS));
  };
  const requireContext = ({ minContextSlot, commitment }: Config): number => {
    const slot = slotOf(commitment);
    const { lag } = endpoint.profile;
    if (minContextSlot !== undefined && slot < minContextSlot && !lag?.ignoresMinContextSlot)
      throw new RpcError(faults.minContextSlot, {}, { contextSlot: slot });
    return slot;
  };

  /** The lowest slot of its history. */
  const firstKept = (): number => {
    const { kept } = endpoint.profile;
    return kept ? Math.max(0, ledger.head - kept.slots) : 0;
  };
  /** Rejects now and then what long-term storage would have to answer. */
  const reachStorage = (slot: number): void => {
    const { longTermStorage } = endpoint.profile;
    if (!longTermStorage || slot >= ledger.head - longTermStorage.belowSlots) return;
    if (isOneIn(longTermStorage.failsEvery, ++deepCalls)) throw new RpcError(longTermStorage.error);
  };
  /** Whether it has what is in a slot; an error where it says why it does not. */
  const hasSlot = (slot: number): boolean => {
    const { kept } = endpoint.profile;
    if (!kept || slot >= firstKept()) return true;
    if (kept.answer === 'silent') return false;
    throw new RpcError(kept.answer, { slot, first: firstKept() });
  };

  const signaturesFor = (address: string, config: Config): readonly unknown[] => {
    const { signatures: traits = {}, kept } = endpoint.profile;
    const { commitment = 'finalized', limit = MAX_SIGNATURES } = config;
    requireBytes(address, 32);
    if (commitment === 'processed') throw invalid('Method does not support commitment below `confirmed`');
    if (limit < 1 || limit > MAX_SIGNATURES) throw invalid(`Invalid limit; max ${MAX_SIGNATURES}`);
    const upTo = requireContext(config);

    const first = firstKept();
    /** 'unknown' where it is given and not found. */
    const locate = (signature: string | undefined): Place | undefined | 'unknown' => {
      if (signature === undefined) return undefined;
      requireBytes(signature, 64);
      const place = ledger.placeOf(signature);
      if (place && place.slot <= headSlot() && place.slot >= first) return place;
      if (traits.unknownSignature !== 'silent') throw new RpcError(faults.unknownSignature, { signature });
      return 'unknown';
    };
    const before = locate(config.before);
    const until = locate(config.until);
    if (before === 'unknown') return [];
    reachStorage(before?.slot ?? upTo);

    const found = ledger.signaturesFor(address, {
      upTo,
      before,
      until: until === 'unknown' ? undefined : until,
      limit: Math.min(limit, traits.pageMax ?? limit),
    });
    const known = found.filter(({ slot }) => slot >= first);
    if (kept && kept.answer !== 'silent' && known.length < found.length && known.length === 0)
      hasSlot(found[0]?.slot ?? 0);
    const final = slotOf('finalized');
    return shownSignatures(known).map((entry) => ({
      ...entry,
      blockTime: traits.hasNoTimes ? null : (ledger.block(entry.slot)?.blockTime ?? null),
      confirmationStatus: entry.slot <= final ? 'finalized' : 'confirmed',
    }));
  };

  /** What its profile makes of a page. */
  const shownSignatures = (known: readonly SignatureEntry[]): readonly SignatureEntry[] => {
    const { signatures: traits = {} } = endpoint.profile;
    let page = known;
    if (page.length > 0) {
      pages++;
      if (traits.emptyEvery !== undefined && isOneIn(traits.emptyEvery, pages)) return [];
      if (traits.shortEvery !== undefined && isOneIn(traits.shortEvery, pages))
        page = page.slice(0, Math.ceil(page.length / 2));
      if (traits.leavesOutEvery !== undefined && isOneIn(traits.leavesOutEvery, pages))
        page = page.toSpliced(Math.floor(page.length / 2), 1);
    }
    const { repeatsEvery } = traits;
    if (repeatsEvery !== undefined)
      page = page.flatMap((entry) => (isOneIn(repeatsEvery, ++entries) ? [entry, entry] : [entry]));
    if (traits.order === 'reversed in a slot') page = page.toReversed().toSorted((a, b) => b.slot - a.slot);
    return page;
  };

  const transactionOf = (signature: string, config: Config): unknown => {
    requireBytes(signature, 64);
    const { transactions: traits = {} } = endpoint.profile;
    const { commitment = 'finalized' } = config;
    if (commitment === 'processed') throw invalid('Method does not support commitment below `confirmed`');
    const found = ledger.transaction(signature);
    if (!found || found.slot > slotOf(commitment) || !hasSlot(found.slot)) return null;
    reachStorage(found.slot);
    if (traits.nullEvery !== undefined && isOneIn(traits.nullEvery, ++transactions)) return null;
    return transactionJson(found, config);
  };

  const transactionJson = (found: LedgerTransaction, config: Config): unknown => {
    const { transactions: traits = {} } = endpoint.profile;
    const { newVersion, maxVersion, noLogsEvery, hasNoInnerInstructions, hasNoStackHeight } = traits;
    const isNew = newVersion !== undefined && isOneIn(newVersion.every, hashOf(found.signature));
    const version = isNew ? newVersion.version : found.version;
    const { maxSupportedTransactionVersion: supported } = config;
    if (version !== 'legacy' && Math.min(supported ?? -1, maxVersion ?? version) < version)
      throw new RpcError(faults.unsupportedVersion, { version });
    const hasLogs = noLogsEvery === undefined || !isOneIn(noLogsEvery, hashOf(found.signature));
    const { message, meta } = found;
    const plain = <T extends { stackHeight: unknown }>(instruction: T) =>
      hasNoStackHeight ? { ...instruction, stackHeight: undefined } : instruction;
    const accounts = message.accountKeys.length + Object.values(meta.loadedAddresses).flat().length;
    const balances = Array.from({ length: accounts }, () => 1_000_000);
    return {
      slot: found.slot,
      blockTime: traits.time ?? ledger.block(found.slot)?.blockTime ?? null,
      ...(supported !== undefined && { version }),
      transaction: {
        signatures: [found.signature],
        message: { ...message, instructions: message.instructions.map(plain) },
      },
      meta: {
        ...meta,
        status: meta.err === null ? { Ok: null } : { Err: meta.err },
        preBalances: balances,
        postBalances: balances,
        preTokenBalances: [],
        postTokenBalances: [],
        rewards: [],
        logMessages: hasLogs ? meta.logMessages : null,
        innerInstructions: hasNoInnerInstructions
          ? null
          : meta.innerInstructions.map(({ index, instructions }) => ({
              index,
              instructions: instructions.map(plain),
            })),
      },
    };
  };

  const accountOf = (address: string, config: Config, slot: number): unknown => {
    requireBytes(address, 32);
    if (endpoint.profile.hasNoAccounts) return null;
    const account = ledger.account(address, slot);
    return account ? accountJson(account, config) : null;
  };

  const programAccounts = (program: string, config: Config): unknown => {
    requireBytes(program, 32);
    const slot = requireContext(config);
    const found = ledger
      .accountsOf(program, slot)
      .filter(([, { data }]) => (config.filters ?? []).every((filter) => isMatch(data, filter)))
      .map(([pubkey, account]) => ({ pubkey, account: accountJson(account, config) }));
    return config.withContext ? inContext(slot, found) : found;
  };

  const readableBlock = (slot: number, { commitment }: Config) => {
    if (slot > slotOf(commitment)) throw new RpcError(faults.blockNotAvailable, { slot });
    if (slot < firstKept()) throw new RpcError(faults.cleanedUp, { slot, first: firstKept() });
    reachStorage(slot);
    const block = ledger.block(slot);
    if (!block) throw new RpcError(faults.slotSkipped, { slot });
    return block;
  };

  return ({ method, params = [] }) => {
    const [first, second] = params as [unknown, Config | undefined];
    const config = second ?? {};
    const only = (first ?? {}) as Config;
    switch (method) {
      case 'getGenesisHash':
        return endpoint.profile.genesisHash ?? ledger.genesisHash;
      case 'getSlot':
        return requireContext(only);
      case 'getFirstAvailableBlock':
        return firstKept();
      case 'getBlockTime':
        return readableBlock(first as number, { commitment: 'processed' }).blockTime;
      case 'getLatestBlockhash': {
        const slot = requireContext(only);
        const { blockhash } = readableBlock(slot, only);
        return inContext(slot, { blockhash, lastValidBlockHeight: slot + 150 });
      }
      case 'getSignaturesForAddress':
        return signaturesFor(first as string, config);
      case 'getTransaction':
        return transactionOf(first as string, config);
      case 'getAccountInfo': {
        const slot = requireContext(config);
        return inContext(slot, accountOf(first as string, config, slot));
      }
      case 'getMultipleAccounts': {
        const addresses = first as readonly string[];
        if (addresses.length > MAX_ACCOUNTS) throw invalid(`Too many inputs provided; max ${MAX_ACCOUNTS}`);
        const slot = requireContext(config);
        return inContext(
          slot,
          addresses.map((address) => accountOf(address, config, slot)),
        );
      }
      case 'getProgramAccounts':
        return programAccounts(first as string, config);
      case 'simulateTransaction': {
        const slot = requireContext(config);
        const bytes =
          config.encoding === 'base64' ? Buffer.from(first as string, 'base64') : fromBase58(first as string);
        return inContext(slot, { ...ledger.simulate(bytes, slot), accounts: null });
      }
      default:
        throw new RpcError(faults.methodNotFound);
    }
  };
}

const inContext = (slot: number, value: unknown) => ({ context: { apiVersion: '3.0.6', slot }, value });

function accountJson(account: LedgerAccount, { encoding = 'binary', dataSlice }: Config): unknown {
  const { data: whole, owner, lamports, executable } = account;
  const data = dataSlice ? whole.slice(dataSlice.offset, dataSlice.offset + dataSlice.length) : whole;
  const text = encoding === 'base64' ? Buffer.from(data).toString('base64') : toBase58(data);
  // A node without encoding answers base58 as a plain text.
  return {
    data: encoding === 'binary' ? text : [text, encoding === 'base64' ? 'base64' : 'base58'],
    owner,
    lamports,
    executable,
    rentEpoch: 0,
    space: whole.length,
  };
}

function isMatch(data: Uint8Array, filter: AccountFilter): boolean {
  if ('dataSize' in filter) return data.length === filter.dataSize;
  const { offset, bytes, encoding } = filter.memcmp;
  const expected = encoding === 'base64' ? Buffer.from(bytes, 'base64') : fromBase58(bytes);
  return Buffer.compare(data.slice(offset, offset + expected.length), expected) === 0;
}

/** Rejects a text that is not so many bytes in base58. */
function requireBytes(text: unknown, count: 32 | 64): void {
  const bytes = readable(() => fromBase58(String(text)));
  if (!bytes) throw invalid('Invalid param: Invalid');
  if (bytes.length !== count) throw invalid('Invalid param: WrongSize');
}

/** A number that belongs to a text. */
function hashOf(text: string): number {
  let hash = 0;
  for (const character of text) hash = (Math.imul(hash, 31) + character.charCodeAt(0)) | 0;
  return hash;
}
