import { DEFAULT_WINDOW_DAYS, MAX_WINDOW_DAYS } from '../../api/routes/lanes-route.ts';
import { selector, wholeNumber } from '../../domain/filters/parameter-values.ts';
import { parseParameters } from '../../domain/filters/search-parameters.ts';
import type { NetworkInfo } from '../../domain/message.ts';
import { type MissingNumbers, missingNumbers } from '../../domain/missing-numbers.ts';
import { networkBySelector } from '../../domain/networks/networks.ts';
import type { CountedLane, LaneEnds, LaneStatistics, OnrampStatistics } from '../../store/query/lanes.ts';
import { addressColumn } from '../../store/write/message-row.ts';
import { age, counted, duration, grouped, printable } from '../../text/format.ts';
import { laneWords, networkName } from '../../text/message-words.ts';
import type { Command } from '../command.ts';
import { type CliContext, configOf } from '../context.ts';
import { writeNote, writeObjects, writeOut } from '../output/output.ts';
import { type Column, columnWidths, tableText, tableWidth } from '../output/table.ts';
import { type Colour, clippedLane, createPaint, type Paint } from '../output/terminal-text.ts';
import { addFilterOptions, asUsage, collecting, type ParameterFlags, rawParameters } from './filter-flags.ts';
import { type RecordFlags, withRecordOptions, withRecords } from './records.ts';

const LISTED_RANGES = 100;

const laneParameters = ['sourceChainSelector', 'destChainSelector'] as const;
type LaneFlags = RecordFlags &
  ParameterFlags<(typeof laneParameters)[number] | 'windowDays'> & { readonly json?: boolean };

export function addLanes(program: Command, context: CliContext): void {
  const command = addLaneOptions(
    program.command('lanes').description('volume and delivery times of lanes, overdue and missing messages'),
  )
    .addOption(
      collecting(
        '--window-days <days>',
        `days whose deliveries count, 1 to ${MAX_WINDOW_DAYS} (default: ${DEFAULT_WINDOW_DAYS})`,
      ),
    )
    .option('--json', 'one lane a line, as in /v2/lanes');
  withRecordOptions(command)
    .notes(`
The busiest lane comes first. P50 and P99 are percentiles of the delivery time; OVERDUE counts messages in flight for
longer than P99; MISSING counts missing sequence numbers (\`lanescan audit\` lists them). On a narrow terminal the table
leaves out columns.

Examples:
  $ lanescan lanes
  $ lanescan lanes --source sepolia --url https://lanescan.example
  $ lanescan lanes --dest solana-devnet --window-days 7 --json`)
    .action(async (flags: LaneFlags) => {
      // First: it defines networks that flags may name.
      const config = configOf(flags, context);
      const { windowDays = DEFAULT_WINDOW_DAYS, ...ends } = parseLaneFlags(flags, command);
      await withRecords(flags, config, context, async (records) => {
        const { lanes, total } = await records.lanes(ends, windowDays, LISTED_RANGES);
        if (flags.json) {
          const objects = lanes.map(({ delivery, ...lane }) => ({
            ...lane,
            delivery: { windowDays, ...delivery },
          }));
          await writeObjects(objects, context);
        } else if (lanes.length > 0) await writeOut(context.out, laneTable(lanes, context));
        await writeNote(
          lanes.length === 0
            ? noLane(ends)
            : `${counted(lanes.length, 'lane')}${total > lanes.length ? ` of ${total}, the busiest` : ''}`,
          flags.json === true,
          context,
        );
      });
    });
}

function addLaneOptions(command: Command): Command {
  return addFilterOptions(command, laneParameters);
}

function parseLaneFlags(flags: LaneFlags, command: Command): LaneEnds & { windowDays?: number } {
  const raw = rawParameters(flags, [...laneParameters, 'windowDays'] as const, command);
  return asUsage(
    () =>
      parseParameters(raw, {
        sourceChainSelector: selector,
        destChainSelector: selector,
        windowDays: wholeNumber(1, MAX_WINDOW_DAYS),
      }),
    command,
  );
}

export const NO_MESSAGES =
  'There are no messages yet. Load some with `lanescan import`, or try `lanescan demo`.';

function noLane({ sourceChainSelector, destChainSelector }: LaneEnds): string {
  return sourceChainSelector === undefined && destChainSelector === undefined
    ? NO_MESSAGES
    : 'No message of this lane is indexed.';
}

// --- The table ---------------------------------------------------------------------------------------

const MIN_WIDTH = 40;
const MIN_LANE = 15;

interface LaneColumn extends Column<LaneStatistics> {
  /** Columns with the highest number are left out first where there is no room; 0: never. */
  readonly leaveOut: number;
}

