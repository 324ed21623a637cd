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
  withStoreOptions(command)
    .addHelpText(
      'after',
      `
An on-ramp numbers its messages consecutively, so a missing message leaves a gap in the sequence numbers. Numbers before
the first known one, or after the last, are not checked.

Exit status: 0 nothing is missing, 1 there are gaps (or the audit failed), 2 wrong usage, 3 there was nothing to check:
whether anything is missing is unknown.

Examples:
  $ lanescan audit
  $ lanescan audit --source ethereum-testnet-sepolia --dest solana-devnet
  $ lanescan audit --json | jq -c 'select(.completeness.isComplete | not)'`,
    )
    .action(async (flags: LaneFlags) => {
      const ends = parseLaneFlags(flags, command);
      await withStore(configOf(flags, context), context, { connections: 1 }, async (store) => {
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
        const { summary, status } = summarise(lanes, ends);
        if (status !== 0) context.exitCode = status;
        await writeRemark(summary, flags, context);
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
  const finding = isComplete ? paint('none missing', 'green') : paint(gapsOf(completeness), 'red');
  return `${name}  ${rangeText(first, last)}: ${finding}`;
}

function gapsOf({ missing, missingRangeCount, missingRanges }: Completeness): string {
  const ranges = missingRanges.map(({ from, to }) => rangeText(from, to)).join(', ');
  const unnamed = missingRangeCount - missingRanges.length;
  const more = unnamed > 0 ? ` and ${formatted(unnamed)} more ranges, which --json lists` : '';
  return `${formatted(missing)} missing: ${ranges}${more}`;
}

/** @example rangeText('1', '18204') // '1…18,204' */
function rangeText(from: string, to: string): string {
  return from === to ? formatted(from) : `${formatted(from)}…${formatted(to)}`;
}

function formatted(number: string | number): string {
  return BigInt(number).toLocaleString('en');
}

/** Without an on-ramp nothing was checked: that is neither complete nor incomplete. */
function summarise(lanes: readonly LaneStatistics[], ends: LaneEnds): { summary: string; status: number } {
  const onramps = lanes.flatMap((lane) => lane.onramps);
  if (onramps.length === 0) {
    const summary = `Nothing to check: whether anything is missing is unknown. ${noLane(ends)}`;
    return { summary, status: NOTHING_TO_CHECK_STATUS };
  }
  const incomplete = onramps.filter(({ completeness }) => !completeness.isComplete);
  const missing = incomplete.reduce((sum, { completeness }) => sum + BigInt(completeness.missing), 0n);
  const summary =
    incomplete.length === 0
      ? `Complete: nothing is missing on ${onramps.length === 1 ? 'this on-ramp' : `any of ${formatted(onramps.length)} on-ramps`}.`
      : `NOT complete: ${formatted(missing.toString())} missing on ${formatted(incomplete.length)} of ${formatted(onramps.length)} ` +
        `${onramps.length === 1 ? 'on-ramp' : 'on-ramps'}.`;
  return { summary, status: incomplete.length > 0 ? GAPS_STATUS : 0 };
}
