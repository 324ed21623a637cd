/** What becomes of a simulated message. */
import type { Route } from './message-writer.ts';
import type { Randomness } from './randomness.ts';
import { mishaps, type Pace } from './world.ts';

const second = 1_000;
const minute = 60 * second;

/** What will become of a message, decided when it is sent; durations in milliseconds. */
export interface Fate {
  /** From finality, one per verifier; null: it never speaks. Empty on lanes that commit. */
  readonly verifications: readonly (number | null)[];
  readonly blessAfter: number;
  readonly isStuck: boolean;
  readonly executeAfter: number;
  readonly succeeds: boolean;
  /** Executions by hand, one after the other. */
  readonly rescues: readonly { readonly after: number; readonly succeeds: boolean }[];
}

export function drawFate(route: Route, pace: Pace, inOrder: boolean, randomness: Randomness): Fate {
  const seconds = ([min, max]: readonly [number, number]) => randomness.mostlyNear(min, max) * second;
  const executeAfter = seconds(pace.executeSeconds);
  const blessAfter = seconds(pace.blessSeconds);
  const succeeds = !randomness.chance(route.habits.failureRate);
  // A forgotten message in order would hold up all that follow it.
  const isStuck = randomness.chance(mishaps.stuckChance) && !inOrder;
  return {
    executeAfter,
    blessAfter,
    succeeds,
    isStuck,
    verifications: drawVerifications(route, isStuck, pace, randomness),
    rescues: succeeds && !isStuck ? [] : drawRescues(isStuck, randomness),
  };
}

function drawVerifications(
  route: Route,
  isStuck: boolean,
  pace: Pace,
  randomness: Randomness,
): readonly (number | null)[] {
  let willingOptional = 0;
  return (route.verifiers?.items ?? []).map((verifier, index) => {
    const after = randomness.mostlyNear(...pace.verifySeconds) * second;
    const isSilent = randomness.chance(mishaps.optionalVerifierSilence);
    if (isStuck) return index === 0 ? null : after;
    if (verifier.isRequired) return after;
    // Silence is the right of those that are not needed.
    const isNeeded = willingOptional < (route.verifiers?.optionalThreshold ?? 0);
    if (isSilent && !isNeeded) return null;
    willingOptional++;
    return after;
  });
}

function drawRescues(isStuck: boolean, randomness: Randomness): Fate['rescues'] {
  const chance = isStuck ? mishaps.stuckRescueChance : mishaps.failureRescueChance;
  if (!randomness.chance(chance)) return [];
  const after = () => randomness.acrossMagnitudes(...mishaps.rescueMinutes) * minute;
  return randomness.chance(mishaps.failedRescueChance)
    ? [
        { after: after(), succeeds: false },
        { after: after(), succeeds: true },
      ]
    : [{ after: after(), succeeds: true }];
}
