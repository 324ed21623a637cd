/**
 * Manual executions: their inputs, the transaction that executes a message, whether it would work now, and the results of
 * verifiers.
 */
import { parseAddress } from '../../domain/addresses.ts';
import { reasonJson } from '../../domain/attempts.ts';
import { ApiError, type ErrorCode } from '../../domain/errors.ts';
import type { AbiInput } from '../../domain/manual-execution/abi-encoding.ts';
import { isSkipped } from '../../domain/manual-execution/prepared-execution.ts';
import { transactionGas } from '../../domain/manual-execution/transaction-gas.ts';
import type { Message } from '../../domain/message.ts';
import { hasAllVerifications, knownVerifications } from '../../domain/verification.ts';
import type { BatchInputs } from '../../store/query/execution-inputs.ts';
import { integer, parametersOf } from '../routes/query-parameters.ts';
import { messageIdDigits, unknownMessage } from '../routes/requested-message.ts';
import { json } from '../server/caching.ts';
import type { Route } from '../server/route.ts';
import type { Diagnoses } from './diagnoses.ts';
import {
  evmChainId,
  notOpenText,
  type Preparation,
  type ReadyExecution,
  tokensAt,
  unavailableInputs,
  uncheckedOrder,
  verifiedMaterial,
} from './execution-preparation.ts';
import {
  Diagnosis,
  ExecutionInputs,
  ManualExecution,
  type Verified,
  VerifierResults,
} from './execution-schema.ts';

/** 2.0 has 32 bits for it. */
const MAX_GAS_LIMIT = 2 ** 32 - 1;

const executionParameters = parametersOf({
  gasLimit: integer(
    'Gas for the receiver, instead of what the sender has set. Not less than that. Left out: what the sender has set.',
    1,
    MAX_GAS_LIMIT,
  ),
});

