/**
 * A message of CCIP 1.6 as the official client takes it for an execution by hand: all that its leaf of the merkle tree is
 * hashed from, one element of `messageBatch`. Numbers are decimal strings, of which the client makes integers; addresses are
 * spelled as their chains do.
 */
import type { TokenAmount } from '../../domain/message.ts';

/** What families decode of the event, whose names they share. */
export interface SentParts {
  readonly header: {
    readonly messageId: string;
    readonly sourceChainSelector: bigint;
    readonly destChainSelector: bigint;
    readonly sequenceNumber: bigint;
    readonly nonce: bigint;
  };
  readonly sender: string;
  readonly feeToken: string;
  readonly feeTokenAmount: bigint;
  readonly feeValueJuels: bigint;
}

export interface ExecutionParts {
  /** As its chain spells it. */
  readonly receiver: string;
  /** In hex. */
  readonly data: string;
  /** `extraArgs` in hex as they were emitted, or their decoded fields, or both. */
  readonly extraArgs: Readonly<Record<string, unknown>>;
  readonly tokens: readonly TokenTransfer[];
}

export interface TokenTransfer
  extends Pick<TokenAmount, 'sourcePoolAddress' | 'destTokenAddress' | 'amount' | 'extraData'> {
  /** In hex, as it was emitted. */
  readonly destExecData: string | undefined;
  readonly destGasAmount?: TokenAmount['destGasAmount'];
}

export function executableMessage(
  { header, sender, feeToken, feeTokenAmount, feeValueJuels }: SentParts,
  { receiver, data, extraArgs, tokens }: ExecutionParts,
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
