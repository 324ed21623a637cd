/**
 * Events and instructions of CCIP's Solana programs as bytes, message ids, leaves and Merkle roots. The layouts are those of
 * all releases up to 1.6.3.
 */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { discriminatorOf } from '../../src/ingest/svm/decode/borsh.ts';
import type { InstructionOf, MerkleRoot, SentRampMessage } from '../../src/ingest/svm/decode/layouts.ts';
import {
  bool,
  bytes,
  concat,
  fromHex,
  option,
  pubkey,
  sized,
  u8,
  u16be,
  u32,
  u64,
  u64be,
  u128,
  u256,
  utf8,
  vec,
} from './runtime/bytes.ts';

/** The first eight bytes of everything that Anchor encodes. */
export const discriminator = (...name: Parameters<typeof discriminatorOf>): Uint8Array =>
  fromHex(discriminatorOf(...name));

const event = (name: string, ...fields: readonly Uint8Array[]) =>
  concat(discriminator('event', name), ...fields);
/** An instruction, by its name. */
export const plainInstruction = (name: string, ...fields: readonly Uint8Array[]): Uint8Array =>
  concat(discriminator('global', name), ...fields);

const headerBytes = (header: Header) =>
  concat(
    sized(header.messageId, 32),
    u64(header.sourceChainSelector),
    u64(header.destChainSelector),
    u64(header.sequenceNumber),
    u64(header.nonce),
  );

export function ccipMessageSent(body: SentBody): Uint8Array {
  const { header } = body;
  return event(
    'CCIPMessageSent',
    u64(header.destChainSelector),
    u64(header.sequenceNumber),
    headerBytes(header),
    pubkey(body.sender),
    bytes(body.data),
    bytes(body.receiver),
    bytes(body.extraArgs),
    pubkey(body.feeToken),
    sentTokens(body.tokenAmounts),
    u256(body.feeTokenAmount),
    u256(body.feeValueJuels),
  );
}

export type CommittedRoot = Omit<MerkleRoot, 'merkleRoot'> & { readonly merkleRoot: Uint8Array };

export interface GasPrice {
  readonly destChainSelector: bigint;
  readonly usdPerUnitGas: bigint;
}

const rootBytes = (root: CommittedRoot) =>
  concat(
    u64(root.sourceChainSelector),
    bytes(root.onRampAddress),
    u64(root.minSeqNr),
    u64(root.maxSeqNr),
    sized(root.merkleRoot, 32),
  );

/** Prices are 28 bytes big-endian. */
const pricesBytes = (prices: readonly GasPrice[]) =>
  concat(
    vec([]),
    vec(
      prices.map(({ destChainSelector, usdPerUnitGas }) =>
        concat(u64(destChainSelector), fromHex(usdPerUnitGas.toString(16).padStart(56, '0'))),
      ),
    ),
  );

/** Without a root only prices were updated. */
export function commitReportAccepted(
  root: CommittedRoot | undefined,
  prices: readonly GasPrice[],
): Uint8Array {
  return event('CommitReportAccepted', option(root && rootBytes(root)), pricesBytes(prices));
}

export const executionStates = { untouched: 0, inProgress: 1, success: 2, failure: 3 } as const;
export type ExecutionState = keyof typeof executionStates;

export function executionStateChanged(
  { sourceChainSelector, sequenceNumber, messageId }: Header,
  messageHash: Uint8Array,
  state: ExecutionState,
): Uint8Array {
  return event(
    'ExecutionStateChanged',
    u64(sourceChainSelector),
    u64(sequenceNumber),
    sized(messageId, 32),
    sized(messageHash, 32),
    u8(executionStates[state]),
  );
}

export function skippedAlreadyExecuted({ sourceChainSelector, sequenceNumber }: Header): Uint8Array {
  return event('SkippedAlreadyExecutedMessage', u64(sourceChainSelector), u64(sequenceNumber));
}

export function transmitted(plugin: 'commit' | 'execute', sequenceNumber: bigint): Uint8Array {
  return event(
    'Transmitted',
    u8(plugin === 'commit' ? 0 : 1),
    new Uint8Array(32).fill(0xc0),
    u64(sequenceNumber),
  );
}

export function offRampListed(isAdded: boolean, sourceChainSelector: bigint, offRamp: string): Uint8Array {
  return event(isAdded ? 'OfframpAdded' : 'OfframpRemoved', u64(sourceChainSelector), pubkey(offRamp));
}

export function versionChanged(
  way: 'Bumped' | 'RolledBack',
  destChainSelector: bigint,
  previous: bigint,
  next: bigint,
): Uint8Array {
  return event(`CcipVersionForDestChainVersion${way}`, u64(destChainSelector), u64(previous), u64(next));
}

