/** The outcome of a simulated message, drawn when it is sent. */
import type { Route } from './message-writer.ts';
import { failureModes, type LaneTiming } from './parameters.ts';
import type { Randomness } from './randomness.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

export type Outcome = Readonly<ReturnType<typeof drawOutcome>>;

export function drawOutcome(route: Route, timing: LaneTiming, inOrder: boolean, randomness: Randomness) {
  const drawMs = ([min, max]: readonly [number, number]) => randomness.mostlyNear(min, max) * SECOND_MS;
  const executeAfterMs = drawMs(timing.executeSeconds);
  const blessAfterMs = drawMs(timing.blessSeconds);
  const succeeds = !randomness.chance(route.profile.failureRate);
  // A stuck message of an ordered sender would block all that follow it.
  const isStuck = randomness.chance(failureModes.stuckChance) && !inOrder;
  return {
    executeAfterMs,
    blessAfterMs,
    succeeds,
    isStuck,
    /** Delay from finality for each verifier; null: it never verifies. Empty on lanes that commit. */
    verificationsMs: drawVerifications(route, isStuck, timing, randomness),
    /** One after the other. */
    manualExecutions: succeeds && !isStuck ? [] : drawManualExecutions(isStuck, randomness),
  };
}

function drawVerifications(
  route: Route,
  isStuck: boolean,
  timing: LaneTiming,
  randomness: Randomness,
): readonly (number | null)[] {
  let optionalCount = 0;
  return (route.verifiers?.items ?? []).map((verifier, index) => {
    const afterMs = randomness.mostlyNear(...timing.verifySeconds) * SECOND_MS;
    const isSilent = randomness.chance(failureModes.optionalVerifierSilence);
    if (isStuck) return index === 0 ? null : afterMs;
    if (verifier.isRequired) return afterMs;
    // Only verifiers that are not needed may be silent.
    const isNeeded = optionalCount < (route.verifiers?.optionalThreshold ?? 0);
    if (isSilent && !isNeeded) return null;
    optionalCount++;
    return afterMs;
  });
}

function drawManualExecutions(isStuck: boolean, randomness: Randomness) {
  const chance = isStuck ? failureModes.stuckExecutionChance : failureModes.failedExecutionChance;
  if (!randomness.chance(chance)) return [];
  const drawDelayMs = () => randomness.acrossMagnitudes(...failureModes.manualExecutionMinutes) * MINUTE_MS;
  const outcomes = randomness.chance(failureModes.secondAttemptChance) ? [false, true] : [true];
  return outcomes.map((succeeds) => ({ afterMs: drawDelayMs(), succeeds }));
}
