/**
 * A virtual Solana cluster with CCIP's programs and lanes to EVM chains. A test has it send, commit, execute, forge and
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
import { findNetwork, type Network } from '../../src/domain/networks.ts';
import { concat, fromHex, pubkey, toHex, u32be } from './bytes.ts';
import {
  allowedOffRampAccount,
  type CcipPrograms,
  commitReportAccount,
  deployedPrograms,
  destChainAccount,
  offRampAddresses,
  offRampConfig,
  poolConfigAddress,
  poolState,
  referenceAddressesAccount,
  routerAddresses,
  routerConfig,
  sourceChainAccount,
  versionText,
} from './ccip-accounts.ts';
import {
  chatter,
  commitCall,
  executeCall,
  forgeries,
  sendCall,
  setComputeUnits,
  TOKEN_PROGRAM,
  wrapped,
} from './ccip-calls.ts';
import {
  ccipMessageSent,
  commitReportAccepted,
  commitReportClosed,
  discriminator,
  evmExtraArgs,
  executionStateChanged,
  executionStates,
  offRampListed,
  plainInstruction,
  versionChanged,
} from './ccip-events.ts';
import {
  merkleProof,
  merkleRoot,
  NO_RECEIVER,
  receivedLeaf,
  type SentBody,
  sentMessageId,
} from './ccip-hashes.ts';
import { type EvmMessage, leafContextOf, messageIdOf, receivedBodyOf } from './evm-messages.ts';
import type { LedgerTransaction } from './ledger.ts';
import { FINALITY_SLOTS } from './node.ts';
import { addressOf } from './program-address.ts';
import {
  type Call,
  customFailure,
  type Failure,
  LOG_BYTES,
  type Runtime,
  type TransactionPlan,
} from './runtime.ts';
import {
  logIndexOf,
  type Observed,
  type TrueCommit,
  type TrueExecution,
  type TrueSend,
  type Truth,
} from './truth.ts';
import { createVirtualCluster, type VirtualCluster } from './virtual-cluster.ts';

/** An EVM chain that lanes lead to and come from. */
export interface Remote {
  readonly network: Network;
  /** 20 bytes: the on-ramp that the off-ramp on Solana knows. */
  readonly onRamp: `0x${string}`;
}

export interface SolanaWorldOptions {
  readonly network?: Network;
  readonly programs?: Partial<CcipPrograms>;
  readonly remotes?: readonly Remote[];
  /** Whether the router relays its events, as from 1.6.1 on. */
  readonly isRelaying?: boolean;
  readonly manualExecutionAfterSeconds?: number;
  /** The slot of the deployment. */
  readonly head?: number;
  readonly startedAtMs?: number;
  readonly skipsOneIn?: number;
  /** What runs transactions; the scripted runtime where it is left out. */
  readonly run?: Runtime;
}

export interface SendOptions {
  readonly to?: Remote;
  readonly data?: `0x${string}`;
  readonly receiver?: `0x${string}`;
  /** Amounts, each of a token of its own. */
  readonly tokens?: readonly bigint[];
  readonly sender?: string;
  readonly gasLimit?: bigint;
  /** Messages of a sender in order: they have a nonce. */
  readonly isOrdered?: boolean;
  /** Another program calls the router. */
  readonly isWrapped?: boolean;
  /** Accounts come from a lookup table (a transaction of version 0). */
  readonly hasLookup?: boolean;
  /** The log is cut off before the event. */
  readonly isTruncated?: boolean;
}

export interface ReceiveOptions {
  readonly from?: Remote;
  readonly data?: `0x${string}`;
  readonly tokens?: readonly bigint[];
  /** No program is called. Tokens only. */
  readonly hasNoReceiver?: boolean;
}

export interface ExecuteOptions {
  /**
   * `later failure`: the off-ramp says success, and a later instruction of the transaction fails. `skipped`: the off-ramp
   * finds that the message was executed before.
   */
  readonly outcome?: 'success' | 'failure' | 'later failure' | 'skipped';
  readonly failure?: Failure;
  readonly isManual?: boolean;
  readonly isBuffered?: boolean;
  readonly isTruncated?: boolean;
  readonly hasLookup?: boolean;
}

