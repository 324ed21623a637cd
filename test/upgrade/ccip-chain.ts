/** A chain of a CCIP 1.6 on-ramp that a node of the tests serves: made of encoded events, so that no lab is needed. */
import { keccak256, numberToHex, pad, stringToHex } from 'viem';
import { findNetwork, type Network } from '../../src/domain/networks/networks.ts';
import * as abi from '../../src/ingest/evm/contracts/abi.ts';
import type { ChainLog, Hex } from '../../src/ingest/evm/rpc/chain.ts';
import { type FaultyNode, startFaultyNode, type TinyBlock, type TinyChain } from '../chain/faulty-node.ts';
import { bloomOf } from '../virtual-chain/bloom-filter.ts';
import { type EncodedEvent, encodeAnswer, encodeEvent, messageSent16 } from '../virtual-chain/ccip-events.ts';

export const source = findNetwork('1337') as Network;
const dest = findNetwork('ethereum-testnet-sepolia') as Network;

const addressOf = (number: number): Hex => pad(numberToHex(number), { size: 20 });
const hashOf = (text: string): Hex => keccak256(stringToHex(text));
export const router = addressOf(0x100);
const onRamp = addressOf(0x116);
const pool = addressOf(0x9001);
const token = addressOf(0x70ce);

/** Blocks with a message each; the first names the on-ramp. */
export async function startCcipNode(length: number): Promise<FaultyNode> {
  const node = await startFaultyNode({ chain: makeCcipChain(length), chainId: Number(source.chainId) });
  const words = (text: string) => encodeAnswer(abi.typeAndVersion, [text]);
  const answers = (table: Record<Hex, Hex>) => (data: Hex) => table[data.slice(0, 10) as Hex] ?? '0x';
  node.contracts[router] = answers({
    [abi.typeAndVersion.selector]: words('Router 1.2.0'),
    [abi.getOffRamps.selector]: encodeAnswer(abi.getOffRamps, [[]]),
  });
  node.contracts[onRamp] = answers({
    [abi.typeAndVersion.selector]: words('OnRamp 1.6.0'),
    [abi.getStaticConfig.selector]: encodeAnswer(abi.getStaticConfig, [BigInt(source.selector)]),
    [abi.getRouter16.selector]: encodeAnswer(abi.getRouter16, [1n, false, router]),
  });
  node.contracts[pool] = answers({ [abi.getToken.selector]: encodeAnswer(abi.getToken, [token]) });
  return node;
}

function makeCcipChain(length: number): TinyChain {
  // A second each: the chain may grow by thousands before it has a block of the future, which nobody believes.
  const firstAt = Math.floor(Date.now() / 1000) - 3_600;
  const blocks: TinyBlock[] = [];
  const grow = (count: number) => {
    for (let i = 0; i < count; i++) {
      const number = blocks.length;
      const hash = hashOf(`block ${number}`);
      const logs = [number === 1 ? onRampSet(hash) : messageSent(number, hash)];
      blocks.push({
        number,
        hash,
        parentHash: blocks.at(-1)?.hash ?? pad('0x'),
        timestamp: firstAt + number,
        logsBloom: bloomOf(logs),
        logs,
      });
    }
  };
  grow(length);
  return {
    blocks,
    get head() {
      return blocks.at(-1) as TinyBlock;
    },
    grow,
    fork: () => {
      throw new Error('This chain does not fork.');
    },
  };
}

function logOf(address: Hex, event: EncodedEvent, blockNumber: number, blockHash: Hex): ChainLog {
  const transactionHash = hashOf(`transaction of ${blockNumber}`);
  return { ...event, address, blockNumber, blockHash, transactionHash, logIndex: 0 };
}

function onRampSet(blockHash: Hex): ChainLog {
  return logOf(router, encodeEvent(abi.onRampSet, [BigInt(dest.selector)], [onRamp]), 1, blockHash);
}

function messageSent(number: number, blockHash: Hex): ChainLog {
  const event = messageSent16({
    messageId: hashOf(`message ${number}`),
    sourceChainSelector: BigInt(source.selector),
    destChainSelector: BigInt(dest.selector),
    sequenceNumber: BigInt(number + 1),
    sender: addressOf(0xa11ce),
    receiver: addressOf(0xb0b),
    feeToken: token,
    tokens: [{ pool, destToken: addressOf(0xde57), amount: BigInt(number + 1) }],
  });
  return logOf(onRamp, event, number, blockHash);
}
