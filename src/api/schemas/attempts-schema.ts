/** Schemas of the attempts to execute a message. */
import Type from 'typebox';
import { MAX_ATTEMPTS } from '../../domain/filters/query.ts';
import { decimal, oneOf, orNull, type ResponseBody } from './fields.ts';

const DecodedError = Type.Object({
  name: Type.String({ description: 'Name of the error, as in the contract: `TokenRateLimitReached`.' }),
  arguments: Type.Array(
    Type.Object({
      name: orNull(Type.String(), 'Null where the signature has no name for it.'),
      value: Type.String({ description: 'Numbers in decimal, addresses and bytes in hexadecimal.' }),
    }),
  ),
  cut: Type.Boolean({
    description: 'The off-ramp has cut off its data: arguments may be missing or incomplete.',
  }),
  namedBy: oneOf(
    ['lanescan', 'operator', 'program'],
    'Whose name it is: of the tables of Lanescan, of the ABIs that the operator of this server has added, or what a ' +
      'program on Solana calls it in its log.',
  ),
});

const fixers = ['anyone', 'sender', 'receiver-owner', 'pool-owner', 'network', 'nobody', 'unknown'] as const;

export const fixableBy = oneOf(fixers, 'Who can fix it. `anyone`: a manual execution is all it takes.');

export const Reason = Type.Object({
  code: Type.String({
    description:
      'For grouping: the name of the innermost error, or `out-of-gas`, `no-reason` (reverted without data) or ' +
      '`unknown-error`. On Solana also `out-of-compute`, `program-error` (a number without a name) and ' +
      '`transaction-failed`. Any contract can use the name of any error: act on it together with `saidBy`.',
  }),
  saidBy: oneOf(
    ['ccip', 'receiver', 'token-pool', 'other-instruction', 'unknown'],
    'Who said so: contracts of CCIP, the receiver, the token or its pool, or on Solana another instruction of the ' +
      'transaction. `unknown`: the log was cut off, or the off-ramp of 2.0 handed on the error of a contract that it ' +
      'asked. Only `ccip` speaks for the lane.',
  ),
  text: Type.String({
    description:
      'What happened, in a sentence that says whose claim it is. It may quote untrusted contracts: show it as text.',
  }),
  fixableBy,
  advice: Type.String({ description: 'What to do.' }),
  error: orNull(DecodedError, 'The innermost error; null where it is empty or not known.'),
  wrappers: Type.Array(DecodedError, { description: 'The errors around it, from the outside in.' }),
  data: Type.String({ description: 'The data of the innermost error, shortened where it is long.' }),
});

export const Attempt = Type.Object({
  outcome: oneOf(['SUCCESS', 'FAILED'], 'What it came to.'),
  at: orNull(Type.String({ format: 'date-time' }), 'Time of the block; null where it is unknown.'),
  network: Type.String({ pattern: '^[0-9]+$', description: 'Chain selector of the destination.' }),
  networkName: orNull(Type.String(), 'Name of that network; null where it is unknown.'),
  blockNumber: orNull(Type.Integer({ minimum: 0 }), 'Null where it is unknown.'),
  blockHash: orNull(Type.String(), 'Null where it is unknown.'),
  transactionHash: orNull(Type.String(), 'Null where it is unknown.'),
  logIndex: orNull(Type.Integer({ minimum: 0 }), 'Null where it is unknown.'),
  caller: orNull(
    Type.String(),
    'The account that sent the transaction; null where it was not asked for. It is for failed attempts, and for all of 2.0.',
  ),
  gasUsed: orNull(
    decimal('Gas of the whole execution; on Solana the compute units of the transaction.'),
    'Null where the off-ramp does not say (1.5, 2.0).',
  ),
  returnData: orNull(
    Type.String({ pattern: '^0x([a-f0-9]{2})*$' }),
    'What the execution returned, the first 4,096 bytes of it; null where it is unknown, and on Solana.',
  ),
  transactionError: orNull(
    Type.String(),
    'The error of a failed transaction on Solana, as JSON: `{"InstructionError":[1,{"Custom":6001}]}`. Null elsewhere.',
  ),
  logs: orNull(
    Type.Array(Type.String()),
    'The last log lines of a failed transaction on Solana, shortened. They are untrusted text of programs: ' +
      'show it as text. Null elsewhere.',
  ),
  reason: orNull(Reason, 'Why it failed; null for a success, and where nothing is known of it.'),
  removedAt: orNull(
    Type.String({ format: 'date-time' }),
    'When a reorganisation removed its block: the attempt no longer counts. Null for one that stands.',
  ),
});

export const Attempts = Type.Object({
  messageId: Type.String({ pattern: '^0x[a-f0-9]{64}$' }),
  attempts: Type.Array(Attempt, {
    description:
      'In the order of the chain. A message that was imported has at most the one that its record names, and what the ' +
      'record does not say is null.',
  }),
  truncated: Type.Optional(
    Type.Literal(true, {
      description: `Only present when there were more than ${MAX_ATTEMPTS} attempts: these are the latest.`,
    }),
  ),
});

export type Reason = ResponseBody<typeof Reason>;
export type Attempt = ResponseBody<typeof Attempt>;
export type Attempts = ResponseBody<typeof Attempts>;
