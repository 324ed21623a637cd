/**
 * Explanations of the errors that people meet: what happened, who can fix it, and what to do.
 *
 * Any contract can revert with the data of any error. So an explanation counts only for data of a contract that really raises
 * the error.
 */
import { quoted } from '../names/claimed-text.ts';
import type { DecodedError } from './revert-data.ts';

/** Who can fix it. `anyone`: everybody who can send a manual execution. `nobody`: the message can never be executed. */
export type Fixer = 'anyone' | 'sender' | 'receiver-owner' | 'pool-owner' | 'network' | 'nobody' | 'unknown';

/**
 * The code that raised an error: the off-ramp before it executes a message, the execution itself (off-ramp and router), the
 * validator of messages that off-ramps of 1.6 ask, the receiver, and the token or its pool.
 */
export type Origin = 'off-ramp' | 'execution' | 'validator' | 'receiver' | 'token';

export interface Explanation {
  /** A sentence that can follow "The receiver says:". */
  readonly text: string;
  /** `called-contract`: the owner of the contract that raised the error, be it a receiver or a token. */
  readonly fixableBy: Fixer | 'called-contract';
  readonly advice: string;
}

type Entry = Explanation | ((argument: (index: number) => string) => Explanation);

export const EXECUTE = 'Then execute the message manually.';
export const MORE_OF_TOKEN =
  'That account needs more of the token; where it is the pool, its liquidity provider has to add some.';
/** Longer waiting times that a contract names are not repeated. */
const MAX_WAIT_DAYS = 30;

const ownedBy = (fixableBy: Explanation['fixableBy']) => (text: string, advice: string) =>
  ({ text, fixableBy, advice: `${advice} ${EXECUTE}` }) satisfies Explanation;
export const pool = ownedBy('pool-owner');
export const calledContract = ownedBy('called-contract');
const never = (text: string, advice: string): Explanation => ({ text, fixableBy: 'nobody', advice });
const moreGas = (text: string): Explanation => ({
  text,
  fixableBy: 'anyone',
  advice: 'Execute the message manually, with more gas for the transaction or a higher gas limit.',
});
export const cursed: Explanation = {
  text: 'The Risk Management Network has stopped this lane (a curse).',
  fixableBy: 'network',
  advice: 'Nothing is lost. Wait until the curse is lifted; then execute the message manually.',
};
export const notYetManual: Explanation = {
  text: 'Manual execution of this message is not possible yet.',
  fixableBy: 'anyone',
  advice: 'CCIP retries it until then. Execute it manually once the waiting time is over.',
};
const executed = never('The message has already been executed.', 'Nothing is left to do.');
/**
 * @param who names the time
 * @param seconds empty where they are not known
 */
const refill = (who: string, seconds: string): Explanation['advice'] => {
  if (seconds === '') return `The limit refills with time: wait. ${EXECUTE}`;
  const time =
    BigInt(seconds) > MAX_WAIT_DAYS * 86_400
      ? `more than ${MAX_WAIT_DAYS} days: ask its operator`
      : `${numberText(seconds)} seconds or more, counted from the attempt`;
  return `The limit refills with time. ${who} says that this takes ${time}. ${EXECUTE}`;
};
const poolConfig = (text: string) =>
  pool(text, "The pool's owner has to correct the configuration of the remote chain.");

const paused = calledContract('The called contract is paused.', "The contract's owner has to unpause it.");
const ownerOnly = calledContract(
  'The called function is reserved for the owner of the contract.',
  'Transfer the ownership to the caller, or change the receiver.',
);
const notAllowed = (what: string) =>
  calledContract(`It does not accept messages from ${what}.`, "The receiver's owner has to allow it.");
const noRightTo = (what: string) =>
  pool(`The token pool has no right to ${what} the token.`, "The token's owner has to grant it.");
const noGasForCall = moreGas('The transaction had too little gas left for the call of the receiver.');

