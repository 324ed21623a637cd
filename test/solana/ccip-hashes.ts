/** Message ids, leaves and Merkle roots of CCIP messages from and to Solana. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import type { InstructionOf, SentRampMessage } from '../../src/ingest/svm/decode/layouts.ts';
import {
  bytes,
  concat,
  pubkey,
  sized,
  u8,
  u16be,
  u32,
  u64,
  u64be,
  u256,
  utf8,
  vec,
} from './runtime/bytes.ts';

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
