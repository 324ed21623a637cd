/** One lane of one version: what users, oracles and bystanders do on it. */
import { type Hex, numberToHex, pad, zeroAddress } from 'viem';
import {
  type Blessing,
  type Commit,
  type Deployment,
  otherNetwork,
  type Ramps,
  type SentMessage,
  type VerifierResults,
} from './deployment.ts';
import { equip, type Foundations, type Version } from './foundation.ts';
import type { Contract, ContractEvent, NetworkKey, RawLog, RawReceipt } from './network.ts';
import { EVMChain } from './sdk-chain.ts';

export interface SendOptions {
  /** For several messages it may differ by index. */
  readonly data?: Hex | ((index: number) => Hex);
  /** Of the lab's first token unless told otherwise. 2.0 takes one, the others up to five. */
  readonly tokens?: readonly { readonly token?: Hex; readonly amount: bigint }[];
  /** Default 200,000. */
  readonly gasLimit?: bigint;
  /** Default true. 1.2 knows only order, 2.0 only disorder. */
  readonly outOfOrder?: boolean;
  /** Default: the lab's receiver, which can be made to refuse. */
  readonly receiver?: Hex;
  readonly feeToken?: 'native' | 'link';
  /** `contract`: a contract calls the router. Default `account`, for several messages `contract`. */
  readonly via?: 'account' | 'contract';
  /** Messages in one transaction. Default 1. */
  readonly count?: number;
  /** The account that signs; default the lane's own sender. */
  readonly from?: Hex;
  /** 2.0: a tag or a number of blocks. Default `finalized`. */
  readonly finality?: 'finalized' | 'safe' | number;
  /** 2.0: how many verifiers to name, 1 or 2. Default: none by name, which means the lane's own one. */
  readonly verifiers?: number;
  /** Instead of those made from the options above. */
  readonly extraArgs?: Hex;
}

export interface Execution {
  readonly message: SentMessage;
  readonly state: 'success' | 'failure';
  readonly returnData: Hex;
  readonly transactionHash: Hex;
  readonly blockNumber: number;
  readonly blockHash: Hex;
  readonly log: RawLog;
}

export interface Replacement {
  readonly before: Ramps;
  readonly after: Ramps;
}

export interface Lane {
  /** Such as `1.6 a→b`. */
  readonly name: string;
  readonly version: Version;
  readonly from: NetworkKey;
  readonly to: NetworkKey;
  /** The present ones. */
  readonly ramps: Ramps;
  /** Sends one transaction with `count` messages. */
  send(options?: SendOptions): Promise<readonly SentMessage[]>;
  sendOne(options?: Omit<SendOptions, 'count'>): Promise<SentMessage>;
  /** Every message that anybody sent over the present ramps, from a block on, in the order of its number. */
  sentSince(blockNumber: number): Promise<readonly SentMessage[]>;
  /**
   * Commits one root over messages with consecutive sequence numbers, the lane's next. Up to 1.6. `blessed` (1.6) has
   * the RMN sign the root; it and the lane's configuration are switched for it, one transaction more.
   */
  commit(messages: readonly SentMessage[], options?: { readonly blessed?: boolean }): Promise<Commit>;
  /** Has the RMN bless the roots of these messages. Up to 1.5, where nothing is executed without. */
  bless(messages: readonly SentMessage[]): Promise<readonly Blessing[]>;
  /** The signatures without which nothing is executed. From 2.0 on. */
  verifierResults(message: SentMessage): Promise<VerifierResults>;
  /** Executes as the oracle network does; with `fail`, the receiver refuses. */
  execute(message: SentMessage, options?: { readonly fail?: boolean }): Promise<Execution>;
  /**
   * Executes as anybody may, once it has failed or the permissionless threshold has passed since the commit. The
   * receiver takes the message now, unless it shall `fail`: as a first attempt that leaves a failure, as a later one
   * too on 1.2; from 1.5 on the contracts revert then, and this throws.
   */
  executeByHand(
    message: SentMessage,
    options?: { readonly fail?: boolean; readonly from?: Hex; readonly gasLimit?: bigint },
  ): Promise<Execution>;
  /** The commit of a message, if the lab made one. */
  commitOf(message: SentMessage): Commit | undefined;
  /** Has the receiver refuse a message with this return data, or by using up all its gas. */
  refuseWith(message: SentMessage, manner: Hex | 'all-gas'): Promise<void>;
  /** Tells the receiver which messages to refuse, or to take again. */
  refuse(messages: readonly SentMessage[], refused?: boolean): Promise<void>;
  /**
   * Deploys new ramps and has the routers use them: OnRampSet, OffRampAdded, and OffRampRemoved unless the old
   * off-ramp is kept for what is under way. Sequence numbers begin again with 1.
   */
  replaceRamps(options?: { readonly keepOffRamp?: boolean }): Promise<Replacement>;
  /** Takes the off-ramp from its router: OffRampRemoved. */
  removeOffRamp(ramps: Ramps): Promise<void>;
}

/** The off-ramp passed over the message. */
export class NotExecuted extends Error {
  override readonly name = 'NotExecuted';
}