/** A count; where it is bad, it has this colour. */
const count = (
  title: string,
  leaveOut: number,
  of: (lane: LaneStatistics) => number | bigint | null,
  badColour?: Colour,
): LaneColumn => ({
  title,
  leaveOut,
  align: 'right',
  cell: (lane) => (of(lane) ? grouped(of(lane) ?? 0) : '–'),
  colours: (lane) => (badColour && of(lane) ? [badColour, 'bold'] : []),
});
const time = (value: number | null) => (value === null ? '–' : duration(value));
const missing = ({ onramps }: LaneStatistics) =>
  onramps.reduce((sum, { completeness }) => sum + BigInt(completeness.missing), 0n);

function columnsOf(now: number): readonly LaneColumn[] {
  return [
    {
      title: 'LANE',
      cell: ({ sourceNetworkInfo, destNetworkInfo }, width) =>
        clippedLane(networkName(sourceNetworkInfo), networkName(destNetworkInfo), width),
      leaveOut: 0,
    },
    { title: 'VERSION', cell: ({ version }) => printable(version ?? '–'), leaveOut: 8 },
    count('MESSAGES', 0, ({ messages }) => messages),
    count('IN FLIGHT', 4, ({ inFlight }) => inFlight),
    count('OVERDUE', 1, ({ overdue }) => overdue, 'yellow'),
    count('FAILED', 5, ({ byStatus }) => byStatus.FAILED, 'red'),
    count('MANUAL', 3, ({ readyForManualExecution }) => readyForManualExecution, 'yellow'),
    { title: 'P50', cell: ({ delivery }) => time(delivery.p50Ms), align: 'right', leaveOut: 6 },
    { title: 'P99', cell: ({ delivery }) => time(delivery.p99Ms), align: 'right', leaveOut: 7 },
    {
      title: 'LAST SENT',
      cell: ({ lastSentAt }) => age(now - Date.parse(lastSentAt)),
      colours: () => ['dim'],
      align: 'right',
      leaveOut: 2,
    },
    count('MISSING', 0, missing, 'red'),
  ];
}

/** As many columns as fit; then the lane's name is shortened. */
function laneTable(lanes: readonly LaneStatistics[], { out, environment, now }: CliContext): string {
  const width = out.isTTY ? Math.max(out.columns ?? 80, MIN_WIDTH) : Number.POSITIVE_INFINITY;
  let columns = columnsOf(now());
  let widths = columnWidths(columns, lanes);
  const laneWidth = widths[0] ?? 0;
  const spare = Math.max(0, laneWidth - MIN_LANE * 2);
  for (let priority = 8; priority > 0 && tableWidth(widths) - width > spare; priority--) {
    columns = columns.filter(({ leaveOut }) => leaveOut !== priority);
    widths = columnWidths(columns, lanes);
  }
  const room = Math.max(MIN_LANE, laneWidth - Math.max(0, tableWidth(widths) - width));
  return tableText(lanes, { columns, widths: widths.with(0, room), paint: createPaint(out, environment) });
}

const GAPS_STATUS = 1;
const NOTHING_TO_CHECK_STATUS = 3;
/** In the table; `--json` has more. */
const SHOWN_RANGES = 20;
const NAMED_RANGES = 10_000;

export function addAudit(program: Command, context: CliContext): void {
  const command = addLaneOptions(
    program.command('audit').description('check by sequence numbers that no message is missing'),
  ).option(
    '--json',
    `one on-ramp a line, with up to ${NAMED_RANGES.toLocaleString('en')} of its missing ranges`,
  );
  withRecordOptions(command)
    .notes(`
An on-ramp numbers its messages consecutively, so a missing message leaves a gap in the sequence numbers. Where the
network is indexed here, both ends of a lane are checked too, against the number that the on-ramp itself has reached, and so
are the commits on the destination. Elsewhere, numbers before the first known one, or after the last, are not checked. Where
indexing has a configured start, what was sent before it is unknown, not missing.

Exit status: 0 nothing is missing, 1 there are gaps (or the audit failed), 2 wrong usage, 3 there was nothing to check:
whether anything is missing is unknown.

Examples:
  $ lanescan audit
  $ lanescan audit --source sepolia --dest solana-devnet
  $ lanescan audit --url https://lanescan.example
  $ lanescan audit --json | jq -c 'select(.completeness.isComplete | not)'`)
    .action(async (flags: LaneFlags) => {
      // First: it defines networks that flags may name.
      const config = configOf(flags, context);
      const ends = parseLaneFlags(flags, command);
      await withRecords(flags, config, context, async (records) => {
        const namedRanges = flags.json ? NAMED_RANGES : SHOWN_RANGES;
        const { lanes, counted, losses, warnings } = await records.auditMaterial(ends, namedRanges);
        const audits = auditOnramps(lanes, counted);
        if (flags.json) await writeObjects(audits.map(auditObject), context);
        else await showAudits(audits, context);
        const { summary, status } = summarise(audits, losses.length, ends);
        if (status !== 0) context.exitCode = status;
        await writeNote(summary, flags.json === true, context);
        for (const warning of [...losses, ...warnings])
          await writeNote(warning, flags.json === true, context);
      });
    });
}

