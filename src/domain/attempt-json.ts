/** An attempt to execute a message as JSON, the same in the API, in exports, in streams and in webhooks. */
import type { Attempt } from './attempts.ts';
import type { FailureReason } from './failures/failure-reason.ts';
import type { DecodedError } from './failures/revert-data.ts';
import { networkBySelector } from './networks/networks.ts';

export function attemptJson({ network, reason, ...attempt }: Attempt) {
  return {
    ...attempt,
    logs: attempt.logs && [...attempt.logs],
    network,
    networkName: networkBySelector(network)?.name ?? null,
    reason: reason && reasonJson(reason),
  };
}

export function reasonJson({ code, saidBy, text, fixableBy, advice, error, wrappers, data }: FailureReason) {
  return {
    code,
    saidBy,
    text,
    fixableBy,
    advice,
    error: error && errorJson(error),
    wrappers: wrappers.map(errorJson),
    data,
  };
}

function errorJson({ name, arguments: given, isCut, isFromOperator, isFromProgram }: DecodedError) {
  return {
    name,
    arguments: given.map((argument) => ({ name: argument.name ?? null, value: argument.value })),
    cut: isCut,
    namedBy: isFromProgram
      ? ('program' as const)
      : isFromOperator
        ? ('operator' as const)
        : ('lanescan' as const),
  };
}
