/**
 * A process that imports until it is killed: `writer-process.ts DATABASE_URL FIRST_BATCH`. It writes the number of each batch to
 * standard output when the store has acknowledged it, and repeats a batch while the database is unavailable. The end of its
 * input ends it after the batch that it is writing.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { importRecords } from '../../src/ingest/import/import.ts';
import { isDatabaseUnavailable, openStore, type Store } from '../../src/store/store.ts';
import { linesOfBatch } from './batches.ts';

const RETRY_MS = 50;
/** Between batches, so that streams and webhooks can follow. */
const PAUSE_MS = 20;

const [, , database = '', first = '0'] = process.argv;
let isStopping = false;
process.stdin.on('end', () => {
  isStopping = true;
});
process.stdin.resume();

const store = await untilAvailable(() => openStore({ place: { url: database } }));
for (let batch = Number(first); !isStopping; batch++) {
  await untilAvailable(() => importBatch(store, batch));
  process.stdout.write(`${batch}\n`);
  await delay(PAUSE_MS);
}
await store.close();
process.exit();

async function importBatch(target: Store, batch: number): Promise<void> {
  const report = await importRecords({
    input: (async function* () {
      yield Buffer.from(linesOfBatch(batch));
    })(),
    store: target,
    reject: async ({ text }) => {
      throw new Error(`Rejected: ${text}`);
    },
  });
  if (report.interrupted) throw new Error('The import was interrupted');
}

/** Any other error ends the process with a stack trace. */
async function untilAvailable<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const cause = (error as Error).cause ?? error;
      if (!isDatabaseUnavailable(error) && !isDatabaseUnavailable(cause)) throw error;
      await delay(RETRY_MS);
    }
  }
}
