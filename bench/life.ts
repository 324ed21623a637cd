/**
 * What does a message take on disk after a life? An import writes each record once. An indexer at the head writes it four or
 * five times: sent, final, committed, blessed or verified, executed, some of them by hand hours later, some in blocks that are
 * abandoned and come again. That leaves facts, history and dead rows, which this measures.
 *
 *     npm run bench:life                                  # 100,000 messages of 400 simulated days
 *     npm run bench:life -- --messages 20000              # the same year with fewer messages
 *     npm run bench:life -- --protocol 1.6.0              # all of one version, instead of a mixture
 *     npm run bench:life -- --messages 10000000 --data /var/tmp/bench-life    # a day or so; Ctrl-C stops it, and it goes on
 *
 * The messages are those of the other benchmarks (`data/world.ts`), on thirteen lanes of CCIP 1.5, 1.6 and 2.0. Their facts
 * are recorded by the step that the indexer uses, a network at a time, a few messages in each. PostgreSQL is the embedded
 * one with its settings, autovacuum among them; nothing is vacuumed by hand.
 *
 * The clock of the chains is simulated, that of PostgreSQL is not. Autovacuum looks at a database once a minute of real
 * time and works at a limited rate, so a run that writes 400 days within minutes gives it a few looks, between which more
 * rows die than on a real day. The figures of a short run are therefore too high rather than too low, above all for small
 * tables that every write updates (statistics). `--rate` makes the writer slower, and more messages take longer.
 *
 * In the end the number of messages, their statuses and a sample of records, attempts and histories are compared with what
 * was generated. A difference ends the run with an error, and nothing is written to the results.
 */
import { mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Command, Option } from 'commander';
import { createProgress } from '../src/cli/output/progress-bar.ts';
import { openEmbedded } from '../src/store/server/embedded.ts';
import { parseCount } from './arguments.ts';
import { clusterOf } from './data/database.ts';
import { type ProtocolVersion, protocolVersions } from './life/lives.ts';
import { billionMessages, printLife, printMonth, printMonthHeads } from './life/report.ts';
import { runLife } from './life/run.ts';
import { machineFacts, measuredOn, writeResults } from './results-file.ts';

const given = new Command('npm run bench:life --')
  .description('What does a message take on disk after a life from its send to its execution?')
  .option('--messages <number>', 'messages of the simulated time', parseCount, 100_000)
  .addOption(new Option('--protocol <version>', 'the version of all messages').choices(protocolVersions))
  .option('--rate <number>', 'the most messages a second (default: as fast as it goes)', parseCount)
  .option('--data <folder>', 'keep the database and the progress there, to be resumed')
  .option('--no-write', 'do not write bench/results/life.json')
  .showHelpAfterError('Try: npm run bench:life -- --help')
  .parse()
  .opts<{ messages: number; protocol?: ProtocolVersion; rate?: number; data?: string; write: boolean }>();

const dataFolder = path.resolve(given.data ?? (await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-'))));
mkdirSync(dataFolder, { recursive: true });
let isStopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    isStopping = true;
  });

const embedded = await openEmbedded({ dataFolder });
/** Begins where the run goes on, so that its speed is that of this process. */
let bar: ReturnType<typeof createProgress> | undefined;
let shown = 0;
try {
  printMonthHeads();
  const result = await runLife(clusterOf(embedded), {
    messages: given.messages,
    version: given.protocol,
    messagesPerSecond: given.rate,
    dataFolder,
    isStopping: () => isStopping,
    onProgress(messages, measurement) {
      bar?.advance(messages - shown);
      bar ??= createProgress(process.stderr, 'Lives', given.messages - messages, {
        describeAmount: (amount) => `${Math.round(amount).toLocaleString('en')} messages`,
      });
      shown = messages;
      if (!measurement) return;
      bar.end();
      printMonth(measurement);
    },
  });
  bar?.end();
  if (result) {
    printLife(result);
    if (given.write) {
      const { measurements, verdict } = result;
      const last = measurements.at(-1);
      const billion = last && billionMessages(last.disk.bytesPerMessage);
      writeResults('life', {
        date: measuredOn(),
        machine: machineFacts(),
        ...{ messages: given.messages, version: given.protocol, verdict, billion, measurements },
      });
    }
  } else if (given.data !== undefined) {
    console.error(`Stopped. The same command goes on in ${dataFolder}.`);
  }
} finally {
  await embedded.leave();
  if (given.data === undefined) await rm(dataFolder, { recursive: true, force: true });
}
