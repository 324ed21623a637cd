/**
 * Whether a manual execution would work now, found out by simulating it on the destination.
 *
 * Two calls are simulated together: the one that anybody sends, and the one that the off-ramp makes to itself. The first
 * shows whether the off-ramp takes the execution at all. Where the message fails in it, a first attempt still succeeds as
 * a transaction (in 1.2 every attempt), so that only the second shows the failure, and more of its reason. Neither shows
 * that the off-ramp skips a message which is not the next one of its sender: its nonce is asked for.
 */
import { type FailedAttempt, type FailureReason, failureReason } from '../failures/failure-reason.ts';
import { bytesOf, type Hex } from './abi-encoding.ts';
import { type MessageOrder, type PreparedExecution, whySkipped } from './prepared-execution.ts';
import { transactionGas } from './transaction-gas.ts';

export interface SimulatedCall {
  readonly from: Hex;
  readonly to: Hex;
  readonly data: Hex;
}

export type CallOutcome = { readonly returned: Hex } | { readonly reverted: Hex };

/** Simulated calls on a destination. They reject where no endpoint answers. */
export interface DestinationCalls {
  /** All at the newest block of one endpoint. */
  simulate(calls: readonly SimulatedCall[]): Promise<{
    readonly block: BlockMoment;
    /** In the order of the calls. */
    readonly outcomes: readonly CallOutcome[];
  }>;
  /** Undefined for a call that would revert, and where the endpoint does not estimate. */
  estimateGas(calls: readonly SimulatedCall[]): Promise<readonly (bigint | undefined)[]>;
}

export interface BlockMoment {
  readonly number: number;
  /** Seconds since 1970. */
  readonly timestamp: number;
}

export interface Diagnosis {
  readonly outcome: 'succeeds' | 'fails' | 'not-yet' | 'executed';
  /** In sentences. They may hold text of untrusted contracts. */
  readonly text: string;
  /** Gas limit for the receiver that the execution needs; null: the message's own suffices, or none is known to help. */
  readonly gasLimit: bigint | null;
  /** Gas of the transaction, with a margin; null where none is known to suffice. */
  readonly gas: bigint | null;
  /** Why the gas is not an estimate; null where it is, and where the execution would not succeed. */
  readonly gasNote: string | null;
  readonly reason: FailureReason | null;
  /** When the off-ramp takes it from anybody; null where that is not known or not what it waits for. */
  readonly opensAt: string | null;
  readonly block: BlockMoment;
}

export interface DiagnosisOptions {
  /** For the receiver. Default: what the sender has set, and more where that does not suffice. */
  readonly gasLimit?: bigint | undefined;
  readonly committedAt: string | null;
  /** Aborted when nobody waits any longer. */
  readonly signal?: AbortSignal;
}

/** The sender that off-ramps expect in simulations: with it, an execution that lacks gas reverts. */
const SIMULATION_SENDER: Hex = '0x00c11c11c11c11c11c11c11c11c11c11c11c11c1';
/** The highest gas limit that is tried; chains take no transaction of much more. */
const MAX_TRIED_GAS = 10_000_000n;
/** Steps of the search for the least gas limit; they narrow a factor of 5,000 down to less than a seventh. */
const SEARCH_STEPS = 6;
const GAS_UNIT = 10_000n;

const STATE_SUCCESS = 2n;
const STATE_FAILURE = 3n;

/** Errors of off-ramps around the failure of the execution itself. */
const executionWrappers = ['ExecutionError', 'NoStateProgressMade', 'ReceiverError', 'TokenHandlingError'];

