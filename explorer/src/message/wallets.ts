/** Wallets of the visitor's browser: discovery by EIP-6963, requests by EIP-1193. */
import { useEffect } from 'react';
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
export function walletProblem(error: unknown): string | null {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (code === REJECTED) return null;
  if (code === UNKNOWN_CHAIN) return 'The wallet does not know this network. Add it there first.';
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

const hexadecimal = (number: number) => `0x${number.toString(16)}`;

export async function switchChain({ provider }: Wallet, chainId: number): Promise<void> {
  const params = [{ chainId: hexadecimal(chainId) }];
  await provider.request({ method: 'wallet_switchEthereumChain', params });
}

/** Resolves to the hash. The chain is named: the visitor may change it in the wallet at any time. */
export async function sendTransaction(
  { provider }: Wallet,
  transaction: { readonly [name in 'from' | 'to' | 'data' | 'value' | 'gas']: string } & {
    readonly chainId: number;
  },
): Promise<string> {
  const params = [{ ...transaction, chainId: hexadecimal(transaction.chainId) }];
  const hash = await provider.request({ method: 'eth_sendTransaction', params });
  if (typeof hash !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(hash))
    throw new Error('The wallet gives no transaction hash.');
  return hash;
}

/** What became of the transaction; undefined while it is in no block. */
export async function outcomeOf(
  { provider }: Wallet,
  hash: string,
): Promise<'included' | 'reverted' | undefined> {
  const receipt = await provider.request({ method: 'eth_getTransactionReceipt', params: [hash] });
  if (typeof receipt !== 'object' || receipt === null) return undefined;
  return Number((receipt as { readonly status?: unknown }).status) === 1 ? 'included' : 'reverted';
}
