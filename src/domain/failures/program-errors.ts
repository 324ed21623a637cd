/** Names of the errors that Solana programs raise by number: CCIP's programs, Anchor, the token programs and the system. */
import {
  burnMintPoolErrors,
  cctpPoolErrors,
  commonErrors,
  numberedFrom,
  offRampErrors,
  type ProgramErrors,
  poolErrors,
} from './solana-ccip-errors.ts';

export const SYSTEM_PROGRAM = '11111111111111111111111111111111';
export const tokenPrograms: ReadonlySet<string> = new Set([
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
]);

/** What the off-ramp called a program for. */
export type CalledRole = 'receiver' | 'pool' | 'rmn';

const rmnRemoteErrors = numberedFrom(
  9000,
  `
Unauthorized SubjectIsAlreadyCursed SubjectWasNotCursed RedundantOwnerProposal InvalidVersion SubjectCursed
GloballyCursed InvalidCodeVersion
`,
);

/** The first twenty are those of the older program, too. */
const tokenErrors = numberedFrom(
  0,
  `
NotRentExempt InsufficientFunds InvalidMint MintMismatch OwnerMismatch FixedSupply AlreadyInUse
InvalidNumberOfProvidedSigners InvalidNumberOfRequiredSigners UninitializedState NativeNotSupported
NonNativeHasBalance InvalidInstruction InvalidState Overflow AuthorityTypeNotSupported MintCannotFreeze
AccountFrozen MintDecimalsMismatch NonNativeNotSupported ExtensionTypeMismatch ExtensionBaseMismatch
ExtensionAlreadyInitialized ConfidentialTransferAccountHasBalance ConfidentialTransferAccountNotApproved
ConfidentialTransferDepositsAndTransfersDisabled ConfidentialTransferElGamalPubkeyMismatch
ConfidentialTransferBalanceMismatch MintHasSupply NoAuthorityExists TransferFeeExceedsMaximum
MintRequiredForTransfer FeeMismatch FeeParametersMismatch ImmutableOwner AccountHasWithheldTransferFees NoMemo
NonTransferable NonTransferableNeedsImmutableOwnership MaximumPendingBalanceCreditCounterExceeded
MaximumDepositAmountExceeded CpiGuardSettingsLocked CpiGuardTransferBlocked
`,
);
const MINT_PAUSED = 67;

const systemErrors = numberedFrom(
  0,
  `
AccountAlreadyInUse ResultWithNegativeLamports InvalidProgramId InvalidAccountDataLength MaxSeedLengthExceeded
AddressWithSeedMismatch
`,
);

/** Of Anchor itself: every program that is written with it raises them. */
const anchorErrors = [
  numberedFrom(
    100,
    'InstructionMissing InstructionFallbackNotFound InstructionDidNotDeserialize InstructionDidNotSerialize',
  ),
  numberedFrom(
    2000,
    `
ConstraintMut ConstraintHasOne ConstraintSigner ConstraintRaw ConstraintOwner ConstraintRentExempt
ConstraintSeeds ConstraintExecutable ConstraintState ConstraintAssociated ConstraintAssociatedInit
ConstraintClose ConstraintAddress ConstraintZero ConstraintTokenMint ConstraintTokenOwner
ConstraintMintMintAuthority ConstraintMintFreezeAuthority ConstraintMintDecimals ConstraintSpace
ConstraintAccountIsNone
`,
  ),
  numberedFrom(
    2500,
    `
RequireViolated RequireEqViolated RequireKeysEqViolated RequireNeqViolated RequireKeysNeqViolated
RequireGtViolated RequireGteViolated
`,
  ),
  numberedFrom(
    3000,
    `
AccountDiscriminatorAlreadySet AccountDiscriminatorNotFound AccountDiscriminatorMismatch
AccountDidNotDeserialize AccountDidNotSerialize AccountNotEnoughKeys AccountNotMutable
AccountOwnedByWrongProgram InvalidProgramId InvalidProgramExecutable AccountNotSigner AccountNotSystemOwned
AccountNotInitialized AccountNotProgramData AccountNotAssociatedTokenAccount AccountSysvarMismatch
AccountReallocExceedsLimit AccountDuplicateReallocs
`,
  ),
];

/** Where two pools have different errors with one number, the number alone does not tell. */
const poolTables: readonly ProgramErrors[] = [
  poolErrors,
  burnMintPoolErrors,
  cctpPoolErrors,
  commonErrors,
  ...anchorErrors,
];

/**
 * The names that the number may have in this program; more than one where programs differ, none where it is not known.
 *
 * @param isAnchor whether the program has said so itself
 */
export function programErrorNames(
  program: string,
  role: CalledRole | 'off-ramp' | undefined,
  number: number,
  isAnchor: boolean,
): readonly string[] {
  if (tokenPrograms.has(program))
    return number === MINT_PAUSED ? ['MintPaused'] : namesIn([tokenErrors], number);
  if (program === SYSTEM_PROGRAM) return namesIn([systemErrors], number);
  if (role === 'off-ramp') return namesIn([offRampErrors, commonErrors, ...anchorErrors], number);
  if (role === 'rmn') return namesIn([rmnRemoteErrors, ...anchorErrors], number);
  if (role === 'pool') return namesIn(poolTables, number);
  return isAnchor ? namesIn(anchorErrors, number) : [];
}

function namesIn(tables: readonly ProgramErrors[], number: number): readonly string[] {
  return tables.flatMap(({ first, names }) => names[number - first] ?? []);
}
