/** Prepares the manual execution of a stored message, or says what prevents it. */
import { setImmediate } from 'node:timers/promises';
import type { ErrorCode } from '../../domain/errors.ts';
import type { Hex } from '../../domain/manual-execution/abi-encoding.ts';
import {
  type BatchMaterial,
  executableVersion,
  type PreparedExecution,
  prepareBatch,
  prepareVerified,
} from '../../domain/manual-execution/prepared-execution.ts';
import type { BatchLane } from '../../domain/manual-execution/ramp-messages.ts';
import {
  fieldsOf,
  integerOf,
  listOf,
  parseExactJson,
  UnusableInputsError,
} from '../../domain/manual-execution/ramp-messages.ts';
import type { Message } from '../../domain/message.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import {
  type BatchInputs,
  MAX_BATCH_BYTES,
  type MirroredInputs,
  type SequenceRun,
  type UnavailableInputs,
  type VerifiedInputs,
} from '../../store/query/execution-inputs.ts';
import type { Store } from '../../store/store.ts';
import { unknownMessage } from '../routes/requested-message.ts';
import { createExpiringCache } from '../server/expiring-cache.ts';

/** An execution that can be sent or tried. */
export interface ReadyExecution {
  readonly kind: 'ready';
  readonly message: Message;
  readonly prepared: PreparedExecution;
  /** Where the inputs come from. */
  readonly inputs: 'chain' | 'mirror';
  /** Time of the commit; null where it is not known, and on 2.0. */
  readonly committedAt: string | null;
  /** Whether the off-ramp takes it from anybody, as far as the index knows. */
  readonly isOpen: boolean;
}

export interface BlockedExecution {
  readonly kind: 'blocked';
  readonly message: Message;
  readonly code: ErrorCode;
  /** What prevents it, in sentences. */
  readonly text: string;
}

export type Preparation = ReadyExecution | BlockedExecution;

type Reads = Pick<Store, 'executionInputs' | 'findMessage' | 'networkProgress' | 'simulated'>;

async function prepareExecution(store: Reads, digits: string, message: Message): Promise<Preparation> {
  const blocked = (code: ErrorCode, text: string): BlockedExecution => ({
    kind: 'blocked',
    message,
    code,
    text: `Message 0x${digits} ${text}`,
  });
  if (message.status === 'SUCCESS')
    return blocked('MESSAGE_ALREADY_EXECUTED', 'has been executed successfully. Nothing is left to do.');
  if (store.simulated)
    return blocked('MANUAL_EXECUTION_UNSUPPORTED', 'is simulated: no chain has it, so nothing can be sent.');
  const { chainFamily, displayName, name } = message.destNetworkInfo;
  if (chainFamily !== 'EVM') {
    return blocked(
      'MANUAL_EXECUTION_UNSUPPORTED',
      `goes to ${displayName ?? name}, which is not an EVM chain: its transaction cannot be built here. ` +
        'Use ccip-cli with the inputs at /execution-inputs.',
    );
  }
  const inputs = await store.executionInputs(digits);
  if (!inputs) return blocked('EXECUTION_INPUTS_NOT_FOUND', 'has no inputs.');
  if (inputs.kind === 'unavailable') {
    const { code, text } = unavailableInputs(inputs);
    return blocked(code, text);
  }
  if (inputs.kind === 'verified' && !inputs.isComplete) {
    return blocked(
      'EXECUTION_INPUTS_NOT_READY',
      'is not verified yet, as far as is known here: results of required verifiers are missing.',
    );
  }
  try {
    const prepared = await prepare(`0x${digits}`, message, inputs);
    if (prepared === undefined) {
      return blocked(
        'MANUAL_EXECUTION_UNSUPPORTED',
        `is of version ${message.version ?? 'unknown'}, whose off-ramps are not known here.`,
      );
    }
    if (prepared.unattested.length > 0)
      return blocked('MANUAL_EXECUTION_UNSUPPORTED', unattested(message, prepared));
    return {
      kind: 'ready',
      message,
      prepared,
      inputs: inputs.kind === 'mirrored' ? 'mirror' : 'chain',
      committedAt: inputs.kind === 'batch' ? inputs.committedAt : null,
      isOpen: message.readyForManualExecution || message.status === 'FAILED' || prepared.version === '2.0',
    };
  } catch (error) {
    if (!(error instanceof UnusableInputsError) && !(error instanceof RangeError)) throw error;
    return blocked(
      'EXECUTION_INPUTS_NOT_FOUND',
      `has inputs that cannot be used: ${error.message}. ` +
        (inputs.kind === 'mirrored'
          ? 'They come from a mirrored server. Index its networks to get them from the chain.'
          : 'A reorganisation may have changed them: try again when the chain is indexed further.'),
    );
  }
}