export async function diagnose(
  prepared: PreparedExecution,
  destination: DestinationCalls,
  { gasLimit, committedAt, signal }: DiagnosisOptions,
): Promise<Diagnosis> {
  const { offramp, stateCall, thresholdCall, order } = prepared;
  const ask = (data: Hex): SimulatedCall => ({ from: SIMULATION_SENDER, to: offramp, data });
  const whole = (limit?: bigint) => ask(prepared.execute(limit).data);
  const alone = (limit?: bigint) => ({ from: offramp, to: offramp, data: prepared.executeAlone(limit) });

  const { block, outcomes } = await destination.simulate([
    whole(gasLimit),
    alone(gasLimit),
    ask(stateCall),
    ...(thresholdCall ? [ask(thresholdCall.data)] : []),
    // Versions with an order have a threshold.
    ...(order ? [ask(order.managerCall?.data ?? order.nonceCall)] : []),
  ]);
  const [wholeOutcome, aloneOutcome, stateOutcome, thresholdOutcome, orderOutcome] = outcomes;
  const state = wordIn(stateOutcome, 0);
  const base = { gasLimit: null, gas: null, gasNote: null, reason: null, opensAt: null, block };
  if (state === STATE_SUCCESS)
    return { ...base, outcome: 'executed', text: 'The message has been executed successfully.' };

  const { version } = prepared;
  const terms = { gasLimit: gasLimit ?? prepared.gasLimit, version };
  const lastNonce = async ({ nonceCall, managerCall }: MessageOrder): Promise<bigint> => {
    let answer = orderOutcome;
    if (managerCall) {
      signal?.throwIfAborted();
      const manager = addressIn(orderOutcome, managerCall.word);
      const { outcomes } = await destination.simulate([{ ...ask(nonceCall), to: manager }]);
      [answer] = outcomes;
    }
    const nonce = wordIn(answer, 0);
    if (nonce === undefined) throw new Error(`Nothing tells the nonce of the sender at ${offramp}.`);
    return nonce;
  };
  // A message that failed has had its turn.
  const hasOrder = order !== null && state !== STATE_FAILURE;
  const skip = hasOrder ? whySkipped(order.nonce, await lastNonce(order)) : null;
  const execution = skip ?? reasonOf(aloneOutcome, terms);
  const rejection = rejectionOf(wholeOutcome, { ...terms, isWhole: true });
  if (rejection?.code === 'ManualExecutionNotYetEnabled') {
    const seconds = thresholdCall ? wordIn(thresholdOutcome, thresholdCall.word) : undefined;
    const opensAt = openingTime(committedAt, seconds);
    const when = opensAt === null ? 'Later' : `From ${opensAt} on`;
    const then = execution === null ? '' : ` It would fail now: ${execution.text}`;
    const text = `${when} anybody may execute the message; until then the off-ramp leaves it to the regular execution.${then}`;
    return { ...base, outcome: 'not-yet', text, reason: execution, opensAt };
  }
  if (rejection?.code === 'RootNotCommitted')
    return { ...base, outcome: 'not-yet', text: rejection.text, reason: rejection };
  if (rejection) return { ...base, outcome: 'fails', text: rejection.text, reason: rejection };

  // Where the transaction of a failed execution succeeds, only the inner call shows the failure.
  const isHidden = state !== STATE_FAILURE || version === '1.2';
  const succeedsWith = async (limit: bigint): Promise<boolean> => {
    signal?.throwIfAborted();
    const { outcomes } = await destination.simulate([isHidden ? alone(limit) : whole(limit)]);
    return outcomes.length === 1 && outcomes.every((outcome) => 'returned' in outcome);
  };
  const success = async (limit: bigint | undefined): Promise<Diagnosis> => {
    signal?.throwIfAborted();
    const isRaised = limit !== undefined && gasLimit === undefined;
    const text = isRaised
      ? `A manual execution would succeed now with a gas limit of ${figure(limit)} instead of ${figure(prepared.gasLimit)}.`
      : 'A manual execution would succeed now.';
    const estimates = await destination.estimateGas([whole(limit), ...(isHidden ? [alone(limit)] : [])]);
    const { gas, note } = transactionGas(prepared, limit, withMargin(estimates));
    return { ...base, outcome: 'succeeds', text, gasLimit: limit ?? null, gas, gasNote: note };
  };
  const failure = (reason: FailureReason): Diagnosis => ({
    ...base,
    outcome: 'fails',
    text: reason.text,
    reason,
  });
  if (execution === null) return success(gasLimit);

  // A receiver that runs out of gas may hide it behind any other error.
  const canSearch =
    gasLimit === undefined && execution.saidBy === 'receiver' && prepared.gasLimit * 2n <= MAX_TRIED_GAS;
  if (!canSearch) return failure(execution);
  // A receiver that uses up all gas may take longer than an endpoint gives it. That it fails is known all the same.
  const helps = await succeedsWith(MAX_TRIED_GAS).catch(() => undefined);
  if (helps) return success(await leastGasLimit(prepared.gasLimit, succeedsWith));
  if (execution.code !== 'out-of-gas') return failure(execution);
  if (helps === false) return failure(withoutEnd(execution));
  return failure({ ...execution, text: `${execution.text} Whether more gas helps could not be found out.` });
}

