/**
 * From what a contract emitted to facts, as far as it is the same for every family: networks, addresses and ranges are
 * checked, and a message goes through the parser of imports.
 */
import type { Hex } from '../../base/hex.ts';
import { addressFromBytes, type ChainFamily, zeroAddresses } from '../../domain/addresses.ts';
import { familyTraits } from '../../domain/chain-families.ts';
import type { Observation, RangeFact, SentMessage } from '../../domain/facts.ts';
import type { NetworkInfo, TokenAmount } from '../../domain/message.ts';
import { type Network, networkBySelector } from '../../domain/networks/networks.ts';
import { parseMessage } from '../../domain/records/message-parser.ts';

/** The log says something that no record can hold; the message is for people. */
export class UnreadableLogError extends Error {}

/**
 * What was sent. It goes through the parser that imports go through: whatever a contract has emitted, nothing enters that
 * could not be exported and imported again.
 */
export function parseSentMessage(record: object, source: Network, dest: Network): SentMessage {
  const parsed = parseMessage({
    ...record,
    sourceNetworkInfo: networkInfo(source),
    destNetworkInfo: networkInfo(dest),
    status: 'SENT',
    readyForManualExecution: false,
  });
  if (!parsed.ok) {
    throw new UnreadableLogError(parsed.problems.map(({ path, problem }) => `${path} ${problem}`).join('; '));
  }
  const {
    status,
    receiptTransactionHash,
    receiptTimestamp,
    deliveryTime,
    readyForManualExecution,
    ...message
  } = parsed.message;
  return message;
}

export function networkInfo({ name, selector, chainId, family, displayName }: Network): NetworkInfo {
  return { name, chainSelector: selector, chainId, chainFamily: family, displayName };
}

/** As many sequence numbers as the store takes in one fact; no merkle root has more than 256 leaves. */
const MAX_RANGE = 1_048_576n;

export function committedFact(
  range: { readonly min: bigint; readonly max: bigint; readonly merkleRoot: Hex; readonly offramp: string },
  lane: RangeFact['lane'],
  seen: Observation,
): RangeFact {
  const { min, max, merkleRoot, offramp } = range;
  if (min > max || max - min >= MAX_RANGE || max >= 2n ** 64n) {
    throw new UnreadableLogError(
      `a root commits to the sequence numbers ${min} to ${max}, which no root can`,
    );
  }
  return {
    kind: 'Committed',
    lane,
    fromSequenceNumber: min.toString(),
    toSequenceNumber: max.toString(),
    merkleRoot,
    offramp,
    seen,
  };
}

export function onRampOf(bytes: Hex, { family }: Network): string {
  return spelled(bytes, family, 'on-ramp') + familyTraits(family).onRampSuffix;
}

export function knownNetwork(selector: bigint | string, end: 'source' | 'destination'): Network {
  const network = networkBySelector(selector.toString());
  if (!network)
    throw new UnreadableLogError(
      `chain selector ${selector} of the ${end} is unknown: define that chain under \`chains\` in lanescan.yaml`,
    );
  return network;
}

/** An on-ramp speaks for its own chain alone. */
export function rejectOtherSource(selector: bigint, network: Network): void {
  if (selector.toString() !== network.selector) {
    throw new UnreadableLogError(
      `it names ${selector} as its source; ${network.name} is ${network.selector}`,
    );
  }
}

/** An address of another chain, or of this one, that a contract tells as bytes. */
export function spelled(bytes: Hex, family: ChainFamily, what: string): string {
  const spelling = addressFromBytes(bytes.slice(2), family);
  if (!spelling) throw new UnreadableLogError(`its ${what} ${shortened(bytes)} is no ${family} address`);
  return spelling.text;
}

/**
 * The token on the destination. A token pool, which anybody may write, says so: a malformed one must not hide the
 * message, and becomes the zero address.
 */
export function spelledToken(bytes: Hex, family: ChainFamily): string {
  return addressFromBytes(bytes.slice(2), family)?.text ?? zeroAddresses[family];
}

/** Gas for the pool on the destination: one number, big-endian; null for anything else. */
export function gasOf(destExecData: Hex): string | null {
  return destExecData.length > 2 && destExecData.length <= 66 ? BigInt(destExecData).toString() : null;
}

export function shortened(text: string, length = 80): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** What families decode of a 1.6 message, whose names they share. */
interface SentParts {
  readonly header: { readonly messageId: string } & Readonly<
    Record<'sourceChainSelector' | 'destChainSelector' | 'sequenceNumber' | 'nonce', bigint>
  >;
  readonly sender: string;
  readonly feeToken: string;
  readonly feeTokenAmount: bigint;
  readonly feeValueJuels: bigint;
}

interface TokenTransfer
  extends Pick<TokenAmount, 'sourcePoolAddress' | 'destTokenAddress' | 'amount' | 'extraData'> {
  /** In hex, as it was emitted. */
  readonly destExecData: string | undefined;
  readonly destGasAmount?: TokenAmount['destGasAmount'];
}

/**
 * A message of CCIP 1.6 as the official client takes it for an execution by hand: all that its leaf of the merkle tree is
 * hashed from, one element of `messageBatch`. Numbers are decimal strings, of which the client makes integers; addresses are
 * spelled as their chains do; data is in hex.
 *
 * @param extraArgs `extraArgs` in hex as they were emitted, or their decoded fields, or both
 */
export function executableMessage(
  { header, sender, feeToken, feeTokenAmount, feeValueJuels }: SentParts,
  {
    receiver,
    data,
    extraArgs,
    tokens,
  }: {
    readonly receiver: string;
    readonly data: string;
    readonly extraArgs: Readonly<Record<string, unknown>>;
    readonly tokens: readonly TokenTransfer[];
  },
): Readonly<Record<string, unknown>> {
  return {
    messageId: header.messageId,
    sourceChainSelector: header.sourceChainSelector.toString(),
    destChainSelector: header.destChainSelector.toString(),
    sequenceNumber: header.sequenceNumber.toString(),
    nonce: header.nonce.toString(),
    sender,
    receiver,
    data,
    ...extraArgs,
    feeToken,
    feeTokenAmount: feeTokenAmount.toString(),
    feeValueJuels: feeValueJuels.toString(),
    tokenAmounts: tokens.map(
      ({ sourcePoolAddress, destTokenAddress, amount, extraData, destExecData, destGasAmount }) => ({
        sourcePoolAddress,
        destTokenAddress,
        amount,
        extraData,
        destExecData,
        ...(destGasAmount !== undefined && { destGasAmount }),
      }),
    ),
  };
}
