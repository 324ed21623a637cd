/**
 * The facts of a message from its send to its last execution, by its number in the world of the benchmarks (`world.ts`). Who
 * sends what to whom is the world's; this file adds the protocol version, the times, and what becomes of it.
 *
 * Versions go by lane: of a hundred messages 55 are on 1.6, 15 on 1.5 and 30 on 2.0. Shapes of facts are those of the decoders
 * (`src/ingest/evm/decode/`).
 */
import { encodeAbiParameters, type Hex, numberToHex, padHex } from 'viem';
import { zeroAddresses } from '../../src/domain/addresses.ts';
import type {
  Executed,
  ExecutionDetails,
  ExecutionMaterial,
  Observation,
  RangeFact,
  RootFact,
  Sent,
  SentMessage,
  SourceFinalized,
  VerifierCompleted,
  VerifierPolicy,
} from '../../src/domain/facts.ts';
import type { Message } from '../../src/domain/message.ts';
import { drawFailure } from '../../src/ingest/demo/outcome.ts';
import { createDerivation } from '../../src/ingest/demo/randomness.ts';
import { executableMessage } from '../../src/ingest/engine/event-facts.ts';
import * as abi from '../../src/ingest/evm/contracts/abi.ts';
import { extraArgsTags } from '../../src/ingest/evm/decode/v16.ts';
import { createRowWriter } from '../data/records.ts';
import {
  contract,
  createWorld,
  END_MS,
  executionTransaction,
  hexOf,
  type Lane,
  lanes,
  mix,
  SPAN_MS,
  type World,
} from '../data/world.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
export const BLOCK_MS = 12 * SECOND_MS;
export const START_MS = END_MS - SPAN_MS;

/** The main lane has 55 per cent of the world's messages, these three 15. */
const lanesOf15: readonly number[] = [2, 3, 8];
const MAIN_LANE = 0;

export const protocolVersions = ['1.5.0', '1.6.0', '2.0.0'] as const;
export type ProtocolVersion = (typeof protocolVersions)[number];

function versionOf(lane: number): ProtocolVersion {
  if (lane === MAIN_LANE) return '1.6.0';
  return lanesOf15.includes(lane) ? '1.5.0' : '2.0.0';
}

/** Salts of `mix` and `hexOf` that the world does not use. */
const salts = {
  failure: 2_001,
  attempts: 2_002,
  abandoned: 2_003,
  delay: 2_004,
  verification: 2_005,
  root: 2_006,
  attempt: 2_010,
  block: 2_100,
} as const;

const FAILED_OF_THOUSAND = 20;
/** Of the facts of each kind. */
const ABANDONED_OF_THOUSAND = 5;
/** Attempts after a first one that failed, each as often as the others: most are executed by hand, some never, some in vain. */
const laterAttempts: readonly (readonly boolean[])[] = [
  [true],
  [true],
  [true],
  [false, true],
  [false, false, true],
  [],
  [],
  [false, false, false, false, false],
];

/** Whether each attempt to execute the message succeeds, from the first to the last. */
export function attemptsOf(n: number): readonly boolean[] {
  if (mix(n, salts.failure) % 1_000 >= FAILED_OF_THOUSAND) return [true];
  return [false, ...(laterAttempts[mix(n, salts.attempts) % laterAttempts.length] ?? [])];
}

/** Kinds of events whose block may be abandoned; a root is abandoned by the number of its first message. */
export type AbandonedKind = 'sent' | 'committed' | 'executed';
const abandonedSalts: Readonly<Record<AbandonedKind, number>> = { sent: 0, committed: 1, executed: 2 };

/** Whether the first block with the event is abandoned; the event then comes again in another one. */
export function isAbandoned(kind: AbandonedKind, n: number): boolean {
  return mix(n, salts.abandoned + 10_000 * abandonedSalts[kind]) % 1_000 < ABANDONED_OF_THOUSAND;
}

/** A message and its number on the lane. */
export interface Member {
  readonly n: number;
  readonly sequence: number;
}