type Terms = Omit<FailedAttempt, 'returnData'>;

/** Why the off-ramp rejects the call before it executes the message; null where it executes it, successfully or not. */
function rejectionOf(outcome: CallOutcome | undefined, terms: Terms): FailureReason | null {
  const reason = reasonOf(outcome, terms);
  const [outermost] = reason?.wrappers ?? [];
  return outermost && executionWrappers.includes(outermost.name) ? null : reason;
}

function reasonOf(outcome: CallOutcome | undefined, terms: Terms): FailureReason | null {
  if (outcome === undefined || 'returned' in outcome) return null;
  return failureReason({ returnData: bytesOf(outcome.reverted), ...terms });
}

/** The least gas limit that succeeds, between the message's own, which fails, and the highest, which succeeds. */
async function leastGasLimit(failing: bigint, succeedsWith: (limit: bigint) => Promise<boolean>) {
  let low = failing > 0n ? failing : 1n;
  let high = MAX_TRIED_GAS;
  for (let step = 0; step < SEARCH_STEPS; step++) {
    // A binary search on the logarithm: the limits span several orders of magnitude.
    const middle = BigInt(Math.round(Math.sqrt(Number(low) * Number(high))));
    if (middle <= low || middle >= high) break;
    if (await succeedsWith(middle)) high = middle;
    else low = middle;
  }
  const rounded = ((high + GAS_UNIT - 1n) / GAS_UNIT) * GAS_UNIT;
  return rounded < MAX_TRIED_GAS ? rounded : MAX_TRIED_GAS;
}

/** A fifth more: other transactions change what the execution meets. */
function withMargin(estimates: readonly (bigint | undefined)[]): bigint | null {
  let sum = 0n;
  for (const estimate of estimates) {
    if (estimate === undefined) return null;
    sum += estimate;
  }
  return (sum * 6n) / 5n;
}

/** More gas does not help it. */
function withoutEnd(reason: FailureReason): FailureReason {
  return {
    ...reason,
    code: 'no-reason',
    text: `The receiver reverts without a reason, with a gas limit of ${figure(MAX_TRIED_GAS)} too: it rejects the message, or uses up all gas.`,
    fixableBy: 'receiver-owner',
    advice:
      "The receiver's code says when it does this. Once that no longer holds, execute the message manually.",
  };
}

function openingTime(committedAt: string | null, seconds: bigint | undefined): string | null {
  if (committedAt === null || seconds === undefined || seconds > 0xffff_ffffn) return null;
  // The contract asks for more seconds than the threshold has.
  return new Date(Date.parse(committedAt) + (Number(seconds) + 1) * 1000).toISOString();
}

function wordIn(outcome: CallOutcome | undefined, place: number): bigint | undefined {
  if (outcome === undefined || 'reverted' in outcome) return undefined;
  const digits = outcome.returned.slice(2 + 64 * place, 2 + 64 * (place + 1));
  return digits.length === 64 ? BigInt(`0x${digits}`) : undefined;
}

function addressIn(outcome: CallOutcome | undefined, place: number): Hex {
  const digits = wordIn(outcome, place)?.toString(16).padStart(40, '0');
  if (digits?.length !== 40) throw new Error('The off-ramp does not name the contract that counts nonces.');
  return `0x${digits}`;
}

function figure(number: bigint): string {
  return number.toLocaleString('en');
}
