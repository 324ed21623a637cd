/** Why an execution on Solana failed, in words: what happened, who can fix it, and what to do. */
import { quoted } from '../names/claimed-text.ts';
import {
  calledContract as calledProgram,
  cursed,
  EXECUTE,
  type Explanation,
  lowerFirst,
  MORE_OF_TOKEN,
  notYetManual,
  pool,
  withoutPeriod,
} from './explanations.ts';
import { type GroupedReason, type Place, places } from './failure-reason.ts';
import { type CalledRole, programErrorNames, SYSTEM_PROGRAM, tokenPrograms } from './program-errors.ts';

const AGAIN = 'Execute the message manually once more';
const TRY_AGAIN = `${AGAIN}; if it fails too, its error says more.`;

const parts: Readonly<Record<FailedPart, Place>> = {
  receiver: places.receiver,
  pool: places.token,
  rmn: {
    saidBy: 'ccip',
    subject: 'The check for curses',
    fixableBy: 'network',
    advice: `Wait until the lane is open again. ${EXECUTE}`,
  },
  'off-ramp': {
    saidBy: 'ccip',
    subject: 'The off-ramp',
    fixableBy: 'anyone',
    advice: TRY_AGAIN,
  },
  later: {
    saidBy: 'other-instruction',
    subject: 'Another instruction of the same transaction',
    fixableBy: 'anyone',
    advice: 'Execute the message manually in a separate transaction.',
  },
  unknown: {
    saidBy: 'unknown',
    subject: 'A program of the transaction',
    fixableBy: 'unknown',
    advice: TRY_AGAIN,
  },
};

const attestation: Explanation = {
  text: 'The token pool did not accept what came with the message as proof of the burned USDC.',
  fixableBy: 'anyone',
  advice: `${AGAIN}, with Circle's attestation of the transfer.`,
};
const wrongAccounts: Explanation = {
  text: 'The transaction did not have the accounts that the off-ramp needs.',
  fixableBy: 'anyone',
  advice: `${AGAIN}, with a tool that derives the accounts anew.`,
};
const listedAccounts: Explanation = {
  text: 'The accounts that the called program got are not those that it needs: an account is missing, not initialised, of another program, or not marked as writable.',
  fixableBy: 'called-contract',
  advice: `If the account can be created or corrected, do that and execute the message manually. A message whose own list of accounts is wrong cannot be executed: send another one.`,
};

const noProgram: Explanation = {
  text: 'There is no program at the called address.',
  fixableBy: 'receiver-owner',
  advice: `A program has to be deployed there. ${EXECUTE}`,
};
const sharedBy = (names: string, explanation: Explanation): Readonly<Record<string, Explanation>> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, explanation]));

