import { DEFAULT_WINDOW_DAYS, MAX_WINDOW_DAYS } from '../../api/routes/lanes-route.ts';
import { selector, wholeNumber } from '../../domain/filters/parameter-values.ts';
import { parseParameters } from '../../domain/filters/search-parameters.ts';
import type { LaneEnds, LaneStatistics } from '../../store/query/lanes.ts';
import { age, counted, duration, grouped, printable } from '../../text/format.ts';
import { networkName } from '../../text/message-words.ts';
import type { Command } from '../command.ts';
import { type CliContext, configOf } from '../context.ts';
import { writeNote, writeObjects, writeOut } from '../output/output.ts';
import { type Column, columnWidths, tableText, tableWidth } from '../output/table.ts';
import { type Colour, clippedLane, createPaint } from '../output/terminal-text.ts';
import { addFilterOptions, asUsage, collecting, type ParameterFlags, rawParameters } from './filter-flags.ts';
import { type RecordFlags, withRecordOptions, withRecords } from './records.ts';

const NAMED_RANGES = 100;

const laneParameters = ['sourceChainSelector', 'destChainSelector'] as const;
export type LaneFlags = RecordFlags &
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
        const { lanes, total } = await records.lanes(ends, windowDays, NAMED_RANGES);
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

export function addLaneOptions(command: Command): Command {
  return addFilterOptions(command, laneParameters);
}

export function parseLaneFlags(flags: LaneFlags, command: Command): LaneEnds & { windowDays?: number } {
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

export function noLane({ sourceChainSelector, destChainSelector }: LaneEnds): string {
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
