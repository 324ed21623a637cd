import { appendFileSync } from 'node:fs';
import { parseTime } from '../../base/iso-time.ts';
import type { WriteLog } from '../../base/log.ts';
import { explained } from '../../base/operator-error.ts';
import { filterNames } from '../../domain/filters/filter-table.ts';
import { parseFilters } from '../../domain/filters/search-parameters.ts';
import type { MirrorCounts, RejectedRecord } from '../../ingest/mirror/intake.ts';
import { jsonText } from '../../ingest/mirror/intake.ts';
import { followSource } from '../../ingest/mirror/mirror.ts';
import { createSource } from '../../ingest/mirror/source.ts';
import { counted, printable } from '../../text/format.ts';
import type { Command } from '../command.ts';
import type { ConfigFlags } from '../config/config.ts';
import { type CliContext, configOf, withLogOption, withStoreOptions, withWriter } from '../context.ts';
import { logWriter, openLog } from '../output/command-log.ts';
import { besideBar, createProgress } from '../output/progress-bar.ts';
import { clipped } from '../output/terminal-text.ts';
import { lanescanVersion } from '../version.ts';
import { addFilterOptions, asUsage, type ParameterFlags, rawParameters } from './filter-flags.ts';

const REJECTED_STATUS = 3;
const INTERRUPTED_STATUS = 130;
/** Rejected records that are logged; further ones are only counted. */
const LOGGED_REJECTS = 20;

type MirrorFlags = ConfigFlags &
  ParameterFlags & {
    readonly once?: boolean;
    /** Milliseconds since 1970. */
    readonly since?: number;
    readonly rate: number;
    readonly poll: number;
    readonly rejects?: string;
  };

export function addMirror(program: Command, context: CliContext): void {
  const rejected = (problem: string): never => command.error(`lanescan: ${problem}`);
  const numberOf = (flag: string, max: number, unit: string) => (text: string) => {
    const number = /^\d{1,6}(\.\d{1,3})?$/.test(text) ? Number(text) : 0;
    return number > 0 && number <= max
      ? number
      : rejected(`${flag} takes ${unit}, more than 0 and at most ${max}`);
  };
  const command: Command = program
    .command('mirror')
    .argument('<url>', 'base URL of a server with this API: the part before /v2')
    .description('mirror another server: copy its messages, then follow new ones and status changes')
    .option('--once', 'catch up, then exit')
    .option(
      '--since <time>',
      'only messages sent since then (ISO 8601 with a time zone; default: all)',
      (text) => {
        const time = parseTime(text);
        return Number.isNaN(time)
          ? rejected('--since takes an ISO 8601 time with a time zone, such as 2026-01-31T12:00:00Z')
          : time;
      },
    )
    .option(
      '--rate <number>',
      'maximum number of requests a second',
      numberOf('--rate', 1_000, 'requests a second'),
      5,
    )
    .option(
      '--poll <seconds>',
      'interval of polling for new messages',
      numberOf('--poll', 86_400, 'seconds'),
      10,
    )
    .option('--rejects <file>', 'file for rejected records, with their reasons');
  addFilterOptions(command);
  withLogOption(withStoreOptions(command))
    .notes(`
Stopped or killed at any moment, it resumes where it was. Records pass the same checks as in an import; invalid ones are
logged, counted and fetched again later. Credentials go into the URL; they are never shown.

Exit status: 0 up to date or stopped, 3 some records were rejected, 1 failure, 130 interrupted with --once.

Examples:
  $ lanescan mirror https://lanescan.example.org
  $ lanescan mirror https://lanescan.example.org --since 2026-01-01T00:00:00Z --once
  $ lanescan mirror http://127.0.0.1:8080 --source ethereum-testnet-sepolia --rate 50`)
    .action(async (url: string, flags: MirrorFlags) => {
      const filters = rawParameters(flags, filterNames, command);
      asUsage(() => parseFilters(filters, {}), command);
      const { since } = flags;
      const config = configOf(flags, context);
      const log = await openLog(config, context, { stream: besideBar(context.err) });
      const writeLog = logWriter(log, 'mirror');
      const source = createSource({
        url,
        requestsPerSecond: flags.rate,
        userAgent: `lanescan/${lanescanVersion}`,
        signal: context.signal,
        writeLog,
      });
      await withWriter(config, context, 'any', logWriter(log, 'store'), async (store) => {
        const rejects = flags.rejects === undefined ? undefined : openRejects(flags.rejects);
        const shown = createReporter(source.name, context, writeLog);
        try {
          const counts = await followSource({
            source,
            store,
            filters,
            ...(since !== undefined && { since }),
            once: flags.once === true,
            signal: context.signal,
            progress: shown.progress,
            reject: (record) => {
              shown.reject(record);
              rejects?.(record);
            },
            writeLog,
            timing: { roundIntervalMs: flags.poll * 1_000 },
          });
          shown.end();
          context.out.write(`${source.name}: ${describe(counts)}\n`);
          if (context.signal.aborted && flags.once) context.exitCode = INTERRUPTED_STATUS;
          else if (counts.rejected > 0) context.exitCode = REJECTED_STATUS;
        } catch (error) {
          shown.end();
          throw error;
        }
      });
    });
}

/** Appends one line for each rejected record, at once: they are few, and a mirror may be killed at any moment. */
function openRejects(file: string): (record: RejectedRecord) => void {
  const write = (text: string): void =>
    explained(
      () => appendFileSync(file, text),
      (message) => `Cannot write rejected records to ${file}: ${message}.`,
      'Choose another file with --rejects.',
    );
  write('');
  return (record) => write(`${jsonText(record) ?? JSON.stringify({ ...record, record: null })}\n`);
}

function createReporter(name: string, { err }: CliContext, writeLog: WriteLog) {
  const bar = createProgress(err, `Mirroring ${name}`, null, { writeLine: writeLog });
  let rejected = 0;
  let bytes = 0;
  let logged = '';
  return {
    progress(counts: Readonly<MirrorCounts>) {
      // Rounds without news are not logged.
      const words = describe(counts);
      const advance = counts.bytes - bytes;
      bytes = counts.bytes;
      if (words === logged) return;
      logged = words;
      bar.note(words);
      bar.advance(advance);
    },
    reject({ messageId, problems }: RejectedRecord) {
      if (++rejected > LOGGED_REJECTS) return;
      const reasons = problems.slice(0, 3).map(({ path, problem }) => `${path} ${problem}`);
      const level = 'warn';
      writeLog(`rejected ${messageId ?? 'a record'}: ${clipped(printable(reasons.join('; ')), 300)}`, {
        level,
      });
      if (rejected === LOGGED_REJECTS) writeLog('further rejected records are only counted', { level });
    },
    end: () => bar.end(),
  };
}

function describe(counts: Readonly<MirrorCounts>): string {
  const { created, updated, rejected, missed, rechecked, reached, isBackfilled } = counts;
  const parts = [`${created.toLocaleString('en')} new`, `${updated.toLocaleString('en')} updated`];
  if (rejected > 0) parts.push(`${rejected.toLocaleString('en')} rejected`);
  if (missed > 0) parts.push(`${counted(missed, 'response')} missing`);
  if (!isBackfilled && reached !== null)
    parts.push(`back to ${new Date(reached).toISOString().slice(0, 19)}Z`);
  if (rechecked > 0) parts.push(`${rechecked.toLocaleString('en')} unfinished fetched again`);
  return parts.join(', ');
}
