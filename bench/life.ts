/**
 * What does a message take on disk after a life? An import writes each record once. An indexer at the head writes it four or
 * five times: sent, final, committed, blessed or verified, executed, some of them by hand hours later, some in blocks that are
 * abandoned and come again. That leaves facts, history and dead rows, which this measures.
 *
 *     npm run bench:life                                  # 100,000 messages of 400 simulated days
 *     npm run bench:life -- --messages 20000              # the same year with fewer messages
 *     npm run bench:life -- --protocol 1.6.0              # all of one version, instead of a mixture
 *     npm run bench:life -- --settled 10000000 --data /var/tmp/bench-life    # lives in a store that is large; it can be stopped
 *
 * The messages are those of the other benchmarks (`data/world.ts`), on thirteen lanes of CCIP 1.5, 1.6 and 2.0. Their facts
 * are recorded by the step that the indexer uses, a network at a time, a few messages in each. PostgreSQL is the embedded
 * one with its settings, autovacuum among them; nothing is vacuumed by hand while messages live.
 *
 * Ten million lives would take a day. `--settled` puts so many messages into the store before, which have had their lives: with
 * the records, tokens, facts, histories and statistics that the writer would have left, computed from the same facts and
 * copied in bulk, as a small store that is written both ways shows first (`life/settled.ts`). Both together are one world of
 * the other benchmarks; the lives are of its newest messages, and a month has as many of them as it would have of these
 * alone. Month 0 is the store before the first of them. Tables and indexes of settled messages are packed, as after `vacuum full`: what
 * updates leave in them is to be seen where all messages live. Ctrl-C stops it, and with `--data` it goes on.
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
  .option(
    '--settled <number>',
    'messages that are there before, written in bulk as they are after their lives',
    parseCount,
  )
  .addOption(new Option('--protocol <version>', 'the version of all messages').choices(protocolVersions))
  .option('--rate <number>', 'the most messages a second (default: as fast as it goes)', parseCount)
  .option('--data <folder>', 'keep the database and the progress there, to be resumed')
  .option('--no-write', 'do not write bench/results/life.json')
  .showHelpAfterError('Try: npm run bench:life -- --help')
  .parse()
  .opts<{
    messages: number;
    settled?: number;
    protocol?: ProtocolVersion;
    rate?: number;
    data?: string;
    write: boolean;
  }>();

const dataFolder = path.resolve(given.data ?? (await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-'))));
mkdirSync(dataFolder, { recursive: true });
let isStopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    isStopping = true;
  });

const embedded = await openEmbedded({ dataFolder });
const settled = given.settled ?? 0;
const settledBar = createBar('Settled', settled);
const livesBar = createBar('Lives', given.messages);
let hasHeads = false;
try {
  const result = await runLife(clusterOf(embedded), {
    messages: given.messages,
    settled,
    version: given.protocol,
    messagesPerSecond: given.rate,
    dataFolder,
    isStopping: () => isStopping,
    onSettled: settledBar.reach,
    onProgress(messages, measurement) {
      livesBar.reach(messages);
      if (!measurement) return;
      livesBar.end();
      if (!hasHeads) printMonthHeads();
      hasHeads = true;
      printMonth(measurement);
    },
  });
  livesBar.end();
  if (result) {
    printLife(result);
    if (given.write) {
      const { measurements, verdict } = result;
      const last = measurements.at(-1);
      const billion = last && billionMessages(last.disk.bytesPerMessage);
      writeResults('life', {
        date: measuredOn(),
        machine: machineFacts(),
        ...{ messages: given.messages, settled, version: given.protocol, verdict, billion, measurements },
      });
    }
  } else if (given.data !== undefined) {
    console.error(`Stopped. The same command goes on in ${dataFolder}.`);
  }
} finally {
  await embedded.leave();
  if (given.data === undefined) await rm(dataFolder, { recursive: true, force: true });
}

/** A bar that begins where the run goes on, so that its speed is that of this process. */
function createBar(title: string, total: number) {
  let bar: ReturnType<typeof createProgress> | undefined;
  let shown = 0;
  return {
    reach(messages: number): void {
      bar?.advance(messages - shown);
      bar ??= createProgress(process.stderr, title, total - messages, {
        describeAmount: (amount) => `${Math.round(amount).toLocaleString('en')} messages`,
      });
      shown = messages;
    },
    end: () => bar?.end(),
  };
}