function prepare(
  messageId: Hex,
  message: Message,
  inputs: BatchInputs | VerifiedInputs | MirroredInputs,
): Promise<PreparedExecution | undefined> | PreparedExecution {
  const lane = laneOf(message);
  switch (inputs.kind) {
    case 'batch':
      return prepareFrom(messageId, message, inputs, parsedOneByOne(inputs.batch));
    case 'verified':
      return prepareVerified(messageId, verifiedMaterial(inputs), lane);
    case 'mirrored': {
      const body = fieldsOf(parseExactJson(inputs.body), 'the answer');
      const { offramp, encodedMessage, verifierAddresses, ccvData, verificationComplete } = body;
      if (!('encodedMessage' in body)) {
        const root = {
          offramp: textOf(offramp, 'offramp'),
          merkleRoot: textOf(body.merkleRoot, 'merkleRoot'),
        };
        return prepareFrom(messageId, message, root, listOf(body.messageBatch, 'messageBatch'));
      }
      if (verificationComplete === false) throw new UnusableInputsError('the verification is not complete');
      return prepareVerified(messageId, { offramp, encodedMessage, verifierAddresses, ccvData }, lane);
    }
  }
}

/** Under the names that the API has for them. */
export function verifiedMaterial({ offramp, encodedMessage, verifications }: VerifiedInputs) {
  return {
    offramp,
    encodedMessage,
    verifierAddresses: verifications.map(({ verifier }) => verifier),
    ccvData: verifications.map(({ data }) => data),
  };
}

/** Undefined for a version that is not known. */
async function prepareFrom(
  messageId: Hex,
  message: Message,
  { offramp, merkleRoot }: Pick<BatchMaterial, 'offramp' | 'merkleRoot'>,
  batch: Iterable<unknown>,
): Promise<PreparedExecution | undefined> {
  const known = executableVersion(message.version);
  if (known === undefined || known === '2.0') return undefined;
  // A large batch takes long to hash: other requests get their turn in between.
  const material = { lane: laneOf(message), version: known, offramp, merkleRoot, batch };
  return prepareBatch(messageId, material, async () => {
    await setImmediate();
  });
}

function laneOf({ sourceNetworkInfo, destNetworkInfo, onramp }: Message): BatchLane {
  return {
    sourceChainSelector: integerOf(sourceNetworkInfo.chainSelector, 'sourceChainSelector'),
    destChainSelector: integerOf(destNetworkInfo.chainSelector, 'destChainSelector'),
    sourceFamily: sourceNetworkInfo.chainFamily,
    onramp,
  };
}

function* parsedOneByOne(batch: readonly string[]): Iterable<unknown> {
  for (const message of batch) yield JSON.parse(message);
}

function textOf(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new UnusableInputsError(`${what} is not text`);
  return value;
}

function unattested(message: Message, { unattested }: PreparedExecution): string {
  return (
    `transfers ${tokensAt(message, unattested)}, whose pool needs an attestation, like USDC (CCTP) and LBTC. ` +
    'Attestations are not on chain and not known here: use ccip-cli, which requests them from their issuers.'
  );
}

/** The tokens at these places of the message, for people. */
export function tokensAt({ tokenAmounts }: Message, places: readonly number[]): string {
  return places.map((place) => tokenAmounts[place]?.sourceTokenAddress ?? 'unknown').join(', ');
}