export const executionRoutes: readonly Route[] = [
  {
    path: '/v2/messages/{messageId}/execution-inputs',
    operationId: 'getExecutionInputs',
    tag: 'Messages',
    summary: 'Inputs of a manual execution',
    description:
      'For a message that was not delivered: all that its off-ramp needs to execute it, as the SDK’s ' +
      '`getExecutionInput` reads it. Up to version 1.6 that is every message of the committed root, above it the ' +
      'encoded message and the verifications. Messages that were indexed from their chain have it, and mirrored ones ' +
      'whose server had it. Attestations that tokens such as USDC need are not included.',
    success: { description: 'What the off-ramp needs.', schema: ExecutionInputs },
    errors: [404, 409],
    async handle({ path }, { store }) {
      const digits = messageIdDigits(path);
      const inputs = await store.executionInputs(digits);
      if (!inputs) throw await unknownMessage(store, digits);
      if (inputs.kind === 'unavailable') {
        const { code, text } = unavailableInputs(inputs);
        throw new ApiError(code, `Message 0x${digits} ${text}`);
      }
      if (inputs.kind === 'mirrored') return { body: inputs.body };
      if (inputs.kind === 'batch') return { body: batchBody(inputs) };
      const verificationComplete = inputs.isComplete;
      return json<Verified>({ ...verifiedMaterial(inputs), verificationComplete });
    },
  },
  {
    path: '/v2/messages/{messageId}/manual-execution',
    isCostly: true,
    operationId: 'getManualExecution',
    tag: 'Messages',
    summary: 'Transaction that executes a message',
    description:
      'For a message that failed or got stuck: the transaction that executes it on its destination, merkle proof ' +
      'included, for any account to sign and send. Up to version 1.6 the proof is checked against the committed root, above it ' +
      'the message against its id.',
    queryParameters: executionParameters.declared,
    success: { description: 'The transaction.', schema: ManualExecution },
    errors: [404, 409],
    async handle({ path, query }, { preparations, diagnoses }) {
      const { gasLimit } = executionParameters.parse(query);
      const preparation = await preparations.prepare(messageIdDigits(path));
      if (preparation.kind === 'blocked') throw new ApiError(preparation.code, preparation.text);
      checkGasLimit(preparation, gasLimit);
      if (!preparation.isOpen) throw new ApiError('MANUAL_EXECUTION_NOT_OPEN', notOpenText(preparation));
      const body = executionBody(preparation, gasLimit, await tryOut(preparation, gasLimit, diagnoses));
      const json = JSON.stringify(body, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
      return { body: json };
    },
  },
  {
    path: '/v2/messages/{messageId}/diagnosis',
    isCostly: true,
    operationId: 'getDiagnosis',
    tag: 'Messages',
    summary: 'Whether a manual execution would work now',
    description:
      'Simulates the manual execution of the message on its destination as it is now, where this service has an endpoint ' +
      'of it: it would succeed, with which gas limit; or fail, and why; or cannot be tried yet, and until when. A ' +
      'diagnosis is cached for some seconds, and this path has a separate rate limit.',
    success: { description: 'The diagnosis.', schema: Diagnosis },
    errors: [404],
    async handle({ path }, { preparations, diagnoses }) {
      const preparation = await preparations.prepare(messageIdDigits(path));
      return json<Diagnosis>(await diagnosisBody(preparation, diagnoses));
    },
  },
  {
    path: '/v1/verifierresults/{messageId}',
    operationId: 'getVerifierResults',
    tag: 'Messages',
    summary: 'Results of the verifiers of a message',
    description:
      'For a message of 2.0 that all required verifiers have verified: their results, as the SDK reads them from an ' +
      'indexer (`--indexer`). They come from the execution or from the verifier results that this service is configured ' +
      'to read. Before that it is a 404: a client that got some of the results would take them for all.',
    success: { description: 'The results.', schema: VerifierResults },
    errors: [404],
    async handle({ path }, { store }) {
      const digits = messageIdDigits(path);
      const found = await store.findMessage(digits);
      if (!found) throw await unknownMessage(store, digits);
      const message = JSON.parse(found.record) as Message;
      if (!hasAllVerifications(message)) {
        throw new ApiError(
          'VERIFIER_RESULTS_NOT_FOUND',
          `Message 0x${digits} ${message.verifiers ? 'is not verified yet, as far as is known here' : 'has no verifiers'}.`,
        );
      }
      return json<VerifierResults>(resultsOf(message));
    },
  },
];

/** Stored JSON is sent without parsing: a batch may have megabytes. */
function batchBody({ message, offramp, merkleRoot, batch }: BatchInputs): string {
  const rest = JSON.stringify({
    offramp,
    onramp: message.onramp,
    sourceChainSelector: message.sourceNetworkInfo.chainSelector,
    destChainSelector: message.destNetworkInfo.chainSelector,
    version: message.version,
    merkleRoot,
  });
  return `${rest.slice(0, -1)},"messageBatch":[${batch.join(',')}]}`;
}

/** An off-ramp takes a gas limit only where it is not lower than the message's own. */
function checkGasLimit({ prepared }: ReadyExecution, gasLimit: number | undefined): void {
  if (gasLimit === undefined || BigInt(gasLimit) >= prepared.gasLimit) return;
  throw new ApiError('INVALID_PARAMETERS', 'gasLimit is too low.', [
    {
      parameter: 'gasLimit',
      problem: `is less than the sender has set (${prepared.gasLimit}), which the off-ramp rejects`,
    },
  ]);
}

type Trial = Pick<ManualExecution, 'trial' | 'gasNote'> & { readonly gas: bigint | null };

/** Never an error: where it cannot be tried, the transaction is right all the same, with gas that is computed. */
async function tryOut(execution: ReadyExecution, gasLimit: number | undefined, diagnoses: Diagnoses) {
  if (!(await diagnoses.canTry(execution)))
    return untried(execution, gasLimit, 'This service has no endpoint of the destination to estimate it on.');
  try {
    // Named, so that it is not raised: the trial is of this transaction.
    const own = gasLimit ?? Number(execution.prepared.gasLimit);
    const { outcome, text, gas, gasNote, reason } = await diagnoses.diagnose(execution, own);
    if (outcome === 'succeeds') return { trial: outcome, gas, gasNote };
    const why = `The execution would not succeed now. ${text}`;
    if (!isSkipped(reason)) return untried(execution, gasLimit, why, outcome);
    const trap = 'Do not send it: the transaction would succeed and leave the message as it is.';
    return { trial: outcome, gas: null, gasNote: `${why} ${trap}` };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return untried(execution, gasLimit, error.message);
  }
}

/** Without an estimate. */
function untried(
  execution: ReadyExecution,
  gasLimit: number | undefined,
  why: string,
  trial: Trial['trial'] = null,
): Trial {
  const { message, prepared } = execution;
  const { unknownPools } = prepared;
  if (unknownPools.length > 0) {
    const pool = `the pool of ${tokensAt(message, unknownPools)}`;
    const problem = `Whether ${pool} needs an attestation is not known: its data is of an unknown kind.`;
    return { trial, gas: null, gasNote: `${why} ${problem}` };
  }
  const limit = gasLimit === undefined ? undefined : BigInt(gasLimit);
  const { gas, note } = transactionGas(prepared, limit, null);
  return { trial, gas, gasNote: `${why} ${note}${trial === null ? uncheckedOrder(execution) : ''}` };
}

function executionBody(
  { message, prepared, inputs }: ReadyExecution,
  gasLimit: number | undefined,
  { trial, gas, gasNote }: Trial,
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
    gasNote,
    trial,
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

export async function diagnosisBody(preparation: Preparation, diagnoses: Diagnoses): Promise<Diagnosis> {
  const { messageId, destNetworkInfo } = preparation.message;
  const network = destNetworkInfo.name;
  const untried = (outcome: Diagnosis['outcome'], text: string): Diagnosis => {
    const unknown = { gasLimit: null, gas: null, reason: null, opensAt: null, block: null };
    return { messageId, network, outcome, text, ...unknown };
  };
  if (preparation.kind === 'blocked')
    return untried(outcomesOfCodes[preparation.code] ?? 'impossible', preparation.text);
  if (!(await diagnoses.canTry(preparation))) {
    if (!preparation.isOpen) return untried('not-yet', notOpenText(preparation));
    const why = `This service has no endpoint of ${network}, so it cannot simulate the execution.`;
    return untried('untried', `${why}${uncheckedOrder(preparation)}`);
  }
  const { outcome, text, gasLimit, gas, reason, opensAt, block } = await diagnoses.diagnose(preparation);
  return {
    messageId: preparation.prepared.messageId,
    network,
    outcome,
    text,
    gasLimit: gasLimit?.toString() ?? null,
    gas: gas?.toString() ?? null,
    reason: reason && reasonJson(reason),
    opensAt,
    block: { number: block.number, timestamp: new Date(block.timestamp * 1000).toISOString() },
  };
}

const outcomesOfCodes: Partial<Record<ErrorCode, Diagnosis['outcome']>> = {
  MESSAGE_ALREADY_EXECUTED: 'executed',
  EXECUTION_INPUTS_NOT_READY: 'not-yet',
  EXECUTION_INPUTS_NOT_FOUND: 'not-yet',
};

function resultsOf(message: Message): VerifierResults {
  const verifications = knownVerifications(message);
  const verifiers = verifications.map(({ sourceAddress }) => sourceAddress);
  return {
    success: true,
    results: verifications.map(({ sourceAddress, destAddress, data, timestamp }) => ({
      verifierResult: {
        message_id: message.messageId,
        message_ccv_addresses: verifiers,
        ccv_data: data,
        timestamp,
        verifier_source_address: sourceAddress,
        verifier_dest_address: destAddress,
      },
    })),
    messageID: message.messageId,
  };
}