/** An event of a token pool, which is an untrusted program. */
export function poolBurned(sender: string, amount: bigint, mint: string): Uint8Array {
  return event('Burned', pubkey(sender), u64(amount), pubkey(mint));
}

const EVM_EXTRA_ARGS_V2_TAG = fromHex('181dcf10');

/** Extra arguments towards EVM, as the fee quoter passes them on. */
export function evmExtraArgs(gasLimit: bigint, allowOutOfOrderExecution: boolean): Uint8Array {
  return concat(EVM_EXTRA_ARGS_V2_TAG, u128(gasLimit), bool(allowOutOfOrderExecution));
}

/** Extra arguments towards another Solana cluster. */
export interface SvmExtraArgs {
  readonly computeUnits: number;
  readonly isWritableBitmap: bigint;
  readonly tokenReceiver: string;
  readonly accounts: readonly string[];
}

const SVM_EXTRA_ARGS_V1_TAG = fromHex('1f3b3aba');

/** Always out of order: Solana takes no other messages. */
export function svmExtraArgs(args: SvmExtraArgs): Uint8Array {
  return concat(
    SVM_EXTRA_ARGS_V1_TAG,
    u32(args.computeUnits),
    u64(args.isWritableBitmap),
    bool(true),
    pubkey(args.tokenReceiver),
    vec(args.accounts.map(pubkey)),
  );
}

/** The instruction that sends a message; fees are paid in SOL. */
export function ccipSend(body: SentBody, mints: readonly string[]): Uint8Array {
  const tokens = body.tokenAmounts.map(({ amount }, index) =>
    concat(pubkey(mints[index] ?? ''), u64(amount)),
  );
  return plainInstruction(
    'ccip_send',
    u64(body.header.destChainSelector),
    bytes(body.receiver),
    bytes(body.data),
    vec(tokens),
    new Uint8Array(32),
    bytes(body.extraArgs),
    bytes(new Uint8Array(tokens.length)),
  );
}

/** Two words of 32 bytes; the second begins with the sequence number of the OCR report. */
const reportContext = (number: bigint) =>
  concat(new Uint8Array(32).fill(0xc0), new Uint8Array(24), u64(number).reverse());

export function commitInstruction(
  number: bigint,
  root: CommittedRoot | undefined,
  prices: readonly GasPrice[],
): Uint8Array {
  const report = concat(pricesBytes(prices), option(root && rootBytes(root)), vec([]));
  const signature = new Uint8Array(32).fill(0x51);
  return plainInstruction(
    root ? 'commit' : 'commit_price_only',
    reportContext(number),
    bytes(report),
    vec([signature, signature]),
    vec([signature, signature]),
    new Uint8Array(32),
  );
}

function receivedBodyBytes(body: ReceivedBody): Uint8Array {
  return concat(
    headerBytes(body.header),
    bytes(body.sender),
    bytes(body.data),
    pubkey(body.tokenReceiver),
    receivedTokens(body.tokenAmounts),
    u32(body.computeUnits),
    u64(body.isWritableBitmap),
  );
}

export function executionReport(body: ReceivedBody, proofs: readonly Uint8Array[]): Uint8Array {
  return concat(
    u64(body.header.sourceChainSelector),
    receivedBodyBytes(body),
    vec(body.tokenAmounts.map(() => bytes(new Uint8Array(0)))),
    vec(proofs.map((proof) => sized(proof, 32))),
  );
}

/** What the off-ramp hands to a receiver. */
export function ccipReceive({ header, sender, data, tokenAmounts }: ReceivedBody): Uint8Array {
  return plainInstruction(
    'ccip_receive',
    sized(header.messageId, 32),
    u64(header.sourceChainSelector),
    bytes(sender),
    bytes(data),
    vec(tokenAmounts.map(({ destTokenAddress, amount }) => concat(pubkey(destTokenAddress), u64(amount)))),
  );
}

/** An empty report stands for one that was buffered in an account. */
export function executeInstruction(report: Uint8Array, number: bigint, tokenIndexes: Uint8Array): Uint8Array {
  return plainInstruction('execute', bytes(report), reportContext(number), bytes(tokenIndexes));
}

export function manuallyExecuteInstruction(report: Uint8Array, tokenIndexes: Uint8Array): Uint8Array {
  return plainInstruction('manually_execute', bytes(report), bytes(tokenIndexes));
}

/** The copy of an event that the router hands to rmn_remote from 1.6.1 on. */
export function relayedEvent(encoded: Uint8Array): Uint8Array {
  return plainInstruction('cpi_event', bytes(encoded));
}

// ---- Message ids, leaves and roots

