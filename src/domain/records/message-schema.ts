/**
 * The schema of the Message record, from which its type, the OpenAPI document and checks in the tests derive.
 *
 * `null` means unknown or not there yet. A field without a value is `null`, never left out, unless the schema calls it
 * optional.
 */
import Type from 'typebox';
import { type ChainFamily, chainFamilies } from '../addresses.ts';
import { statuses } from '../lifecycle.ts';

const text = (description: string) => Type.String({ description });
const texts = (description: string) => Type.Array(Type.String(), { description });
const hex = (description: string) => Type.String({ pattern: '^0x([0-9a-f]{2})*$', description });
const flag = (description: string) => Type.Boolean({ description });
const count = (description: string) => Type.Integer({ minimum: 0, description });
const decimal = (description: string) => Type.String({ pattern: '^[0-9]+$', description });
const dateTime = (description: string) => Type.String({ format: 'date-time', description });
const nullable = <T extends Type.TSchema>(schema: T, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description });
const oneOf = <T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], description });

export const NetworkInfo = Type.Object(
  {
    name: text('Name of the network, such as `ethereum-testnet-sepolia`.'),
    chainSelector: decimal('Chain selector: an unsigned 64-bit integer as a decimal string.'),
    chainId: text('The chain’s own id: EIP-155 number, genesis hash, and so on.'),
    chainFamily: Type.Unsafe<ChainFamily>({
      type: 'string',
      examples: [...chainFamilies],
      description:
        `Decides the notation of addresses and hashes of this network: ${chainFamilies.join(', ')}. ` +
        'Of a network that is known only from an import it may be another, as the source wrote it.',
    }),
    displayName: nullable(text('Display name; null where none is known.')),
  },
  { description: 'A network at one end of a lane.' },
);

export const TokenAmount = Type.Object({
  sourceTokenAddress: text('Token contract on the source chain.'),
  destTokenAddress: text('Token contract on the destination chain.'),
  sourcePoolAddress: text('Token pool on the source chain.'),
  amount: decimal('Amount in the token’s smallest unit.'),
  extraData: nullable(text('Data of the token pools for the transfer.')),
  destGasAmount: nullable(decimal('Gas for the token transfer on the destination chain.')),
});

const optionalText = (description: string) => Type.Optional(text(description));

/** The first two members are those of the contract; the others are there where the protocol version has them. */
export const EvmExtraArgs = Type.Object({
  gasLimit: decimal('Gas limit for the execution on the destination chain.'),
  allowOutOfOrderExecution: flag(
    'Whether the message may be executed before earlier ones of the same sender; always true for 2.0, which has no ' +
      'order between messages.',
  ),
  requestedFinalityConfig: optionalText(
    '2.0: the finality that the sender requested, 4 bytes in hex. `0x00000000` is the chain’s own finality, ' +
      '`0x00010000` the safe head, a number below `0x00010000` a depth in blocks.',
  ),
  ccvs: Type.Optional(texts('2.0: verifiers on the source chain that the message paid for.')),
  ccvArgs: Type.Optional(texts('2.0: arguments of each of `ccvs`, in hex.')),
  executor: optionalText('2.0: executor on the source chain that the message paid for.'),
  executorArgs: optionalText('2.0: arguments of the executor, in hex.'),
  tokenReceiver: optionalText('2.0 and Sui: account that receives the tokens.'),
  tokenArgs: optionalText('2.0: arguments of the token pool, in hex.'),
  receiverObjectIds: Type.Optional(texts('Sui: objects that the receiver is called with.')),
});

export const SvmExtraArgs = Type.Object({
  computeUnits: count('Compute units for the execution.'),
  accountIsWritableBitmap: text('Which of `accounts` may be written.'),
  allowOutOfOrderExecution: flag(
    'Whether the message may be executed before earlier ones of the same sender.',
  ),
  tokenReceiver: text('Account that receives the tokens.'),
  accounts: texts('Further accounts that the execution uses.'),
});

export const Verifier = Type.Object({
  sourceAddress: text('Verifier on the source chain.'),
  destAddress: text('Verifier on the destination chain.'),
  metadata: Type.Object(
    {
      name: text('Name of the verifier.'),
      logoUrl: Type.Optional(Type.String({ format: 'uri', description: 'Address of its logo.' })),
    },
    { description: 'Name and logo of the verifier.' },
  ),
  isRequired: flag('True: required for execution. False: it counts towards the threshold.'),
  status: oneOf(['PENDING', 'COMPLETED'], 'Whether this verifier has verified the message.'),
  verification: nullable(
    Type.Object({
      data: hex('Verification data in hex.'),
      timestamp: dateTime('Time of the verification.'),
    }),
    'Data and time of the verification; null while the verifier is pending.',
  ),
  reportedStatus: Type.Optional(
    text('The status in the words of the source, where `status` has none for it.'),
  ),
});

