/**
 * The order of a sender's messages. Up to 1.6, an off-ramp skips a message with a nonce that was never tried, unless its nonce
 * is the next one of its sender: the transaction succeeds, and the message stays as it is.
 */
import type { FailureReason } from '../failures/failure-reason.ts';
import { encodeCall, type Hex, parseFunction } from './abi-encoding.ts';
import type { RampMessage } from './ramp-messages.ts';

export interface MessageOrder {
  readonly nonce: bigint;
  /** Asks for the last nonce of the sender that had its turn. */
  readonly nonceCall: Hex;
  /** Asks the off-ramp which contract answers that; the word of its answer. Null: the off-ramp itself does. */
  readonly managerCall: { readonly data: Hex; readonly word: number } | null;
}

const senderNonce = parseFunction('getSenderNonce(address sender)');
const inboundNonce = parseFunction('getInboundNonce(uint64 sourceChainSelector,bytes sender)');
const managerCall = { data: encodeCall(parseFunction('getStaticConfig()'), {}), word: 4 };

/** Null for a message that is executed in any order. */
export function orderOf(
  { nonce, sender }: RampMessage,
  version: '1.2' | '1.5' | '1.6',
  sourceChainSelector: bigint,
): MessageOrder | null {
  if (nonce === 0n) return null;
  return version === '1.6'
    ? { nonce, nonceCall: encodeCall(inboundNonce, { sourceChainSelector, sender }), managerCall }
    : { nonce, nonceCall: encodeCall(senderNonce, { sender }), managerCall: null };
}

const SKIPPED = 'SkippedIncorrectNonce';

/** Why a message that was never tried would be skipped; null where it is its turn. */
export function whySkipped(nonce: bigint, lastNonce: bigint): FailureReason | null {
  const next = lastNonce + 1n;
  if (nonce === next) return null;
  const skipped = { code: SKIPPED, saidBy: 'ccip', wrappers: [], error: null, data: '0x' } as const;
  return nonce > next
    ? {
        ...skipped,
        text:
          `The off-ramp would skip the message: it has nonce ${nonce}, and an earlier message of the same sender, ` +
          `with nonce ${next} on this lane, has to be executed first.`,
        fixableBy: 'anyone',
        advice: `Execute the sender's messages in the order of their nonces, from ${next} on; then try this one again.`,
      }
    : {
        ...skipped,
        text:
          `The off-ramp would skip the message: its nonce ${nonce} is used already, and yet no execution of it is ` +
          'recorded.',
        fixableBy: 'unknown',
        advice:
          'It may have been executed a moment ago: try again shortly. If this stays so, the off-ramp does not execute it any more.',
      };
}

/** Whether sending would cost a fee and change nothing. Receivers may use the name too. */
export function isSkipped(reason: FailureReason | null): boolean {
  return reason?.code === SKIPPED && reason.saidBy === 'ccip';
}
