/** One lane of one version: what users, oracles and bystanders do on it. */
import { type Hex, numberToHex, pad, zeroAddress } from 'viem';
import { type Commit, type Deployment, otherNetwork, type Ramps, type SentMessage } from './deployment.ts';
import { equip, type Foundations } from './foundation.ts';
import type { ContractEvent, NetworkKey, RawLog, RawReceipt } from './network.ts';
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
  /** Default: the lab's receiver, which can be made to reject. */
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
}

export interface Execution {
  readonly message: SentMessage;
  readonly state: 'success' | 'failure';
  readonly transactionHash: Hex;
  readonly blockHash: Hex;
}

export type Lane = Awaited<ReturnType<typeof openLane>>;

/** The off-ramp passed over the message. */
export class NotExecuted extends Error {
  override readonly name = 'NotExecuted';
}

const DEFAULT_GAS_LIMIT = 200_000n;
const STATES: Readonly<Record<number, Execution['state']>> = { 2: 'success', 3: 'failure' };

const lowerCase = (address: string) => address.toLowerCase() as Hex;

export async function openLane(deployment: Deployment, foundations: Foundations, from: NetworkKey) {
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
  /** Has the routers use the ramps, and no longer those before them. */
  const nameRamps = async (before?: Ramps) => {
    const removed = before ? [{ sourceChainSelector, offRamp: before.offRamp.address }] : [];
    const added = [{ sourceChainSelector, offRamp: ramps.offRamp.address }];
    await destRouter.send('applyRampUpdates', [[], removed, added], destOwner);
    const onRamps = [{ destChainSelector, onRamp: ramps.onRamp.address }];
    await sourceRouter.send('applyRampUpdates', [onRamps, [], []], sourceOwner);
  };
  await nameRamps();

  const equippedOnce = (account: Hex) => {
    const done = equipped.get(account) ?? equip(source, account, sourceRouter.address);
    equipped.set(account, done);
    return done;
  };
  const { sender } = source.accounts[version];
  await equippedOnce(sender);

  const messageOf = (event: ContractEvent, receipt: RawReceipt, through: Ramps): SentMessage => {
    const { log, args } = event;
    const decoded = EVMChain.decodeMessage(log);
    if (!decoded) throw new Error(`The client does not decode the log of ${log.transactionHash}.`);
    return {
      messageId: decoded.messageId as Hex,
      sequenceNumber: decoded.sequenceNumber,
      nonce: (decoded.nonce as bigint | undefined) ?? 0n,
      sender: lowerCase(decoded.sender),
      receiver: lowerCase(decoded.receiver),
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
      decoded,
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
    const extraArgs = deployment.extraArgs({ from, gasLimit, outOfOrder, finality, verifiers });
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

  /** Only the lab's own receivers can be made to reject. */
  const ownReceiverOf = (message: SentMessage) => {
    const found = receivers.find(({ address }) => address === message.receiver);
    if (!found) throw new Error(`${message.receiver} is not one of the lab's own receivers.`);
    return found;
  };

  /** Tells the receivers to reject messages, or to take them again. */
  const refuse = async (messages: readonly SentMessage[], refused = true) => {
    for (const message of messages)
      await ownReceiverOf(message).send('refuse', [[message.messageId], refused], destOwner);
  };

  /** Asks the chain what the receiver will do, for a fork may have changed it. */
  const prepareReceiver = async (message: SentMessage, fail: boolean) => {
    const own = receivers.find(({ address }) => address === message.receiver);
    const refused = (await own?.read<boolean>('isRefused', [message.messageId])) ?? false;
    if (refused !== fail) await refuse([message], fail);
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
    const { transactionHash, blockHash } = receipt;
    return { message, state, transactionHash, blockHash };
  };

  const sendOne = async (options?: Omit<SendOptions, 'count'>): Promise<SentMessage> => {
    const [message] = await send(options);
    if (!message) throw new Error(`${name}: the transaction sent no message.`);
    return message;
  };

  /** Every message that anybody sent over the present ramps, from a block on, in the order of its number. */
  const sentSince = async (blockNumber: number): Promise<readonly SentMessage[]> => {
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
  };

  /**
   * Commits one root over messages with consecutive sequence numbers, the lane's next. Up to 1.6. `blessed` (1.6) has
   * the RMN sign the root; it and the lane's configuration are switched for it, one transaction more.
   */
  const commit = async (messages: readonly SentMessage[], { blessed = false } = {}): Promise<Commit> => {
    const [first] = messages;
    if (!first) throw new Error('A commit needs a message.');
    if (!deployment.commit) throw new Error(`${version} knows no commits.`);
    messages.forEach(({ sequenceNumber }, index) => {
      if (sequenceNumber !== first.sequenceNumber + BigInt(index))
        throw new Error(`${name}: a root is over consecutive sequence numbers.`);
    });
    const made = await deployment.commit(first.ramps, messages, { blessed });
    for (const { messageId } of messages) commits.set(messageId, made);
    return made;
  };

  /** Has the RMN bless the roots of these messages. Up to 1.5, where nothing is executed without. */
  const bless = async (messages: readonly SentMessage[]): Promise<readonly RawReceipt[]> => {
    if (!deployment.bless) throw new Error(`${version} blesses no roots by themselves.`);
    const receipts: RawReceipt[] = [];
    for (const root of new Set(messages.map(({ messageId }) => commits.get(messageId)))) {
      const [first] = root?.messages ?? [];
      if (!root || !first) throw new Error(`${name}: a message is not committed.`);
      receipts.push(await deployment.bless(first.ramps, root));
    }
    return receipts;
  };

  return {
    /** Such as `1.6 a→b`. */
    name,
    version,
    from,
    to,
    isCommitted: deployment.commit !== undefined,
    isBlessed: deployment.bless !== undefined,
    /** The present ones. */
    get ramps() {
      return ramps;
    },
    /** Sends one transaction with `count` messages. */
    send,
    sendOne,
    sentSince,
    commit,
    bless,
    /** Everything that comes before an execution in this version. */
    async prepare(messages: readonly SentMessage[]) {
      if (deployment.commit) await commit(messages);
      if (deployment.bless) await bless(messages);
    },
    /** The signatures without which nothing is executed. From 2.0 on. */
    verifierResults(message: SentMessage) {
      if (!deployment.verifierResults) throw new Error(`${version} knows no verifiers.`);
      return deployment.verifierResults(message);
    },
    /** Executes as the oracle network does; with `fail`, the receiver rejects. */
    async execute(message: SentMessage, { fail = false } = {}) {
      await prepareReceiver(message, fail);
      return executionOf(message, await deployment.execute(message, commits.get(message.messageId)));
    },
    /**
     * Executes as anybody may, once it has failed or the permissionless threshold has passed since the commit. The
     * receiver takes the message now.
     */
    async executeByHand(message: SentMessage) {
      await prepareReceiver(message, false);
      const root = commits.get(message.messageId);
      return executionOf(message, await deployment.executeByHand(message, root, dest.bystander));
    },
    /** The commit of a message, if the lab made one. */
    commitOf: ({ messageId }: SentMessage) => commits.get(messageId),
    refuse,
    /** Has the receiver reject a message with this return data, or by using up all its gas. */
    async refuseWith(message: SentMessage, manner: Hex | 'all-gas') {
      const [kind, data] = manner === 'all-gas' ? [2, '0x'] : [1, manner];
      await ownReceiverOf(message).send('refuseWith', [message.messageId, kind, data], destOwner);
    },
    /**
     * Deploys new ramps and has the routers use them: OnRampSet, OffRampAdded and OffRampRemoved. Sequence numbers begin
     * again with 1.
     */
    async replaceRamps() {
      const before = ramps;
      ramps = await deployment.createRamps(from);
      await nameRamps(before);
      return { before, after: ramps };
    },
  };
}
