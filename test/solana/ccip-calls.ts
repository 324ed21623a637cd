/** The calls of CCIP's Solana programs as trees for the runtime: what each program says, in which order, and whom it calls. */

import { addresses, type CcipPrograms } from './ccip-accounts.ts';
import {
  type CommittedRoot,
  ccipMessageSent,
  ccipReceive,
  ccipSend,
  commitInstruction,
  commitReportAccepted,
  discriminator,
  executeInstruction,
  executionReport,
  executionStateChanged,
  type GasPrice,
  manuallyExecuteInstruction,
  NO_RECEIVER,
  plainInstruction,
  poolBurned,
  relayedEvent,
  type SentBody,
  skippedAlreadyExecuted,
  transmitted,
} from './ccip-events.ts';
import { leafContextOf, leafOf, type ReceivedMessage, receivedBodyOf } from './received-messages.ts';
import { addressOf, concat, pubkey, toBase64, u64 } from './runtime/bytes.ts';
import {
  type AccountUse,
  type Call,
  COMPUTE_BUDGET,
  type Failure,
  type Step,
  SYSTEM_PROGRAM,
} from './runtime/runtime.ts';

export const poolProgram = addressOf('pool program');
export const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const INSTRUCTIONS_SYSVAR = 'Sysvar1nstructions1111111111111111111111111';
const ANCHOR_ERROR_TEXT = 'AnchorError thrown in programs/ccip-offramp/src/lib.rs:1. Error Code: ';

const uses = (...named: readonly string[]): readonly AccountUse[] => named.map((address) => ({ address }));
const writes = (...named: readonly string[]): readonly AccountUse[] =>
  named.map((address) => ({ address, isWritable: true }));

/** A call that only says its name. */
const named = (program: string, name: string, data: Uint8Array, more: Partial<Call> = {}): Call => ({
  program,
  data,
  ...more,
  steps: [{ log: `Instruction: ${name}` }, ...(more.steps ?? [])],
});

/** A call of the token program, whose instructions have a number. */
const tokenCall = (name: string, number: number, ...steps: readonly Step[]): Step => ({
  call: named(TOKEN_PROGRAM, name, new Uint8Array([number]), { steps }),
});

const rmnAccounts = ({ rmnRemote }: CcipPrograms): readonly AccountUse[] =>
  uses(addresses.curses(rmnRemote), addresses.config(rmnRemote));

const verifyNotCursed = (programs: CcipPrograms): Step => ({
  call: named(
    programs.rmnRemote,
    'VerifyNotCursed',
    plainInstruction('verify_not_cursed', new Uint8Array(16)),
    { accounts: rmnAccounts(programs) },
  ),
});

export const setComputeUnits: Call = {
  program: COMPUTE_BUDGET,
  data: new Uint8Array([2, 0x80, 0x1a, 0x06, 0x00]),
  isNative: true,
};

export function sendCall({
  programs,
  body,
  mints,
  isRelayed,
  failure,
}: {
  readonly programs: CcipPrograms;
  readonly body: SentBody;
  /** Of the tokens in the message, in their order. */
  readonly mints: readonly string[];
  /** From router 1.6.1 on. */
  readonly isRelayed: boolean;
  /** After everything was said. */
  readonly failure?: Failure | undefined;
}): Call {
  const { router, rmnRemote, feeQuoter } = programs;
  const { destChainSelector, messageId } = body.header;
  const encoded = ccipMessageSent(body);
  const signer = addresses.feeBillingSigner(router);
  const tokens = body.tokenAmounts.map(({ amount }, index) => ({ mint: mints[index] ?? '', amount }));
  const pools = tokens.map(
    ({ mint, amount }): Step => ({
      call: named(
        poolProgram,
        'LockOrBurnTokens',
        plainInstruction('lock_or_burn_tokens', pubkey(mint), u64(amount)),
        {
          accounts: [...uses(signer), ...writes(addresses.poolConfig(poolProgram, mint), mint)],
          steps: [
            tokenCall('Burn', 8),
            { data: poolBurned(body.sender, amount, mint) },
            { returns: concat(new Uint8Array(4), new Uint8Array(4)) },
          ],
        },
      ),
    }),
  );
  return named(router, 'CcipSend', ccipSend(body, mints), {
    accounts: [
      ...uses(addresses.config(router)),
      ...writes(addresses.destChainState(router, destChainSelector)),
      ...writes(addresses.nonce(router, destChainSelector, body.sender)),
      ...writes(body.sender),
      ...uses(SYSTEM_PROGRAM, TOKEN_PROGRAM, body.feeToken, signer, feeQuoter),
      ...uses(addresses.feesTowards(feeQuoter, destChainSelector), rmnRemote),
      ...rmnAccounts(programs),
      ...tokens.flatMap(({ mint }) => [
        ...uses(poolProgram, addresses.tokenAdminRegistry(router, mint)),
        ...writes(addresses.poolConfig(poolProgram, mint), mint),
      ]),
    ],
    steps: [
      verifyNotCursed(programs),
      {
        call: named(feeQuoter, 'GetFee', plainInstruction('get_fee'), {
          steps: [{ returns: new Uint8Array(40) }],
        }),
      },
      tokenCall('TransferChecked', 12),
      ...pools,
      { data: encoded },
      ...(isRelayed
        ? [
            {
              call: named(rmnRemote, 'CpiEvent', relayedEvent(encoded), {
                accounts: uses(addresses.config(rmnRemote), signer),
              }),
            },
          ]
        : []),
      ...(failure ? [{ fails: failure }] : []),
      { returns: messageId },
    ],
  });
}

