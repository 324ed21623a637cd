/** What lying endpoints add to a chain: series of events that look genuine and that the chain does not have. */
import * as abi from '../../src/ingest/evm/contracts/abi.ts';
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';
import { type CcipChain, FIRST_FREE_SERIES, networkA, networkB } from './ccip-chain.ts';
import { encodeAnswer, encodeEvent, messageSent16 } from './ccip-events.ts';
import { composeHash, type EventSeries, type VirtualContract } from './virtual-chain.ts';

const INVENTED_MARK = 0x11e5;

export interface Invention {
  /** The first sequence number. */
  readonly first: number;
  readonly count: number;
  /** The block of the first message, with the others right behind it; all over the chain where it is left out. */
  readonly block?: number;
}

/** Messages of the genuine on-ramp in use, from chain `a`, that were never sent. */
export function inventedMessages(chain: CcipChain, { first, count, block }: Invention): EventSeries {
  const from = block ?? 100;
  const distance = block === undefined ? Math.floor((chain.head - 20 - from) / count) : 1;
  return {
    id: FIRST_FREE_SERIES,
    topic: abi.ccipMessageSent16.topic,
    emitter: chain.onRamps.at(-1) as Hex,
    count,
    blockOf: (index) => from + index * distance,
    eventOf: (index) =>
      messageSent16({
        messageId: inventedMessageId(first + index),
        sourceChainSelector: BigInt(networkA.selector),
        destChainSelector: BigInt(networkB.selector),
        sequenceNumber: BigInt(first + index),
        sender: '0x00000000000000000000000000000000000a11ce',
        receiver: '0x0000000000000000000000000000000000000b0b',
        feeToken: '0x00000000000000000000000000000000000070ce',
      }),
  };
}

export function inventedMessageId(sequenceNumber: number): Hex {
  return composeHash(INVENTED_MARK, Number(networkA.chainId), 0, sequenceNumber);
}

/** The same events; messages have another receiver. */
export function falsified(series: EventSeries): EventSeries {
  if (series.topic !== abi.ccipMessageSent16.topic) return series;
  return {
    ...series,
    eventOf(index) {
      const { topics, data } = series.eventOf(index);
      const [receiver, other] = ['00000b0b', '00000bad'];
      return { topics, data: data.replaceAll(receiver, other) as Hex };
    },
  };
}

/** The on-ramps of a chain that call themselves something else. */
export function renamedOnRamps(chain: CcipChain, words: string): readonly VirtualContract[] {
  return withView(chain, abi.typeAndVersion.selector, () => encodeAnswer(abi.typeAndVersion, [words]));
}

/**
 * The on-ramps of a chain that have counted so many messages, less one.
 *
 * @param onAsked called whenever one is asked for its count
 */
export function miscountingOnRamps(
  chain: CcipChain,
  next: bigint,
  onAsked: () => void = () => undefined,
): readonly VirtualContract[] {
  return withView(chain, abi.getNextNumber16.selector, () => {
    onAsked();
    return encodeAnswer(abi.getNextNumber16, [next]);
  });
}

function withView(chain: CcipChain, selector: Hex, view: () => Hex): readonly VirtualContract[] {
  return chain.onRamps.flatMap((address) => {
    const contract = chain.contracts.get(address);
    return contract ? [{ ...contract, views: { ...contract.views, [selector]: view } }] : [];
  });
}

/** A contract that answers like an on-ramp, its registration and its messages. */
export function impostorOnRamp(chain: CcipChain): {
  readonly contracts: readonly VirtualContract[];
  readonly series: readonly EventSeries[];
} {
  const address: Hex = `0x${'ba'.repeat(20)}`;
  const genuine = chain.contracts.get(chain.onRamps[0] as Hex) as VirtualContract;
  const registration: EventSeries = {
    id: FIRST_FREE_SERIES + 1,
    topic: abi.onRampSet.topic,
    emitter: chain.router,
    count: 1,
    blockOf: () => 50,
    eventOf: () => encodeEvent(abi.onRampSet, [BigInt(networkB.selector)], [address]),
  };
  return {
    contracts: [{ ...genuine, address }],
    series: [registration, { ...inventedMessages(chain, { first: 1, count: 10 }), emitter: address }],
  };
}
