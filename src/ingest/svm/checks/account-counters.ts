/**
 * What the programs count by themselves, in accounts: the router the messages of each lane, the off-ramp the messages that
 * were committed, and in each commit report which messages were executed.
 */
import type { Hex } from '../../../base/hex.ts';
import { parseAddress } from '../../../domain/addresses.ts';
import { knownNetworks, type Network, networkBySelector } from '../../../domain/networks/networks.ts';
import type { AwaitingExecution } from '../../../store/ledger/index-ledger.ts';
import { onRampOf } from '../../engine/event-facts.ts';
import type { ExecutedMessage, ReadCounter } from '../../engine/lane-findings.ts';
import { isExecuted, readDestChain, readSourceChain } from '../accounts.ts';
import { hexOf } from '../decode/borsh.ts';
import type { ChainNode } from '../node.ts';
import { programAddresses } from '../program-addresses.ts';
import type { TrustedProgram } from '../programs.ts';

type AllowedOffRamp = Extract<TrustedProgram, { readonly role: 'offRamp' }>;

/** Throws an UnreadableDataError where an account does not have the layout that is known. */
export async function readCounters(
  node: ChainNode,
  network: Network,
  contracts: readonly TrustedProgram[],
  minContextSlot: number,
): Promise<readonly ReadCounter[]> {
  const routers = contracts.filter(({ role }) => role === 'router').map(({ program }) => program);
  const offRamps = contracts.filter((contract): contract is AllowedOffRamp => contract.role === 'offRamp');
  const lanes = routers.flatMap((router) =>
    knownNetworks().map(({ selector }) => ({ router, dest: selector })),
  );
  const accounts = await node.accounts(
    [
      ...lanes.map(({ router, dest }) => programAddresses.destChainState(router, BigInt(dest))),
      ...offRamps.map(({ program, source }) => programAddresses.sourceChainState(program, BigInt(source))),
    ],
    minContextSlot,
  );
  const sent = lanes.flatMap(({ router, dest }, index): readonly ReadCounter[] => {
    const account = accounts[index];
    if (!account) return [];
    const lane = { sourceSelector: network.selector, destSelector: dest, onramp: bytesOf(router, 'SVM') };
    const { lastNumber, numberLeft } = readDestChain(account, router);
    return counter({ ...lane, kind: 'sent', contract: router, numberLeft }, lastNumber);
  });
  const committed = offRamps.flatMap(({ program, source }, index): readonly ReadCounter[] => {
    const account = accounts[lanes.length + index];
    const sourceNetwork = networkBySelector(source);
    if (!account || !sourceNetwork) return [];
    const { minSeqNr, onRamp } = readSourceChain(account, program);
    if (onRamp.length === 0) return [];
    const onramp = bytesOf(onRampOf(hexOf(onRamp), sourceNetwork), sourceNetwork.family);
    const lane = { sourceSelector: source, destSelector: network.selector, onramp };
    return counter({ ...lane, kind: 'committed', contract: program }, minSeqNr - 1n);
  });
  return [...sent, ...committed];
}

/**
 * Those of the waiting messages that were executed. The report of a root has two bits for each message, and is closed only
 * when all have succeeded.
 */
export async function readExecuted(
  node: ChainNode,
  waiting: readonly (AwaitingExecution & { readonly sequenceNumber: bigint })[],
  offRamps: ReadonlySet<string>,
  minContextSlot: number,
): Promise<readonly ExecutedMessage[]> {
  const asked = waiting.flatMap(({ messageId, sequenceNumber, ranges }) => {
    const commit = ranges.find(({ kind, offramp }) => kind === 'Committed' && offRamps.has(offramp ?? ''));
    if (!commit?.offramp) return [];
    const { offramp: offRamp, lane, merkleRoot } = commit;
    const source = BigInt(lane.sourceChainSelector);
    const address = programAddresses.commitReport(offRamp, source, merkleRoot as Hex);
    return [{ messageId, sequenceNumber, offRamp, address }];
  });
  if (asked.length === 0) return [];
  const addresses = [...new Set(asked.map(({ address }) => address))];
  const accounts = await node.accounts(addresses, minContextSlot);
  return asked
    .filter(({ sequenceNumber, offRamp, address }) => {
      const account = accounts[addresses.indexOf(address)];
      return !account || isExecuted(account, offRamp, sequenceNumber);
    })
    .map(({ messageId, offRamp }) => ({ messageId, offRamp }));
}

function counter(lane: Omit<ReadCounter, 'lastNumber'>, last: bigint): readonly ReadCounter[] {
  return last <= 0n && lane.numberLeft === undefined ? [] : [{ ...lane, lastNumber: last.toString() }];
}

function bytesOf(address: string, family: Network['family']): string {
  return parseAddress(address, family)?.bytes ?? '';
}