export function commitCall({
  programs,
  transmitter,
  root,
  prices,
  number,
  failure,
}: {
  readonly programs: CcipPrograms;
  readonly transmitter: string;
  /** Without one only prices are updated. */
  readonly root: CommittedRoot | undefined;
  readonly prices: readonly GasPrice[];
  readonly number: bigint;
  /** The report is said before the signatures are checked. */
  readonly failure?: Failure | undefined;
}): Call {
  const { offRamp, feeQuoter } = programs;
  return named(offRamp, root ? 'Commit' : 'CommitPriceOnly', commitInstruction(number, root, prices), {
    accounts: [
      ...uses(addresses.config(offRamp), addresses.referenceAddresses(offRamp)),
      ...(root
        ? writes(
            addresses.sourceChainState(offRamp, root.sourceChainSelector),
            addresses.commitReport(offRamp, root.sourceChainSelector, root.merkleRoot),
          )
        : []),
      ...writes(transmitter),
      ...uses(SYSTEM_PROGRAM, INSTRUCTIONS_SYSVAR, addresses.feeBillingSigner(offRamp), feeQuoter),
      ...uses(programs.rmnRemote),
      ...rmnAccounts(programs),
      ...writes(
        ...prices.map(({ destChainSelector }) => addresses.feesTowards(feeQuoter, destChainSelector)),
      ),
    ],
    steps: [
      verifyNotCursed(programs),
      ...(prices.length > 0
        ? [{ call: named(feeQuoter, 'UpdatePrices', plainInstruction('update_prices')) }]
        : []),
      { data: commitReportAccepted(root, prices) },
      ...(failure ? [{ log: `${ANCHOR_ERROR_TEXT}Unauthorized` }, { fails: failure }] : []),
      { data: transmitted('commit', number) },
    ],
  });
}

export type FailingPart = 'receiver' | 'pool' | 'token program' | 'off-ramp';

export interface ExecuteCall {
  readonly programs: CcipPrograms;
  readonly executor: string;
  readonly message: ReceivedMessage;
  readonly root: Uint8Array;
  readonly proofs: readonly Uint8Array[];
  readonly number: bigint;
  readonly isManual?: boolean;
  /** The report lies in an account, and the instruction has none. */
  readonly isBuffered?: boolean;
  readonly failure?: Failure | undefined;
  /** What fails: the receiver where it is left out and there is one, else the off-ramp. */
  readonly failing?: FailingPart | undefined;
  /** What the failing program logs before. */
  readonly words?: readonly string[] | undefined;
  /** The off-ramp finds that it was executed before. */
  readonly isSkipped?: boolean;
}

