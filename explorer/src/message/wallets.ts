/**
 * Wallets of the visitor's browser (discovery by EIP-6963, requests by EIP-1193), and how a manual execution is sent through
 * one, step by step, and followed into a block.
 */
import { useEffect } from 'react';
import type { ManualExecution } from '../../../src/client/api-types.ts';
import type { Message } from '../../../src/domain/message.ts';
import { printable } from '../../../src/text/format.ts';
import { createStore } from '../server/store.ts';

/** EIP-1193. */
interface WalletProvider {
  request(call: { readonly method: string; readonly params?: readonly unknown[] }): Promise<unknown>;
}

export interface Wallet {
  readonly id: string;
  /** What it calls itself: untrusted text. */
  readonly name: string;
  readonly provider: WalletProvider;
}

/** EIP-6963. Every extension can send this event: nothing in it is trusted. */
interface AnnouncementDetail {
  readonly info?: { readonly uuid?: unknown; readonly name?: unknown };
  readonly provider?: Partial<WalletProvider>;
}

const MAX_WALLETS = 20;
const MAX_NAME_LENGTH = 40;

const wallets = createStore<readonly Wallet[]>([]);

function onAnnouncement(event: Event): void {
  const { info, provider } = ((event as CustomEvent<unknown>).detail ?? {}) as AnnouncementDetail;
  if (typeof info?.uuid !== 'string' || typeof info.name !== 'string' || !isProvider(provider)) return;
  const { uuid, name } = info;
  const known = wallets.get();
  if (known.some(({ id }) => id === uuid) || known.length >= MAX_WALLETS) return;
  wallets.set([...known, { id: uuid, name: printable(name).slice(0, MAX_NAME_LENGTH), provider }]);
}

function isProvider(provider: Partial<WalletProvider> | undefined): provider is WalletProvider {
  return typeof provider?.request === 'function';
}

/** The wallets that have announced themselves so far. */
export function useWallets(): readonly Wallet[] {
  useEffect(() => {
    window.addEventListener('eip6963:announceProvider', onAnnouncement);
    window.dispatchEvent(new Event('eip6963:requestProvider'));
    return () => window.removeEventListener('eip6963:announceProvider', onAnnouncement);
  }, []);
  return wallets.use();
}

/** The visitor did not want it (EIP-1193). */
const REJECTED = 4001;
/** The wallet does not know the chain (EIP-3085). */
const UNKNOWN_CHAIN = 4902;
const MAX_ERROR_LENGTH = 300;

/** What a wallet said, shortened; null where the visitor declined. */
function walletProblem(error: unknown): string | null {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (code === REJECTED) return null;
  if (code === UNKNOWN_CHAIN) return 'The wallet does not know this network. Add it there first.';
  return printable(typeof message === 'string' ? message : String(error)).slice(0, MAX_ERROR_LENGTH);
}

async function chainOf({ provider }: Wallet): Promise<number> {
  return Number(await provider.request({ method: 'eth_chainId' }));
}

/** Asks the visitor for an account; throws where none is given. */
async function accountOf({ provider }: Wallet): Promise<string> {
  const accounts = await provider.request({ method: 'eth_requestAccounts' });
  const [account] = Array.isArray(accounts) ? accounts : [];
  if (typeof account !== 'string') throw new Error('The wallet gives no account.');
  return account;
}

const hexadecimal = (number: number) => `0x${number.toString(16)}`;

async function switchChain({ provider }: Wallet, chainId: number): Promise<void> {
  const params = [{ chainId: hexadecimal(chainId) }];
  await provider.request({ method: 'wallet_switchEthereumChain', params });
}

/** Resolves to the hash. The chain is named: the visitor may change it in the wallet at any time. */
async function sendTransaction({ provider }: Wallet, from: string, transaction: SendableTransaction) {
  const { chainId, to, data, value, gas } = transaction;
  const params = [{ from, to, data, value, gas, chainId: hexadecimal(chainId) }];
  const hash = await provider.request({ method: 'eth_sendTransaction', params });
  if (typeof hash !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(hash))
    throw new Error('The wallet gives no transaction hash.');
  return hash;
}

/** What became of the transaction; undefined while it is in no block. */
async function outcomeOf({ provider }: Wallet, hash: string): Promise<'included' | 'reverted' | undefined> {
  const receipt = await provider.request({ method: 'eth_getTransactionReceipt', params: [hash] });
  if (typeof receipt !== 'object' || receipt === null) return undefined;
  return Number((receipt as { readonly status?: unknown }).status) === 1 ? 'included' : 'reverted';
}

// ---- Sending

type Question = 'account' | 'chain' | 'transaction';

export type Sending =
  | { readonly step: 'idle' }
  /** Waits for the visitor's answer in the wallet. */
  | { readonly step: 'asking'; readonly what: Question }
  | { readonly step: 'wrong-chain'; readonly wallet: Wallet; readonly chainId: number }
  | { readonly step: 'rejected'; readonly what: Question }
  | { readonly step: 'failed'; readonly text: string }
  | { readonly step: 'sent'; readonly wallet: Wallet; readonly hash: string }
  | { readonly step: 'included' | 'reverted'; readonly hash: string };

const RECEIPT_INTERVAL_MS = 2_000;

/** A transaction whose gas is known. */
export type SendableTransaction = ManualExecution['transaction'] & { readonly gas: string };

/** Outlive the page: a visitor who leaves it and comes back still sees what was sent, and sends it only once. */
const sendings = createStore<ReadonlyMap<string, Sending>>(new Map());
const idle: Sending = { step: 'idle' };

/** Of a message as it is: a new attempt begins anew. */
export function useSending({ messageId, status, receiptTransactionHash }: Message) {
  const key = `${messageId} ${status} ${receiptTransactionHash}`;
  const sending = sendings.use().get(key) ?? idle;
  const setSending = (next: Sending): void => sendings.set(new Map([...sendings.get(), [key, next]]));

  const ask = async <T>(what: Question, request: () => Promise<T>): Promise<T> => {
    setSending({ step: 'asking', what });
    try {
      return await request();
    } catch (error) {
      const text = walletProblem(error);
      setSending(text === null ? { step: 'rejected', what } : { step: 'failed', text });
      throw error;
    }
  };

  const sendNow = async (wallet: Wallet, transaction: SendableTransaction): Promise<void> => {
    const from = await ask('account', () => accountOf(wallet));
    const present = await ask('chain', () => chainOf(wallet));
    if (present !== transaction.chainId) return setSending({ step: 'wrong-chain', wallet, chainId: present });
    const hash = await ask('transaction', () => sendTransaction(wallet, from, transaction));
    setSending({ step: 'sent', wallet, hash });
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: setSending changes only with the key.
  useEffect(() => {
    if (sending.step !== 'sent') return;
    const { wallet, hash } = sending;
    const timer = setInterval(() => {
      outcomeOf(wallet, hash).then(
        (step) => step && setSending({ step, hash }),
        // A wallet that does not answer is asked again; the index will show the attempt in any case.
        () => undefined,
      );
    }, RECEIPT_INTERVAL_MS);
    return () => clearInterval(timer);
  }, [sending, key]);

  // What failed is shown by the state.
  const ignore = () => undefined;
  return {
    sending,
    send: (wallet: Wallet, transaction: SendableTransaction) =>
      void sendNow(wallet, transaction).catch(ignore),
    /** Asks the wallet to change the chain, then sends. */
    switchAndSend: (wallet: Wallet, transaction: SendableTransaction) =>
      void ask('chain', () => switchChain(wallet, transaction.chainId))
        .then(() => sendNow(wallet, transaction))
        .catch(ignore),
  };
}