/** By origin, then by the error's name. */
const explanations: readonly {
  readonly from: readonly Origin[];
  readonly errors: Readonly<Record<string, Entry>>;
}[] = [
  {
    from: ['token'],
    errors: {
      // ---- Rate limits and liquidity
      TokenRateLimitReached: (argument) => ({
        text: `The token pool's rate limit is used up: ${numberText(argument(1))} smallest units were available.`,
        fixableBy: 'anyone',
        advice: refill('The pool', argument(0)),
      }),
      TokenMaxCapacityExceeded: (argument) =>
        pool(
          `The amount (${numberText(argument(1))} smallest units) is more than the token pool's rate limit ever allows at once (${numberText(argument(0))}).`,
          "The pool's owner has to raise the capacity of the rate limit.",
        ),
      InsufficientLiquidity: pool(
        'The token pool does not hold enough of the token to pay it out.',
        "The pool's owner, or a liquidity provider, has to add liquidity.",
      ),
      MaxSupplyExceeded: pool(
        "Minting would exceed the token's maximum supply.",
        'The owner of the token has to raise the maximum supply, or tokens have to be burned.',
      ),
      ERC20ExceededCap: pool(
        "Minting would exceed the token's cap.",
        'The owner of the token has to raise the cap, or tokens have to be burned.',
      ),

      // ---- Rights of the pool
      SenderNotMinter: noRightTo('mint'),
      SenderNotBurner: noRightTo('burn'),
      CallerIsNotARampOnRouter: poolConfig(
        "The token pool does not accept this off-ramp: the pool's router does not know it.",
      ),
      ChainNotAllowed: poolConfig('The token pool does not accept messages from the source chain.'),
      NonExistentChain: poolConfig('The token pool is not configured for the source chain.'),
      InvalidSourcePoolAddress: poolConfig(
        'The token pool does not accept the pool on the source chain as its partner.',
      ),
      InvalidRemotePoolForChain: poolConfig('The token pool does not know the pool on the source chain.'),
      InvalidRemoteChainDecimals: poolConfig("The token pool cannot read the source token's decimals."),
      OverflowDetected: never(
        'The amount does not fit into the decimals of the token on the destination chain.',
        "Ask the pool's owner: the amount cannot be paid out by this pool as it is.",
      ),
      InvalidToken: poolConfig('The pool does not handle this token.'),
      SenderNotAllowed: pool(
        "The original sender is not on the token pool's allow list.",
        "The pool's owner has to add the sender.",
      ),
      // Of pools of USDC.
      InvalidNonce: {
        text: 'The submitted attestation belongs to another USDC transfer.',
        fixableBy: 'anyone',
        advice: "Execute the message manually with Circle's attestation of this transfer.",
      },
    },
  },
  {
    from: ['receiver'],
    errors: {
      InvalidRouter: calledContract(
        'It only accepts messages from another router.',
        "The receiver's owner has to set the router of this chain.",
      ),
      SourceChainNotAllowlisted: notAllowed('the source chain'),
      SourceChainNotAllowed: notAllowed('the source chain'),
      SenderNotAllowlisted: notAllowed('this sender'),
    },
  },
  {
    from: ['receiver', 'token'],
    errors: {
      ERC20InsufficientBalance: (argument) =>
        calledContract(
          `${argument(0)} holds ${numberText(argument(1))} smallest units of a token where ${numberText(argument(2))} are needed.`,
          MORE_OF_TOKEN,
        ),
      AccessControlUnauthorizedAccount: (argument) =>
        calledContract(
          `${argument(0)} lacks the role ${argument(1)} that the called contract requires.`,
          "The contract's administrator has to grant the role; for a token pool that is the right to mint or burn.",
        ),
      EnforcedPause: paused,
      PausedError: paused,
      OwnableUnauthorizedAccount: ownerOnly,
      ReentrancyGuardReentrantCall: calledContract(
        'It called back into a contract that forbids it (reentrancy).',
        'The calling contract has to be changed.',
      ),
    },
  },
  {
    from: ['execution', 'validator'],
    errors: {
      AggregateValueRateLimitReached: (argument) => ({
        text: "The lane's rate limit on the value of all tokens is used up.",
        fixableBy: 'anyone',
        advice: refill('The limiter', argument(0)),
      }),
      AggregateValueMaxCapacityExceeded: {
        text: 'The value of the tokens is more than the rate limit of the lane ever allows at once.',
        fixableBy: 'network',
        advice: `CCIP's operators have to raise the capacity of the rate limit. ${EXECUTE}`,
      },
    },
  },
  {
    from: ['execution'],
    errors: {
      NotACompatiblePool: pool(
        'The token has no pool on the destination chain that CCIP can use.',
        "The token's administrator has to register a pool.",
      ),
      ReleaseOrMintBalanceMismatch: never(
        'The receiver got a different amount than the pool released: the token charges a fee on transfers, or rebases.',
        "Ask the pool's owner: tokens like this do not work with CCIP's pools.",
      ),
      // Without what they should hold.
      TokenHandlingError: pool('The token or its pool reverted.', 'Contact the operator of the token.'),
      ReceiverError: {
        text: 'The receiver reverted.',
        fixableBy: 'receiver-owner',
        advice: `Contact the owner of the receiver. ${EXECUTE}`,
      },
      NoContract: calledContract(
        'There is no contract at an address that was called: the receiver, the token or its pool.',
        'A contract has to be deployed there.',
      ),
      NotEnoughGasForCall: noGasForCall,
      NoGasForCallExactCheck: noGasForCall,
      InsufficientGasForStaticCall: moreGas(
        'The transaction had too little gas left to ask the receiver for its interfaces.',
      ),
      RequiredCCVMissing: (argument) => ({
        text: `The result of a verifier that is required (${argument(0)}) was not submitted.`,
        fixableBy: 'anyone',
        advice: 'Execute the message manually with the results of all required verifiers.',
      }),
      OptionalCCVQuorumNotReached: (argument) => ({
        text: `Results of ${numberText(argument(1))} optional verifiers were submitted where ${numberText(argument(0))} are needed.`,
        fixableBy: 'anyone',
        advice: 'Execute the message manually with the results of more verifiers.',
      }),
    },
  },
  {
    from: ['execution', 'token'],
    errors: {
      UnsupportedToken: pool(
        'The token is not supported on the destination chain.',
        "The token's administrator has to register a pool for it.",
      ),
    },
  },
  {
    from: ['off-ramp', 'execution'],
    errors: {
      InvalidEVMAddress: never(
        'The address in the message is not an address of the destination chain.',
        'Tokens in it stay with the pool; ask its owner.',
      ),
    },
  },
  {
    // State of the lane and of the message, which an off-ramp checks before it executes. Pools check for curses too, but
    // do not speak for the lane.
    from: ['off-ramp'],
    errors: {
      InsufficientGasToCompleteTx: moreGas('The transaction had too little gas to complete the execution.'),
      CursedByRMN: cursed,
      BadARMSignal: cursed,
      ManualExecutionNotYetEnabled: notYetManual,
      RootNotCommitted: {
        text: 'The message is not committed on the destination chain yet.',
        fixableBy: 'network',
        advice: 'Wait for the commit.',
      },
      SkippedAlreadyExecutedMessage: executed,
      AlreadyExecuted: executed,
    },
  },
];

