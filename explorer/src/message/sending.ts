/** Sends a manual execution through a wallet, step by step, and follows it into a block. */
import { useEffect } from 'react';
import type { ManualExecution } from '../../../src/client/api-types.ts';
import type { Message } from '../../../src/domain/message.ts';
import { createStore } from '../server/store.ts';
import {
  accountOf,
  chainOf,
  outcomeOf,
  sendTransaction,
  switchChain,
  type Wallet,
  walletProblem,
} from './wallets.ts';

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
