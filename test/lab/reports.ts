/** What the reports of oracle networks have in common up to 1.6: their types, and proofs that a root has a message. */
import type { AbiParameter, Hex } from 'viem';
import type { Commit, SentMessage } from './deployment.ts';
import type { Contract, Network, RawReceipt } from './network.ts';
import { calculateManualExecProof, silent } from './sdk-chain.ts';

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
export function prove(messages: readonly SentMessage[], one: SentMessage, source: Network, dest: Network) {
  const lane = {
    sourceChainSelector: source.selector,
    destChainSelector: dest.selector,
    onRamp: one.ramps.onRamp.address,
    version: `${one.version}.0`,
  };
  const decoded = messages.map((message) => message.decoded);
  return calculateManualExecProof(decoded, lane, one.messageId, undefined, { logger: silent });
}

export function proveCommitted(
  message: SentMessage,
  commit: Commit | undefined,
  source: Network,
  dest: Network,
) {
  if (!commit) throw new Error(`The message ${message.messageId} is not committed.`);
  return prove(commit.messages, message, source, dest);
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