/** Why an execution that is not open yet is rejected. */
export function notOpenText({ prepared }: ReadyExecution): string {
  return (
    `Message ${prepared.messageId} is committed and has not failed: its off-ramp leaves it to the regular execution ` +
    'for some time. That time is not over, as far as is known here.'
  );
}

/** What nobody has found out where the execution was not tried; a sentence after others, or empty. */
export function uncheckedOrder({ message, prepared }: ReadyExecution): string {
  // A message that failed has had its turn.
  if (prepared.order === null || message.status === 'FAILED') return '';
  return (
    ' An earlier message of the same sender may have to be executed first, which was not checked: then the transaction ' +
    'succeeds and leaves this message as it is.'
  );
}

/** The chain id that wallets know the destination by. */
export function evmChainId({ destNetworkInfo }: Message): number | null {
  const chainId = networkBySelector(destNetworkInfo.chainSelector)?.chainId ?? destNetworkInfo.chainId;
  return /^\d{1,15}$/.test(chainId) ? Number(chainId) : null;
}

/** Why inputs are unavailable: the error code, and a sentence that continues `Message 0x…`. */
export function unavailableInputs(inputs: UnavailableInputs) {
  const code =
    inputs.reason === 'not committed' ? 'EXECUTION_INPUTS_NOT_READY' : 'EXECUTION_INPUTS_NOT_FOUND';
  return { code, text: describeMissing(inputs) } as const;
}

function describeMissing({ reason, run, missing = [], bytes = 0 }: UnavailableInputs): string {
  const batch = run ? `The root that covers it has the sequence numbers ${runText(run)}` : '';
  switch (reason) {
    case 'not read from its chain':
      return (
        'is known from an import only, which lacks the inputs of a manual execution. ' +
        'Index its source network to get it from the chain.'
      );
    case 'not committed':
      return 'is not committed on its destination yet, as far as that is indexed here. Until then it cannot be executed.';
    case 'off-ramp unknown':
      return 'is committed, but its source does not report the off-ramp. Index its destination network to get it.';
    case 'too long':
      return `cannot be proven here. ${batch}, more than this service combines.`;
    case 'too large':
      return (
        `cannot be proven here. ${batch}, whose messages have ${megabytes(bytes)} MB together; at most ` +
        `${megabytes(MAX_BATCH_BYTES)} MB are combined. Read them from the source chain instead.`
      );
    case 'incomplete':
      return (
        `cannot be proven yet. ${batch}; not read from the chain here: ${missing.map(runText).join(', ')}. ` +
        'The proof takes all of them, so it can be built as soon as they are indexed.'
      );
  }
}

function megabytes(bytes: number): number {
  return Math.ceil(bytes / 1024 / 1024);
}

function runText({ from, to }: SequenceRun): string {
  return from === to ? `${from}` : `${from} to ${to}`;
}

export type Preparations = ReturnType<typeof createPreparations>;

/** A reorganisation can replace the root of a message without a change of its record. */
const TTL_MS = 10_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** A preparation for each character of its record, which holds all of the message: parsed, encoded, and the text itself. */
const BYTES_PER_CHARACTER = 6;

/**
 * Prepared executions, cached by the record. A large batch takes a second of CPU time to hash, and a visitor asks for the
 * diagnosis, the transaction and several gas limits.
 */
export function createPreparations(store: Reads, ttlMs = TTL_MS) {
  // What prevents an execution may change at any moment, and is quick to find.
  const isKept = ({ kind }: Preparation) => kind === 'ready';
  const cache = createExpiringCache<Preparation>(ttlMs, MAX_BYTES, isKept);
  return {
    /** @param digits of the message id */
    async prepare(digits: string): Promise<Preparation> {
      const stored = await store.findMessage(digits);
      if (!stored) throw await unknownMessage(store, digits);
      const { record } = stored;
      const prepareAnew = () => prepareExecution(store, digits, JSON.parse(record) as Message);
      return cache.get(record, prepareAnew, BYTES_PER_CHARACTER * record.length);
    },
  };
}
