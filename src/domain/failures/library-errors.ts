/** Custom errors of libraries that receivers, tokens and pools are often built with. */

/** The libraries that CCIP calls receivers with; no contract's ABI lists their errors. */
const calls = `
InsufficientGasForStaticCall(); NoContract(); NoGasForCallExactCheck(); NotEnoughGasForCall()
`;

/** CCIP's base contracts for receivers, and what its examples add to them. */
const receivers = `
InvalidRouter(address router); SourceChainNotAllowed(uint64 sourceChainSelector);
SourceChainNotAllowlisted(uint64 sourceChainSelector); SenderNotAllowlisted(address sender);
DestinationChainNotAllowlisted(uint64 destinationChainSelector); OnlySelf(); ErrorCase();
MessageNotFailed(bytes32 messageId); NotEnoughBalance(uint256 currentBalance,uint256 calculatedFees);
NothingToWithdraw(); FailedToWithdrawEth(address owner,address target,uint256 value)
`;

const openZeppelin5 = `
AccessControlBadConfirmation(); AccessControlUnauthorizedAccount(address account,bytes32 neededRole);
AddressEmptyCode(address target); AddressInsufficientBalance(address account); ECDSAInvalidSignature();
ECDSAInvalidSignatureLength(uint256 length); ECDSAInvalidSignatureS(bytes32 s);
ERC1155InsufficientBalance(address sender,uint256 balance,uint256 needed,uint256 tokenId);
ERC1155InvalidReceiver(address receiver); ERC1155MissingApprovalForAll(address operator,address owner);
ERC20ExceededCap(uint256 increasedSupply,uint256 cap);
ERC20InsufficientAllowance(address spender,uint256 allowance,uint256 needed);
ERC20InsufficientBalance(address sender,uint256 balance,uint256 needed);
ERC20InvalidApprover(address approver); ERC20InvalidReceiver(address receiver);
ERC20InvalidSender(address sender); ERC20InvalidSpender(address spender);
ERC2612ExpiredSignature(uint256 deadline);
ERC4626ExceededMaxDeposit(address receiver,uint256 assets,uint256 max);
ERC4626ExceededMaxMint(address receiver,uint256 shares,uint256 max);
ERC4626ExceededMaxRedeem(address owner,uint256 shares,uint256 max);
ERC4626ExceededMaxWithdraw(address owner,uint256 assets,uint256 max);
ERC721IncorrectOwner(address sender,uint256 tokenId,address owner);
ERC721InsufficientApproval(address operator,uint256 tokenId); ERC721InvalidReceiver(address receiver);
ERC721NonexistentToken(uint256 tokenId); EnforcedPause(); ExpectedPause(); FailedCall(); FailedInnerCall();
InvalidInitialization(); NotInitializing(); MathOverflowedMulDiv(); OwnableInvalidOwner(address owner);
OwnableUnauthorizedAccount(address account); ReentrancyGuardReentrantCall();
SafeCastOverflowedIntDowncast(uint8 bits,int256 value); SafeCastOverflowedIntToUint(int256 value);
SafeCastOverflowedUintDowncast(uint8 bits,uint256 value); SafeCastOverflowedUintToInt(uint256 value);
SafeERC20FailedDecreaseAllowance(address spender,uint256 currentAllowance,uint256 requestedDecrease);
SafeERC20FailedOperation(address token); StringsInsufficientHexLength(uint256 value,uint256 length);
UUPSUnauthorizedCallContext()
`;

const solady = `
AllowanceOverflow(); AllowanceUnderflow(); AlreadyInitialized(); ApproveFailed(); ETHTransferFailed();
FullMulDivFailed(); InsufficientAllowance(); InsufficientBalance(); InvalidPermit(); MulDivFailed();
NewOwnerIsZeroAddress(); NoHandoverRequest(); PermitExpired(); Reentrancy(); TotalSupplyOverflow();
TransferFailed(); TransferFromFailed(); Unauthorized()
`;

export const libraryErrors: readonly string[] = [calls, receivers, openZeppelin5, solady].flatMap((list) =>
  list.trim().split(/;\s/),
);