function entryOf(name: string, origin: Origin): Entry | undefined {
  return explanations.find(({ from, errors }) => from.includes(origin) && Object.hasOwn(errors, name))
    ?.errors[name];
}

export function isExplained(name: string): boolean {
  return explanations.some(({ errors }) => Object.hasOwn(errors, name));
}

/** Where the off-ramp cut off the numbers of an explanation, its title replaces the sentence. */
export function explainError({ name, arguments: given }: DecodedError, origin: Origin) {
  const entry = entryOf(name, origin);
  if (typeof entry !== 'function') return entry;
  let isComplete = true;
  const explanation = entry((index) => {
    const value = given[index]?.value;
    if (value === undefined) isComplete = false;
    return value ?? '';
  });
  return isComplete
    ? explanation
    : { ...explanation, text: `${titles[name] ?? name} (the off-ramp cut off the numbers).` };
}

/** Titles of the errors whose explanations contain numbers. */
const titles: Readonly<Record<string, string>> = {
  TokenRateLimitReached: "The token pool's rate limit is used up",
  TokenMaxCapacityExceeded: "The amount is more than the token pool's rate limit ever allows",
  AggregateValueRateLimitReached: "The lane's rate limit on the value of all tokens is used up",
  ERC20InsufficientBalance: 'An account holds less of a token than is needed',
  AccessControlUnauthorizedAccount: 'The caller lacks a role that the called contract requires',
  RequiredCCVMissing: 'The result of a required verifier was not submitted',
  OptionalCCVQuorumNotReached: 'Too few results of optional verifiers were submitted',
};