export function executeCall(call: ExecuteCall): Call {
  const { programs, message, isManual = false, failure } = call;
  const { offRamp, router, rmnRemote } = programs;
  const [body, context, leaf] = [receivedBodyOf(message), leafContextOf(message), leafOf(message)];
  const { header } = body;
  const report = call.isBuffered ? new Uint8Array() : executionReport(body, call.proofs);
  const tokenIndexes = new Uint8Array(body.tokenAmounts.length).fill(8);
  const { receiver } = context;
  const hasReceiver = receiver !== NO_RECEIVER;
  const { failing = hasReceiver ? 'receiver' : 'off-ramp', words = [] } = call;
  const failureIn = (part: FailingPart): readonly Step[] =>
    failure && part === failing ? [...words.map((log) => ({ log })), { fails: failure }] : [];
  const release = body.tokenAmounts.map(
    ({ destTokenAddress }): Step => ({
      call: named(
        poolProgram,
        'ReleaseOrMintTokens',
        plainInstruction('release_or_mint_tokens', pubkey(destTokenAddress)),
        {
          accounts: writes(addresses.poolConfig(poolProgram, destTokenAddress), destTokenAddress),
          steps: [tokenCall('MintTo', 7, ...failureIn('token program')), ...failureIn('pool')],
        },
      ),
    }),
  );
  const receive: Step = {
    call: named(receiver, 'CcipReceive', ccipReceive(body), { steps: failureIn('receiver') }),
  };
  const outcome: readonly Step[] = call.isSkipped
    ? [{ data: skippedAlreadyExecuted(header) }]
    : [
        { data: executionStateChanged(header, leaf, 'inProgress') },
        ...release,
        ...(hasReceiver ? [receive] : []),
        ...failureIn('off-ramp'),
        { data: executionStateChanged(header, leaf, 'success') },
      ];
  return named(
    offRamp,
    isManual ? 'ManuallyExecute' : 'Execute',
    isManual
      ? manuallyExecuteInstruction(report, tokenIndexes)
      : executeInstruction(report, call.number, tokenIndexes),
    {
      accounts: [
        ...uses(addresses.config(offRamp), addresses.referenceAddresses(offRamp)),
        ...uses(addresses.sourceChainState(offRamp, header.sourceChainSelector)),
        ...writes(addresses.commitReport(offRamp, header.sourceChainSelector, call.root)),
        ...uses(offRamp, addresses.allowedOffRamp(router, header.sourceChainSelector, offRamp)),
        ...writes(call.executor),
        ...uses(SYSTEM_PROGRAM, INSTRUCTIONS_SYSVAR, rmnRemote),
        ...rmnAccounts(programs),
        ...(hasReceiver ? uses(receiver, addresses.externalExecutionConfig(offRamp, receiver)) : []),
        ...context.accounts.map((address, index) => ({
          address,
          isWritable: ((body.isWritableBitmap >> BigInt(index)) & 1n) === 1n,
        })),
        ...body.tokenAmounts.flatMap(({ destTokenAddress }) => [
          ...uses(poolProgram, TOKEN_PROGRAM),
          ...writes(addresses.poolConfig(poolProgram, destTokenAddress), destTokenAddress),
        ]),
      ],
      steps: [
        verifyNotCursed(programs),
        ...(isManual ? [] : [{ data: transmitted('execute', call.number) }]),
        ...outcome,
      ],
    },
  );
}

/** Fills the log of a transaction with so many bytes. */
export function chatter(program: string, textBytes: number): Call {
  const prefixBytes = 'Program log: '.length;
  const steps: Step[] = [];
  for (let left = textBytes; left > prefixBytes; ) {
    const size = left > CHATTER_LINE_BYTES + prefixBytes ? CHATTER_LINE_BYTES : left;
    steps.push({ log: 'x'.repeat(size - prefixBytes) });
    left -= size;
  }
  return { program, data: new Uint8Array([0xcc]), steps };
}
const CHATTER_LINE_BYTES = 200;

/** An outer program that calls another one. */
export function wrapped(program: string, inner: Call): Call {
  return {
    program,
    data: discriminator('global', 'forward'),
    accounts: inner.accounts ?? [],
    steps: [{ log: 'Instruction: Forward' }, { call: inner }],
  };
}

/** In base64 it reads `successAAA==`, so that the line of the return data contains the word. */
const SUCCESS_LOOKALIKE: Uint8Array = new Uint8Array(Buffer.from('successAAA==', 'base64'));

/** Ways in which a program tries to pass its own event, `encoded`, for one of the router. */
export function forgeries(forger: string, { router, rmnRemote }: CcipPrograms, encoded: Uint8Array) {
  const forged = (...steps: readonly Step[]): Call => ({ program: forger, accounts: uses(router), steps });
  const event: Step = { data: encoded };
  const returning = (program: string, data: Uint8Array): Step => ({
    call: { program, data, steps: [{ returns: SUCCESS_LOOKALIKE }] },
  });
  const version = returning(router, plainInstruction('type_version'));
  return {
    /** It just says it. */
    ownEvent: forged(event),
    /** It says the lines of the router as text, which the runtime marks as text. */
    logText: forged(
      { log: `Program ${router} invoke [2]` },
      { log: `Program data: ${toBase64(encoded)}` },
      { log: `Program ${router} success` },
      { log: `\nProgram ${router} invoke [2]\nProgram data: ${toBase64(encoded)}` },
    ),
    /** It calls the router before and after, so that a wrong stack attributes its event to the router. */
    betweenCalls: forged(version, event, version),
    /** The router calls it, it returns what reads like its end, and then says the event. */
    successInReturnData: {
      program: router,
      data: plainInstruction('ccip_send'),
      accounts: uses(forger),
      steps: [{ call: { program: forger, steps: [returning(forger, new Uint8Array([1])), event] } }],
    } satisfies Call,
    /** It relays a copy to rmn_remote by itself. */
    ownRelay: forged({ call: named(rmnRemote, 'CpiEvent', relayedEvent(encoded)) }),
  };
}
