/**
 * What the contracts of an EVM network say of themselves, compared with what was read of their history.
 *
 * Only with everything read is a difference a contradiction: an endpoint that has pruned old logs answers with an empty
 * list and no error, and its silence would otherwise count as absence.
 */
import { addressFromBytes } from '../../../domain/addresses.ts';
import { missingNumbers } from '../../../domain/missing-numbers.ts';
import { networkBySelector } from '../../../domain/networks/networks.ts';
import { groupBy } from '../../../store/group-by.ts';
import type { BlockRange, RampRegistration, StoredFinding } from '../../../store/ledger/index-ledger.ts';
import { type Contradiction, createHistoryCheck } from '../../engine/history-check.ts';
import {
  type CommittedEnd,
  createLaneFindings,
  type ExecutedMessage,
  nameOf,
  type ReadCounter,
} from '../../engine/lane-findings.ts';
import type { Progress } from '../../engine/progress.ts';
import type { BloomTrust } from '../bloom.ts';
import * as abi from '../contracts/abi.ts';
import { currentRegistrations, type GenuineContract, type Registration } from '../contracts/contracts.ts';
import type { EvmContractRegistry } from '../reading.ts';
import type { CallAnswer, Chain, ChainNode, ContractCall, Hex } from '../rpc/chain.ts';
import type { EvmSource } from '../settings.ts';
import { knownByNow, unknownRegistrations } from './registry-log.ts';
import type { ListedBlocks, UnconfirmedBlocks } from './unconfirmed-blocks.ts';

/** Of more, the others are found when these have been reviewed. */
const MAX_REVIEWED_BLOCKS = 1_000;

/** What the contracts say, read from one endpoint. */
interface ContractViews {
  readonly registrations: readonly Registration[];
  readonly counters: readonly ReadCounter<Hex>[];
  readonly executed: readonly ExecutedMessage[];
  /** The head of the endpoint before it was asked: the counters include everything up to here. */
  readonly counted: number;
  /** The head of the endpoint after it was asked: what was read must reach up to here before it is compared. */
  readonly head: number;
}

