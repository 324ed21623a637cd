import { expect } from 'vitest';
import { OperatorError } from '../src/base/operator-error.ts';

/** The error in words for operators that an attempt ends with; fails where it ends well, or in another way. */
export async function operatorErrorOf(attempt: () => unknown): Promise<OperatorError> {
  let outcome: unknown = new Error('It was accepted');
  try {
    await attempt();
  } catch (error) {
    outcome = error;
  }
  expect(outcome).toBeInstanceOf(OperatorError);
  return outcome as OperatorError;
}
