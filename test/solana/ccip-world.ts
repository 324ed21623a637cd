/**
 * A virtual Solana cluster with CCIP's programs and lanes to other chains. A test has it send, commit, execute, forge and
 * make noise. It updates the programs' accounts accordingly and records what truly happened.
 *
 * @example
 * const world = createSolanaWorld();
 * world.send({ data: '0x1234', tokens: [5n] });
 * const message = world.receive();
 * const commit = world.commit([message]);
 * world.execute(message, { outcome: 'failure' });
 * world.settle();
 */
import { addresses } from './ccip-accounts.ts';
import { commitCall, forgeries, poolProgram, sendCall, wrapped } from './ccip-calls.ts';
import {
  type CcipDeployment,
  createCcipDeployment,
  DEST_GAS,
  dapp,
  mintOf,
  selectorOf,
} from './ccip-deployment.ts';
import {
  ccipMessageSent,
  commitReportAccepted,
  evmExtraArgs,
  NO_RECEIVER,
  type SentBody,
  type SvmExtraArgs,
  sentMessageId,
  svmExtraArgs,
  versionChanged,
} from './ccip-events.ts';
import { FINALITY_SLOTS } from './endpoint/node.ts';
import { addressOf, concat, fromHex, pubkey, toHex, u32be } from './runtime/bytes.ts';
import { type Call, customFailure, type Failure, type LedgerTransaction } from './runtime/runtime.ts';
import {
  type ForgeryKind,
  type Remote,
  type SendOptions,
  type SolanaWorldOptions,
  sepolia,
  solanaDevnet,
  type TrueSend,
} from './world-options.ts';
import { createReceiving } from './world-receiving.ts';

export type SolanaWorld = ReturnType<typeof createSolanaWorld>;

const WRAPPED_SOL = 'So11111111111111111111111111111111111111112';
const FEE_TOKEN_LAMPORTS = 41_032n;
const FEE_JUELS = 422_097_000_000_000n;
/** Beyond finality, so that nodes that are a little behind have everything too. */
const SETTLING_SLOTS = 40;

export function createSolanaWorld(options: SolanaWorldOptions = {}) {
  const { network = solanaDevnet, remotes = [sepolia], isRelaying = true } = options;
  const deployment = createCcipDeployment(options);
  const { cluster, programs, land } = deployment;
  const sending = createSending(deployment, { isRelaying });
  const { sends, send, bodyOf, bumpVersion, rollBackVersion } = sending;
  const { commits, executions, ...arrivals } = createReceiving(deployment, remotes);
  return {
    network,
    cluster,
    programs,
    remotes,
    truth: { sends, commits, executions },
    send,
    bodyOf,
    bumpVersion,
    rollBackVersion,
    ...arrivals,
    /** Something that looks like a message or a commit and is not. */
    forge: (kind: ForgeryKind) => forge(deployment, sending, kind),
    /** A transaction that names the router and does nothing. */
    makeNoise: () =>
      land({ program: dapp, accounts: [{ address: programs.router }], data: new Uint8Array([1]) }),
    /** Lets slots pass until everything is final. */
    settle: () => cluster.grow(FINALITY_SLOTS + SETTLING_SLOTS),
  };
}

