/**
 * The pagination token: the filters, the view and the last key of a page, versioned and checksummed.
 *
 * Layout before base64url: one version byte, eight bytes of SHA-256 over the payload, the payload (JSON).
 * The checksum finds damage, not malice: a forged cursor can ask for nothing that filters could not.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { base64urlnopad } from '@scure/base';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { ApiError } from './errors.ts';
import { type Status, statuses } from './lifecycle.ts';
import { type Filters, MAX_MESSAGE_IDS, MAX_Q_TERMS, type PageKey, type View } from './query.ts';
import { LATEST_TIME } from './time.ts';

const VERSION = 1;
const CHECKSUM_BYTES = 8;
/** A hundred message ids, ten terms and every other filter fit, each at its longest: we issue nothing longer. */
export const MAX_CURSOR_LENGTH = 28_000;

export interface Cursor {
  readonly filters: Filters;
  readonly view: View;
  readonly after: PageKey;
}

const Bytes = Type.String({ pattern: '^([0-9a-f]{2}){1,400}$' });
const MessageIdBytes = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Meanings = Type.Array(Bytes, { minItems: 1, maxItems: 6 });
const Selector = Type.String({ pattern: '^[0-9]{1,20}$' });
const Milliseconds = Type.Integer({ minimum: 0, maximum: LATEST_TIME });

const CursorPayload = Type.Object(
  {
    f: Type.Object(
      {
        sender: Type.Optional(Meanings),
        receiver: Type.Optional(Meanings),
        sourceChainSelector: Type.Optional(Selector),
        destChainSelector: Type.Optional(Selector),
        readyForManualExecOnly: Type.Optional(Type.Literal(true)),
        sourceTransactionHash: Type.Optional(Meanings),
        status: Type.Optional(
          Type.Array(Type.Unsafe<Status>({ type: 'string', enum: [...statuses] }), {
            minItems: 1,
            maxItems: statuses.length,
          }),
        ),
        sentAfter: Type.Optional(Milliseconds),
        sentBefore: Type.Optional(Milliseconds),
        address: Type.Optional(Meanings),
        sourceTokenAddress: Type.Optional(Meanings),
        destTransactionHash: Type.Optional(Meanings),
        messageId: Type.Optional(Type.Array(MessageIdBytes, { minItems: 1, maxItems: MAX_MESSAGE_IDS })),
        q: Type.Optional(
          Type.Array(
            Type.Object({
              addresses: Type.Array(Bytes, { maxItems: 6 }),
              hashes: Type.Array(Bytes, { maxItems: 6 }),
              messageId: Type.Union([MessageIdBytes, Type.Null()]),
            }),
            { minItems: 1, maxItems: MAX_Q_TERMS },
          ),
        ),
      },
      { additionalProperties: false },
    ),
    v: Type.Union([Type.Literal('full'), Type.Literal('summary')]),
    k: Type.Tuple([Milliseconds, MessageIdBytes]),
  },
  { additionalProperties: false },
);
const payloadValidator = Compile(CursorPayload);

export function encodeCursor({ filters, view, after }: Cursor): string {
  const payload = new TextEncoder().encode(
    JSON.stringify({ f: filters, v: view, k: [after.sentAt, after.messageId] }),
  );
  const bytes = new Uint8Array(1 + CHECKSUM_BYTES + payload.length);
  bytes[0] = VERSION;
  bytes.set(checksum(payload), 1);
  bytes.set(payload, 1 + CHECKSUM_BYTES);
  return base64urlnopad.encode(bytes);
}

export function decodeCursor(text: string): Cursor {
  if (text === '') throw invalid('is empty; leave it out to begin at the newest message');
  if (text.length > MAX_CURSOR_LENGTH)
    throw invalid(`is longer than any cursor of this service (${MAX_CURSOR_LENGTH} characters)`);
  const bytes = fromBase64url(text);
  if (!bytes || bytes.length <= 1 + CHECKSUM_BYTES)
    throw invalid('is damaged or was not issued by this service');
  if (bytes[0] !== VERSION) throw invalid('was issued by another version of this service, or is damaged');

  const payload = bytes.subarray(1 + CHECKSUM_BYTES);
  const expected = checksum(payload);
  if (!expected.every((byte, i) => byte === bytes[1 + i]))
    throw invalid('is damaged: its checksum does not match');

  const value = fromJson(payload);
  if (!payloadValidator.Check(value)) throw invalid('does not hold a search of this service');
  const cursor = value as Type.Static<typeof CursorPayload>;
  return {
    filters: cursor.f as Filters,
    view: cursor.v,
    after: { sentAt: cursor.k[0], messageId: cursor.k[1] },
  };
}

function fromBase64url(text: string): Uint8Array | undefined {
  try {
    return base64urlnopad.decode(text);
  } catch {
    return undefined;
  }
}

function fromJson(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(payload));
  } catch {
    return undefined;
  }
}

function checksum(payload: Uint8Array): Uint8Array {
  return sha256(payload).subarray(0, CHECKSUM_BYTES);
}

function invalid(problem: string): ApiError {
  return new ApiError(
    'INVALID_CURSOR',
    `cursor ${problem}. Use pagination.cursor of a response as it is, or search again from the first page.`,
    [{ parameter: 'cursor', problem }],
  );
}
