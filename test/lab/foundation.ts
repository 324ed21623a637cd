/** What every version finds on a network before it is deployed: tokens, accounts with balances, a receiver. */
import { type Hex, maxUint256, parseEther } from 'viem';
import type { Contract, Network, NetworkKey } from './network.ts';
import { labContract } from './solidity.ts';

export const versions = ['1.2', '1.5', '1.6', '2.0'] as const;
export type Version = (typeof versions)[number];

export type Foundation = Awaited<ReturnType<typeof layFoundation>>;
export type Foundations = Readonly<Record<NetworkKey, Foundation>>;

/** From this one on, the lab uses no account of a node: they are for tests. */
export const FIRST_FREE_ACCOUNT = 20;

export function accountAt(network: Network, index: number): Hex {
  const account = network.accounts[index];
  if (account === undefined) throw new Error(`Network ${network.key} has no account ${index}.`);
  return account;
}

export async function layFoundation(network: Network) {
  const account = (index: number) => accountAt(network, index);
  /** The owner deploys and owns the contracts of a version, and transmits the reports of the oracle networks. */
  const accountsOf = (index: number) => ({ owner: account(1 + index), sender: account(5 + index) });
  const wrappedNative = await network.deploy(labContract('WrappedNative'));
  const link = await network.deploy(labContract('MintableToken'), ['Chainlink', 'LINK', 18]);
  const tokens = [
    await network.deploy(labContract('MintableToken'), ['Demo', 'DEMO', 18]),
    await network.deploy(labContract('MintableToken'), ['Coin', 'COIN', 6]),
  ] as const;
  const receiver = await network.deploy(labContract('Receiver'));
  const strictReceiver = await network.deploy(labContract('Receiver'));
  const batchSender = await network.deploy(labContract('BatchSender'));
  await network.transact({ to: batchSender.address, value: parseEther('100000') });
  const accounts = {
    '1.2': accountsOf(0),
    '1.5': accountsOf(1),
    '1.6': accountsOf(2),
    '2.0': accountsOf(3),
  };
  for (const token of [link, ...tokens]) await token.send('mint', [batchSender.address, PLENTY]);
  // As on real networks, some contracts have the same address on both, and others do not.
  if (network.key === 'b') {
    for (const { owner } of [accounts['1.2'], accounts['1.6']])
      await network.transact({ from: owner, to: owner });
  }
  return {
    network,
    wrappedNative,
    link,
    /** Have pools in every version: one with 18 decimals, one with 6. */
    tokens,
    /** Takes every message, but those it is told to reject. */
    receiver,
    /** The same, but in 2.0 it asks for a second verifier too. */
    strictReceiver,
    /** The sender that is a contract. */
    batchSender,
    accounts,
    feeAggregator: account(9),
    blessVoter: account(10),
    curseVoter: account(11),
    /** Executes by hand: nobody special. */
    bystander: account(12),
  };
}

/** Amount of any token that tests hand out. */
export const PLENTY = parseEther('1000000000');

/** Lets an account pay fees and send tokens through a router. */
export async function equip(foundation: Foundation, account: Hex, router: Hex): Promise<void> {
  for (const token of [foundation.link, ...foundation.tokens]) {
    await token.send('mint', [account, PLENTY]);
    await token.send('approve', [router, maxUint256], { from: account });
  }
}

/** What native coins, LINK and `others` cost in dollars, and gas on the destination. */
export function pricesOf(
  { wrappedNative, link }: Foundation,
  destChainSelector: bigint,
  others: readonly Contract[] = [],
) {
  return {
    tokenPriceUpdates: [
      { sourceToken: wrappedNative.address, usdPerToken: parseEther('3000') },
      { sourceToken: link.address, usdPerToken: parseEther('15') },
      ...others.map(({ address }) => ({ sourceToken: address, usdPerToken: parseEther('1') })),
    ],
    gasPriceUpdates: [{ destChainSelector, usdPerUnitGas: 10n ** 12n }],
  };
}