/** Of errors by number, by their names. Names of CCIP's programs, of the token programs and of Anchor do not collide in meaning. */
const explanations: Readonly<Record<string, Explanation>> = {
  // ---- Token pools
  RLRateLimitReached: {
    text: "The token pool's rate limit is used up.",
    fixableBy: 'anyone',
    advice: `The limit refills with time: wait. ${EXECUTE}`,
  },
  RLMaxCapacityExceeded: pool(
    "The amount is more than the token pool's rate limit ever allows at once.",
    "The pool's owner has to raise the capacity of the rate limit.",
  ),
  InvalidPoolCaller: pool(
    'The token pool does not accept this off-ramp.',
    "The pool's owner has to set the router of this chain.",
  ),
  InvalidSourcePoolAddress: pool(
    'The token pool does not know the pool on the source chain.',
    "The pool's owner has to correct the configuration of the remote chain.",
  ),
  InvalidSender: pool(
    "The original sender is not on the token pool's allow list.",
    "The pool's owner has to add the sender.",
  ),
  InvalidToken: pool('The pool does not handle this token.', "The pool's owner has to correct it."),
  InvalidTokenAmountConversion: pool(
    'The amount cannot be expressed in the decimals of the token on Solana.',
    "Ask the pool's owner.",
  ),
  PoolSignerNotInMultisig: pool(
    'The token pool is not a signer of the multisig that mints the token.',
    "The token's owner has to add the pool's signer.",
  ),
  ...sharedBy('InvalidTokenData MalformedCctpMessage InvalidCctpMessageVersion FailedCctpCpi', attestation),

  // ---- Token programs
  InsufficientFunds: calledProgram(
    'A token account holds less of the token than has to be transferred.',
    MORE_OF_TOKEN,
  ),
  AccountFrozen: calledProgram(
    'A token account is frozen.',
    "The token's freeze authority has to thaw the account.",
  ),
  MintPaused: calledProgram('The token is paused.', "The token's pause authority has to resume it."),
  FixedSupply: calledProgram(
    'The token cannot be minted: its supply is fixed.',
    "The pool's owner has to hand out the token another way.",
  ),
  OwnerMismatch: calledProgram(
    'The program has no right over the token account or the mint that it wanted to use.',
    "For a token pool, the token's owner has to make the pool the mint authority.",
  ),
  NonTransferable: calledProgram('The token cannot be transferred.', "Ask the token's owner."),
  MintMismatch: calledProgram(
    'A token account is of another mint.',
    'The account has to be one of the transferred token.',
  ),

  // ---- The off-ramp
  ...sharedBy('SubjectCursed GloballyCursed', cursed),
  OfframpReleaseMintBalanceMismatch: pool(
    'The receiver of the token got another amount than the pool handed out: the token takes a fee on transfers.',
    "Ask the pool's owner: tokens like this do not work with CCIP's pools.",
  ),
  ManualExecutionNotAllowed: notYetManual,
  InvalidNonce: {
    text: 'The message has a nonce where Solana expects none, or an earlier message has to be executed first.',
    fixableBy: 'unknown',
    advice: 'Messages to Solana have to allow execution out of order.',
  },
  InvalidWritabilityBitmap: {
    text: 'The transaction marked other accounts as writable than the message says.',
    fixableBy: 'anyone',
    advice: `${AGAIN}, with a tool that takes the list of accounts from the message.`,
  },
  ...sharedBy(
    `InvalidInputsNumberOfAccounts InvalidInputsTokenAccounts InvalidInputsPoolAccounts
    InvalidInputsPoolSignerAccounts InvalidInputsTokenIndices InvalidInputsLookupTableAccounts
    InvalidInputsLookupTableAccountWritable InvalidInputsTokenAdminRegistryAccounts
    InvalidInputsExternalExecutionSignerAccount InvalidInputsMissingWritable`,
    wrongAccounts,
  ),

  // ---- Anchor: accounts
  ...sharedBy(
    `AccountNotInitialized AccountNotEnoughKeys AccountNotMutable AccountOwnedByWrongProgram
    AccountDiscriminatorMismatch AccountDiscriminatorNotFound ConstraintMut ConstraintSeeds ConstraintAddress
    ConstraintOwner ConstraintTokenMint ConstraintTokenOwner UninitializedState`,
    listedAccounts,
  ),

  // ---- Money for accounts
  ResultWithNegativeLamports: {
    text: 'The account that pays did not have enough SOL.',
    fixableBy: 'anyone',
    advice: `${AGAIN}, from an account with more SOL.`,
  },
};

/** Of errors without a number, which Solana's runtime raises, and programs too. */
const runtimeExplanations: Readonly<Record<string, Explanation>> = {
  ...sharedBy(
    `MissingAccount NotEnoughAccountKeys UninitializedAccount InvalidAccountData IncorrectProgramId
    ReadonlyDataModified ReadonlyLamportChange PrivilegeEscalation`,
    listedAccounts,
  ),
  InsufficientFundsForRent: {
    text: 'An account was left with too little SOL to stay open (rent).',
    fixableBy: 'anyone',
    advice: `Add SOL to the account, or pay from one that has more. ${EXECUTE}`,
  },
  ProgramFailedToComplete: calledProgram(
    'The called program crashed.',
    'This is a bug in the program, or input it does not support. Contact its owner.',
  ),
  ...sharedBy('UnsupportedProgramId AccountNotExecutable', noProgram),
  CallDepth: calledProgram(
    'Programs called each other more deeply than Solana allows.',
    'The receiver has to be changed.',
  ),
};

/** @param computeUnits that the message asks for its receiver */
export function programFailureReason(failure: ProgramFailure, computeUnits?: number): GroupedReason {
  const raised = raisedError(failure);
  const part = parts[raised.part];
  const explanation = explanationOf(raised, computeUnits);
  const words = explanation ?? describe(raised, part);
  const fixableBy = explanation?.fixableBy ?? part.fixableBy;
  const code = raised.name ?? (raised.number === undefined ? 'transaction-failed' : 'program-error');
  return {
    code,
    saidBy: part.saidBy,
    text: words.text,
    fixableBy: fixableBy === 'called-contract' ? part.fixableBy : fixableBy,
    advice: explanation?.advice ?? part.advice,
    error:
      raised.program === undefined && raised.number === undefined
        ? null
        : {
            name: code,
            arguments: [
              ...(raised.program === undefined ? [] : [{ name: 'program', value: raised.program }]),
              ...(raised.number === undefined ? [] : [{ name: 'number', value: String(raised.number) }]),
            ],
            cut: false,
            namedBy: raised.isClaimed && raised.name !== undefined ? 'program' : 'lanescan',
          },
    wrappers: [],
    data: '0x',
    group: {
      title: withoutPeriod(words.title),
      // Numbers, and names that a program claims, mean something together with the program only.
      detail: `solana ${explanation ? '' : `${raised.program ?? ''} ${raised.number ?? ''}`}`,
    },
  };
}