/** What the error means, for all messages that it failed; undefined where there is no explanation of it. */
export function titleOfError(name: string, origin: Origin): string | undefined {
  const entry = entryOf(name, origin);
  return typeof entry === 'object' ? withoutPeriod(entry.text) : entry && titles[name];
}

/** As the sentence goes on behind a colon. */
export function lowerFirst(text: string): string {
  return `${text.slice(0, 1).toLowerCase()}${text.slice(1)}`;
}

export function withoutPeriod(text: string): string {
  return text.replace(/\.$/, '');
}

/** What Solidity's compiler checks by itself. */
const panics: Readonly<Record<string, string>> = {
  '1': 'an assertion failed',
  '17': 'an addition, subtraction or multiplication overflowed',
  '18': 'a division by zero',
  '33': 'a number outside of an enumeration',
  '34': 'a byte array in storage is encoded wrongly',
  '49': 'an element was taken off an empty array',
  '50': 'an array was read beyond its end',
  '65': 'too much memory was asked for',
  '81': 'a function was called that was never set',
};

export function panicText(code: string): string {
  return (Object.hasOwn(panics, code) && panics[code]) || 'a check of the compiler failed';
}

/** @param subject the contract that raised it */
export function explainPanic(subject: string, code: string): Explanation {
  return calledContract(
    `${subject} stopped: ${panicText(code)} (panic ${code}).`,
    'This is a bug in the called contract, or input it does not support. Contact its owner.',
  );
}

/** Messages of `require` in libraries that name a known situation. */
const texts: readonly (readonly [pattern: RegExp, explanation: Explanation])[] = [
  [/^Pausable: paused/, paused],
  [/^Ownable: caller is not the owner/, ownerOnly],
  [
    /^AccessControl: account/,
    calledContract(
      'The caller lacks a role that the called contract requires.',
      "The contract's administrator has to grant it.",
    ),
  ],
  [
    /transfer amount exceeds balance/i,
    calledContract('An account holds less of a token than has to be transferred.', MORE_OF_TOKEN),
  ],
  [/^GS013$/, calledContract('The transaction inside a Safe failed.', "Contact the Safe's owners.")],
  [
    /^GS0(20|21|22|23|24|25|26|27)$/,
    calledContract(
      'The Safe did not accept the signatures of its owners.',
      "The Safe's owners have to sign again.",
    ),
  ],
  [
    /^GS104$/,
    calledContract('The caller is not a module of the Safe.', "The Safe's owners have to enable the module."),
  ],
];

/**
 * Of `Error(string)`, as `require` raises it.
 *
 * @param subject the contract that raised it
 * @param text undefined where the off-ramp has cut it off
 */
export function explainText(subject: string, text: string | undefined, isCut: boolean): Explanation {
  if (text === undefined) {
    return calledContract(
      `${subject} reverted with a message, which the off-ramp has cut off.`,
      'A trace of the transaction shows it. Contact the owner of the contract.',
    );
  }
  const known = texts.find(([pattern]) => pattern.test(text))?.[1];
  const said = `${subject} reverted with the message ${quoted(text, isCut)}.`;
  return known
    ? { ...known, text: `${said} In other words: ${lowerFirst(known.text)}` }
    : calledContract(said, 'This error comes from the contract itself. Contact its owner.');
}

function numberText(value: string): string {
  return /^\d+$/.test(value) ? BigInt(value).toLocaleString('en') : value;
}