/** @param readExecuted messages that off-ramps of this network have executed, as far as the records do not know it */
export function createConsistencyCheck(
  { routers, start }: Pick<EvmSource, 'routers' | 'start'>,
  progress: Progress,
  chain: Chain,
  registry: EvmContractRegistry,
  bloomTrust: BloomTrust,
  unconfirmed: UnconfirmedBlocks,
  readExecuted: (tip: number) => Promise<readonly ExecutedMessage[]>,
) {
  const { selector } = progress;
  const ledger = progress.ledger.checks;
  const lanes = createLaneFindings(progress, 'On-ramp');
  /** The endpoint that was asked last. What it says counts when another one, where there is one, says the same. */
  let lastAsked = '';

  const readViews = async (tip: number): Promise<ContractViews> => {
    const recorded = await ledger.registrations(selector);
    const executed = await readExecuted(tip);
    const isOther = chain.health().some(({ name, healthy }) => healthy && name !== lastAsked);
    return chain.run(
      async (node) => {
        lastAsked = node.name;
        const { number: counted } = await node.head();
        const [registrations, counters] = await Promise.all([
          currentRegistrations(node, routers),
          readCounters(node, selector, registry.contracts.values(), recorded),
        ]);
        const { number: head } = await node.head();
        return { registrations, counters, executed, counted, head };
      },
      tip,
      isOther ? [lastAsked] : [],
    );
  };

  const compare = async (views: ContractViews, finalBlock: number, open: readonly StoredFinding[]) => {
    const registrations = await ledger.registrations(selector);
    const committed = await ledger.committedEnds(selector);
    const startBlock = progress.head.startBlock ?? 0;
    const isBefore = ({ blockNumber }: RampRegistration) => blockNumber !== null && blockNumber < startBlock;
    // Whether everything since the routers' first event is expected: history does not start later.
    const isWhole = start === null || (registrations.length > 0 && !registrations.some(isBefore));
    const counters = lanes.expected(views.counters, committed, isWhole);
    const unknown = new Set<string>(unknownRegistrations(open).map(({ address }) => address));
    // Everything that the routers have registered, from the beginning.
    const routerRange: BlockRange = { from: 0, to: finalBlock, purpose: 'routers', contracts: routers };
    const contradictions: Contradiction[] = [
      ...missingRegistrations(views.registrations, registrations, routerRange),
      ...committed
        .filter(({ onramp }) => registry.contracts.get(`0x${onramp}`)?.role !== 'onRamp')
        .filter(({ onramp }) => !unknown.has(`0x${onramp}`))
        .map((lane) => unknownOnRamp(lane, routerRange)),
      ...(await lanes.missingExecutions(views.executed, 'FAILED', finalBlock)),
    ];
    for (const counter of counters) {
      const missing =
        counter.kind === 'sent'
          ? lanes.missingSends(counter, missingNumbers(await ledger.sentRuns(counter), counter), finalBlock)
          : lanes.missingCommits(counter, finalBlock);
      contradictions.push(...(await missing));
    }
    for (const counter of views.counters) contradictions.push(...(await inventedOf(counter, views.counted)));
    if (contradictions.some(({ body }) => body !== undefined)) unconfirmed.expect();
    const wrongBlooms = bloomTrust.isConfirmed ? open.filter(({ kind }) => kind === 'bloom-wrong') : [];
    return { counters, contradictions, resolved: [...knownByNow(open, registry.contracts), ...wrongBlooms] };
  };

  /** Numbers above what the contract itself has counted, in blocks up to the head at which it was asked. */
  const inventedOf = async (counter: ReadCounter, counted: number): Promise<readonly Contradiction[]> => {
    const above = await ledger.blocksAbove(selector, { ...counter, isWhole: false }, MAX_REVIEWED_BLOCKS);
    // In blocks whose events two endpoints have confirmed, the counter is wrong.
    const blocks = above.filter(({ number, hash }) => number <= counted && !unconfirmed.confirmed.has(hash));
    if (blocks.length === 0) return [];
    const { contract, lastNumber, sourceSelector, destSelector, kind } = counter;
    const isSent = kind === 'sent';
    const where = `from block ${Math.min(...blocks.map(({ number }) => number))} on`;
    return [
      {
        kind: isSent ? 'messages-invented' : 'commits-invented',
        subject: `${contract} ${isSent ? destSelector : sourceSelector}`,
        detail: isSent
          ? `On-ramp ${contract} has sent ${lastNumber} messages to ${nameOf(destSelector)}, but an endpoint has shown higher numbers, ${where}`
          : `${lastNumber} messages from ${nameOf(sourceSelector)} are committed on ${contract}, but an endpoint has shown commits of higher numbers, ${where}`,
        range: undefined,
        body: { blocks, more: 0 } satisfies ListedBlocks,
      },
    ];
  };

  return createHistoryCheck({
    progress,
    health: chain.health,
    words: { counted: 'contracts', units: 'blocks' },
    readViews,
    compare,
  });
}

const roleWords: Readonly<Record<string, string>> = { onRamp: 'on-ramp', offRamp: 'off-ramp' };

function missingRegistrations(
  current: readonly Registration[],
  recorded: readonly RampRegistration[],
  range: BlockRange,
): readonly Contradiction[] {
  const isRegistered = ({ address, selector }: Registration) =>
    recorded.some(
      ({ contract, remote, blockNumber }) =>
        contract === address && remote === selector && blockNumber !== null,
    );
  return current
    .filter((registration) => !isRegistered(registration))
    .map(({ address, role, selector = '', namedBy }) => ({
      kind: 'registrations-missing',
      subject: `${role} ${address} ${selector}`,
      detail:
        `Router ${namedBy} names the ${roleWords[role]} ${address} for ${nameOf(selector)}, but the router's history ` +
        'that was read has no event that registered it',
      range,
    }));
}

/** A lane that was committed elsewhere, from an on-ramp of this network that no router here has registered. */
function unknownOnRamp({ destSelector, onramp, last }: CommittedEnd, range: BlockRange): Contradiction {
  return {
    kind: 'onramp-unknown',
    subject: `0x${onramp} ${destSelector}`,
    detail:
      `${nameOf(destSelector)} has committed messages up to ${last} of the on-ramp 0x${onramp}, which no configured ` +
      'router has registered: its registration was not found, or a router is missing in the configuration',
    range,
  };
}

