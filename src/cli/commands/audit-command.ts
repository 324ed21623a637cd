import type { MissingNumbers } from '../../domain/missing-numbers.ts';
import type { LaneEnds } from '../../store/query/lanes.ts';
import { grouped, printable } from '../../text/format.ts';
import { laneWords } from '../../text/message-words.ts';
import type { Command } from '../command.ts';
import { type CliContext, configOf } from '../context.ts';
import { writeNote, writeObjects, writeOut } from '../output/output.ts';
import { createPaint, type Paint } from '../output/terminal-text.ts';
import { auditOnramps, type OnrampAudit } from './lane-audit.ts';
import { addLaneOptions, type LaneFlags, noLane, parseLaneFlags } from './lanes-command.ts';
import { withRecordOptions, withRecords } from './records.ts';

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
