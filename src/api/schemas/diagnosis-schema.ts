/** Schema of the diagnosis of a message. */
import Type from 'typebox';
import { Reason } from './attempts-schema.ts';
import { dateTime, decimal, oneOf, orNull, type ResponseBody } from './fields.ts';

export const Diagnosis = Type.Object({
  messageId: Type.String({ pattern: '^0x[a-f0-9]{64}$' }),
  network: Type.String({ description: 'Name of the destination.' }),
  outcome: oneOf(
    ['succeeds', 'fails', 'not-yet', 'executed', 'impossible', 'untried'],
    'What a manual execution would come to now. `not-yet`: the off-ramp would not take it yet, or inputs are missing. ' +
      '`impossible`: it cannot be built here. `untried`: this service has no endpoint of the destination.',
  ),
  text: Type.String({
    description: 'The same in sentences. They may quote untrusted contracts: show them as text.',
  }),
  gasLimit: orNull(
    decimal('Gas limit for the receiver that the execution needs; a parameter of `/manual-execution`.'),
    'Null where the message’s own suffices, or no other is known to help.',
  ),
  gas: orNull(decimal('Gas of the transaction, with a margin.'), 'Null where it is not known.'),
  reason: orNull(Reason, 'Why it would fail, or what it waits for.'),
  opensAt: orNull(
    dateTime('When the off-ramp takes the execution from anybody.'),
    'Null where it is unknown.',
  ),
  block: orNull(
    Type.Object({ number: Type.Integer({ minimum: 0 }), timestamp: dateTime('Time of the block.') }),
    'The block of the destination on which it was tried; null where nothing was tried.',
  ),
});

export type Diagnosis = ResponseBody<typeof Diagnosis>;
