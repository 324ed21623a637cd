/** What an endpoint that lies, or is on a fork, serves in place of the chain. */
import type { Randomness } from '../../src/ingest/demo/randomness.ts';
import type { CcipChain } from '../virtual-chain/ccip-chain.ts';
import {
  falsified,
  impostorOnRamp,
  inventedMessages,
  miscountingOnRamps,
  renamedOnRamps,
} from '../virtual-chain/invented-events.ts';
import type { VirtualChain } from '../virtual-chain/virtual-chain.ts';

/** How many blocks of virtual chains are not final. */
const NOT_FINAL = 8;
/** Beyond what is read without a gap. */
const MILLIONS = 2_000_000;

const deepFork = ({ head }: CcipChain, randomness: Randomness) =>
  randomness.integer(50, head - 2 * NOT_FINAL);

/** By name, what is told when a spell of lying begins. The truth lives on, and what is returned may look at it. */
export const lies: Readonly<Record<string, (truth: CcipChain, randomness: Randomness) => VirtualChain>> = {
  'a longer chain without any events, which forks below the final block': (truth, randomness) =>
    truth.retell({
      fork: deepFork(truth, randomness),
      series: [],
      head: truth.head + randomness.pick([1, 50, 2_000, MILLIONS]),
    }),
  'a longer chain with the same events in other blocks': (truth, randomness) =>
    truth.retell({
      fork: deepFork(truth, randomness),
      head: truth.head + randomness.pick([1, 50, 2_000]),
      finalLag: randomness.pick([0, NOT_FINAL]),
    }),
  'a fork that grows with the chain': (truth, randomness) =>
    truth.retell({ fork: deepFork(truth, randomness) }),
  'a fork above the final block, which is called final': (truth, randomness) =>
    truth.retell({
      fork: truth.head - randomness.integer(0, NOT_FINAL - 1),
      head: truth.head + randomness.integer(1, 30),
      finalLag: 0,
    }),
  'invented blocks on top': (truth, randomness) =>
    truth.retell({
      fork: truth.head,
      head: truth.head + randomness.pick([1, 20, 300, 1_000]),
      finalLag: randomness.pick([0, NOT_FINAL]),
    }),
  'a head that is millions of blocks ahead': (truth, randomness) =>
    truth.retell({
      fork: truth.head,
      head: truth.head + MILLIONS,
      finalLag: randomness.pick([0, NOT_FINAL, 500]),
    }),
  'every block is final at once': (truth) => truth.retell({ finalLag: 0 }),
  'a head that stands still far below': (truth, randomness) =>
    truth.retell({ head: randomness.integer(5, truth.head - NOT_FINAL) }),
  'messages that nobody sent, in true blocks': (truth, randomness) =>
    truth.retell({
      series: [
        ...truth.series,
        inventedMessages(truth, { first: randomness.pick([2, 35, 101]), count: randomness.integer(1, 40) }),
      ],
    }),
  'messages that nobody sent, in the newest blocks': (truth) =>
    truth.retell({
      series: [...truth.series, inventedMessages(truth, { first: 101, count: 3, block: truth.head - 3 })],
    }),
  'another content of the messages that were sent': (truth) =>
    truth.retell({ series: truth.series.map(falsified) }),
  'another type of the on-ramps': (truth) =>
    truth.retell({ contracts: renamedOnRamps(truth, 'Impostor 6.6.6') }),
  'an on-ramp that no router registered, with messages': (truth) => {
    const { contracts, series } = impostorOnRamp(truth);
    return truth.retell({ contracts, series: [...truth.series, ...series] });
  },
  'other counts of the messages that were sent': (truth, randomness) =>
    truth.retell({ contracts: miscountingOnRamps(truth, randomness.pick([1n, 20n, 500n])) }),
};