export type ForgeryKind =
  | keyof typeof forgeries
  | 'failed send'
  | 'failed commit'
  | 'commit of another program';

export interface SolanaWorld {
  readonly network: Network;
  readonly cluster: VirtualCluster;
  readonly programs: CcipPrograms;
  readonly remotes: readonly Remote[];
  readonly manualExecutionAfterSeconds: number;
  readonly truth: Truth;
  send(options?: SendOptions): TrueSend;
  /** A message on its way to Solana: it exists on its source chain. */
  receive(options?: ReceiveOptions): EvmMessage;
  /** A message that a real chain has sent, with the next number of its lane. */
  accept(message: EvmMessage): void;
  /** Every message that `receive` made or `accept` took, in order. */
  readonly received: readonly EvmMessage[];
  /** Of messages with consecutive numbers, from the next one that its lane expects on. */
  commit(messages: readonly EvmMessage[], options?: { readonly isTruncated?: boolean }): TrueCommit;
  commitPrices(from?: Remote): void;
  /** Undefined where the off-ramp skipped the message: there is nothing to record. */
  execute(message: EvmMessage, options?: ExecuteOptions): TrueExecution | undefined;
  /** Closes the account of a root all of whose messages succeeded. */
  closeReport(commit: TrueCommit): void;
  /** Something that looks like a message or a commit and is not. */
  forge(kind: ForgeryKind): LedgerTransaction;
  /** A transaction that names the router and does nothing. */
  makeNoise(): LedgerTransaction;
  /** The router begins to count a lane anew. */
  bumpVersion(to?: Remote): void;
  /** Lets slots pass until everything is final. */
  settle(): void;
}

const solanaDevnet = findNetwork('solana-devnet') as Network;
export const sepolia: Remote = {
  network: findNetwork('ethereum-testnet-sepolia') as Network,
  onRamp: '0x32f88479dc6e9eebe603ee032161387b96337fff',
};

export const WRAPPED_SOL = 'So11111111111111111111111111111111111111112';
const FEE_TOKEN_LAMPORTS = 41_032n;
/** Beyond finality, so that nodes that are a little behind have everything too. */
const SETTLING_SLOTS = 40;
const FEE_JUELS = 422_097_000_000_000n;
const DEST_GAS = 90_000;

interface Lane {
  sequenceNumber: bigint;
  nextToCommit: bigint;
  received: bigint;
}

interface Landing {
  readonly feePayer?: string;
  /** The event before which the log is cut off. */
  readonly cutEvent?: Uint8Array | undefined;
  readonly hasLookup?: boolean | undefined;
  readonly later?: readonly Call[];
}

interface Report {
  readonly commit: TrueCommit;
  readonly messages: readonly EvmMessage[];
  states: bigint;
}

