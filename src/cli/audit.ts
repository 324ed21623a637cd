import type { Command } from 'commander';
import { dayOf } from '../api/lanes.ts';
import type { Completeness, LaneEnds, LaneStatistics, OnrampStatistics } from '../store/lanes.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from './context.ts';
import {
  addLaneOptions,
  type LaneFlags,
  laneName,
  noLane,
  parseLaneFlags,
  writeObjects,
  writeRemark,
} from './lanes.ts';
import { simulatedNotice } from './message-words.ts';
import { writeOut } from './output.ts';
import { stoppedRemarks } from './source-findings.ts';
import { createPaint, type Paint, printable } from './terminal-text.ts';

const HOLES_STATUS = 1;
const NOTHING_TO_CHECK_STATUS = 3;
/** For people; `--json` names more. */
const SHOWN_RANGES = 20;
const NAMED_RANGES = 10_000;

export function addAudit(program: Command, context: CliContext): void {
  const command = addLaneOptions(
    program.command('audit').description('prove by sequence numbers that no message is missing'),
  ).option(
    '--json',
    `one on-ramp a line, with up to ${NAMED_RANGES.toLocaleString('en')} of its missing ranges`,
  );
  withStoreOptions(command)
    .addHelpText(
      'after',
      `
An on-ramp numbers its messages one after the other, so that a message nobody has told of leaves a hole. What
comes before the first number that is here, or after the last, is not judged.

Exit status: 0 nothing is missing, 1 there are holes (or the audit failed), 2 wrong usage, 3 there was nothing to
check: whether anything is missing is not known.

Examples:
  $ lanescan audit
  $ lanescan audit --source ethereum-testnet-sepolia --dest solana-devnet
  $ lanescan audit --json | jq -c 'select(.completeness.isComplete | not)'`,
    )
    .action(async (flags: LaneFlags) => {
      // First: it defines networks that flags may name.
      const config = configOf(flags, context);
      const ends = parseLaneFlags(flags, command);
      await withStore(config, context, { connections: 1 }, async (store) => {
        if (store.simulated) context.err.write(`${simulatedNotice}\n`);
        const now = new Date(context.now());
        const { lanes } = await store.lanes({
          ...ends,
          now,
          deliveredSince: dayOf(now),
          namedRanges: flags.json ? NAMED_RANGES : SHOWN_RANGES,
          limit: Number.MAX_SAFE_INTEGER,
        });
        if (flags.json) await writeObjects(lanes.flatMap(onrampObjects), context);
        else await showLanes(lanes, context);
        const { words, status } = verdict(lanes, ends);
        if (status !== 0) context.exitCode = status;
        await writeRemark(words, flags, context);
        const { sourceChainSelector, destChainSelector } = ends;
        for (const remark of await stoppedRemarks(store, [sourceChainSelector, destChainSelector]))
          await writeRemark(remark, flags, context);
      });
    });
}

function onrampObjects({ sourceNetworkInfo, destNetworkInfo, onramps }: LaneStatistics): object[] {
  return onramps.map((onramp) => ({ sourceNetworkInfo, destNetworkInfo, ...onramp }));
}

async function showLanes(lanes: readonly LaneStatistics[], { out, environment }: CliContext): Promise<void> {
  const paint = createPaint(out, environment);
  for (const lane of lanes) {
    const lines = lane.onramps.map((onramp) => `  ${onrampLine(onramp, paint)}\n`);
    await writeOut(out, `${paint(laneName(lane), 'bold')}\n${lines.join('')}`);
  }
}

function onrampLine({ onramp, version, completeness }: OnrampStatistics, paint: Paint): string {
  const { first, last, isComplete } = completeness;
  const name = `${printable(onramp)}${version === null ? '' : ` (${printable(version)})`}`;
  const finding = isComplete ? paint('none missing', 'green') : paint(holesOf(completeness), 'red');
  return `${name}  ${rangeWords(first, last)}: ${finding}`;
}

function holesOf({ missing, missingRangeCount, missingRanges }: Completeness): string {
  const ranges = missingRanges.map(({ from, to }) => rangeWords(from, to)).join(', ');
  const unnamed = missingRangeCount - missingRanges.length;
  const more = unnamed > 0 ? ` and ${plain(unnamed)} more ranges, which --json names` : '';
  return `${plain(missing)} missing: ${ranges}${more}`;
}

/** @example rangeWords('1', '18204') // '1…18,204' */
function rangeWords(from: string, to: string): string {
  return from === to ? plain(from) : `${plain(from)}…${plain(to)}`;
}

function plain(number: string | number): string {
  return BigInt(number).toLocaleString('en');
}

/** Where there is no on-ramp, nothing was checked: that is neither complete nor incomplete. */
function verdict(lanes: readonly LaneStatistics[], ends: LaneEnds): { words: string; status: number } {
  const onramps = lanes.flatMap((lane) => lane.onramps);
  if (onramps.length === 0) {
    const words = `Nothing to check: whether anything is missing is not known. ${noLane(ends)}`;
    return { words, status: NOTHING_TO_CHECK_STATUS };
  }
  const holed = onramps.filter(({ completeness }) => !completeness.isComplete);
  const missing = holed.reduce((sum, { completeness }) => sum + BigInt(completeness.missing), 0n);
  const words =
    holed.length === 0
      ? `Complete: nothing is missing on ${onramps.length === 1 ? 'this on-ramp' : `any of ${plain(onramps.length)} on-ramps`}.`
      : `NOT complete: ${plain(missing.toString())} missing on ${plain(holed.length)} of ${plain(onramps.length)} ` +
        `${onramps.length === 1 ? 'on-ramp' : 'on-ramps'}.`;
  return { words, status: holed.length > 0 ? HOLES_STATUS : 0 };
}