function auditObject(audit: OnrampAudit): object {
  const { statistics, missing, missingCommits, counted, countedCommits, isUnknownBefore } = audit;
  const found = (numbers: MissingNumbers | undefined) => ({
    missing: (numbers?.count ?? 0n).toString(),
    missingRanges: numbers?.ranges.slice(0, NAMED_RANGES) ?? [],
  });
  return {
    ...audit.networks,
    onramp: audit.onramp,
    version: statistics?.version ?? null,
    completeness: statistics?.completeness ?? null,
    sent: counted === null ? null : { counted, isUnknownBefore, ...found(missing) },
    committed: countedCommits === null ? null : { counted: countedCommits, ...found(missingCommits) },
  };
}

async function showAudits(audits: readonly OnrampAudit[], { out, environment }: CliContext): Promise<void> {
  const paint = createPaint(out, environment);
  let shown = '';
  for (const audit of audits) {
    const title = laneWords(audit.networks);
    const heading = title === shown ? '' : `${paint(title, 'bold')}\n`;
    shown = title;
    await writeOut(out, `${heading}  ${onrampLine(audit, paint)}\n`);
  }
}

function onrampLine(audit: OnrampAudit, paint: Paint): string {
  const { onramp, statistics, first, last, missing, missingCommits, counted, countedCommits } = audit;
  const version = statistics?.version ?? null;
  const name = `${printable(onramp)}${version === null ? '' : ` (${printable(version)})`}`;
  const finding = missing ? paint(gapsOf(missing, audit), 'red') : paint('none missing', 'green');
  const details = [
    ...(counted === null ? [] : [`the on-ramp counts ${grouped(counted)}`]),
    ...(audit.isUnknownBefore ? [`unknown before ${grouped(first)}, where indexing starts`] : []),
    ...(countedCommits === null || missingCommits ? [] : [`no commit missing of ${grouped(countedCommits)}`]),
  ];
  const commits = missingCommits ? paint(`; commits ${gapsOf(missingCommits, audit)}`, 'red') : '';
  return `${name}  ${rangeText(first, last)}: ${finding}${commits}${details.length === 0 ? '' : ` (${details.join(', ')})`}`;
}

function gapsOf({ count, ranges }: MissingNumbers, { statistics, counted }: OnrampAudit): string {
  const named = ranges
    .slice(0, SHOWN_RANGES)
    .map(({ from, to }) => rangeText(from, to))
    .join(', ');
  const all =
    counted === null ? (statistics?.completeness.missingRangeCount ?? ranges.length) : ranges.length;
  const unnamed = all - Math.min(ranges.length, SHOWN_RANGES);
  const more = unnamed > 0 ? ` and ${grouped(unnamed)} more ranges, which --json lists` : '';
  return `${grouped(count)} missing: ${named}${more}`;
}

/** @example rangeText('1', '18204') // '1…18,204' */
function rangeText(from: string, to: string): string {
  return from === to ? grouped(from) : `${grouped(from)}…${grouped(to)}`;
}

/** Where there is no on-ramp, nothing was checked: that is neither complete nor incomplete. */
function summarise(audits: readonly OnrampAudit[], losses: number, ends: LaneEnds) {
  if (audits.length === 0 && losses === 0) {
    const summary = `Nothing to check: whether anything is missing is unknown. ${noLane(ends)}`;
    return { summary, status: NOTHING_TO_CHECK_STATUS };
  }
  const incomplete = audits.filter(({ missing, missingCommits }) => missing ?? missingCommits);
  const missing = incomplete.reduce((sum, audit) => sum + (audit.missing?.count ?? 0n), 0n);
  const commits = incomplete.reduce((sum, audit) => sum + (audit.missingCommits?.count ?? 0n), 0n);
  if (incomplete.length === 0 && losses === 0) {
    const onramps = audits.length === 1 ? 'this on-ramp' : `any of ${grouped(audits.length)} on-ramps`;
    return { summary: `Complete: nothing is missing on ${onramps}.`, status: 0 };
  }
  if (incomplete.length === 0) {
    return { summary: 'NOT complete: the chain contradicts what was read.', status: GAPS_STATUS };
  }
  const summary =
    `NOT complete: ${grouped(missing)} missing on ${grouped(incomplete.length)} of ${grouped(audits.length)} ` +
    `${audits.length === 1 ? 'on-ramp' : 'on-ramps'}${commits > 0n ? `, and the commits of ${grouped(commits)} messages` : ''}.`;
  return { summary, status: GAPS_STATUS };
}

