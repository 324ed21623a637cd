/** Wallets of the visitor's browser: discovery by EIP-6963, requests by EIP-1193. */
import { useSyncExternalStore } from 'react';
import { printable } from '../../../src/text/format.ts';

/** EIP-1193. */
export interface WalletProvider {
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

let wallets: readonly Wallet[] = [];
const listeners = new Set<() => void>();

function onAnnouncement(event: Event): void {
  const { info, provider } = ((event as CustomEvent<unknown>).detail ?? {}) as AnnouncementDetail;
  if (typeof info?.uuid !== 'string' || typeof info.name !== 'string' || !isProvider(provider)) return;
  const { uuid, name } = info;
  if (wallets.some(({ id }) => id === uuid) || wallets.length >= MAX_WALLETS) return;
  wallets = [...wallets, { id: uuid, name: printable(name).slice(0, MAX_NAME_LENGTH), provider }];
  for (const listener of listeners) listener();
}

function isProvider(provider: Partial<WalletProvider> | undefined): provider is WalletProvider {
  return typeof provider?.request === 'function';
}

function watch(listener: () => void): () => void {
  listeners.add(listener);
  if (listeners.size === 1) {
    window.addEventListener('eip6963:announceProvider', onAnnouncement);
    window.dispatchEvent(new Event('eip6963:requestProvider'));
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) window.removeEventListener('eip6963:announceProvider', onAnnouncement);
  };
}

/** The wallets that have announced themselves so far. */
export function useWallets(): readonly Wallet[] {
  return useSyncExternalStore(watch, () => wallets);
}

/** The visitor did not want it (EIP-1193). */
export const REJECTED = 4001;
/** The wallet does not know the chain (EIP-3085). */
export const UNKNOWN_CHAIN = 4902;

/** The code of an error that a wallet threw; undefined where it has none. */
export function walletErrorCode(error: unknown): number | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'number' ? code : undefined;
}

const MAX_ERROR_LENGTH = 300;

/** What a wallet said, shortened. */
export function walletErrorText(error: unknown): string {
  const { message } = (error ?? {}) as { readonly message?: unknown };
  return printable(typeof message === 'string' ? message : String(error)).slice(0, MAX_ERROR_LENGTH);
}

export async function chainOf({ provider }: Wallet): Promise<number> {
  return Number(await provider.request({ method: 'eth_chainId' }));
}

/** Asks the visitor for an account; throws where none is given. */
export async function accountOf({ provider }: Wallet): Promise<string> {
  const accounts = await provider.request({ method: 'eth_requestAccounts' });
  const [account] = Array.isArray(accounts) ? accounts : [];
  if (typeof account !== 'string') throw new Error('The wallet gives no account.');
  return account;
}

function hexadecimal(number: number): string {
  return `0x${number.toString(16)}`;
}

export async function switchChain({ provider }: Wallet, chainId: number): Promise<void> {
  await provider.request({
    method: 'wallet_switchEthereumChain',
    params: [{ chainId: hexadecimal(chainId) }],
  });
}

export interface WalletTransaction {
  readonly chainId: number;
  readonly from: string;
  readonly to: string;
  readonly data: string;
  readonly value: string;
  readonly gas: string;
}

/** Resolves to the hash. The chain is named: the visitor may change it in the wallet at any time. */
export async function sendTransaction({ provider }: Wallet, transaction: WalletTransaction): Promise<string> {
  const params = [{ ...transaction, chainId: hexadecimal(transaction.chainId) }];
  const hash = await provider.request({ method: 'eth_sendTransaction', params });
  if (typeof hash !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(hash))
    throw new Error('The wallet gives no transaction hash.');
  return hash;
}

/** Whether the transaction is in a block, and succeeded there; undefined while it is in none. */
export async function receiptOf(
  { provider }: Wallet,
  hash: string,
): Promise<{ readonly isSuccess: boolean } | undefined> {
  const receipt = await provider.request({ method: 'eth_getTransactionReceipt', params: [hash] });
  if (typeof receipt !== 'object' || receipt === null) return undefined;
  return { isSuccess: Number((receipt as { readonly status?: unknown }).status) === 1 };
}