// ---- What contracts count by themselves: an on-ramp its messages, an off-ramp or commit store the messages that were
// committed. One view for each ramp and chain at its other end.

type Counter = ReadCounter<Hex>;

interface CounterView {
  readonly call: ContractCall;
  /** Undefined where the contract does not answer, or has counted nothing. */
  read(answer: CallAnswer): Counter | undefined;
}

/** @param network selector of the chain of these contracts */
async function readCounters(
  node: ChainNode,
  network: string,
  contracts: Iterable<GenuineContract>,
  registrations: readonly RampRegistration[],
): Promise<readonly Counter[]> {
  const ofContract = groupBy(registrations, ({ contract }) => contract);
  const views = [...contracts].flatMap((contract) => {
    const remotes = (ofContract.get(contract.address) ?? []).map(({ remote }) => remote);
    return viewsOf(contract, network, remotes);
  });
  const answers = await node.calls(views.map(({ call }) => call));
  return views.flatMap(({ read }, index) => read(answers[index]) ?? []);
}

function viewsOf(contract: GenuineContract, network: string, remotes: readonly string[]) {
  const { address } = contract;
  switch (contract.role) {
    case 'onRamp':
      if ('destChainSelector' in contract) {
        const lane = laneOf(network, contract.destChainSelector, address);
        return numberView('sent', lane, abi.getNextNumber15, abi.callOf(abi.getNextNumber15, address));
      }
      return remotes.flatMap((remote) => {
        const view = contract.version === '2.0.0' ? abi.getNextNumber20 : abi.getNextNumber16;
        const call = abi.callOf(view, address, BigInt(remote));
        return numberView('sent', laneOf(network, remote, address), view, call);
      });
    case 'commitStore': {
      const lane = laneOf(contract.sourceChainSelector, network, contract.onRamp);
      const own = lane && { ...lane, contract: address };
      return numberView('committed', own, abi.getNextNumber15, abi.callOf(abi.getNextNumber15, address));
    }
    case 'offRamp':
      return contract.version === '1.6.0'
        ? remotes.map((remote) => sourceConfigView(address, remote, network))
        : [];
    default:
      return [];
  }
}

type Lane = Omit<Counter, 'kind' | 'lastNumber'>;

/** Undefined where the source is a network that we do not know: its addresses cannot be spelled. */
function laneOf(sourceSelector: string, destSelector: string, onRamp: Hex): Lane | undefined {
  const family = networkBySelector(sourceSelector)?.family;
  const spelling = family && addressFromBytes(onRamp.slice(2), family);
  if (!spelling) return undefined;
  return { sourceSelector, destSelector, onramp: spelling.bytes, contract: abi.lowerCase(onRamp) };
}

type NextNumber = typeof abi.getNextNumber15 | typeof abi.getNextNumber16 | typeof abi.getNextNumber20;

/** Without a lane whose source we know there is nothing to compare with. */
function numberView(kind: Counter['kind'], lane: Lane | undefined, view: NextNumber, call: ContractCall) {
  if (!lane) return [];
  const read = (answer: CallAnswer) =>
    counted(lane, kind, abi.answerOf<NextNumber['outputs']>(view, answer)?.[0]);
  return [{ call, read }];
}

function sourceConfigView(offRamp: Hex, source: string, network: string): CounterView {
  return {
    call: abi.callOf(abi.getSourceConfig16, offRamp, BigInt(source)),
    read(answer) {
      const [config] = abi.answerOf(abi.getSourceConfig16, answer) ?? [];
      const lane = config && laneOf(source, network, config.onRamp);
      return lane && counted({ ...lane, contract: offRamp }, 'committed', config.minSeqNr);
    },
  };
}

function counted(lane: Lane, kind: Counter['kind'], next: bigint | undefined): Counter | undefined {
  if (next === undefined || next === 0n) return undefined;
  return { ...lane, kind, lastNumber: (next - 1n).toString() };
}
