/** A virtual chain of a CCIP 1.6 on-ramp whose messages carry a token, and its endpoint: no lab is needed. */
import { keccak256, numberToHex, pad, stringToHex } from 'viem';
import { onTestFinished } from 'vitest';
import { findNetwork, type Network } from '../../src/domain/networks/networks.ts';
import * as abi from '../../src/ingest/evm/contracts/abi.ts';
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';
import { encodeAnswer, encodeEvent, messageSent16 } from '../virtual-chain/ccip-events.ts';
import { type Provider, startProvider } from '../virtual-chain/endpoint.ts';
import { createVirtualChain, type VirtualContract } from '../virtual-chain/virtual-chain.ts';

export const source = findNetwork('1337') as Network;
const dest = findNetwork('ethereum-testnet-sepolia') as Network;

const addressOf = (number: number): Hex => pad(numberToHex(number), { size: 20 });
export const router = addressOf(0x100);
const onRamp = addressOf(0x116);
const pool = addressOf(0x9001);
const token = addressOf(0x70ce);

/** Blocks with a message each; the one without, block 1, registers the on-ramp. */
export async function startCcipNode(length: number): Promise<Provider> {
  const chain = createVirtualChain({
    network: source,
    head: length - 1,
    // A second each: the chain may grow by thousands before it has a block of the future, which nobody believes.
    blockSeconds: 1,
    headAtMs: Date.now() - 3_600_000,
    series: [
      {
        id: 1,
        topic: abi.onRampSet.topic,
        emitter: router,
        count: 1,
        blockOf: () => 1,
        eventOf: () => encodeEvent(abi.onRampSet, [BigInt(dest.selector)], [onRamp]),
      },
      {
        id: 2,
        topic: abi.ccipMessageSent16.topic,
        emitter: onRamp,
        count: 1_000_000,
        blockOf: (index) => (index === 0 ? 0 : index + 1),
        eventOf: messageSent,
      },
    ],
    contracts,
  });
  const provider = await startProvider(chain);
  onTestFinished(provider.close);
  return provider;
}

function messageSent(index: number) {
  return messageSent16({
    messageId: keccak256(stringToHex(`message ${index}`)),
    sourceChainSelector: BigInt(source.selector),
    destChainSelector: BigInt(dest.selector),
    sequenceNumber: BigInt(index + 1),
    sender: addressOf(0xa11ce),
    receiver: addressOf(0xb0b),
    feeToken: token,
    tokens: [{ pool, destToken: addressOf(0xde57), amount: BigInt(index + 1) }],
  });
}

const contract = (address: Hex, answers: Readonly<Record<Hex, Hex>>): VirtualContract => ({
  address,
  deployedAt: 0,
  views: Object.fromEntries(Object.entries(answers).map(([selector, answer]) => [selector, () => answer])),
});
const words = (text: string) => encodeAnswer(abi.typeAndVersion, [text]);

const contracts = [
  contract(router, {
    [abi.typeAndVersion.selector]: words('Router 1.2.0'),
    [abi.getOffRamps.selector]: encodeAnswer(abi.getOffRamps, [[]]),
  }),
  contract(onRamp, {
    [abi.typeAndVersion.selector]: words('OnRamp 1.6.0'),
    [abi.getStaticConfig.selector]: encodeAnswer(abi.getStaticConfig, [BigInt(source.selector)]),
    [abi.getRouter16.selector]: encodeAnswer(abi.getRouter16, [1n, false, router]),
  }),
  contract(pool, { [abi.getToken.selector]: encodeAnswer(abi.getToken, [token]) }),
];