/** A block with one event of the benchmark. `branch` is 1 for the block that replaces an abandoned one. */
type Branch = 0 | 1;

const REMEMBERED = 4_096;

/** The second one verifies tokens. */
const VERIFIERS = ['CommitteeVerifier', 'LombardVerifier'] as const;
/** Five signatures of a committee. */
const VERIFICATION_WORDS = 80;
const lengthPrefixed = (digits: string, bytes: number) =>
  `${(digits.length / 2).toString(16).padStart(2 * bytes, '0')}${digits}`;
const uint = (value: bigint, bytes: number) => value.toString(16).padStart(2 * bytes, '0');
const digitsOf = (text: string) => text.slice(2);
const addressWord = (address: string) => padHex(address as Hex);

export type Lives = ReturnType<typeof createLives>;

/** `only`: the version of all lanes, instead of the mixture. */
export function createLives(messages: number, only?: ProtocolVersion) {
  const plainWorld = createWorld(messages);
  const world: World = { ...plainWorld, envelope: remembered(plainWorld.envelope) };
  const rowsOf = createRowWriter(world);
  const derive = createDerivation('bench:life');

  const versionedLanes = lanes.map((lane, number) => ({
    ...lane,
    number,
    version: only ?? versionOf(number),
  }));
  const laneOf = (n: number) => versionedLanes[world.envelope(n).lane] as (typeof versionedLanes)[number];
  const offRampOf = (lane: number) => contract(400 + lane);
  const executorOf = (lane: number) => contract(500 + lane);
  const verifiersOf = (n: number) => {
    const { lane, token } = world.envelope(n);
    const used = VERIFIERS.slice(0, token === null ? 1 : 2);
    return used.map((name, index) => ({ name, address: contract(600 + 2 * lane + index) }));
  };

  /** An event in a block of its own. */
  const seenIn = (
    network: string,
    n: number,
    kind: number,
    at: number,
    transactionHash: string,
    branch: Branch = 0,
  ): Observation => ({
    network,
    blockNumber: blockAt(at) + branch,
    blockHash: `0x${hexOf(n, salts.block + 2 * kind + branch, 8)}`,
    transactionHash,
    logIndex: mix(n, kind) % 400,
    at: new Date(at + branch * BLOCK_MS).toISOString(),
  });
  /** What no log says is seen at a block that many messages share. */
  const seenAt = (network: string, at: number): Observation => ({
    network,
    blockNumber: blockAt(at),
    blockHash: `0x${hexOf(blockAt(at), Number(BigInt(network) % 65_521n), 8)}`,
    transactionHash: null,
    logIndex: null,
    at: new Date(at).toISOString(),
  });

  // ---- The send

  const sentMessage = ({ n, sequence }: Member, branch: Branch): SentMessage => {
    const { number, version, router } = laneOf(n);
    const {
      status,
      receiptTransactionHash,
      receiptTimestamp,
      deliveryTime,
      readyForManualExecution,
      ...message
    } = JSON.parse(rowsOf(n).record) as Message;
    const sentAt = world.envelope(n).sentAtMs + branch * BLOCK_MS;
    const before20: SentMessage = {
      ...message,
      sequenceNumber: String(sequence),
      sendBlockNumber: blockAt(world.envelope(n).sentAtMs) + branch,
      sendTimestamp: new Date(sentAt).toISOString(),
      version,
    };
    if (version !== '2.0.0') return before20;
    const verifiers = verifiersOf(n);
    const executor = executorOf(number);
    const { tokenAddress, totalAmount } = message.fees.fixedFeesDetails;
    const fee = (contractAddress: string, feeType: 'VERIFIER' | 'TOKEN_POOL' | 'EXECUTOR' | 'NETWORK') => ({
      contractAddress,
      feeType,
      amount: totalAmount,
    });
    return {
      ...before20,
      nonce: null,
      extraArgs: {
        gasLimit: '200000',
        allowOutOfOrderExecution: true,
        requestedFinalityConfig: '0x00000000',
        ccvs: verifiers.map(({ address }) => address),
        ccvArgs: verifiers.map(() => '0x'),
        executor,
        executorArgs: '0x',
        tokenReceiver: message.receiver,
        tokenArgs: '0x',
      },
      verifiers: {
        items: verifiers.map(({ name, address }) => ({
          sourceAddress: address,
          destAddress: zeroAddresses.EVM,
          metadata: { name },
          isRequired: true,
          status: 'PENDING',
          verification: null,
        })),
        optionalThreshold: 0,
      },
      executor: { address: executor },
      fees: {
        fixedFeesDetails: {
          tokenAddress,
          totalAmount,
          items: [
            ...verifiers.map(({ address }) => fee(address, 'VERIFIER')),
            ...message.tokenAmounts.map(({ sourcePoolAddress }) => fee(sourcePoolAddress, 'TOKEN_POOL')),
            fee(executor, 'EXECUTOR'),
            fee(router, 'NETWORK'),
          ],
        },
      },
    };
  };

  const gasWord = padHex(numberToHex(90_000));
  const extraArgs = `${extraArgsTags.evmV2}${digitsOf(encodeAbiParameters(abi.evmExtraArgsV2, [200_000n, true]))}`;

  const materialOf = (message: SentMessage, lane: ReturnType<typeof laneOf>): ExecutionMaterial => {
    const sourceChainSelector = message.sourceNetworkInfo.chainSelector;
    const destChainSelector = message.destNetworkInfo.chainSelector;
    const { messageId, sender, receiver, sequenceNumber, tokenAmounts } = message;
    const data = message.data ?? '0x';
    const { tokenAddress: feeToken, totalAmount } = message.fees.fixedFeesDetails;
    if (lane.version === '2.0.0')
      return {
        encodedMessage: encodeMessageV1(message, offRampOf(lane.number)),
        offramp: offRampOf(lane.number),
      };
    if (lane.version === '1.5.0')
      return {
        message: {
          ...{ messageId, sourceChainSelector, sequenceNumber, nonce: '0', sender, receiver, data },
          ...{ gasLimit: '200000', strict: false, feeToken, feeTokenAmount: totalAmount },
          tokenAmounts: tokenAmounts.map(({ sourceTokenAddress, amount }) => ({
            token: sourceTokenAddress,
            amount,
          })),
          sourceTokenData: tokenAmounts.map(({ sourcePoolAddress, destTokenAddress, extraData }) =>
            encodeAbiParameters(abi.sourceTokenData, [
              {
                sourcePoolAddress: addressWord(sourcePoolAddress),
                destTokenAddress: addressWord(destTokenAddress),
                extraData: extraData as Hex,
                destGasAmount: 90_000n,
              },
            ]),
          ),
        },
      };
    const header = {
      messageId,
      sourceChainSelector: BigInt(sourceChainSelector),
      destChainSelector: BigInt(destChainSelector),
      sequenceNumber: BigInt(sequenceNumber),
      nonce: 0n,
    };
    const fees = { feeTokenAmount: BigInt(totalAmount), feeValueJuels: 31_415_926_535_897_932n };
    return {
      message: executableMessage(
        { header, sender, feeToken, ...fees },
        {
          receiver,
          data,
          extraArgs: { extraArgs },
          tokens: tokenAmounts.map(({ destGasAmount: _, ...token }) => ({ ...token, destExecData: gasWord })),
        },
      ),
    };
  };

  // ---- Times

  const sentAt = (n: number) => world.envelope(n).sentAtMs;
  /** Later attempts are made by people, hours later. */
  const executedAt = (n: number, attempt: number) =>
    sentAt(n) + 23 * MINUTE_MS + (mix(n, salts.delay) % 120) * SECOND_MS + attempt * 6 * HOUR_MS;

  const executionSeen = ({ n }: Member, attempt: number, branch: Branch): Observation => {
    const transaction = attempt === 0 ? executionTransaction(n) : `0x${hexOf(n, salts.attempt + attempt, 8)}`;
    return seenIn(laneOf(n).dest.chainSelector, n, 10 + attempt, executedAt(n, attempt), transaction, branch);
  };
  const verificationOf = (n: number, verifier: number) =>
    `0x${hexOf(n, salts.verification + verifier, VERIFICATION_WORDS)}`;
  const laneKeyOf = ({ source, dest, onramp }: Lane): RangeFact['lane'] => ({
    sourceChainSelector: source.chainSelector,
    destChainSelector: dest.chainSelector,
    onramp,
  });
  const rootOf = (first: Member) => `0x${hexOf(first.n, salts.root, 8)}`;

  const executionBranch = (n: number, attempt: number): Branch =>
    attempt === 0 && isAbandoned('executed', n) ? 1 : 0;

  return {
    world,
    laneOf,
    verifierCount: (n: number) => verifiersOf(n).length,
    messageId: (n: number) => world.envelope(n).messageId,

    sent(member: Member, branch: Branch): Sent {
      const { n } = member;
      const lane = laneOf(n);
      const message = sentMessage(member, branch);
      return {
        kind: 'Sent',
        message,
        execution: materialOf(message, lane),
        seen: {
          ...seenIn(lane.source.chainSelector, n, 0, sentAt(n), message.sendTransactionHash, branch),
          logIndex: message.sendLogIndex,
        },
      };
    },

    finalized: ({ n }: Member): SourceFinalized => ({
      kind: 'SourceFinalized',
      messageId: world.envelope(n).messageId,
      seen: seenAt(laneOf(n).source.chainSelector, sentAt(n) + 15 * MINUTE_MS),
    }),

    /** One merkle root over consecutive messages of a lane. */
    committed(members: readonly [Member, ...Member[]], branch: Branch): RangeFact {
      const [first] = members;
      const last = members.at(-1) ?? first;
      const lane = laneOf(first.n);
      const at = sentAt(last.n) + 20 * MINUTE_MS;
      return {
        kind: 'Committed',
        lane: laneKeyOf(lane),
        fromSequenceNumber: String(first.sequence),
        toSequenceNumber: String(last.sequence),
        merkleRoot: rootOf(first),
        offramp: offRampOf(lane.number),
        seen: seenIn(
          lane.dest.chainSelector,
          first.n,
          1,
          at,
          `0x${hexOf(first.n, salts.root + 1, 8)}`,
          branch,
        ),
      };
    },

    blessed: ([first]: readonly [Member, ...Member[]]): RootFact => ({
      kind: 'RootBlessed',
      merkleRoot: rootOf(first),
      seen: seenIn(
        laneOf(first.n).dest.chainSelector,
        first.n,
        2,
        sentAt(first.n) + 21 * MINUTE_MS,
        `0x${hexOf(first.n, salts.root + 2, 8)}`,
      ),
    }),

    policy: ({ n }: Member): VerifierPolicy => ({
      kind: 'VerifierPolicy',
      messageId: world.envelope(n).messageId,
      required: verifiersOf(n).map(({ address }) => address),
      optional: [],
      optionalThreshold: 0,
      seen: seenAt(laneOf(n).dest.chainSelector, sentAt(n) + 16 * MINUTE_MS),
    }),

    /** As the service of the verifiers tells it, before it is on chain. */
    verified: ({ n }: Member, verifier: number): VerifierCompleted => ({
      kind: 'VerifierCompleted',
      messageId: world.envelope(n).messageId,
      verifier: verifiersOf(n)[verifier]?.address as string,
      data: verificationOf(n, verifier),
      seen: seenAt(laneOf(n).dest.chainSelector, sentAt(n) + (17 + verifier) * MINUTE_MS),
    }),

    /** An execution with what it left behind; on 2.0 a success also shows the verifications. */
    executed(
      member: Member,
      attempt: number,
      branch: Branch,
    ): readonly [Executed, ...(ExecutionDetails | VerifierCompleted)[]] {
      const { n } = member;
      const { messageId } = world.envelope(n);
      const { number, version } = laneOf(n);
      const success = attemptsOf(n)[attempt] ?? false;
      const seen = executionSeen(member, attempt, branch);
      const executed: Executed = { kind: 'Executed', messageId, success, seen };
      const gasUsed = version === '1.6.0' ? String(60_000 + (mix(n, salts.delay) % 90_000)) : null;
      const details = (more: {
        returnData: string;
        gasUsed: string | null;
        caller: string | null;
      }): ExecutionDetails => ({
        kind: 'ExecutionDetails',
        messageId,
        ...more,
        seen,
      });
      if (!success) {
        const failure = drawFailure(sentMessage(member, 0), derive.randomness(`failure of ${messageId}`));
        const caller = attempt === 0 ? executorOf(number) : contract(700 + (n % 50));
        return [executed, details({ ...failure, caller })];
      }
      const verifications = verifiersOf(n).map(
        ({ address: verifier }, index): VerifierCompleted => ({
          kind: 'VerifierCompleted',
          messageId,
          verifier,
          data: verificationOf(n, index),
          seen,
        }),
      );
      return [
        executed,
        ...(gasUsed === null ? [] : [details({ returnData: '0x', gasUsed, caller: null })]),
        ...(version === '2.0.0' ? verifications : []),
      ];
    },

    /** The record at the end of the life, except for the state of its verifiers. */
    finalRecord(member: Member): Omit<Message, 'verifiers'> {
      const { n } = member;
      const { verifiers: _, ...message } = sentMessage(member, isAbandoned('sent', n) ? 1 : 0);
      const attempts = attemptsOf(n);
      const last = attempts.length - 1;
      const { transactionHash, at } = executionSeen(member, last, executionBranch(n, last));
      return {
        ...message,
        status: attempts[last] ? 'SUCCESS' : 'FAILED',
        readyForManualExecution: !attempts[last],
        receiptTransactionHash: transactionHash,
        receiptTimestamp: at,
        deliveryTime: Date.parse(at) - Date.parse(message.sendTimestamp),
      };
    },
  };
}