type TitledExplanation = Explanation & { readonly title: string };

function explanationOf(raised: RaisedError, computeUnits: number | undefined): TitledExplanation | undefined {
  const { name, number, part, program, unitsUsedUp } = raised;
  const { subject, saidBy } = parts[part];
  if (name === OUT_OF_COMPUTE) {
    const used =
      unitsUsedUp === undefined ? '' : `: it used all ${unitsUsedUp.toLocaleString('en')} that were left`;
    const limit =
      part !== 'receiver' || computeUnits === undefined
        ? ''
        : `; the message asks for ${computeUnits.toLocaleString('en')} for its receiver`;
    return {
      title: 'Out of compute units',
      text: `${subject} ran out of compute units${used}${limit}.`,
      fixableBy: 'anyone',
      advice: `${AGAIN}, in a transaction with a higher limit of compute units.`,
    };
  }
  const table = number === undefined ? runtimeExplanations : explanations;
  // Another instruction has nothing to do with the message, whatever it failed with.
  if (raised.isClaimed || part === 'later' || name === undefined || !Object.hasOwn(table, name))
    return undefined;
  const explanation = table[name];
  if (!explanation || saidBy === 'ccip') return explanation && { ...explanation, title: explanation.text };
  // The token programs and the system do not lie about the cause. Any other program chooses its numbers itself.
  const isOwnNumber = number !== undefined && program !== SYSTEM_PROGRAM && !tokenPrograms.has(program ?? '');
  const text = `${subject} ${isOwnNumber ? 'says' : 'failed'}: ${lowerFirst(explanation.text)}`;
  return { ...explanation, text, title: text };
}

function describe({ name, number, words, program, isClaimed }: RaisedError, { subject }: Place) {
  const written =
    name === undefined
      ? number === undefined
        ? ''
        : ` with its own error ${number}, which is not known here`
      : ` with ${name}${number === undefined ? '' : ` (error ${number})`}${isClaimed ? ', as the program calls it' : ''}`;
  const said = words === undefined ? '' : ` It says: ${quoted(words)}.`;
  const cut = program === undefined ? ' The log was cut off, so that the program is not known.' : '';
  return { text: `${subject} failed${written}.${said}${cut}`, title: `${subject} failed${written}` };
}

// ---- How a transaction of Solana failed: which program raised which error, from the transaction's error and its last log lines.
//
// A call that fails ends the whole transaction. So the first `failed` line names the program that raised the error, and those
// that follow name its callers, up to the instruction of the transaction. What a program writes itself stands behind
// `Program log:`; it is its own claim.
//
// A log is cut off where it gets too long, but shorter lines that still fit follow. A program can fill it so that its own
// `failed` line is missing and that of its caller is there: of a log that was cut off, no line names the program.

/** What is kept of a failed transaction. */
export interface ProgramFailure {
  readonly offRamp: string;
  /** What the off-ramp called other programs for, by their addresses. */
  readonly roles: Readonly<Record<string, CalledRole>>;
  /** The error of the transaction as JSON: `{"InstructionError":[1,{"Custom":6001}]}`. */
  readonly error: string;
  /** The last lines of the log, shortened. */
  readonly logs: readonly string[];
}

/** `later`: a further instruction of the same transaction. */
type FailedPart = CalledRole | 'off-ramp' | 'later' | 'unknown';

interface RaisedError {
  /** The program that raised it; undefined where the log was cut off. */
  readonly program: string | undefined;
  readonly part: FailedPart;
  /** Of a custom error. */
  readonly number: number | undefined;
  /** Undefined where it is a number that is not known here. */
  readonly name: string | undefined;
  /** Whether the name is the program's own claim. */
  readonly isClaimed: boolean;
  /** The program's last words; undefined where it has none. */
  readonly words: string | undefined;
  /** Compute units that it had and used up. */
  readonly unitsUsedUp: number | undefined;
}

/** What Solana writes in place of the first line that does not fit. */
export const LOG_TRUNCATED = 'Log truncated';

/** The name of running out of compute units, for which the runtime has several. */
const OUT_OF_COMPUTE = 'out-of-compute';

