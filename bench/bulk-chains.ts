/**
 * Two chains with any number of messages: a few that real contracts have sent, committed and executed, and copies of their
 * events with new ids, sequence numbers and blocks.
 */
import { createHash } from 'node:crypto';
import {
  type AbiEvent,
  decodeEventLog,
  encodeAbiParameters,
  encodeEventTopics,
  type Hex,
  numberToHex,
} from 'viem';
import { createRecorder, type ReplayBlock, type ReplayNetwork } from '../test/chain/replay-recording.ts';
import { type Contract, type Lab, type RawLog, startLab } from '../test/lab/lab.ts';

export interface BulkChains {
  readonly source: ReplayNetwork;
  readonly dest: ReplayNetwork;
  readonly lab: Lab;
  /** How many messages there are, the real ones included. */
  readonly messages: number;
}

const REAL_MESSAGES = 6;
const MESSAGES_A_BLOCK = 10;
const MESSAGES_A_ROOT = 25;
/** A chain must not be ahead of the clock by an hour. */
const BLOCKS_A_SECOND = 20;

/** The lab stays open: its nodes answer calls. */
export async function makeBulkChains(messages: number): Promise<BulkChains> {
  const lab = await startLab({ versions: ['1.6'] });
  const lane = lab.lane('1.6', 'a');
  const { onRamp, offRamp } = lane.ramps;
  const recorders = {
    source: await createRecorder(lab.a, lab.b.selector),
    dest: await createRecorder(lab.b, lab.a.selector),
  };
  for (let sent = 0; sent < REAL_MESSAGES; sent++) {
    const message = await lane.sendOne(sent % 2 === 0 ? { data: '0x1234' } : { tokens: [{ amount: 5n }] });
    await lane.commit([message]);
    await lane.execute(message);
  }
  const source = await recorders.source.finish();
  const dest = await recorders.dest.finish();

  const sending = templatesOf(source, onRamp, 'CCIPMessageSent');
  const [commit] = templatesOf(dest, offRamp, 'CommitReportAccepted');
  const [execution] = templatesOf(dest, offRamp, 'ExecutionStateChanged').slice(-1);
  if (!commit || !execution) throw new Error('The real messages were not committed and executed.');

  const sends = new Chain(source);
  const outcomes = new Chain(dest);
  for (let number = REAL_MESSAGES + 1; number <= messages; number += MESSAGES_A_BLOCK) {
    const last = Math.min(messages, number + MESSAGES_A_BLOCK - 1);
    const numbers = Array.from({ length: last - number + 1 }, (_, index) => BigInt(number + index));
    sends.add(
      numbers.map((sequenceNumber) => {
        const template = sending[Number(sequenceNumber) % sending.length] ?? commit;
        return again(template, sentAgain(template, sequenceNumber));
      }),
    );
    const roots = numbers.filter((at) => (at - BigInt(REAL_MESSAGES) - 1n) % BigInt(MESSAGES_A_ROOT) === 0n);
    outcomes.add([
      ...roots.map((first) => again(commit, committedAgain(commit, first, messages))),
      ...numbers.map((sequenceNumber) =>
        again(execution, { ...execution.args, sequenceNumber, messageId: idOf(sequenceNumber) }),
      ),
    ]);
  }
  return { source: sends.finish(), dest: outcomes.finish(), lab, messages };
}

type Values = Readonly<Record<string, unknown>>;

/** A real event, and what is needed to say it again. */
interface Template {
  readonly block: ReplayBlock;
  readonly log: RawLog;
  readonly event: AbiEvent;
  readonly args: Values;
}

interface NewLog {
  readonly template: Template;
  readonly topics: readonly Hex[];
  readonly data: Hex;
}

