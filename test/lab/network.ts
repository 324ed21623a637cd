/**
 * One network of the lab: its node over JSON-RPC, transactions from the node's own accounts, and the hand of fate
 * over blocks, time and forks.
 *
 * The node signs and numbers transactions itself, so that any number of callers can use one account at once.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Abi,
  decodeErrorResult,
  decodeEventLog,
  decodeFunctionResult,
  encodeDeployData,
  encodeFunctionData,
  type Hex,
  isHex,
  numberToHex,
  toEventSelector,
} from 'viem';
import type { ChainProcess } from './nodes.ts';
import type { ContractCode } from './solidity.ts';

/** A log as the node gives it. */
export interface RawLog {
  readonly address: Hex;
  readonly topics: readonly Hex[];
  readonly data: Hex;
  readonly blockNumber: Hex;
  readonly blockHash: Hex;
  readonly transactionHash: Hex;
  readonly logIndex: Hex;
}

/** A receipt as the node gives it; of its fields those that the lab reads. */
export interface RawReceipt {
  readonly transactionHash: Hex;
  readonly blockNumber: Hex;
  readonly blockHash: Hex;
  readonly from: Hex;
  readonly contractAddress: Hex | null;
  readonly status: Hex;
  readonly logs: readonly RawLog[];
}

interface RawBlock {
  readonly timestamp: Hex;
  readonly transactions: readonly {
    readonly from: Hex;
    readonly to: Hex | null;
    readonly input: Hex;
    readonly value: Hex;
  }[];
}

export interface Call {
  readonly from?: Hex;
  /** Left out to create a contract. */
  readonly to?: Hex;
  readonly data?: Hex;
  readonly value?: bigint;
  readonly gas?: bigint;
}

export type Network = ReturnType<typeof createNetwork>;
export type NetworkKey = 'a' | 'b';

export interface ContractEvent {
  readonly args: Readonly<Record<string, unknown>>;
  readonly log: RawLog;
}

export interface Contract {
  readonly networkKey: NetworkKey;
  readonly address: Hex;
  readonly abi: Abi;
  /** A call that changes something. */
  send(
    functionName: string,
    args: readonly unknown[],
    options?: Omit<Call, 'to' | 'data'>,
  ): Promise<RawReceipt>;
  /** A question. The caller knows the type of the answer. */
  read<T>(functionName: string, args?: readonly unknown[]): Promise<T>;
  /** This contract's events of a name, out of a receipt. */
  events(receipt: RawReceipt, eventName: string): readonly ContractEvent[];
}

/** What the node or a contract answered instead. */
export class CallFailure extends Error {
  override readonly name = 'CallFailure';
  /** What a contract reverted with, if one did. */
  readonly data: Hex | undefined;
  constructor(message: string, data: Hex | undefined) {
    super(message);
    this.data = data;
  }
}

const GAS_LIMIT = 30_000_000n;