/** Facts of a message ask for the same again and again, while a few hundred messages are under way. */
function remembered<T>(make: (n: number) => T): (n: number) => T {
  const latest: { readonly n: number; readonly made: T }[] = [];
  return (n) => {
    const place = n % REMEMBERED;
    const known = latest[place];
    if (known?.n === n) return known.made;
    const made = make(n);
    latest[place] = { n, made };
    return made;
  };
}

/** On every network; only their order matters. */
export function blockAt(at: number): number {
  return 20_000_000 + Math.floor((at - START_MS) / BLOCK_MS);
}

/** The encoding of `src/domain/manual-execution/message-v1.ts`, which reads it. */
function encodeMessageV1(message: SentMessage, offRamp: string): string {
  const { sourceNetworkInfo, destNetworkInfo, sequenceNumber, onramp, sender, receiver, data } = message;
  const address = (text: string) => lengthPrefixed(digitsOf(text), 1);
  const transfers = message.tokenAmounts.map(
    (token) =>
      `01${uint(BigInt(token.amount), 32)}${address(addressWord(token.sourcePoolAddress))}` +
      `${address(addressWord(token.sourceTokenAddress))}${address(token.destTokenAddress)}${address(receiver)}` +
      lengthPrefixed(digitsOf(token.extraData ?? '0x'), 2),
  );
  return (
    `0x01${uint(BigInt(sourceNetworkInfo.chainSelector), 8)}${uint(BigInt(destNetworkInfo.chainSelector), 8)}` +
    `${uint(BigInt(sequenceNumber), 8)}${uint(500_000n, 4)}${uint(200_000n, 4)}${uint(0n, 4)}` +
    `${digitsOf(message.messageId)}${address(addressWord(onramp))}${address(offRamp)}${address(addressWord(sender))}` +
    `${address(receiver)}${lengthPrefixed('', 2)}${lengthPrefixed(transfers.join(''), 2)}` +
    lengthPrefixed(digitsOf(data ?? '0x'), 2)
  );
}