export const Verifiers = Type.Object({
  items: Type.Array(Verifier),
  optionalThreshold: count('How many of the optional verifiers must verify the message.'),
});

export const FeeItem = Type.Object({
  contractAddress: text('Contract on the source chain that charged it.'),
  feeType: oneOf(['VERIFIER', 'EXECUTOR', 'TOKEN_POOL', 'NETWORK'], 'What the fee is for.'),
  amount: decimal('Amount in the smallest unit of the fee token.'),
});

/** Other members are as the source wrote them. */
export const BpsFee = Type.Object({
  contractAddress: optionalText('Token pool on the source chain that kept it.'),
  tokenAddress: optionalText('Token on the source chain.'),
  amount: Type.Optional(decimal('Amount in the token’s smallest unit.')),
  bps: Type.Optional(Type.Number({ description: 'Share of the sent amount, in hundredths of a percent.' })),
});

export const Fees = Type.Object({
  fixedFeesDetails: Type.Object(
    {
      tokenAddress: text('Fee token on the source chain.'),
      totalAmount: decimal('Total fee in the smallest unit of the fee token.'),
      items: Type.Optional(
        Type.Array(FeeItem, { description: 'The parts, where the protocol reports them.' }),
      ),
    },
    { description: 'What was paid, and for what.' },
  ),
  bpsFeeDetails: Type.Optional(
    Type.Array(BpsFee, { description: '2.0: fees that token pools kept of the transferred amounts.' }),
  ),
});

const summaryFields = {
  messageId: Type.String({
    pattern: '^0x[a-fA-F0-9]{64}$',
    description: 'Identifier of the message, unique over all lanes.',
  }),
  origin: text('Account that initiated the transaction on the source chain.'),
  sender: text('Account that called the router on the source chain.'),
  receiver: text('Recipient on the destination chain.'),
  status: oneOf(statuses, 'Position of the message in its lifecycle.'),
  sourceNetworkInfo: NetworkInfo,
  destNetworkInfo: NetworkInfo,
  sendTransactionHash: text('Transaction that sent the message.'),
  sendTimestamp: dateTime('Time at which the message was sent.'),
};

/** The nine fields of `view=summary`. */
export const MessageSummary = Type.Object(summaryFields);

/** Members that came after the contract. Each is absent where it is not known. */
const extensionFields = {
  offramp: Type.Optional(text('Off-ramp contract on the destination chain that executes the message.')),
  encodedMessage: Type.Optional(
    hex('2.0: the message in the encoding of the protocol, whose hash is the message id.'),
  ),
  reportedStatus: Type.Optional(
    Type.String({
      description:
        'The status in the words of the source, where `status` has none for it. `UNCONFIRMED` is shown as `SENT`.',
    }),
  ),
};
export const ExtensionFields = Type.Object(extensionFields);

/** The 27 fields of the contract, then those that came later, then members that only a source defines, as it wrote them. */
export const Message = Type.Object({
  ...summaryFields,
  nonce: nullable(decimal('Nonce for replay protection and order.')),
  sequenceNumber: decimal('Number of the message within its lane.'),
  onramp: text('On-ramp contract that created the message.'),
  routerAddress: nullable(text('Router on the source chain.')),
  sendBlockNumber: count('Source block of the send event.'),
  sendLogIndex: count('Index of the send event’s log.'),
  receiptTransactionHash: nullable(
    text('Execution transaction on the destination chain; null until executed.'),
  ),
  receiptTimestamp: nullable(dateTime('Time of execution; null until executed.')),
  deliveryTime: nullable(
    Type.Integer({ description: 'Milliseconds from send to execution; null until executed.' }),
  ),
  data: nullable(hex('Payload for the receiver in hex.')),
  tokenAmounts: Type.Array(TokenAmount, { description: 'Token transfers; empty where there are none.' }),
  extraArgs: Type.Union([EvmExtraArgs, SvmExtraArgs]),
  readyForManualExecution: flag(
    'Whether the message can be executed manually, because automatic execution failed.',
  ),
  version: nullable(text('Protocol version of the lane, such as `1.6.0`.')),
  finality: count('Block confirmations to wait for; 0 is the chain’s own finality.'),
  verifiers: nullable(Verifiers),
  executor: nullable(
    Type.Object({ address: text('Executor assigned to the message.') }),
    'Executor of the message; null on lanes without executors.',
  ),
  fees: Fees,
  ...extensionFields,
});

export type ExtensionFields = Type.Static<typeof ExtensionFields>;
export type NetworkInfo = Type.Static<typeof NetworkInfo>;
export type TokenAmount = Type.Static<typeof TokenAmount>;
export type Verifier = Type.Static<typeof Verifier>;
export type Verifiers = Type.Static<typeof Verifiers>;
export type Fees = Type.Static<typeof Fees>;
export type Message = Type.Static<typeof Message>;
export type MessageSummary = Type.Static<typeof MessageSummary>;
