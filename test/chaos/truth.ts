/**
 * What the chains say in the end, read straight from the recording: by the contracts' own ABIs and the official client,
 * with the ramps that the lab knows it has deployed.
 */
import type { Hex } from 'viem';
import type { Message } from '../../src/domain/message.ts';
import { FINALITY } from '../chain/indexing.ts';
import type { Contract, NetworkKey, RawLog, Version } from '../lab/lab.ts';
import type { ContractEvent, RawReceipt } from '../lab/network.ts';
import { EVMChain } from '../lab/sdk-chain.ts';
import type { RecordedBlock } from './recorded-chain.ts';
import type { RecordedNetwork, Recording } from './scenario.ts';

const toldFields = [
  'messageId',
  'sequenceNumber',
  'sender',
  'receiver',
  'onramp',
  'version',
  'status',
  'sendTransactionHash',
  'sendBlockNumber',
  'sendLogIndex',
  'sendTimestamp',
  'receiptTransactionHash',
  'receiptTimestamp',
] as const;

/** The part of a record that tells which message it is, where it was sent and what became of it. */
export type ToldMessage = Pick<Message, (typeof toldFields)[number]>;

export function toldPart(record: Message): ToldMessage {
  const [sender, receiver, onramp] = [record.sender, record.receiver, record.onramp].map((address) =>
    address.toLowerCase(),
  );
  const told = { ...record, sender, receiver, onramp };
  return Object.fromEntries(toldFields.map((field) => [field, told[field]])) as unknown as ToldMessage;
}

interface Told {
  readonly block: RecordedBlock;
  readonly event: ContractEvent;
}

/** Every message on the chains that stayed, by its id. */
export function readTruth(recording: Recording): ReadonlyMap<string, ToldMessage> {
  const networks = new Map(recording.networks.map((network) => [network.lab.key, network]));
  const told = (key: NetworkKey, contract: Contract, eventName: string): readonly Told[] => {
    const network = networks.get(key);
    return (network?.chain ?? []).flatMap((block) =>
      contract
        .events({ logs: block.logs } as Pick<RawReceipt, 'logs'> as RawReceipt, eventName)
        .map((event) => ({ block, event })),
    );
  };

  const messages = new Map<string, ToldMessage>();
  for (const { lane, ramps } of recording.ramps) {
    const { version, from, to } = lane;
    const source = networks.get(from);
    if (!source) throw new Error(`Network ${from} was not recorded.`);
    const sendings = told(from, ramps.onRamp, version < '1.6' ? 'CCIPSendRequested' : 'CCIPMessageSent');
    const executions = told(to, ramps.offRamp, 'ExecutionStateChanged');
    const roots = rootsOf(version, ramps, (contract, eventName) => told(to, contract, eventName));
    const blessings = version < '1.6' ? blessedRoots(version, networks.get(to)) : new Set<Hex>();

    for (const { block, event } of sendings) {
      const { log } = event;
      const message = EVMChain.decodeMessage(log);
      if (!message) throw new Error(`The client does not decode the log of ${log.transactionHash}.`);
      const { messageId, sequenceNumber } = message;
      const own = executions.filter(({ event: { args } }) => args.messageId === messageId);
      const outcome = own.find(isIn(2)) ?? own.findLast(isIn(3));
      const covering = roots.filter(({ min, max }) => sequenceNumber >= min && sequenceNumber <= max);
      const isFinal = block.number <= source.chain.length - 1 - FINALITY;
      const afterSending = version === '2.0' ? 'VERIFYING' : 'SOURCE_FINALIZED';
      let status: Message['status'] = isFinal ? afterSending : 'SENT';
      if (covering.length > 0) status = 'COMMITTED';
      if (covering.some(({ root, isBlessed }) => isBlessed || blessings.has(root))) status = 'BLESSED';
      if (outcome) status = isIn(2)(outcome) ? 'SUCCESS' : 'FAILED';
      messages.set(messageId, {
        messageId,
        sequenceNumber: sequenceNumber.toString(),
        sender: message.sender.toLowerCase(),
        receiver: message.receiver.toLowerCase(),
        onramp: ramps.onRamp.address.toLowerCase(),
        version: `${version}.0`,
        status,
        sendTransactionHash: log.transactionHash,
        sendBlockNumber: block.number,
        sendLogIndex: Number(log.logIndex),
        sendTimestamp: timeOf(block),
        receiptTransactionHash: outcome ? outcome.event.log.transactionHash : null,
        receiptTimestamp: outcome ? timeOf(outcome.block) : null,
      });
    }
  }
  return messages;
}

const isIn =
  (state: number) =>
  ({ event }: Told): boolean =>
    Number(event.args.state) === state;

function timeOf({ header }: RecordedBlock): string {
  return new Date(Number(header.timestamp) * 1000).toISOString();
}

function rootsOf(
  version: Version,
  { onRamp, offRamp, commitStore }: Recording['ramps'][number]['ramps'],
  told: (contract: Contract, eventName: string) => readonly Told[],
) {
  if (version === '2.0') return [];
  if (commitStore) {
    return told(commitStore, 'ReportAccepted').map(({ event }) => {
      const { interval, merkleRoot } = event.args.report as {
        interval: { min: bigint; max: bigint };
        merkleRoot: Hex;
      };
      return { root: merkleRoot, ...interval, isBlessed: false };
    });
  }
  interface MerkleRoot {
    readonly onRampAddress: Hex;
    readonly minSeqNr: bigint;
    readonly maxSeqNr: bigint;
    readonly merkleRoot: Hex;
  }
  return told(offRamp, 'CommitReportAccepted').flatMap(({ event }) => {
    const read = (name: string, isBlessed: boolean) =>
      (event.args[name] as readonly MerkleRoot[])
        .filter(({ onRampAddress }) => onRampAddress.endsWith(onRamp.address.slice(2).toLowerCase()))
        .map(({ merkleRoot, minSeqNr, maxSeqNr }) => ({
          root: merkleRoot,
          min: minSeqNr,
          max: maxSeqNr,
          isBlessed,
        }));
    return [...read('blessedMerkleRoots', true), ...read('unblessedMerkleRoots', false)];
  });
}

/** `TaggedRootBlessed(uint32,(address,bytes32),uint16)`. */
const BLESSED_TOPIC = '0x8257378aa73bf8e4ada848713526584a3dcee0fd3db3beed7397f7a7f5067cc9';

function blessedRoots(version: Version, network: RecordedNetwork | undefined): ReadonlySet<Hex> {
  const rmn = network?.lab.contracts[version]?.rmn;
  const isBlessing = ({ address, topics }: RawLog) => address === rmn && topics[0] === BLESSED_TOPIC;
  const logs = (network?.chain ?? []).flatMap((block) => block.logs.filter(isBlessing));
  // The second word is the root, behind the commit store.
  return new Set(logs.map(({ data }) => `0x${data.slice(2 + 64, 2 + 128)}` as const));
}
