/** Events of CCIP contracts as a node would log them, and the answers of their views. */
import { encodeAbiParameters, pad } from 'viem';
import * as abi from '../../src/ingest/evm/contracts/abi.ts';
import { extraArgsTags } from '../../src/ingest/evm/decode/v16.ts';
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';
import type { VirtualEvent } from './virtual-chain.ts';

export function encodeEvent(
  event: abi.ContractEvent,
  indexed: readonly unknown[],
  data: readonly unknown[],
): VirtualEvent {
  return {
    topics: [
      event.topic,
      ...event.indexed.map((input, index) => encodeAbiParameters([input], [indexed[index]])),
    ],
    data: encodeAbiParameters(event.data, data),
  };
}

export function encodeAnswer(view: abi.ContractFunction, values: readonly unknown[]): Hex {
  return encodeAbiParameters(view.outputs, values);
}

export interface MessageEvent16 {
  readonly messageId: Hex;
  readonly sourceChainSelector: bigint;
  readonly destChainSelector: bigint;
  readonly sequenceNumber: bigint;
  readonly sender: Hex;
  readonly receiver: Hex;
  readonly feeToken: Hex;
  readonly data?: Hex;
  /** None where it is left out. */
  readonly tokens?: readonly { readonly pool: Hex; readonly destToken: Hex; readonly amount: bigint }[];
}

/** `CCIPMessageSent` of a 1.6 on-ramp. */
export function messageSent16(message: MessageEvent16): VirtualEvent {
  const { messageId, sourceChainSelector, destChainSelector, sequenceNumber } = message;
  const extraArgs = encodeAbiParameters(abi.evmExtraArgsV2, [200_000n, true]);
  const body = {
    header: { messageId, sourceChainSelector, destChainSelector, sequenceNumber, nonce: 0n },
    sender: message.sender,
    data: message.data ?? '0x1234',
    receiver: pad(message.receiver),
    extraArgs: `${extraArgsTags.evmV2}${extraArgs.slice(2)}`,
    feeToken: message.feeToken,
    feeTokenAmount: 10n ** 15n,
    feeValueJuels: 10n ** 17n,
    tokenAmounts: (message.tokens ?? []).map(({ pool, destToken, amount }) => ({
      sourcePoolAddress: pool,
      destTokenAddress: pad(destToken),
      extraData: '0x12',
      amount,
      destExecData: pad('0x015f90'),
    })),
  };
  return encodeEvent(abi.ccipMessageSent16, [destChainSelector, sequenceNumber], [body]);
}

/** `CommitReportAccepted` of a 1.6 off-ramp, with one root that RMN has not blessed. */
export function commitReport16({
  onRamp,
  ...root
}: Readonly<Record<'sourceChainSelector' | 'minSeqNr' | 'maxSeqNr', bigint>> &
  Readonly<Record<'onRamp' | 'merkleRoot', Hex>>): VirtualEvent {
  const priceUpdates = { tokenPriceUpdates: [], gasPriceUpdates: [] };
  return encodeEvent(
    abi.commitReportAccepted,
    [],
    [[], [{ ...root, onRampAddress: pad(onRamp) }], priceUpdates],
  );
}

/** `ExecutionStateChanged` of a 1.6 off-ramp. State 2 is success, 3 failure. */
export function executionState16(
  sourceChainSelector: bigint,
  sequenceNumber: bigint,
  messageId: Hex,
  state = 2,
): VirtualEvent {
  return encodeEvent(
    abi.executionStateChanged16,
    [sourceChainSelector, sequenceNumber, messageId],
    [pad('0x'), state, '0x', 90_000n],
  );
}