// ---- The judgement of one on-ramp: its numbers against what the chain counts, where the chain was asked

type AuditedEnds = Pick<LaneStatistics, 'sourceNetworkInfo' | 'destNetworkInfo'>;

interface OnrampAudit {
  readonly networks: AuditedEnds;
  readonly onramp: string;
  /** Null where the store has no message of it. */
  readonly statistics: OnrampStatistics | null;
  /** The numbers that were judged. */
  readonly first: string;
  readonly last: string;
  /** Missing messages; undefined where none is. */
  readonly missing: MissingNumbers | undefined;
  /** Missing commits on the destination; undefined where none is, or the destination was not asked. */
  readonly missingCommits: MissingNumbers | undefined;
  /** What the on-ramp itself has counted; null where it was not asked, and the ends of the lane are not judged. */
  readonly counted: string | null;
  /** What the destination has counted as committed; null where it was not asked. */
  readonly countedCommits: string | null;
  /** Whether what came before `first` is not known because indexing starts later. */
  readonly isUnknownBefore: boolean;
}

/** All on-ramps of these lanes, then those that only the chain's counters know of. */
function auditOnramps(lanes: readonly LaneStatistics[], counted: readonly CountedLane[]) {
  const judged = new Set<CountedLane>();
  const audits = lanes.flatMap(({ sourceNetworkInfo, destNetworkInfo, onramps }) =>
    onramps.map((statistics) => {
      const { onramp } = statistics;
      const bytes = addressColumn(onramp, sourceNetworkInfo.chainFamily);
      const counters = counted.filter(
        (counter) =>
          counter.sourceChainSelector === sourceNetworkInfo.chainSelector &&
          counter.destChainSelector === destNetworkInfo.chainSelector &&
          counter.onramp === bytes,
      );
      for (const counter of counters) judged.add(counter);
      return judge(counters, statistics, { networks: { sourceNetworkInfo, destNetworkInfo }, onramp });
    }),
  );
  const unseen = counted
    .filter((counter) => counter.kind === 'sent' && !judged.has(counter))
    .map((counter) => {
      const sourceNetworkInfo = infoOf(counter.sourceChainSelector);
      const destNetworkInfo = infoOf(counter.destChainSelector);
      const onramp = `0x${counter.onramp}`;
      return judge([counter], null, { networks: { sourceNetworkInfo, destNetworkInfo }, onramp });
    });
  return [...audits, ...unseen.filter(({ missing }) => missing !== undefined)];
}

function judge(
  counters: readonly CountedLane[],
  statistics: OnrampStatistics | null,
  names: Pick<OnrampAudit, 'networks' | 'onramp'>,
): OnrampAudit {
  const sent = counters.find(({ kind }) => kind === 'sent');
  const committed = counters.find(({ kind }) => kind === 'committed');
  const { first = '1', last = '0' } = statistics?.completeness ?? {};
  // Messages may have come since the on-ramp was asked.
  const end = sent && BigInt(sent.lastNumber) > BigInt(last) ? sent.lastNumber : last;
  const isWhole = sent?.isWhole === true;
  return {
    ...names,
    statistics,
    first: isWhole ? '1' : first,
    last: end,
    missing: sent ? missingNumbers(sent.present, { lastNumber: end, isWhole }) : holesOf(statistics),
    missingCommits: committed && missingNumbers(committed.present, committed),
    counted: sent?.lastNumber ?? null,
    countedCommits: committed?.lastNumber ?? null,
    isUnknownBefore: sent !== undefined && !isWhole && BigInt(first) > 1n,
  };
}

/** Between the first and the last number that is there: all that can be judged without the on-ramp's own word. */
function holesOf(statistics: OnrampStatistics | null): MissingNumbers | undefined {
  if (!statistics || statistics.completeness.isComplete) return undefined;
  const { missing, missingRanges, first, last } = statistics.completeness;
  return { count: BigInt(missing), ranges: missingRanges, lowest: BigInt(first), highest: BigInt(last) };
}

function infoOf(selector: string): NetworkInfo {
  const network = networkBySelector(selector);
  return {
    name: network?.name ?? selector,
    chainSelector: selector,
    chainId: network?.chainId ?? '',
    chainFamily: network?.family ?? 'EVM',
    displayName: network?.displayName ?? null,
  };
}
