/**
 * Gas of the transaction that executes a message.
 *
 * A wallet must not estimate it: off-ramps catch the failure of a message, so that a transaction with too little gas
 * succeeds and leaves the message failed. The gas computed here suffices whatever the contracts do within their limits; an
 * endpoint's estimate may raise it, within bounds, and never lowers it.
 */
import { networkBySelector } from '../networks/networks.ts';
import type { Hex } from './abi-encoding.ts';

export interface ExecutionGas {
  readonly destChainSelector: bigint;
  /** Gas that suffices where gas costs as on Ethereum, provided that the message tells that of its tokens. */
  computedGas(gasLimit?: bigint): bigint;
  readonly tellsTokenGas: boolean;
}

const INTRINSIC_GAS = 21_000n;
/** Of call data without a zero byte; at least the second price is charged for it, however little is executed (EIP-7623). */
const GAS_PER_BYTE = 16n;
const LEAST_GAS_PER_BYTE = 40n;
/** Off-ramps copy and hash a message several times; measured 6. Memory costs more the more of it there is. */
const COPY_GAS_PER_BYTE = 10n;
const BYTES_PER_SQUARED_GAS = 9_000n;
/** `supportsInterface` is asked up to three times, with 30,000 gas each. */
const INTERFACE_CHECK_GAS = 90_000n;
/** Around the call of a token pool: the registry, rate limits, balances. */
const TRANSFER_GAS = 60_000n;
/** Off-ramp, router and proof; measured 90,000 up to 1.6, and 130,000 on 2.0 with a verifier. */
const OVERHEAD_GAS = 200_000n;
/** An estimate above so many times the computed gas is a fault of the endpoint. */
const MAX_ESTIMATE_FACTOR = 4n;
/** The same on networks that count gas in other units. */
const MAX_FOREIGN_ESTIMATE_FACTOR = 10_000n;

/**
 * Networks that count gas as Ethereum does. Others add what their data costs on another chain (Arbitrum), count in other
 * units (ZKsync, Mantle) or are not known well enough.
 */
const countsAsEthereum = new RegExp(
  `^(?:${[
    'ethereum-(?:mainnet|testnet-(?:sepolia|holesky|hoodi))',
    'ethereum-(?:mainnet|testnet-sepolia)-(?:base|optimism|ink|unichain|worldchain|mode|linea|scroll|soneium)-1',
    'ink-testnet-sepolia|soneium-mainnet',
    '(?:avalanche|binance_smart_chain|celo|gnosis_chain|polygon|ronin)-mainnet',
    'avalanche-testnet-fuji|binance_smart_chain-testnet|celo-sepolia|gnosis_chain-testnet-chiado|polygon-testnet-amoy',
    'ronin-testnet-saigon|geth-testnet|anvil-devnet',
  ].join('|')})$`,
);

/** @param others for token pools and verifiers, as the message tells it */
export function computedGas(data: Hex, receiver: bigint, others: bigint, transfers: number): bigint {
  const bytes = BigInt(data.length / 2 - 1);
  const pools = BigInt(transfers) * (TRANSFER_GAS + INTERFACE_CHECK_GAS);
  const copies = COPY_GAS_PER_BYTE * bytes + (bytes * bytes) / BYTES_PER_SQUARED_GAS;
  let executed = OVERHEAD_GAS + INTERFACE_CHECK_GAS + copies + pools + others + receiver;
  // A call gets at most 63 of 64 parts. There are three: off-ramp to itself, to the router, to the receiver.
  for (let call = 0; call < 3; call++) executed = (executed * 64n) / 63n + 1n;
  const charged = GAS_PER_BYTE * bytes + executed;
  const least = LEAST_GAS_PER_BYTE * bytes;
  return INTRINSIC_GAS + (charged > least ? charged : least);
}

/**
 * The gas, null where none is known to suffice: then nothing should be sent. `note` says why it is not an estimate; it is null
 * where it is one.
 *
 * @param gasLimit for the receiver
 * @param estimate of an endpoint, ignored beyond bounds
 */
export function transactionGas(
  prepared: ExecutionGas,
  gasLimit: bigint | undefined,
  estimate: bigint | null,
): { readonly gas: bigint | null; readonly note: string | null } {
  const selector = prepared.destChainSelector.toString();
  const network = networkBySelector(selector)?.name ?? `network ${selector}`;
  const computed = prepared.computedGas(gasLimit);
  const isComparable = countsAsEthereum.test(network);
  const factor = isComparable ? MAX_ESTIMATE_FACTOR : MAX_FOREIGN_ESTIMATE_FACTOR;
  if (estimate !== null && estimate <= factor * computed)
    return { gas: estimate > computed ? estimate : computed, note: null };
  const why = estimate === null ? '' : `The estimate of ${estimate.toLocaleString('en')} is not credible. `;
  if (isComparable && prepared.tellsTokenGas) return { gas: computed, note: `${why}The gas is computed.` };
  const obstacle = isComparable
    ? 'messages of this version do not tell how much gas their token pools get'
    : `${network} may count gas otherwise than Ethereum does`;
  return {
    gas: null,
    note:
      `${why}No gas is known to suffice: ${obstacle}. Do not let a wallet estimate it: with too little, the transaction ` +
      'succeeds and the message fails.',
  };
}
