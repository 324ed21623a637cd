/** What an execution left behind beside its outcome: who paid, compute units and, where it failed, error and log lines. */

import type { ExecutionDetails, Observation } from '../../../domain/facts.ts';
import type { CalledRole } from '../../../domain/failures/program-errors.ts';
import { LOG_TRUNCATED, type ProgramFailure } from '../../../domain/failures/program-reason.ts';
import { cleanClaim, withoutDisguise } from '../../../domain/names/claimed-text.ts';
import type { Instruction, SolanaTransaction } from '../transaction.ts';
import { decodeBase58, discriminatorIn, discriminatorOf, readable } from './borsh.ts';

/** The end of a log has the error and the calls that led to it. Programs write what they want in between. */
const MAX_LINES = 60;
const MAX_LINE_CHARACTERS = 300;
const MAX_LOG_CHARACTERS = 6_000;
const MAX_ERROR_CHARACTERS = 300;

export function executionDetails(
  messageId: string,
  offRamp: string,
  transaction: SolanaTransaction,
  seen: Observation,
): ExecutionDetails {
  const { feePayer, computeUnits } = transaction;
  return {
    kind: 'ExecutionDetails',
    messageId,
    returnData: null,
    gasUsed: computeUnits?.toString() ?? null,
    caller: feePayer,
    ...(transaction.isFailed && { failure: failureOf(transaction, offRamp) }),
    seen,
  };
}

function failureOf({ error, logs, instructions }: SolanaTransaction, offRamp: string): ProgramFailure {
  const roles = new Map<string, CalledRole>();
  for (const instruction of instructions) {
    const role = instruction.caller?.program === offRamp ? calledRole(instruction) : undefined;
    if (role) roles.set(instruction.program, role);
  }
  return {
    offRamp,
    roles: Object.fromEntries(roles),
    // Also without half of a character at its end, which the store could not read again.
    error: withoutDisguise(error.slice(0, MAX_ERROR_CHARACTERS)),
    logs: lastLines(logs),
  };
}

const roles: ReadonlyMap<string, CalledRole> = new Map([
  [discriminatorOf('global', 'ccip_receive'), 'receiver'],
  [discriminatorOf('global', 'release_or_mint_tokens'), 'pool'],
  [discriminatorOf('global', 'verify_not_cursed'), 'rmn'],
]);

/** What the off-ramp calls a program for. The data is the off-ramp's, so no program can pass for another. */
export function calledRole({ data }: Instruction): CalledRole | undefined {
  return readable(() => roles.get(discriminatorIn(decodeBase58(data))));
}

/** Without control characters, which no line needs and the store cannot hold. */
function lastLines(lines: readonly string[]): readonly string[] {
  const kept: string[] = [];
  let characters = 0;
  for (const line of lines.slice(-MAX_LINES).reverse()) {
    const clean = cleanClaim(line, MAX_LINE_CHARACTERS) ?? '';
    characters += clean.length;
    if (characters > MAX_LOG_CHARACTERS) break;
    kept.push(clean);
  }
  kept.reverse();
  // Whether the log was cut off decides what its other lines prove.
  return lines.includes(LOG_TRUNCATED) && !kept.includes(LOG_TRUNCATED) ? [LOG_TRUNCATED, ...kept] : kept;
}