/** The router of a world: it sends messages, and may begin to count a lane anew. */
function createSending(deployment: CcipDeployment, { isRelaying }: { isRelaying: boolean }) {
  const { selector, programs, usual, laneOf, land, observed } = deployment;
  const { router } = programs;
  const sends: TrueSend[] = [];
  const nonces = new Map<string, bigint>();

  /** The message that `send` would send next. */
  const bodyOf = (options: SendOptions, to: Remote): SentBody => {
    const { data = '0x1234', tokens = [], isOrdered = false } = options;
    const isSvm = to.network.family === 'SVM';
    const sender = options.sender ?? addressOf('sender', sends.length % 5);
    const nonceKey = `${selectorOf(to)} ${sender}`;
    const nonce = isOrdered ? (nonces.get(nonceKey) ?? 0n) + 1n : 0n;
    const unnamed: SentBody = {
      header: {
        messageId: new Uint8Array(32),
        sourceChainSelector: selector,
        destChainSelector: selectorOf(to),
        sequenceNumber: laneOf(to).sequenceNumber + 1n,
        nonce,
      },
      sender,
      data: fromHex(data),
      receiver: isSvm
        ? fromHex(options.receiver ?? toHex(pubkey(addressOf('receiver'))))
        : concat(new Uint8Array(12), fromHex(options.receiver ?? `0x${'b0'.repeat(20)}`)),
      extraArgs: isSvm
        ? svmExtraArgs(svmArgsOf(options))
        : evmExtraArgs(options.gasLimit ?? 200_000n, !isOrdered),
      feeToken: WRAPPED_SOL,
      tokenAmounts: tokens.map((amount, index) => ({
        sourcePoolAddress: addresses.poolConfig(poolProgram, mintOf(index)),
        destTokenAddress: isSvm
          ? pubkey(addressOf('mint elsewhere', index))
          : concat(new Uint8Array(31), new Uint8Array([0x70 + index])),
        extraData: concat(new Uint8Array(31), new Uint8Array([9])),
        amount,
        destExecData: u32be(DEST_GAS),
      })),
      feeTokenAmount: FEE_TOKEN_LAMPORTS,
      feeValueJuels: FEE_JUELS,
    };
    return { ...unnamed, header: { ...unnamed.header, messageId: sentMessageId(router, unnamed) } };
  };

  const callOf = (body: SentBody, failure?: Failure): Call =>
    sendCall({
      programs,
      body,
      isRelayed: isRelaying,
      failure,
      mints: body.tokenAmounts.map((_, index) => mintOf(index)),
    });

  return {
    sends,
    bodyOf,
    callOf,

    send(options: SendOptions = {}): TrueSend {
      const to = options.to ?? usual;
      const body = bodyOf(options, to);
      const call = callOf(body);
      const encoded = ccipMessageSent(body);
      const transaction = land(options.isWrapped ? wrapped(dapp, call) : call, {
        feePayer: body.sender,
        cutEvent: options.isTruncated ? encoded : undefined,
        hasLookup: options.hasLookup,
      });
      laneOf(to).sequenceNumber = body.header.sequenceNumber;
      if (body.header.nonce > 0n) nonces.set(`${selectorOf(to)} ${body.sender}`, body.header.nonce);
      deployment.keepDestChain(to);
      const place = observed(transaction, encoded);
      const sent: TrueSend = {
        ...place,
        messageId: toHex(body.header.messageId),
        body,
        ...(to.network.family === 'SVM' && { svm: svmArgsOf(options) }),
        origin: body.sender,
        mints: body.tokenAmounts.map((_, index) => mintOf(index)),
        trace: place.logIndex !== undefined ? 'log' : isRelaying ? 'relayed copy' : 'counter',
      };
      sends.push(sent);
      return sent;
    },

    /** The router begins to count a lane anew. */
    bumpVersion(to: Remote = usual): void {
      const lane = laneOf(to);
      const { sequenceNumber: previous, restore } = lane;
      // The event says 0 also where the lane goes on with the numbers that a rollback has left.
      const event = versionChanged('Bumped', selectorOf(to), previous, 0n);
      deployment.administer(router, 'bump_ccip_version_for_dest_chain', event);
      lane.sequenceNumber = restore?.on === 'upgrade' ? restore.number : 0n;
      lane.restore = { number: previous, on: 'rollback' };
      deployment.keepDestChain(to);
    },

    /** The router goes back to the version before, and goes on where that one had stopped to count. */
    rollBackVersion(to: Remote = usual): void {
      const lane = laneOf(to);
      const { sequenceNumber: previous, restore } = lane;
      if (restore?.on !== 'rollback') throw new RangeError('The lane has no version to go back to.');
      const event = versionChanged('RolledBack', selectorOf(to), previous, restore.number);
      deployment.administer(router, 'rollback_ccip_version_for_dest_chain', event);
      lane.sequenceNumber = restore.number;
      lane.restore = { number: previous, on: 'upgrade' };
      deployment.keepDestChain(to);
    },
  };
}

function svmArgsOf({ tokens = [], svm }: SendOptions): SvmExtraArgs {
  return {
    computeUnits: 80_000,
    isWritableBitmap: 1n,
    tokenReceiver: tokens.length > 0 ? addressOf('token receiver') : NO_RECEIVER,
    accounts: [addressOf('message account', 0)],
    ...svm,
  };
}

const forger = addressOf('forger');
const forgerWallet = addressOf('wallet of the forger');
const paidByForger = { feePayer: forgerWallet };

function forge(
  { programs, usual, laneOf, land }: CcipDeployment,
  { bodyOf, callOf }: ReturnType<typeof createSending>,
  kind: ForgeryKind,
): LedgerTransaction {
  const { offRamp } = programs;
  const body = bodyOf({ data: '0xbad0', sender: forgerWallet }, usual);
  const encoded = ccipMessageSent(body);
  const root = {
    sourceChainSelector: selectorOf(usual),
    onRampAddress: fromHex(usual.onRamp),
    minSeqNr: laneOf(usual).nextToCommit,
    maxSeqNr: laneOf(usual).nextToCommit,
    merkleRoot: new Uint8Array(32).fill(0xbd),
  };
  switch (kind) {
    case 'failed send':
      return land(callOf(body, customFailure(7_001)), paidByForger);
    case 'failed commit': {
      const failure = customFailure(9_002);
      return land(
        commitCall({ programs, transmitter: forgerWallet, root, prices: [], number: 0n, failure }),
        paidByForger,
      );
    }
    case 'commit of another program': {
      const steps = [{ data: commitReportAccepted(root, []) }];
      return land({ program: forger, accounts: [{ address: offRamp }], steps }, paidByForger);
    }
    default:
      return land(forgeries(forger, programs, encoded)[kind], paidByForger);
  }
}
