/** Sends a manual execution through a wallet, step by step, and follows it into a block. */
import { useEffect, useSyncExternalStore } from 'react';
import type { ManualExecution } from '../../../src/client/api-types.ts';
import type { Message } from '../../../src/domain/message.ts';
import {
  accountOf,
  chainOf,
  REJECTED,
  receiptOf,
  sendTransaction,
  switchChain,
  UNKNOWN_CHAIN,
  type Wallet,
  walletErrorCode,
  walletErrorText,
} from './wallets.ts';

export type Sending =
  | { readonly step: 'idle' }
  /** Waits for the visitor's answer in the wallet. */
  | { readonly step: 'asking'; readonly what: 'account' | 'chain' | 'transaction' }
  | { readonly step: 'wrong-chain'; readonly wallet: Wallet; readonly chainId: number }
  | { readonly step: 'rejected'; readonly what: 'account' | 'chain' | 'transaction' }
  | { readonly step: 'failed'; readonly text: string }
  | { readonly step: 'sent'; readonly wallet: Wallet; readonly hash: string }
  | { readonly step: 'included'; readonly hash: string }
  | { readonly step: 'reverted'; readonly hash: string };

const RECEIPT_INTERVAL_MS = 2_000;

/** A transaction whose gas is known. */
export type SendableTransaction = ManualExecution['transaction'] & { readonly gas: string };

export interface SendingState {
  readonly sending: Sending;
  send(wallet: Wallet, transaction: SendableTransaction): void;
  /** Asks the wallet to change the chain, then sends. */
  switchAndSend(wallet: Wallet, transaction: SendableTransaction): void;
}

/** Outlive the page: a visitor who leaves it and comes back still sees what was sent, and sends it only once. */
const sendings = new Map<string, Sending>();
const listeners = new Set<() => void>();
const idle: Sending = { step: 'idle' };

function watch(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Of a message as it is: a new attempt begins anew. */
export function useSending({ messageId, status, receiptTransactionHash }: Message): SendingState {
  const key = `${messageId} ${status} ${receiptTransactionHash}`;
  const sending = useSyncExternalStore(watch, () => sendings.get(key) ?? idle);
  const setSending = (next: Sending): void => {
    sendings.set(key, next);
    for (const listener of listeners) listener();
  };

  const ask = async <T>(what: 'account' | 'chain' | 'transaction', request: () => Promise<T>): Promise<T> => {
    setSending({ step: 'asking', what });
    try {
      return await request();
    } catch (error) {
      const code = walletErrorCode(error);
      if (code === REJECTED) setSending({ step: 'rejected', what });
      else if (code === UNKNOWN_CHAIN)
        setSending({ step: 'failed', text: 'The wallet does not know this network. Add it there first.' });
      else setSending({ step: 'failed', text: walletErrorText(error) });
      throw error;
    }
  };

  const sendNow = async (wallet: Wallet, transaction: SendableTransaction): Promise<void> => {
    const { chainId, to, data, value, gas } = transaction;
    const from = await ask('account', () => accountOf(wallet));
    const present = await ask('chain', () => chainOf(wallet));
    if (present !== chainId) return setSending({ step: 'wrong-chain', wallet, chainId: present });
    const hash = await ask('transaction', () =>
      sendTransaction(wallet, { chainId, from, to, data, value, gas }),
    );
    setSending({ step: 'sent', wallet, hash });
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: setSending changes only with the key.
  useEffect(() => {
    if (sending.step !== 'sent') return;
    const { wallet, hash } = sending;
    const timer = setInterval(() => {
      receiptOf(wallet, hash).then(
        (receipt) => {
          if (receipt) setSending({ step: receipt.isSuccess ? 'included' : 'reverted', hash });
        },
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
    send: (wallet, transaction) => void sendNow(wallet, transaction).catch(ignore),
    switchAndSend: (wallet, transaction) =>
      void ask('chain', () => switchChain(wallet, transaction.chainId))
        .then(() => sendNow(wallet, transaction))
        .catch(ignore),
  };
}
