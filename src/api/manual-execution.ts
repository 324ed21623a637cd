/** The transaction that executes a message, ready for a wallet. */
import { parseAddress } from '../domain/addresses.ts';
import { ApiError } from '../domain/errors.ts';
import type { AbiInput } from '../domain/manual-execution/abi-encoding.ts';
import { parseParameters, wholeNumber } from '../domain/search-parameters.ts';
import type { Diagnoses } from './diagnoses.ts';
import { evmChainId, notOpenText, type ReadyExecution } from './execution-preparation.ts';
import { messageIdDigits, messageIdParameter } from './messages.ts';
import type { Route, RouteParameter } from './route.ts';
import { ManualExecution } from './schemas/manual-execution.ts';

/** 2.0 has 32 bits for it. */
export const MAX_GAS_LIMIT = 2 ** 32 - 1;

const gasLimitParameter: RouteParameter = {
  name: 'gasLimit',
  description:
    'Gas for the receiver, instead of what the sender has set. Not less than that. Left out: what the sender has set.',
  schema: { type: 'integer', minimum: 1, maximum: MAX_GAS_LIMIT },
};

export const manualExecutionRoutes: readonly Route[] = [
  {
    path: '/v2/messages/{messageId}/manual-execution',
    aliases: ['/messages/{messageId}/manual-execution'],
    mediaType: 'application/json',
    isCostly: true,
    operationId: 'getManualExecution',
    tag: 'Messages',
    summary: 'Transaction that executes a message',
    description:
      'For a message that failed or got stuck: the transaction that executes it on its destination, merkle proof ' +
      'included, for any account to sign and send. Up to version 1.6 the proof is checked against the committed root, above it ' +
      'the message against its id.',
    pathParameters: [messageIdParameter],
    queryParameters: [gasLimitParameter],
    success: { description: 'The transaction.', schema: ManualExecution },
    errors: [400, 404, 409],
    async handle({ path: { messageId = '' }, query }, { preparations, diagnoses }) {
      const { gasLimit } = parseParameters(query, { gasLimit: wholeNumber(1, MAX_GAS_LIMIT) });
      const preparation = await preparations.prepare(messageIdDigits(messageId));
      if (preparation.kind === 'blocked') throw new ApiError(preparation.code, preparation.text);
      refuseLowGasLimit(preparation, gasLimit);
      if (!preparation.isOpen) throw new ApiError('MANUAL_EXECUTION_NOT_OPEN', notOpenText(preparation));
      const body = executionBody(preparation, gasLimit, await estimateGas(preparation, gasLimit, diagnoses));
      return { body: JSON.stringify(body, decimalIntegers) };
    },
  },
];

/** An off-ramp takes a gas limit only where it is not lower than the message's own. */
export function refuseLowGasLimit({ prepared }: ReadyExecution, gasLimit: number | undefined): void {
  if (gasLimit === undefined || BigInt(gasLimit) >= prepared.gasLimit) return;
  throw new ApiError('INVALID_PARAMETERS', 'gasLimit is too low.', [
    {
      parameter: 'gasLimit',
      problem: `is less than the sender has set (${prepared.gasLimit}), which the off-ramp refuses`,
    },
  ]);
}

interface GasEstimate {
  readonly gas: bigint | null;
  readonly note: string | null;
}

/** Never an error: the transaction is right without it, and wallets estimate too. */
async function estimateGas(
  execution: ReadyExecution,
  gasLimit: number | undefined,
  diagnoses: Diagnoses,
): Promise<GasEstimate> {
  if (!(await diagnoses.canTry(execution)))
    return { gas: null, note: 'This service has no endpoint of the destination to estimate it on.' };
  try {
    // Named, so that it is not raised: the estimate is of this transaction.
    const own = gasLimit ?? Number(execution.prepared.gasLimit);
    const { outcome, text, gas } = await diagnoses.diagnose(execution, own);
    if (outcome !== 'succeeds') return { gas: null, note: `The execution would not succeed now. ${text}` };
    return { gas, note: gas === null ? 'The endpoint of the destination gave no estimate.' : null };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { gas: null, note: error.message };
  }
}

function executionBody(
  { message, prepared, inputs }: ReadyExecution,
  gasLimit: number | undefined,
  { gas, note }: GasEstimate,
): ManualExecution {
  const chainId = evmChainId(message);
  if (chainId === null)
    throw new ApiError(
      'MANUAL_EXECUTION_UNSUPPORTED',
      `The chain id of ${message.destNetworkInfo.name} is not known here.`,
    );
  const call = prepared.execute(gasLimit === undefined ? undefined : BigInt(gasLimit));
  return {
    messageId: prepared.messageId,
    version: prepared.version,
    network: message.destNetworkInfo.name,
    inputs,
    transaction: {
      chainId,
      to: parseAddress(prepared.offramp, 'EVM')?.text ?? prepared.offramp,
      data: call.data,
      value: '0x0',
      gas: gas === null ? null : `0x${gas.toString(16)}`,
    },
    gasNote: note,
    gasLimit: {
      message: prepared.gasLimit.toString(),
      override: gasLimit === undefined ? null : String(gasLimit),
    },
    call: {
      function: call.function.name,
      signature: call.function.signature,
      arguments: call.arguments as Readonly<Record<string, AbiInput>>,
    },
  };
}

function decimalIntegers(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