function templatesOf({ chain }: ReplayNetwork, contract: Contract, eventName: string): readonly Template[] {
  const event = contract.abi.find((item) => item.type === 'event' && item.name === eventName);
  if (event?.type !== 'event') throw new Error(`There is no event ${eventName}.`);
  const [topic] = encodeEventTopics({ abi: [event], eventName });
  return chain.flatMap((block) =>
    block.logs
      .filter(({ address, topics }) => address === contract.address && topics[0] === topic)
      .map((log) => {
        const topics = log.topics as [Hex, ...Hex[]];
        const { args } = decodeEventLog({ abi: [event], data: log.data, topics });
        return { block, log, event, args: args as unknown as Values };
      }),
  );
}

function again(template: Template, args: Values): NewLog {
  const { event } = template;
  const data = event.inputs.filter(({ indexed }) => !indexed);
  const topics = encodeEventTopics({ abi: [event], eventName: event.name, args });
  return {
    template,
    topics: topics as readonly Hex[],
    data: encodeAbiParameters(
      data,
      data.map(({ name }) => args[name ?? '']),
    ),
  };
}

function sentAgain({ args }: Template, sequenceNumber: bigint): Values {
  const message = args.message as { readonly header: Values };
  const header = { ...message.header, messageId: idOf(sequenceNumber), sequenceNumber, nonce: 0n };
  return { ...args, sequenceNumber, message: { ...message, header } };
}

function committedAgain({ args }: Template, first: bigint, messages: number): Values {
  const last = first + BigInt(MESSAGES_A_ROOT) - 1n;
  const range = {
    minSeqNr: first,
    maxSeqNr: last < BigInt(messages) ? last : BigInt(messages),
    merkleRoot: hashOf(`root ${first}`),
  };
  const roots = (args.unblessedMerkleRoots as readonly Values[]).map((root) => ({ ...root, ...range }));
  return { ...args, unblessedMerkleRoots: roots };
}

function idOf(sequenceNumber: bigint): Hex {
  return hashOf(`message ${sequenceNumber}`);
}

function hashOf(name: string): Hex {
  return `0x${createHash('sha256').update(name).digest('hex')}`;
}

/** A recorded chain that goes on. */
class Chain {
  readonly #network: ReplayNetwork;
  readonly #blocks: ReplayBlock[];
  readonly #firstTime: number;

  constructor(network: ReplayNetwork) {
    this.#network = network;
    this.#blocks = [...network.chain];
    this.#firstTime = Number(this.#blocks.at(-1)?.header.timestamp);
  }

  /** One block, with one log in each transaction. */
  add(logs: readonly NewLog[]): void {
    const below = this.#blocks.at(-1);
    const model = logs[0]?.template.block;
    if (!below || !model) return;
    const number = below.number + 1;
    const blockNumber = numberToHex(number);
    const hash = hashOf(`block ${this.#network.chainId} ${number}`);
    const seconds = this.#firstTime + 2 + Math.floor((number - this.#network.chain.length) / BLOCKS_A_SECOND);
    const place = { blockNumber, blockHash: hash };
    const entries = logs.map(({ template, topics, data }, index) => {
      const transactionHash = hashOf(`transaction ${this.#network.chainId} ${number} ${index}`);
      const real = template.block.transactions.find(({ hash: own }) => own === template.log.transactionHash);
      const at = { ...place, transactionIndex: numberToHex(index) };
      return {
        log: { ...template.log, ...at, topics, data, transactionHash, logIndex: numberToHex(index) },
        transaction: { ...real, ...at, hash: transactionHash },
      };
    });
    this.#blocks.push({
      number,
      hash,
      header: {
        ...model.header,
        number: blockNumber,
        hash,
        parentHash: below.hash,
        timestamp: numberToHex(seconds),
        transactions: entries.map(({ transaction }) => transaction.hash),
      },
      receipts: entries.map(({ log, transaction }) => ({
        blockHash: hash,
        transactionHash: transaction.hash,
        logs: [log],
      })),
      transactions: entries.map(({ transaction }) => transaction),
      logs: entries.map(({ log }) => log),
    });
  }

  finish(): ReplayNetwork {
    return { ...this.#network, chain: this.#blocks };
  }
}
