/** Everything that a network of the lab has said so far, and whom of its speakers we believe. */

import { watchedTopics } from '../../src/ingest/evm/contracts/abi.ts';
import {
  type GenuineContract,
  type Identification,
  identify,
  type Registration,
  registrationsIn,
} from '../../src/ingest/evm/contracts/contracts.ts';
import type { Chain, ChainNode, Hex } from '../../src/ingest/evm/rpc/chain.ts';
import type { LabNetwork } from '../lab/lab.ts';

export type History = Awaited<ReturnType<typeof readHistory>>;

export async function readHistory(node: ChainNode, chain: Chain, network: LabNetwork) {
  const head = await node.head();
  const logs = await node.logs({ fromBlock: 0, toBlock: head.number, topics: watchedTopics });
  const book = new Map<Hex, GenuineContract>();
  const refused: Identification['rejected'][number][] = [];
  let namings: readonly Registration[] = Object.values(network.routers).map((address) => ({
    address,
    role: 'router',
    namedBy: address,
  }));
  for (let known = -1; known < book.size; ) {
    known = book.size;
    const examination = await identify(node, namings, chain.network);
    for (const contract of examination.contracts) book.set(contract.address, contract);
    refused.push(...examination.rejected);
    namings = logs.flatMap((log) => {
      const emitter = book.get(log.address);
      return emitter ? registrationsIn(log, emitter) : [];
    });
  }
  return { book, logs, refused };
}
