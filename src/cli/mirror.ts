import type { Command } from 'commander';
import { parseTime } from '../base/iso-time.ts';
import type { Notice } from '../base/notice.ts';
import { filterNames, parseFilters } from '../domain/search-parameters.ts';
import { followSource, type MirrorCounts, type RejectedRecord } from '../ingest/mirror/mirror.ts';
import { createSource } from '../ingest/mirror/source.ts';
import type { ConfigFlags } from './config.ts';
import {
  type CliContext,
  configOf,
  schemaFor,
  withLogOption,
  withStore,
  withStoreOptions,
} from './context.ts';
import { addFilterOptions, asUsage, type ParameterFlags, rawParameters } from './filter-flags.ts';
import { besideBar, createProgress } from './progress.ts';
import { clipped, counted, printable } from './terminal-text.ts';
import { noticeTo, openLog } from './verb-log.ts';
import { lanescanVersion } from './version.ts';

const REJECTED_STATUS = 3;
const INTERRUPTED_STATUS = 130;
const DEFAULT_RATE = 5;
const MAX_RATE = 1_000;
/** Seconds. */
const DEFAULT_POLL = 10;
const MAX_POLL = 86_400;
/** Enough to see what is wrong with a source; the rest is counted. */
const SHOWN_REJECTS = 20;

type MirrorFlags = ConfigFlags &
  ParameterFlags & {
    readonly once?: boolean;
    readonly since?: string;
    readonly rate?: string;
    readonly poll?: string;
  };

export function addMirror(program: Command, context: CliContext): void {
  const command = program
    .command('mirror')
    .argument('<url>', 'a server that speaks this API: the part of its address in front of /v2')
    .description('follow another server: bring what it has, keep up with what is new and what moves')
    .option('--once', 'bring everything up to date, then end')
    .option('--since <time>', 'how far back (ISO 8601 with a time zone; default: to the beginning)')
    .option('--rate <number>', `requests a second, at most (default: ${DEFAULT_RATE})`)
    .option('--poll <seconds>', `how often to look for what is new (default: ${DEFAULT_POLL})`);
  addFilterOptions(command);
  withLogOption(withStoreOptions(command))
    .addHelpText(
      'after',
      `
Stopped or killed at any moment, it goes on where it was. Records go through the same checks as an import; bad ones
are told and counted and stop nothing. Credentials go into the URL, and appear nowhere else.

Exit status: 0 up to date or stopped, 3 some records were rejected, 1 it failed, 130 interrupted with --once.

Examples:
  $ lanescan mirror https://lanescan.example.org
  $ lanescan mirror https://lanescan.example.org --since 2026-01-01T00:00:00Z --once
  $ lanescan mirror http://127.0.0.1:8080 --source ethereum-testnet-sepolia --rate 50`,
    )
    .action(async (url: string, flags: MirrorFlags) => {
      const filters = rawParameters(flags, filterNames, command);
      asUsage(() => parseFilters(filters), command);
      const since = sinceOf(flags, command);
      const rate = { fallback: DEFAULT_RATE, max: MAX_RATE, unit: 'requests a second' };
      const requestsPerSecond = numberOf(flags.rate, '--rate', rate, command);
      const poll = { fallback: DEFAULT_POLL, max: MAX_POLL, unit: 'seconds' };
      const roundEvery = numberOf(flags.poll, '--poll', poll, command) * 1000;
      const config = configOf(flags, context);
      const log = await openLog(config, context, { stream: besideBar(context.err) });
      const notice = noticeTo(log, 'mirror');
      const source = createSource({
        url,
        requestsPerSecond,
        userAgent: `lanescan/${lanescanVersion}`,
        signal: context.signal,
        notice,
      });
      const access = { access: 'write', schema: schemaFor(config), notice: noticeTo(log, 'store') } as const;
      await withStore(config, context, access, async (store) => {
        const shown = createReporter(source.name, context, notice);
        try {
          const counts = await followSource({
            source,
            store,
            filters,
            ...(since !== undefined && { since }),
            once: flags.once === true,
            signal: context.signal,
            progress: shown.progress,
            reject: shown.reject,
            notice,
            pace: { roundEvery },
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

function sinceOf({ since }: MirrorFlags, command: Command): number | undefined {
  if (since === undefined) return undefined;
  const time = parseTime(since);
  if (!Number.isNaN(time)) return time;
  return command.error(
    'lanescan: --since takes an ISO 8601 time with a time zone, such as 2026-01-31T12:00:00Z',
  );
}

function numberOf(
  text: string | undefined,
  flag: string,
  { fallback, max, unit }: { readonly fallback: number; readonly max: number; readonly unit: string },
  command: Command,
): number {
  if (text === undefined) return fallback;
  const number = /^\d{1,6}(\.\d{1,3})?$/.test(text) ? Number(text) : 0;
  if (number > 0 && number <= max) return number;
  return command.error(`lanescan: ${flag} takes ${unit}, more than 0 and at most ${max}`);
}

function createReporter(name: string, { err }: CliContext, notice: Notice) {
  const bar = createProgress(err, `Mirroring ${name}`, null, { writeLine: notice });
  let rejected = 0;
  let bytes = 0;
  let said = '';
  return {
    progress(counts: Readonly<MirrorCounts>) {
      // Rounds that find nothing new are not worth a line.
      const words = describe(counts);
      const advance = counts.bytes - bytes;
      bytes = counts.bytes;
      if (words === said) return;
      said = words;
      bar.note(words);
      bar.advance(advance);
    },
    reject({ messageId, problems }: RejectedRecord) {
      if (++rejected > SHOWN_REJECTS) return;
      const reasons = problems.slice(0, 3).map(({ path, problem }) => `${path} ${problem}`);
      const level = 'warn';
      notice(`rejected ${messageId ?? 'a record'}: ${clipped(printable(reasons.join('; ')), 300)}`, {
        level,
      });
      if (rejected === SHOWN_REJECTS) notice('further rejected records are only counted', { level });
    },
    end: () => bar.end(),
  };
}

function describe({
  created,
  updated,
  rejected,
  missed,
  reached,
  isBackfilled,
}: Readonly<MirrorCounts>): string {
  const parts = [`${created.toLocaleString('en')} new`, `${updated.toLocaleString('en')} updated`];
  if (rejected > 0) parts.push(`${rejected.toLocaleString('en')} rejected`);
  if (missed > 0) parts.push(`${counted(missed, 'answer')} missing`);
  if (!isBackfilled && reached !== null)
    parts.push(`back to ${new Date(reached).toISOString().slice(0, 19)}Z`);
  return parts.join(', ');
}