/** @param accounts unlocked: the node signs for them */
export function createNetwork(
  node: ChainProcess,
  {
    key,
    chainId,
    selector,
    accounts,
  }: {
    readonly key: NetworkKey;
    readonly chainId: number;
    readonly selector: bigint;
    readonly accounts: readonly Hex[];
  },
) {
  const [owner] = accounts;
  /** Errors of all contracts met so far: whichever of them reverts deep inside is named. */
  const knownErrors = new Map<string, Abi[number]>();
  const rpc = createRpc(node.url);

  const readable = (error: unknown, what: string): unknown => {
    if (!(error instanceof CallFailure) || error.data === undefined) return error;
    return new CallFailure(
      `${what}: ${revertReason(error.data, [...knownErrors.values()]) ?? error.message}`,
      error.data,
    );
  };

  const untilInBlock = async (hash: Hex): Promise<RawReceipt> => {
    for (let waitMs = 5; ; waitMs = Math.min(waitMs * 2, 100)) {
      const receipt = await rpc<RawReceipt | null>('eth_getTransactionReceipt', [hash]);
      if (receipt) return receipt;
      await delay(waitMs);
    }
  };

  /** Sends a transaction and waits until it is in a block; throws what the contract said if it reverts. */
  const transact = async ({ from = owner, to, data, value, gas = GAS_LIMIT }: Call) => {
    const request = {
      from,
      gas: numberToHex(gas),
      ...(to !== undefined && { to }),
      ...(data !== undefined && { data }),
      ...(value !== undefined && { value: numberToHex(value) }),
    };
    const receipt = await untilInBlock(await rpc<Hex>('eth_sendTransaction', [request]));
    if (receipt.status === '0x1') return receipt;
    // Without automatic mining the node accepts what will revert; asking again gets the reason.
    await rpc('eth_call', [request, receipt.blockNumber]);
    throw new CallFailure(`The transaction ${receipt.transactionHash} was reverted.`, undefined);
  };

  const contract = (address: Hex, abi: Abi): Contract => {
    for (const item of abi) if (item.type === 'error') knownErrors.set(JSON.stringify(item), item);
    return {
      networkKey: key,
      address,
      abi,
      async send(functionName, args, call = {}) {
        const data = encodeFunctionData({ abi, functionName, args: [...args] });
        try {
          return await transact({ ...call, to: address, data });
        } catch (error) {
          throw readable(error, `${functionName} on network ${key}`);
        }
      },
      async read<T>(functionName: string, args: readonly unknown[] = []) {
        const data = encodeFunctionData({ abi, functionName, args: [...args] });
        try {
          const answer = await rpc<Hex>('eth_call', [{ from: owner, to: address, data }, 'latest']);
          return decodeFunctionResult({ abi, functionName, data: answer }) as T;
        } catch (error) {
          throw readable(error, `${functionName} on network ${key}`);
        }
      },
      events(receipt, eventName) {
        const event = abi.find((item) => item.type === 'event' && item.name === eventName);
        if (event?.type !== 'event') throw new Error(`The contract at ${address} has no event ${eventName}.`);
        const topic = toEventSelector(event);
        return receipt.logs
          .filter((log) => log.address === address && log.topics[0] === topic)
          .map((log) => {
            const topics = log.topics as [Hex, ...Hex[]];
            const { args } = decodeEventLog({ abi, eventName, data: log.data, topics });
            return { args: (args ?? {}) as unknown as Readonly<Record<string, unknown>>, log };
          });
      },
    };
  };

  const block = (number: number | 'latest') =>
    rpc<RawBlock>('eth_getBlockByNumber', [number === 'latest' ? number : numberToHex(number), true]);

  const blockNumber = async () => Number(await rpc<Hex>('eth_blockNumber'));

  const mine = async (blocks = 1) => {
    // No seconds between them: the clock is that of the other network. And one by one: of many at once hardhat makes
    // up headers that are not each other's children.
    for (let mined = 0; mined < blocks; mined += 1) await rpc('hardhat_mine', ['0x1', '0x0']);
  };

  return {
    key,
    chainId,
    selector,
    url: node.url,
    accounts,
    rpc,
    transact,
    contract,
    block,
    blockNumber,
    mine,
    async deploy(
      { abi, bytecode }: ContractCode,
      args: readonly unknown[] = [],
      { from }: { from?: Hex } = {},
    ) {
      const data = encodeDeployData({ abi, bytecode, args: [...args] });
      const { contractAddress } = await transact({ data, ...(from !== undefined && { from }) });
      if (contractAddress === null) throw new Error('The deployment made no contract.');
      return contract(contractAddress, abi);
    },
    /** Moves the clock and mines a block, so that the new time counts. */
    async travel(seconds: number) {
      await rpc('evm_increaseTime', [numberToHex(seconds)]);
      await rpc('evm_mine');
    },
    /** A moment of the chain to which it can be taken back. */
    async fork() {
      const snapshot = await rpc<Hex>('evm_snapshot');
      const last = await blockNumber();
      return {
        /** The last block that stays. */
        blockNumber: last,
        /**
         * Takes everything since back and mines other blocks instead, `blocks` of them (default: as many as were taken
         * back, and one more, as nodes follow the longer branch).
         *
         * With `keep` all orphaned transactions find their way into the new branch, one a block; their receipts are
         * returned. A fork can be abandoned once.
         */
        async abandon({ blocks, keep }: { readonly blocks?: number; readonly keep?: 'all' } = {}) {
          const head = await blockNumber();
          const numbers = Array.from({ length: head - last }, (_, index) => last + 1 + index);
          const orphaned = await Promise.all(numbers.map(block));
          const { timestamp: now } = await rpc<RawBlock>('eth_getBlockByNumber', ['pending', false]);
          if (!(await rpc<boolean>('evm_revert', [snapshot]))) throw new Error('This fork is used up.');
          // The node has set its clock back as well, of which the other network knows nothing.
          await rpc('evm_setNextBlockTimestamp', [now]);
          // Another miner, so that no new block can be the same as an old one.
          await rpc('hardhat_setCoinbase', [`0x${randomBytes(20).toString('hex')}`]);
          const kept: RawReceipt[] = [];
          for (const { from, to, input, value } of keep ? orphaned.flatMap((one) => one.transactions) : []) {
            const call = { from, data: input, value: BigInt(value), ...(to !== null && { to }) };
            kept.push(await transact(call));
          }
          const empty = (blocks ?? orphaned.length + 1) - kept.length;
          if (empty > 0) await mine(empty);
          return { kept };
        },
      };
    },
    /** Kills the node; everything fails from then on. */
    stop: node.stop,
  };
}

interface RpcAnswer {
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly data?: unknown };
}

export function createRpc(url: string) {
  let lastId = 0;
  return async <T>(method: string, params: readonly unknown[] = []): Promise<T> => {
    lastId += 1;
    const response = await fetch(url, {
      method: 'POST',
      // A connection of its own: the node closes idle ones, at times just when the next request goes out.
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ jsonrpc: '2.0', id: lastId, method, params }),
    });
    const { result, error } = (await response.json()) as RpcAnswer;
    if (error) throw new CallFailure(`${method}: ${error.message}`, revertData(error.data));
    return result as T;
  };
}

/** hardhat wraps the data of a revert into an object beside a message. */
function revertData(data: unknown): Hex | undefined {
  const inner = typeof data === 'object' && data !== null && 'data' in data ? data.data : data;
  return isHex(inner) ? inner : undefined;
}

function revertReason(data: Hex, errors: Abi): string | undefined {
  try {
    const { errorName, args = [] } = decodeErrorResult({ abi: errors, data });
    const inner = (args as readonly unknown[]).map((arg) =>
      // Contracts wrap what they were told in an error of their own.
      isHex(arg) && arg.length > 10 ? (revertReason(arg, errors) ?? arg) : String(arg),
    );
    return `${errorName}(${inner.join(', ')})`;
  } catch {
    return undefined;
  }
}