export type Header = Omit<SentRampMessage['header'], 'messageId'> & { readonly messageId: Uint8Array };
/** A message as the decoders have it, with 32 bytes as its id. */
type WithIdBytes<Message> = Omit<Message, 'header'> & { readonly header: Header };
/** `SVM2AnyRampMessage`. */
export type SentBody = WithIdBytes<SentRampMessage>;
/** `Any2SVMRampMessage`. */
export type ReceivedBody = WithIdBytes<NonNullable<InstructionOf<'execute'>['report']>['message']>;

/** What a leaf has beyond the message: they travel in the accounts of the instruction. */
export interface LeafContext {
  readonly onRamp: Uint8Array;
  /** The system program's address (32 zero bytes) where only tokens are sent. */
  readonly receiver: string;
  readonly accounts: readonly string[];
}

export const NO_RECEIVER = '11111111111111111111111111111111';
const LEAF_DOMAIN = new Uint8Array(32);
const NODE_DOMAIN = concat(new Uint8Array(31), u8(1));
/** Completes a layer with an odd number of nodes. */
const PADDING_NODE = new Uint8Array(32).fill(0xff);

export function sentTokens(tokens: SentBody['tokenAmounts']): Uint8Array {
  return vec(
    tokens.map((token) =>
      concat(
        pubkey(token.sourcePoolAddress),
        bytes(token.destTokenAddress),
        bytes(token.extraData),
        u256(token.amount),
        bytes(token.destExecData),
      ),
    ),
  );
}

export function receivedTokens(tokens: ReceivedBody['tokenAmounts']): Uint8Array {
  return vec(
    tokens.map((token) =>
      concat(
        bytes(token.sourcePoolAddress),
        pubkey(token.destTokenAddress),
        u32(token.destGasAmount),
        bytes(token.extraData),
        u256(token.amount),
      ),
    ),
  );
}

/** The id that the router gives to a message; the id in the header is ignored. */
export function sentMessageId(router: string, body: SentBody): Uint8Array {
  const { header } = body;
  return keccak_256(
    concat(
      LEAF_DOMAIN,
      utf8('SVM2AnyMessageHashV1'),
      u64be(header.sourceChainSelector),
      u64be(header.destChainSelector),
      pubkey(router),
      pubkey(body.sender),
      u64be(header.sequenceNumber),
      u64be(header.nonce),
      pubkey(body.feeToken),
      u256(body.feeTokenAmount),
      u256(body.feeValueJuels),
      u8(body.receiver.length),
      body.receiver,
      u16be(body.data.length),
      body.data,
      sentTokens(body.tokenAmounts),
      bytes(body.extraArgs),
    ),
  );
}

/** The leaf of a message to Solana: what the off-ramp calls its message hash. */
export function receivedLeaf(body: ReceivedBody, { onRamp, receiver, accounts }: LeafContext): Uint8Array {
  const { header } = body;
  return keccak_256(
    concat(
      LEAF_DOMAIN,
      utf8('Any2SVMMessageHashV1'),
      u64be(header.sourceChainSelector),
      u64be(header.destChainSelector),
      u16be(onRamp.length),
      onRamp,
      sized(header.messageId, 32),
      pubkey(body.tokenReceiver),
      u64be(header.sequenceNumber),
      u32(body.computeUnits),
      u64(body.isWritableBitmap),
      u64be(header.nonce),
      u16be(body.sender.length),
      body.sender,
      u16be(body.data.length),
      body.data,
      receivedTokens(body.tokenAmounts),
      ...(receiver === NO_RECEIVER ? [] : [pubkey(receiver)]),
      ...accounts.map(pubkey),
    ),
  );
}

function parentOf(left: Uint8Array, right: Uint8Array): Uint8Array {
  const [low, high] = Buffer.compare(left, right) <= 0 ? [left, right] : [right, left];
  return keccak_256(concat(NODE_DOMAIN, low, high));
}

const layerAbove = (layer: readonly Uint8Array[]) =>
  Array.from({ length: Math.ceil(layer.length / 2) }, (_, pair) =>
    parentOf(layer[pair * 2] as Uint8Array, layer[pair * 2 + 1] ?? PADDING_NODE),
  );

export function merkleRoot(leaves: readonly Uint8Array[]): Uint8Array {
  let layer = leaves;
  while (layer.length > 1) layer = layerAbove(layer);
  const [root] = layer;
  if (!root) throw new RangeError('A root needs a leaf.');
  return root;
}

/** The siblings of a leaf from the bottom up. */
export function merkleProof(leaves: readonly Uint8Array[], index: number): readonly Uint8Array[] {
  const proof: Uint8Array[] = [];
  let layer = leaves;
  for (let place = index; layer.length > 1; place >>= 1) {
    proof.push(layer[place ^ 1] ?? PADDING_NODE);
    layer = layerAbove(layer);
  }
  return proof;
}
