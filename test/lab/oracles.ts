/**
 * The oracle networks of CCIP, played by keys of the lab (their contracts check real signatures), and what their reports
 * have in common up to 1.6: their types, and proofs that a root has a message.
 */
import { type AbiParameter, concat, type Hex, keccak256, numberToHex, stringToHex } from 'viem';
import { privateKeyToAddress, sign } from 'viem/accounts';
import { type Commit, otherNetwork, type SentMessage } from './deployment.ts';
import type { Foundations } from './foundation.ts';
import type { Contract, RawReceipt } from './network.ts';
import { calculateManualExecProof, silent } from './sdk-chain.ts';

export interface Signer {
  readonly address: Hex;
  readonly key: Hex;
}

/** As many keys as asked for, the same ones in every run, in the order of their addresses. */
export function signersOf(name: string, count: number): readonly Signer[] {
  return Array.from({ length: count }, (_, index) => {
    const key = keccak256(stringToHex(`lanescan lab ${name} ${index}`));
    return { key, address: privateKeyToAddress(key) };
  }).sort((one, other) => (BigInt(one.address) < BigInt(other.address) ? -1 : 1));
}

/** As the OCR contracts take signatures: `rawVs` has one byte a signature, 0 or 1, padded to 32. */
export async function signForOcr(signers: readonly Signer[], hash: Hex) {
  const signatures = await Promise.all(signers.map(({ key }) => sign({ hash, privateKey: key })));
  const vs = signatures.map(({ yParity }) => numberToHex(yParity ?? 0, { size: 1 }));
  return {
    rs: signatures.map(({ r }) => r),
    ss: signatures.map(({ s }) => s),
    rawVs: concat([...vs, numberToHex(0, { size: 32 - vs.length })]),
  };
}

const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/**
 * As RMN and the committee verifier take signatures: without a parity, which counts as even. Every signature has a
 * twin of the other parity, s mirrored at the curve's order.
 */
export async function signEven(signers: readonly Signer[], hash: Hex) {
  return Promise.all(
    signers.map(async ({ key }) => {
      const { r, s, yParity } = await sign({ hash, privateKey: key });
      return { r, s: yParity === 0 ? s : numberToHex(CURVE_ORDER - BigInt(s), { size: 32 }) };
    }),
  );
}

/** Prices travel with commits; the lab sends none. */
export const priceStructs = [
  'struct PriceUpdates { TokenPriceUpdate[] tokenPriceUpdates; GasPriceUpdate[] gasPriceUpdates; }',
  'struct TokenPriceUpdate { address sourceToken; uint224 usdPerToken; }',
  'struct GasPriceUpdate { uint64 destChainSelector; uint224 usdPerUnitGas; }',
] as const;

export const noPrices = { tokenPriceUpdates: [], gasPriceUpdates: [] } as const;

/** The type of what off-ramps execute, which oracles send encoded and everybody else as it is. */
export function executionReportType({ abi }: Contract): AbiParameter {
  const byHand = abi.find((item) => item.type === 'function' && item.name === 'manuallyExecute');
  const report = byHand?.type === 'function' ? byHand.inputs[0] : undefined;
  if (!report) throw new Error('The off-ramp knows no execution by hand.');
  return report;
}

/** The root over messages, and the proof that it has one of them. */
export function prove(messages: readonly SentMessage[], one: SentMessage, networks: Foundations) {
  const lane = {
    sourceChainSelector: networks[one.from].network.selector,
    destChainSelector: networks[otherNetwork(one.from)].network.selector,
    onRamp: one.ramps.onRamp.address,
    version: `${one.version}.0`,
  };
  const decoded = messages.map((message) => message.decoded);
  return calculateManualExecProof(decoded, lane, one.messageId, undefined, { logger: silent });
}

export function proveCommitted(message: SentMessage, commit: Commit | undefined, networks: Foundations) {
  if (!commit) throw new Error(`The message ${message.messageId} is not committed.`);
  return prove(commit.messages, message, networks);
}

/** The ends of a run of messages. */
export function endsOf(messages: readonly SentMessage[]): readonly [SentMessage, SentMessage] {
  const [first, last] = [messages[0], messages.at(-1)];
  if (!first || !last) throw new Error('A commit needs a message.');
  return [first, last];
}

/** @param acceptedBy the contract that tells of the root with this event */
export function committed(
  messages: readonly SentMessage[],
  merkleRoot: Hex,
  receipt: RawReceipt,
  acceptedBy: readonly [Contract, eventName: string],
  isBlessed = false,
): Commit {
  const [contract, eventName] = acceptedBy;
  if (contract.events(receipt, eventName).length === 0)
    throw new Error(`The contract at ${contract.address} took the report and told of no root.`);
  const { transactionHash, blockNumber } = receipt;
  return { messages, merkleRoot, isBlessed, transactionHash, blockNumber: Number(blockNumber) };
}
