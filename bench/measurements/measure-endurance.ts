/** As many requests of all kinds as an hour brings, as fast as they go, with writes meanwhile: what becomes of the memory? */
import { setTimeout as delay } from 'node:timers/promises';
import type { Message } from '../../src/domain/message.ts';
import { openStore } from '../../src/store/store.ts';
import { dropDatabase, withClient } from '../data/database.ts';
import { createRowWriter } from '../data/records.ts';
import { createWorld } from '../data/world.ts';
import { drawRequests, readWorkloads, type Workload } from '../requests.ts';
import type { Rig } from '../rig.ts';
import { startLanescan } from '../server.ts';

const DATABASE = 'bench_endurance';
const BATCH = 20;

export interface EnduranceResult {
  readonly requests: number;
  readonly requestsASecond: number;
  /** Reads a second without writes, before and after. */
  readonly undisturbed: number;
  readonly written: number;
  readonly memoryMb: { readonly afterFirstMinute: number; readonly most: number; readonly end: number };
  readonly growth: number;
  /** Acknowledged writes that were found at once, in the newest page, by sender and by id. */
  readonly freshReads: number;
}

export async function measureEndurance(
  rig: Rig,
  size: number,
  minutes: number,
  requestsAMinute: number,
): Promise<EnduranceResult> {
  const original = await rig.database(size);
  await withClient(rig.cluster.url('postgres'), async (client) => {
    await client.query(`drop database if exists ${DATABASE} with (force)`);
    await client.query(`create database ${DATABASE} template ${original.name} strategy file_copy`);
  });
  const url = rig.cluster.url(DATABASE);
  const server = await startLanescan({
    url,
    log: rig.logFile('endurance'),
    processes: rig.settings.processes,
  });
  const store = await openStore({ place: { url } });
  try {
    const workloads = readWorkloads<Workload[]>('searches');
    const requests = workloads
      .flatMap((workload) => drawRequests(workload, original, 200))
      .map(({ path }, index, all) => ({ path: all[(index * 7_919) % all.length]?.path ?? path }));
    const minute = async () =>
      rig.load.run({
        port: server.port,
        requests,
        from: 0,
        connections: rig.settings.connections,
        count: requestsAMinute,
        // Rows come in while pages are read, and pages of several kinds are mixed: order holds for all of them.
        check: 'page',
      });
    await minute();
    const quiet = await minute();

    const writer = startWriter(store, size, server.port);
    let [first, most, seconds, count] = [0, 0, 0, 0];
    try {
      for (let number = 1; number <= minutes; number++) {
        const report = await minute();
        seconds += report.seconds;
        count += report.requests;
        const memory = server.memory();
        if (number === 1) first = memory;
        most = Math.max(most, memory);
      }
    } finally {
      await writer.stop();
    }
    const end = server.memory();
    const megabytes = (bytes: number) => Math.round(bytes / 2 ** 20);
    return {
      requests: count,
      requestsASecond: count / seconds,
      undisturbed: quiet.requests / quiet.seconds,
      written: writer.written(),
      memoryMb: { afterFirstMinute: megabytes(first), most: megabytes(most), end: megabytes(end) },
      growth: end / first,
      freshReads: writer.found(),
    };
  } finally {
    await store.close();
    await server.stop();
    await dropDatabase(rig.cluster, DATABASE);
  }
}

/** Writes a small batch again and again; what is acknowledged must be in the very next answers. */
function startWriter(store: Awaited<ReturnType<typeof openStore>>, size: number, port: number) {
  const rowsOf = createRowWriter(createWorld(size));
  let isStopping = false;
  let written = 0;
  let found = 0;
  const look = async (path: string, id: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
    if (!(await answer.text()).includes(id))
      throw new Error(`${path} is stale: ${id} was acknowledged before`);
    found++;
  };
  const work = async () => {
    for (let batch = 0; !isStopping; batch++) {
      const messages = Array.from({ length: BATCH }, (_, index) => {
        const message = JSON.parse(rowsOf(size + batch * BATCH + index).record) as Message;
        return {
          ...message,
          receiptTransactionHash: null,
          receiptTimestamp: null,
          deliveryTime: null,
          status: 'SENT',
          readyForManualExecution: false,
        } as Message;
      });
      await store.apply(messages.map((message) => ({ kind: 'Snapshot', message })));
      written += BATCH;
      const newest = messages.at(-1);
      if (newest) {
        await look('/v2/messages', newest.messageId);
        await look(`/v2/messages?sender=${newest.sender}`, newest.messageId);
        await look(`/v2/messages/${newest.messageId}`, newest.messageId);
      }
      await delay(20);
    }
  };
  const working = work();
  // Awaited when it is stopped; until then a failure must not end the process.
  working.catch(() => undefined);
  return {
    written: () => written,
    found: () => found,
    async stop() {
      isStopping = true;
      await working;
    },
  };
}
