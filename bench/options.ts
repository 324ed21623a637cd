/** What the command line of the benchmark asks for. */
import os from 'node:os';
import path from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { listOf, parseCount, partOf } from './arguments.ts';
import { readWorkloads, type Workload } from './requests.ts';
import type { RunSettings } from './rig.ts';

export const parts = [
  'searches',
  'pages',
  'connections',
  'combinations',
  'peers',
  'growth',
  'import',
  'endurance',
] as const;
export type Part = (typeof parts)[number];

/** In a smaller one some kinds of messages would not be there. */
const SMALLEST_WORLD = 2_000;

export interface BenchOptions {
  readonly isQuick: boolean;
  readonly parts: readonly Part[];
  /** Workloads that were chosen. */
  readonly searches: readonly Workload[];
  readonly pages: readonly Workload[];
  /** Where databases are, and stay; undefined: nowhere. */
  readonly dataFolder: string | undefined;
  readonly resultsFolder: string;
  readonly profileFolder: string | undefined;
  readonly settings: Omit<RunSettings, 'dataFolder'>;
}

/** Exits after wrong usage and after `--help`. */
export function readOptions(args: readonly string[]): BenchOptions {
  const command = new Command('npm run bench --')
    .description('How fast is Lanescan, beside what the machine allows and beside what others would build?')
    .option('--quick', '100,000 messages, workloads with goals, a few seconds each')
    .option('--size <sizes>', 'numbers of messages (default: 100k,1m,10m)', listOf(parseSize))
    .option('--only <parts>', parts.join(', '), listOf(partOf(parts)))
    .option('--workload <pattern>', 'only workloads whose name matches', parsePattern)
    .option('--data <folder>', 'keep the databases there for the next run')
    .option('--results <folder>', 'where the results go (default: bench/results)')
    .option('--seconds <number>', 'of one turn (default: 5)', parsePositive)
    .option('--rounds <number>', 'turns of each (default: 5)', parseCount)
    .option('--connections <number>', 'that ask at the same time', parseCount, 32)
    .option('--processes <number>', 'that answer', parseCount, os.availableParallelism())
    .option('--cpu-profile <folder>', "write the server's profiles there, for bench:picture")
    .helpOption('--help', 'show this')
    .showHelpAfterError('Try: npm run bench -- --help')
    .addHelpText(
      'after',
      `
Examples:
  npm run bench -- --quick
  npm run bench -- --data /var/tmp/bench
  npm run bench -- --data /var/tmp/bench --size 1m --only searches --workload 'lane|sender'`,
    )
    .parse(args, { from: 'user' });
  const given = command.opts<{
    quick?: true;
    size?: number[];
    only?: Part[];
    workload?: RegExp;
    data?: string;
    results?: string;
    seconds?: number;
    rounds?: number;
    connections: number;
    processes: number;
    cpuProfile?: string;
  }>();
  const isQuick = given.quick ?? false;
  const { workload: pattern = /(?:)/ } = given;
  const sizes = given.size ?? (isQuick ? [100_000] : [100_000, 1_000_000, 10_000_000]);
  const canGrow = sizes.length > 1;
  if (!canGrow && given.only?.includes('growth'))
    command.error('error: growth needs two sizes or more, for example --size 100k,1m');
  const wanted = given.only ?? parts.filter((part) => part !== 'growth' || canGrow);
  const chosen = (list: 'searches' | 'pages', ...forParts: Part[]) => {
    if (!forParts.some((part) => wanted.includes(part))) return [];
    const hasGoals = ({ goals = [] }: Workload) => goals.length > 0;
    const all = readWorkloads<Workload[]>(list).filter(({ name }) => pattern.test(name));
    return isQuick && !given.workload ? all.filter(hasGoals) : all;
  };
  const searches = chosen('searches', 'searches', 'growth');
  const pages = chosen('pages', 'pages');
  if (given.workload && searches.length + pages.length === 0)
    command.error(`error: --workload ${given.workload.source} matches none of ${wanted.join(', ')}`);
  return {
    isQuick,
    parts: wanted,
    searches,
    pages,
    dataFolder: given.data,
    resultsFolder: given.results ?? path.join(import.meta.dirname, 'results'),
    profileFolder: given.cpuProfile,
    settings: {
      sizes,
      seconds: given.seconds ?? (isQuick ? 0.6 : 5),
      rounds: given.rounds ?? (isQuick ? 2 : 5),
      connections: given.connections,
      processes: given.processes,
      warmUp: isQuick ? 3_000 : 30_000,
    },
  };
}

function parseSize(text: string): number {
  const [, number, unit] = /^([1-9]\d{0,5})(k|m)?$/i.exec(text) ?? [];
  const size = Number(number) * (unit === undefined ? 1 : unit.toLowerCase() === 'k' ? 1_000 : 1_000_000);
  if (!(size >= SMALLEST_WORLD))
    throw new InvalidArgumentError('Sizes are like 100k, 1m or 10m, from 2k on.');
  return size;
}

function parsePattern(text: string): RegExp {
  try {
    return new RegExp(text);
  } catch {
    throw new InvalidArgumentError('It is no regular expression.');
  }
}

function parsePositive(text: string): number {
  const number = Number(text);
  if (!(number > 0 && number <= 3_600)) throw new InvalidArgumentError('It takes a number up to 3600.');
  return number;
}