const DEFAULT_GAS_LIMIT = 200_000n;
const STATES: Readonly<Record<number, Execution['state']>> = { 2: 'success', 3: 'failure' };

function lowerCase(address: Hex): Hex {
  return address.toLowerCase() as Hex;
}

function isReceiverOf(message: SentMessage): (contract: Contract) => boolean {
  return ({ address }) => address === message.receiver;
}

export async function openLane(
  deployment: Deployment,
  foundations: Foundations,
  from: NetworkKey,
): Promise<Lane> {
  const { version } = deployment;
  const to = otherNetwork(from);
  const name = `${version} ${from}→${to}`;
  const source = foundations[from];
  const dest = foundations[to];
  const { receiver } = dest;
  const receivers = [receiver, dest.strictReceiver];
  const sourceRouter = deployment.routers[from];
  const destRouter = deployment.routers[to];
  const sourceOwner = { from: source.accounts[version].owner };
  const destOwner = { from: dest.accounts[version].owner };
  const sourceChainSelector = source.network.selector;
  const destChainSelector = dest.network.selector;
  const commits = new Map<Hex, Commit>();
  const equipped = new Map<Hex, Promise<void>>();

  let ramps = await deployment.createRamps(from);
  await sourceRouter.send(
    'applyRampUpdates',
    [[{ destChainSelector, onRamp: ramps.onRamp.address }], [], []],
    sourceOwner,
  );
  await destRouter.send(
    'applyRampUpdates',
    [[], [], [{ sourceChainSelector, offRamp: ramps.offRamp.address }]],
    destOwner,
  );

  const equippedOnce = (account: Hex) => {
    const done = equipped.get(account) ?? equip(source, account, sourceRouter.address);
    equipped.set(account, done);
    return done;
  };
  const { sender } = source.accounts[version];
  await equippedOnce(sender);

  const messageOf = (event: ContractEvent, receipt: RawReceipt, through: Ramps): SentMessage => {
    const { log, args } = event;
    const sent = deployment.readSent(event);
    let decoded: SentMessage['decoded'] | undefined;
    return {
      ...sent,
      sender: lowerCase(sent.sender),
      receiver: lowerCase(sent.receiver),
      version,
      from,
      ramps: through,
      origin: receipt.from,
      transactionHash: log.transactionHash,
      blockNumber: Number(log.blockNumber),
      blockHash: log.blockHash,
      logIndex: Number(log.logIndex),
      log,
      args,
      get decoded() {
        decoded ??= EVMChain.decodeMessage(log);
        if (!decoded) throw new Error(`The client does not decode the log of ${log.transactionHash}.`);
        return decoded;
      },
    };
  };

  const send = async (options: SendOptions = {}): Promise<readonly SentMessage[]> => {
    const { data = '0x', tokens = [], feeToken = 'native', count = 1 } = options;
    const {
      gasLimit = DEFAULT_GAS_LIMIT,
      outOfOrder = true,
      finality = 'finalized',
      verifiers = 0,
    } = options;
    const extraArgs =
      options.extraArgs ?? deployment.extraArgs({ from, gasLimit, outOfOrder, finality, verifiers });
    const via = options.via ?? (count === 1 ? 'account' : 'contract');
    if (via === 'account' && count !== 1) throw new Error('An account sends one message in a transaction.');
    const account = options.from ?? sender;
    const messages = Array.from({ length: count }, (_, index) => ({
      receiver: pad(options.receiver ?? receiver.address),
      data: typeof data === 'function' ? data(index) : data,
      tokenAmounts: tokens.map(({ token = source.tokens[0].address, amount }) => ({ token, amount })),
      feeToken: feeToken === 'link' ? source.link.address : zeroAddress,
      extraArgs,
    }));
    const through = ramps;
    let receipt: RawReceipt;
    if (via === 'contract') {
      const gas = 2_000_000n * BigInt(count) + 1_000_000n;
      const args = [sourceRouter.address, destChainSelector, messages];
      receipt = await source.batchSender.send('send', args, { from: account, gas });
    } else {
      await equippedOnce(account);
      const [message] = messages;
      const fee = await sourceRouter.read<bigint>('getFee', [destChainSelector, message]);
      const value = feeToken === 'native' ? fee : 0n;
      receipt = await sourceRouter.send('ccipSend', [destChainSelector, message], { from: account, value });
    }
    return through.onRamp
      .events(receipt, deployment.sentEvent)
      .map((event) => messageOf(event, receipt, through));
  };

  const refuse = async (messages: readonly SentMessage[], refused = true) => {
    const strangers = messages.filter((message) => !receivers.some(isReceiverOf(message)));
    if (strangers.length > 0) throw new Error("Only the lab's own receivers can be made to refuse.");
    for (const receiver of receivers) {
      const ids = messages.flatMap((message) => (isReceiverOf(message)(receiver) ? [message.messageId] : []));
      if (ids.length > 0) await receiver.send('refuse', [ids, refused], destOwner);
    }
  };

  const refuseWith = async (message: SentMessage, manner: Hex | 'all-gas') => {
    const [own] = receivers.filter(isReceiverOf(message));
    if (!own) throw new Error("Only the lab's own receivers can be made to refuse.");
    const [kind, data] = manner === 'all-gas' ? [2, '0x'] : [1, manner];
    await own.send('refuseWith', [message.messageId, kind, data], destOwner);
  };

  /** Asks the chain what the receiver will do, for a fork may have changed it. */
  const prepareReceiver = async (message: SentMessage, fail: boolean) => {
    const refused = await receivers
      .find(isReceiverOf(message))
      ?.read<boolean>('isRefused', [message.messageId]);
    if ((refused ?? false) !== fail) await refuse([message], fail);
  };

  const executionOf = (message: SentMessage, receipt: RawReceipt): Execution => {
    const event = message.ramps.offRamp
      .events(receipt, 'ExecutionStateChanged')
      .find(({ args }) => args.messageId === message.messageId);
    const state = STATES[Number(event?.args.state)];
    if (!event || !state) {
      throw new NotExecuted(
        `${name}: ${message.messageId} was not executed: it is not its turn (nonce ${message.nonce}), ` +
          'or it was tried before and must be executed by hand.',
      );
    }
    const { log, args } = event;
    return {
      message,
      state,
      returnData: args.returnData as Hex,
      transactionHash: receipt.transactionHash,
      blockNumber: Number(receipt.blockNumber),
      blockHash: receipt.blockHash,
      log,
    };
  };

  const removeOffRamp = async ({ offRamp }: Ramps) => {
    const removed = [{ sourceChainSelector, offRamp: offRamp.address }];
    await destRouter.send('applyRampUpdates', [[], removed, []], destOwner);
  };

  return {
    name,
    version,
    from,
    to,
    get ramps() {
      return ramps;
    },
    send,
    async sendOne(options) {
      const [message] = await send(options);
      if (!message) throw new Error(`${name}: the transaction sent no message.`);
      return message;
    },
    async sentSince(blockNumber) {
      const through = ramps;
      const logs = await source.network.rpc<readonly RawLog[]>('eth_getLogs', [
        { address: through.onRamp.address, fromBlock: numberToHex(blockNumber), toBlock: 'latest' },
      ]);
      const messages: SentMessage[] = [];
      for (const hash of new Set(logs.map(({ transactionHash }) => transactionHash))) {
        const receipt = await source.network.rpc<RawReceipt>('eth_getTransactionReceipt', [hash]);
        for (const event of through.onRamp.events(receipt, deployment.sentEvent))
          messages.push(messageOf(event, receipt, through));
      }
      return messages.sort((a, b) => Number(a.sequenceNumber - b.sequenceNumber));
    },
    async commit(messages, { blessed = false } = {}) {
      const [first] = messages;
      if (!first) throw new Error('A commit needs a message.');
      if (!deployment.commit) throw new Error(`${version} knows no commits.`);
      messages.forEach(({ sequenceNumber }, index) => {
        if (sequenceNumber !== first.sequenceNumber + BigInt(index))
          throw new Error(`${name}: a root is over consecutive sequence numbers.`);
      });
      const commit = await deployment.commit(first.ramps, messages, { blessed });
      for (const { messageId } of messages) commits.set(messageId, commit);
      return commit;
    },
    async bless(messages) {
      if (!deployment.bless) throw new Error(`${version} blesses no roots by themselves.`);
      const blessings: Blessing[] = [];
      for (const commit of new Set(messages.map(({ messageId }) => commits.get(messageId)))) {
        const [first] = commit?.messages ?? [];
        if (!commit || !first) throw new Error(`${name}: a message is not committed.`);
        blessings.push(await deployment.bless(first.ramps, commit));
      }
      return blessings;
    },
    async verifierResults(message) {
      if (!deployment.verifierResults) throw new Error(`${version} knows no verifiers.`);
      return deployment.verifierResults(message);
    },
    async execute(message, { fail = false } = {}) {
      await prepareReceiver(message, fail);
      return executionOf(message, await deployment.execute(message, commits.get(message.messageId)));
    },
    async executeByHand(message, { fail = false, from: account = dest.bystander, gasLimit = 0n } = {}) {
      await prepareReceiver(message, fail);
      const commit = commits.get(message.messageId);
      const receipt = await deployment.executeByHand(message, commit, { from: account, gasLimit });
      return executionOf(message, receipt);
    },
    commitOf: ({ messageId }) => commits.get(messageId),
    refuse,
    refuseWith,
    async replaceRamps({ keepOffRamp = false } = {}) {
      const before = ramps;
      const after = await deployment.createRamps(from);
      const removed = keepOffRamp ? [] : [{ sourceChainSelector, offRamp: before.offRamp.address }];
      const added = [{ sourceChainSelector, offRamp: after.offRamp.address }];
      await destRouter.send('applyRampUpdates', [[], removed, added], destOwner);
      const onRamps = [{ destChainSelector, onRamp: after.onRamp.address }];
      await sourceRouter.send('applyRampUpdates', [onRamps, [], []], sourceOwner);
      ramps = after;
      return { before, after };
    },
    removeOffRamp,
  };
}
