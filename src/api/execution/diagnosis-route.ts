/** The diagnosis of a message: would a manual execution work now? */
import { reasonJson } from '../../domain/attempts.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import type { Diagnosis } from '../../domain/manual-execution/diagnosis.ts';
import type { Message } from '../../domain/message.ts';
import { messageIdDigits } from '../routes/requested-message.ts';
import type { Route } from '../server/route.ts';
import type { Diagnoses } from './diagnoses.ts';
import { notOpenText, type Preparation, uncheckedOrder } from './execution-preparation.ts';
import { type Diagnosis as DiagnosisBody, Diagnosis as DiagnosisSchema } from './execution-schema.ts';

export const diagnosisRoutes: readonly Route[] = [
  {
    path: '/v2/messages/{messageId}/diagnosis',
    mediaType: 'application/json',
    isCostly: true,
    operationId: 'getDiagnosis',
    tag: 'Messages',
    summary: 'Whether a manual execution would work now',
    description:
      'Simulates the manual execution of the message on its destination as it is now, where this service has an endpoint ' +
      'of it: it would succeed, with which gas limit; or fail, and why; or cannot be tried yet, and until when. A ' +
      'diagnosis is cached for some seconds, and this path has a separate rate limit.',
    success: { description: 'The diagnosis.', schema: DiagnosisSchema },
    errors: [404],
    async handle({ path }, { preparations, diagnoses }) {
      const preparation = await preparations.prepare(messageIdDigits(path));
      return { body: JSON.stringify(await diagnosisBody(preparation, diagnoses)) };
    },
  },
];

export async function diagnosisBody(
  preparation: Preparation,
  diagnoses: Pick<Diagnoses, 'canTry' | 'diagnose'>,
): Promise<DiagnosisBody> {
  if (preparation.kind === 'blocked')
    return untriedBody(
      preparation.message,
      outcomesOfCodes[preparation.code] ?? 'impossible',
      preparation.text,
    );
  const { message, prepared } = preparation;
  if (!(await diagnoses.canTry(preparation))) {
    return preparation.isOpen
      ? untriedBody(
          message,
          'untried',
          `This service has no endpoint of ${message.destNetworkInfo.name}, so it cannot simulate the execution.${uncheckedOrder(preparation)}`,
        )
      : untriedBody(message, 'not-yet', notOpenText(preparation));
  }
  const { outcome, text, gasLimit, gas, reason, opensAt, block }: Diagnosis =
    await diagnoses.diagnose(preparation);
  return {
    messageId: prepared.messageId,
    network: message.destNetworkInfo.name,
    outcome,
    text,
    gasLimit: gasLimit?.toString() ?? null,
    gas: gas?.toString() ?? null,
    reason: reason && reasonJson(reason),
    opensAt,
    block: { number: block.number, timestamp: new Date(block.timestamp * 1000).toISOString() },
  };
}

const outcomesOfCodes: Partial<Record<ErrorCode, DiagnosisBody['outcome']>> = {
  MESSAGE_ALREADY_EXECUTED: 'executed',
  EXECUTION_INPUTS_NOT_READY: 'not-yet',
  EXECUTION_INPUTS_NOT_FOUND: 'not-yet',
};

function untriedBody(message: Message, outcome: DiagnosisBody['outcome'], text: string): DiagnosisBody {
  return {
    messageId: message.messageId,
    network: message.destNetworkInfo.name,
    outcome,
    text,
    gasLimit: null,
    gas: null,
    reason: null,
    opensAt: null,
    block: null,
  };
}