export function createSolanaWorld(options: SolanaWorldOptions = {}): SolanaWorld {
  const { network = solanaDevnet, remotes = [sepolia], isRelaying = true } = options;
  const { manualExecutionAfterSeconds = 3_600, head, startedAtMs, skipsOneIn, run } = options;
  const programs: CcipPrograms = { ...deployedPrograms, ...options.programs };
  const { router, offRamp } = programs;
  const cluster = createVirtualCluster({
    genesisHash: network.chainId,
    ...(head !== undefined && { head }),
    ...(startedAtMs !== undefined && { startedAtMs }),
    ...(skipsOneIn !== undefined && { skipsOneIn }),
    ...(run && { run }),
  });
  const selector = BigInt(network.selector);
  const selectorOf = (remote: Remote) => BigInt(remote.network.selector);
  const [usual] = remotes;
  if (!usual) throw new RangeError('A world needs a remote chain.');

  const owner = addressOf('owner');
  const transmitter = addressOf('transmitter');
  const poolProgram = addressOf('pool program');
  const forger = addressOf('forger');
  const forgerWallet = addressOf('wallet of the forger');
  const dapp = addressOf('dapp');
  const lookupTable = addressOf('lookup table');
  const chatterer = addressOf('chatterer');
  const mintOf = (index: number) => addressOf('mint', index);

  const sends: TrueSend[] = [];
  const commits: TrueCommit[] = [];
  const executions: TrueExecution[] = [];
  const received: EvmMessage[] = [];
  const lanes = new Map<Remote, Lane>();
  const nonces = new Map<string, bigint>();
  const reports: Report[] = [];
  let ocrNumber = 1n;

  const laneOf = (remote: Remote): Lane => {
    const lane = lanes.get(remote);
    if (!lane) throw new RangeError(`The world has no lane with ${remote.network.name}.`);
    return lane;
  };
  const remoteOf = (message: EvmMessage): Remote => {
    const remote = remotes.find((one) => selectorOf(one) === message.sourceChainSelector);
    if (!remote) throw new RangeError(`${message.sourceChainSelector} is not a remote chain of this world.`);
    return remote;
  };

  const keepDestChain = (remote: Remote, toRestore?: bigint) =>
    cluster.setAccount(routerAddresses.destChainState(router, selectorOf(remote)), {
      owner: router,
      data: destChainAccount({
        selector: selectorOf(remote),
        sequenceNumber: laneOf(remote).sequenceNumber,
        ...(toRestore !== undefined && { sequenceNumberToRestore: toRestore }),
      }),
    });
  const keepSourceChain = (remote: Remote) =>
    cluster.setAccount(offRampAddresses.sourceChainState(offRamp, selectorOf(remote)), {
      owner: offRamp,
      data: sourceChainAccount({
        selector: selectorOf(remote),
        minSeqNr: laneOf(remote).nextToCommit,
        onRamp: fromHex(remote.onRamp),
      }),
    });
  const keepReport = ({ commit, states }: Report) =>
    cluster.setAccount(
      offRampAddresses.commitReport(offRamp, commit.sourceChainSelector, commit.merkleRoot),
      {
        owner: offRamp,
        data: commitReportAccount({
          selector: commit.sourceChainSelector,
          merkleRoot: commit.merkleRoot,
          timestamp: BigInt(commit.blockTime),
          minMsgNr: commit.minSeqNr,
          maxMsgNr: commit.maxSeqNr,
          executionStates: states,
        }),
      },
    );

  const observed = (transaction: LedgerTransaction, encoded: Uint8Array): Observed => ({
    signature: transaction.signature,
    slot: transaction.slot,
    blockTime: cluster.timeOf(transaction.slot),
    logIndex: logIndexOf(transaction, encoded),
  });

  /** A transaction of one call, with what belongs around it. */
  const land = (
    call: Call,
    { feePayer = transmitter, cutEvent, hasLookup = false, later = [] }: Landing = {},
  ) => {
    const planWith = (before: readonly Call[]): TransactionPlan => ({
      feePayer,
      instructions: [setComputeUnits, ...before, call, ...later],
      ...(hasLookup && {
        lookup: { table: lookupTable, addresses: (call.accounts ?? []).map(({ address }) => address) },
      }),
    });
    if (!cutEvent) return cluster.land(planWith([]));
    // The event does not fit any more; later lines of half its length do.
    const trial = cluster.rehearse(planWith([chatter(chatterer, 0)]));
    const index = logIndexOf(trial, cutEvent) ?? 0;
    const lines = trial.meta.logMessages;
    const usedBytes = lines.slice(0, index).reduce((sum, line) => sum + line.length, 0);
    const textBytes = LOG_BYTES - usedBytes - Math.floor((lines[index]?.length ?? 0) / 2);
    return cluster.land(planWith([chatter(chatterer, textBytes)]));
  };

  const admin = (program: string, name: string, ...events: readonly Uint8Array[]): void => {
    cluster.land({
      feePayer: owner,
      instructions: [{ program, data: plainInstruction(name), steps: events.map((data) => ({ data })) }],
    });
  };

  const bodyOf = (options: SendOptions, to: Remote): SentBody => {
    const { data = '0x1234', receiver = `0x${'b0'.repeat(20)}`, tokens = [], isOrdered = false } = options;
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
      receiver: concat(new Uint8Array(12), fromHex(receiver)),
      extraArgs: evmExtraArgs(options.gasLimit ?? 200_000n, !isOrdered),
      feeToken: WRAPPED_SOL,
      tokenAmounts: tokens.map((amount, index) => ({
        sourcePoolAddress: poolConfigAddress(poolProgram, mintOf(index)),
        destTokenAddress: concat(new Uint8Array(31), new Uint8Array([0x70 + index])),
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
      poolProgram,
      isRelayed: isRelaying,
      failure,
      request: {
        destChainSelector: body.header.destChainSelector,
        receiver: body.receiver,
        data: body.data,
        tokens: body.tokenAmounts.map(({ amount }, index) => ({ mint: mintOf(index), amount })),
        feeToken: NO_RECEIVER,
        extraArgs: body.extraArgs,
      },
    });

  const world: SolanaWorld = {
    network,
    cluster,
    programs,
    remotes,
    manualExecutionAfterSeconds,
    truth: { sends, commits, executions },
    received,

    send(sending = {}) {
      const to = sending.to ?? usual;
      const body = bodyOf(sending, to);
      const call = callOf(body);
      const encoded = ccipMessageSent(body);
      const transaction = land(sending.isWrapped ? wrapped(dapp, call) : call, {
        feePayer: body.sender,
        cutEvent: sending.isTruncated ? encoded : undefined,
        hasLookup: sending.hasLookup,
      });
      laneOf(to).sequenceNumber = body.header.sequenceNumber;
      if (body.header.nonce > 0n) nonces.set(`${selectorOf(to)} ${body.sender}`, body.header.nonce);
      keepDestChain(to);
      const place = observed(transaction, encoded);
      const sent: TrueSend = {
        ...place,
        messageId: toHex(body.header.messageId),
        body,
        origin: body.sender,
        mints: body.tokenAmounts.map((_, index) => mintOf(index)),
        trace: place.logIndex !== undefined ? 'log' : isRelaying ? 'relayed copy' : 'counter',
      };
      sends.push(sent);
      return sent;
    },

    receive(receiving = {}) {
      const from = receiving.from ?? usual;
      const lane = laneOf(from);
      lane.received += 1n;
      const { tokens = [], hasNoReceiver = false } = receiving;
      const message: EvmMessage = {
        sourceChainSelector: selectorOf(from),
        destChainSelector: selector,
        onRamp: from.onRamp,
        sequenceNumber: lane.received,
        sender: `0x${'a1'.repeat(20)}`,
        data: receiving.data ?? (hasNoReceiver ? '0x' : '0xcafe'),
        receiver: hasNoReceiver ? NO_RECEIVER : addressOf('receiver'),
        tokens: tokens.map((amount, index) => ({
          sourcePoolAddress: `0x${'9'.repeat(39)}${index}`,
          destTokenAddress: mintOf(index),
          extraData: '0x12',
          amount,
          destGasAmount: DEST_GAS,
        })),
        feeToken: `0x${'fe'.repeat(20)}`,
        feeTokenAmount: 10n ** 15n,
        feeValueJuels: 10n ** 17n,
        computeUnits: 80_000,
        isWritableBitmap: 2n,
        tokenReceiver: tokens.length > 0 ? addressOf('token receiver') : NO_RECEIVER,
        accounts: hasNoReceiver ? [] : [addressOf('message account', 0), addressOf('message account', 1)],
      };
      received.push(message);
      return message;
    },

    accept(message) {
      const lane = laneOf(remoteOf(message));
      if (message.sequenceNumber !== lane.received + 1n)
        throw new RangeError(`The lane expects message ${lane.received + 1n}.`);
      lane.received = message.sequenceNumber;
      received.push(message);
    },

    commit(messages, { isTruncated } = {}) {
      const [first] = messages;
      const last = messages.at(-1);
      if (!first || !last) throw new RangeError('A root needs a message.');
      const from = remoteOf(first);
      const lane = laneOf(from);
      if (first.sequenceNumber !== lane.nextToCommit || messages.length > 64)
        throw new RangeError(`The lane expects message ${lane.nextToCommit}, and at most 64 of them.`);
      const root = {
        sourceChainSelector: selectorOf(from),
        onRampAddress: fromHex(from.onRamp),
        minSeqNr: first.sequenceNumber,
        maxSeqNr: last.sequenceNumber,
        merkleRoot: merkleRoot(messages.map(leafOf)),
      };
      const prices = [{ destChainSelector: root.sourceChainSelector, usdPerUnitGas: 10n ** 9n }];
      const call = commitCall({ programs, transmitter, root, prices, number: ocrNumber++ });
      const encoded = commitReportAccepted(root, prices);
      const transaction = land(call, { cutEvent: isTruncated ? encoded : undefined });
      lane.nextToCommit = root.maxSeqNr + 1n;
      keepSourceChain(from);
      const commit: TrueCommit = {
        ...observed(transaction, encoded),
        sourceChainSelector: root.sourceChainSelector,
        onRamp: root.onRampAddress,
        minSeqNr: root.minSeqNr,
        maxSeqNr: root.maxSeqNr,
        merkleRoot: root.merkleRoot,
      };
      commits.push(commit);
      const report: Report = { commit, messages, states: 0n };
      reports.push(report);
      keepReport(report);
      return commit;
    },

    commitPrices(from = usual) {
      const prices = [{ destChainSelector: selectorOf(from), usdPerUnitGas: 10n ** 9n }];
      land(commitCall({ programs, transmitter, root: undefined, prices, number: ocrNumber++ }));
    },

    execute(message, executing = {}) {
      const report = reports.find(({ messages }) => messages.includes(message));
      if (!report) throw new RangeError(`Message ${message.sequenceNumber} is not committed.`);
      const { outcome = 'success', isManual = false, isBuffered = false } = executing;
      const { isTruncated = false, hasLookup } = executing;
      const place = report.messages.indexOf(message);
      const body = receivedBodyOf(message);
      const leaf = leafOf(message);
      const executor = isManual ? addressOf('executor') : transmitter;
      const failure = executing.failure ?? customFailure(6_001);
      const call = executeCall({
        programs,
        executor,
        body,
        context: leafContextOf(message),
        leaf,
        root: report.commit.merkleRoot,
        proofs: merkleProof(report.messages.map(leafOf), place),
        number: ocrNumber++,
        poolProgram,
        isManual,
        isBuffered,
        isSkipped: outcome === 'skipped',
        failure: outcome === 'failure' ? failure : undefined,
      });
      const later = outcome === 'later failure' ? [{ program: dapp, steps: [{ fails: failure }] }] : [];
      const begun = executionStateChanged(body.header, leaf, 'inProgress');
      const cutEvent = isTruncated ? begun : undefined;
      const transaction = land(call, { feePayer: executor, cutEvent, hasLookup, later });
      if (outcome === 'skipped') return undefined;
      const isSuccess = outcome === 'success';
      if (isSuccess) {
        const shift = BigInt(place) * 2n;
        report.states |= BigInt(executionStates.success) << shift;
        keepReport(report);
      }
      const said = outcome === 'failure' ? 'inProgress' : 'success';
      const execution: TrueExecution = {
        ...observed(transaction, executionStateChanged(body.header, leaf, said)),
        message,
        messageId: messageIdOf(message),
        leaf,
        isSuccess,
      };
      executions.push(execution);
      return execution;
    },

    closeReport(commit) {
      const { sourceChainSelector, merkleRoot: root } = commit;
      const account = offRampAddresses.commitReport(offRamp, sourceChainSelector, root);
      land({
        program: offRamp,
        data: plainInstruction('close_commit_report_account', pubkey(account)),
        accounts: [{ address: account, isWritable: true }],
        steps: [
          { log: 'Instruction: CloseCommitReportAccount' },
          { data: commitReportClosed(sourceChainSelector, root) },
        ],
      });
      cluster.setAccount(account, null);
    },

    forge(kind) {
      const body = bodyOf({ data: '0xbad0', sender: forgerWallet }, usual);
      const encoded = ccipMessageSent(body);
      const root = {
        sourceChainSelector: selectorOf(usual),
        onRampAddress: fromHex(usual.onRamp),
        minSeqNr: laneOf(usual).nextToCommit,
        maxSeqNr: laneOf(usual).nextToCommit,
        merkleRoot: new Uint8Array(32).fill(0xbd),
      };
      const paidByForger = { feePayer: forgerWallet };
      switch (kind) {
        case 'failed send':
          return land(callOf(body, customFailure(7_001)), paidByForger);
        case 'failed commit': {
          const failure = customFailure(9_002);
          const call = commitCall({
            programs,
            transmitter: forgerWallet,
            root,
            prices: [],
            number: 0n,
            failure,
          });
          return land(call, paidByForger);
        }
        case 'commit of another program': {
          const steps = [{ data: commitReportAccepted(root, []) }];
          return land({ program: forger, accounts: [{ address: offRamp }], steps }, paidByForger);
        }
        default:
          return land(forgeries[kind]({ forger, router, encoded }, programs.rmnRemote), paidByForger);
      }
    },

    makeNoise: () => land({ program: dapp, accounts: [{ address: router }], data: new Uint8Array([1]) }),

    bumpVersion(to = usual) {
      const lane = laneOf(to);
      const previous = lane.sequenceNumber;
      admin(
        router,
        'bump_ccip_version_for_dest_chain',
        versionChanged('Bumped', selectorOf(to), previous, 0n),
      );
      lane.sequenceNumber = 0n;
      keepDestChain(to, previous);
    },

    settle() {
      cluster.grow(FINALITY_SLOTS + SETTLING_SLOTS);
    },
  };

  deploy();
  return world;

  function deploy(): void {
    cluster.setAccount(routerAddresses.config(router), {
      owner: router,
      data: routerConfig({ programs, selector, linkTokenMint: addressOf('LINK'), owner }),
    });
    cluster.setAccount(offRampAddresses.config(offRamp), {
      owner: offRamp,
      data: offRampConfig(selector, BigInt(manualExecutionAfterSeconds), owner),
    });
    cluster.setAccount(offRampAddresses.referenceAddresses(offRamp), {
      owner: offRamp,
      data: referenceAddressesAccount(programs, lookupTable),
    });
    for (const index of [0, 1, 2]) {
      const mint = mintOf(index);
      cluster.setAccount(poolConfigAddress(poolProgram, mint), {
        owner: poolProgram,
        data: poolState({ mint, router, poolProgram, tokenProgram: TOKEN_PROGRAM }),
      });
    }
    for (const [program, text] of [
      [router, 'ccip-router 1.6.3'],
      [offRamp, 'ccip-offramp 1.6.3'],
    ] as const)
      cluster.answerSimulation(program, discriminator('global', 'type_version'), versionText(text));
    admin(router, 'initialize');
    for (const remote of remotes) {
      lanes.set(remote, { sequenceNumber: 0n, nextToCommit: 1n, received: 0n });
      admin(router, 'add_chain_selector');
      keepDestChain(remote);
      admin(router, 'add_offramp', offRampListed(true, selectorOf(remote), offRamp));
      cluster.setAccount(routerAddresses.allowedOffRamp(router, selectorOf(remote), offRamp), {
        owner: router,
        data: allowedOffRampAccount(),
      });
      admin(offRamp, 'add_source_chain');
      keepSourceChain(remote);
    }
    cluster.grow(1);
  }
}

/** The leaf of a message to Solana. */
export function leafOf(message: EvmMessage): Uint8Array {
  return receivedLeaf(receivedBodyOf(message), leafContextOf(message));
}