const ID = '([1-9A-HJ-NP-Za-km-z]{32,44})';
const FAILED = new RegExp(`^Program ${ID} failed: (.*)$`);
const FRAME = new RegExp(`^Program ${ID} (?:invoke \\[\\d+\\]|success)$`);
const CONSUMED = new RegExp(`^Program ${ID} consumed (\\d{1,10}) of (\\d{1,10}) compute units$`);
const LOG = 'Program log: ';
const ANCHOR_ERROR =
  /^AnchorError .*?Error Code: (\w{1,80})\. Error Number: (\d{1,10})\.(?: Error Message: (.*?)\.?)?$/;
const USED_UP = /exceeded CUs|computational budget exceeded/i;
const MAX_WORDS = 200;

export function raisedError(failure: ProgramFailure): RaisedError {
  const { logs } = failure;
  const isTruncated = logs.includes(LOG_TRUNCATED);
  const at = isTruncated ? -1 : logs.findIndex((line) => FAILED.test(line));
  const stack = isTruncated ? [] : logs.flatMap((line) => FAILED.exec(line)?.[1] ?? []);
  const [program] = stack;
  const part = partOf(stack, failure);
  const [, , failedText = ''] = (at >= 0 && FAILED.exec(logs[at] ?? '')) || [];
  // What the failing program wrote after its last call, without the prefix.
  const lines = logs.slice(0, Math.max(at, 0));
  const own = lines
    .slice(lines.findLastIndex((line) => FRAME.test(line)) + 1)
    .flatMap((line) => (line.startsWith(LOG) ? [line.slice(LOG.length)] : []));
  const runtime = runtimeError(failure.error);
  const units = logs.map((line) => CONSUMED.exec(line)).find((match) => match?.[1] === program);
  const isUsedUp =
    USED_UP.test(failedText) ||
    runtime.name === 'ComputationalBudgetExceeded' ||
    // The virtual machine's own line, which has no prefix of a program.
    logs.some((line) => line.startsWith('Program failed to complete: exceeded'));
  const common = { program, part, words: own.at(-1)?.slice(0, MAX_WORDS) };
  if (isUsedUp) {
    const unitsUsedUp = units && units[2] === units[3] ? Number(units[3]) : undefined;
    return { ...common, number: undefined, name: OUT_OF_COMPUTE, isClaimed: false, unitsUsedUp };
  }
  const { number } = runtime;
  if (number === undefined)
    return { ...common, number, name: runtime.name, isClaimed: false, unitsUsedUp: undefined };
  const anchor = own
    .map((line) => ANCHOR_ERROR.exec(line))
    .findLast((match) => Number(match?.[2]) === number);
  // A program that another one called in between does not act in the role that the off-ramp gave it.
  const isDirect = stack[1] === failure.offRamp;
  const role =
    program !== undefined && program === failure.offRamp
      ? 'off-ramp'
      : isDirect
        ? roleOf(program, failure)
        : undefined;
  const known = program === undefined ? [] : programErrorNames(program, role, number, anchor !== undefined);
  const claimed = anchor?.[1];
  const isKnown = claimed === undefined ? known.length === 1 : known.includes(claimed);
  return {
    ...common,
    words: anchor ? anchor[3]?.slice(0, MAX_WORDS) : common.words,
    number,
    name: claimed ?? (known.length === 1 ? known[0] : undefined),
    isClaimed: !isKnown,
    unitsUsedUp: undefined,
  };
}

/** @param stack the programs that failed, from the one that raised the error outwards */
function partOf(stack: readonly string[], failure: ProgramFailure): FailedPart {
  const place = stack.indexOf(failure.offRamp);
  if (stack.length === 0) return 'unknown';
  if (place < 0) return 'later';
  const called = stack[place - 1];
  return called === undefined ? 'off-ramp' : (roleOf(called, failure) ?? 'unknown');
}

function roleOf(program: string | undefined, { roles }: ProgramFailure): CalledRole | undefined {
  return program !== undefined && Object.hasOwn(roles, program) ? roles[program] : undefined;
}

/** Of the transaction's error: a custom number, or the name that the runtime has for it. */
function runtimeError(error: string): { readonly number?: number; readonly name?: string } {
  let value: unknown;
  try {
    value = JSON.parse(error);
  } catch {
    return {};
  }
  const inner = isFields(value) && Array.isArray(value.InstructionError) ? value.InstructionError[1] : value;
  if (typeof inner === 'string') return named(inner);
  if (!isFields(inner)) return {};
  const { Custom: number } = inner;
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return { number };
  return named(Object.keys(inner)[0] ?? '');
}

function named(text: string): { readonly name?: string } {
  return /^\w{1,80}$/.test(text) ? { name: text } : {};
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
