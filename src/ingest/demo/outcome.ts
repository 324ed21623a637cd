/**
 * The outcome of a simulated message, drawn when it is sent; and what receivers, tokens and pools on real networks revert
 * with where an execution fails.
 */
import { parseSignature, selectorOf } from '../../domain/abi-types.ts';
import type { SentMessage } from '../../domain/facts.ts';
import { SECOND_MS } from './chain.ts';
import { failureModes, type LaneProfile, laneTimings } from './parameters.ts';
import type { Randomness } from './randomness.ts';

const MINUTE_MS = 60 * SECOND_MS;

export type Outcome = Readonly<ReturnType<typeof drawOutcome>>;

export function drawOutcome(
  { failureRate, timing }: LaneProfile,
  { verifiers, extraArgs }: SentMessage,
  randomness: Randomness,
) {
  const { executeSeconds, blessSeconds, verifySeconds } = laneTimings[timing];
  const drawMs = ([min, max]: readonly [number, number]) => randomness.mostlyNear(min, max) * SECOND_MS;
  const succeeds = !randomness.chance(failureRate);
  // A stuck message of an ordered sender would block all that follow it.
  const isStuck = randomness.chance(failureModes.stuckChance) && extraArgs.allowOutOfOrderExecution;
  const chance = isStuck ? failureModes.stuckExecutionChance : failureModes.failedExecutionChance;
  const isRescued = (isStuck || !succeeds) && randomness.chance(chance);
  const isRepeated = randomness.chance(failureModes.secondAttemptChance);
  const isSilent = randomness.chance(failureModes.optionalVerifierSilence);
  return {
    executeAfterMs: drawMs(executeSeconds),
    blessAfterMs: drawMs(blessSeconds),
    succeeds,
    isStuck,
    /** Delay from finality for each verifier; null: it never verifies. Empty on lanes that commit. */
    verificationsMs: (verifiers?.items ?? []).map(({ isRequired }, index, { length }) => {
      const isLastOptional = !isRequired && index === length - 1;
      return (isStuck ? index === 0 : isLastOptional && isSilent) ? null : drawMs(verifySeconds);
    }),
    /** One after the other. */
    manualExecutions: (isRescued ? (isRepeated ? [false, true] : [true]) : []).map((succeedsThen) => ({
      afterMs: randomness.acrossMagnitudes(...failureModes.manualExecutionMinutes) * MINUTE_MS,
      succeeds: succeedsThen,
    })),
  };
}

// ---- Failures

/** What can go wrong for a message, and how often. */
type Choices = readonly (readonly [Cause, number])[];

interface Cause {
  /** The error of the contract, in hexadecimal without `0x`; empty: it reverts without a reason. */
  readonly data: string;
  readonly usesAllGas?: boolean;
  /** The pool reverts, before the receiver is called. */
  readonly token?: string;
}

/** The same for the same message and the same state of `randomness`. */
export function drawFailure(message: SentMessage, randomness: Randomness) {
  const callsReceiver = message.data !== '0x' || message.tokenAmounts.length === 0;
  const cause = randomness.pickWeighted([
    ...(callsReceiver ? receiverCauses(message) : []),
    ...poolCauses(message, randomness),
  ]);
  const gasLimit = 'gasLimit' in message.extraArgs ? Number(message.extraArgs.gasLimit) : 0;
  const used = cause.usesAllGas
    ? gasLimit + randomness.integer(21_000, 48_000)
    : randomness.integer(24_000, 90_000);
  return {
    returnData: `0x${wrapped(cause, message.version)}`,
    // Off-ramps report it since 1.6.
    gasUsed: message.version?.startsWith('1.6') ? String(used) : null,
  };
}

function receiverCauses({ sourceNetworkInfo, sender }: SentMessage): Choices {
  return [
    [{ data: '', usesAllGas: true }, 8],
    [{ data: errorText('deadline passed') }, 4],
    [{ data: errorText('slippage: 412 bps, limit 300') }, 2],
    [{ data: encoded('EnforcedPause()') }, 3],
    [{ data: encoded('Panic(uint256)', [17n]) }, 2],
    [{ data: encoded('SourceChainNotAllowlisted(uint64)', [BigInt(sourceNetworkInfo.chainSelector)]) }, 2],
    ...(/^0x[0-9a-f]{40}$/i.test(sender)
      ? [[{ data: encoded('SenderNotAllowlisted(address)', [BigInt(sender)]) }, 2] as const]
      : []),
    // The receiver's own error, which no table has.
    [{ data: encoded('QuoteExpired(uint256,uint256)', [9_120n, 9_500n]) }, 3],
  ];
}

function poolCauses({ tokenAmounts }: SentMessage, randomness: Randomness): Choices {
  const [first] = tokenAmounts;
  if (!first || !/^0x[0-9a-f]{40}$/i.test(first.destTokenAddress)) return [];
  const { destTokenAddress: token } = first;
  const amount = BigInt(first.amount);
  const waitSeconds = BigInt(randomness.integer(60, 5_400));
  const limits = [waitSeconds, (amount * 3n) / 10n, BigInt(token)];
  const capacities = [amount / 2n, amount, BigInt(token)];
  return [
    [{ token, data: encoded('TokenRateLimitReached(uint256,uint256,address)', limits) }, 6],
    [{ token, data: encoded('InsufficientLiquidity()') }, 4],
    [{ token, data: encoded('TokenMaxCapacityExceeded(uint256,uint256,address)', capacities) }, 1],
    [{ token, data: errorText('Pausable: paused') }, 1],
  ];
}

/** As the off-ramp of the version hands it on. */
function wrapped({ data, token }: Cause, version: string | null): string {
  if (token === undefined) return encoded('ReceiverError(bytes)', [], data);
  return version === '1.5.0'
    ? encoded('TokenHandlingError(bytes)', [], data)
    : encoded('TokenHandlingError(address,bytes)', [BigInt(token)], data);
}

/** @param bytes of the last argument, where it is a byte string or a text */
function encoded(signature: string, values: readonly bigint[] = [], bytes?: string): string {
  const parsed = parseSignature(signature);
  if (!parsed) throw new Error(`"${signature}" is not the signature of an error`);
  const tail = bytes === undefined ? '' : encodedBytes(bytes, values.length + 1);
  return `${selectorOf(parsed)}${values.map(word).join('')}${tail}`;
}

function errorText(text: string): string {
  return encoded('Error(string)', [], Buffer.from(text, 'utf8').toString('hex'));
}

// ---- ABI encoding

export function word(value: bigint | number): string {
  return value.toString(16).padStart(64, '0');
}

/** A byte string, in hexadecimal, as the last of so many arguments. */
export function encodedBytes(bytes: string, args = 1): string {
  const padded = bytes.padEnd(Math.ceil(bytes.length / 64) * 64, '0');
  return `${word(32 * args)}${word(bytes.length / 2)}${padded}`;
}
