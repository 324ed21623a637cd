/**
 * What contracts count by themselves: an on-ramp its messages, an off-ramp or commit store the messages that were
 * committed. One view for each ramp and chain at its other end.
 */
import { addressFromBytes } from '../../../domain/addresses.ts';
import { networkBySelector } from '../../../domain/networks/networks.ts';
import { groupBy } from '../../../store/group-by.ts';
import type { RampRegistration } from '../../../store/ledger/index-ledger.ts';
import type { ReadCounter } from '../../engine/lane-findings.ts';
import * as abi from '../contracts/abi.ts';
import type { GenuineContract } from '../contracts/contracts.ts';
import type { CallAnswer, ChainNode, ContractCall, Hex } from '../rpc/chain.ts';

type Counter = ReadCounter<Hex>;

interface CounterView {
  readonly call: ContractCall;
  /** Undefined where the contract does not answer, or has counted nothing. */
  read(answer: CallAnswer): Counter | undefined;
}

/** @param network selector of the chain of these contracts */
export async function readCounters(
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
