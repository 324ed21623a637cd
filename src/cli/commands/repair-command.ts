import type { DerivedReport } from '../../store/derived/derived-rows.ts';
import type { Store } from '../../store/store.ts';
import type { Command } from '../command.ts';
import type { ConfigFlags } from '../config/config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from '../context.ts';
import { createProgress } from '../output/progress-bar.ts';

const INTERRUPTED_STATUS = 130;
const UNREPAIRED_STATUS = 1;

export function addRepair(program: Command, context: CliContext): void {
  withStoreOptions(program.command('repair'))
    .option('--dry-run', 'only compare, as `lanescan doctor --deep` does')
    .description('rebuild derived rows that disagree with the records')
    .notes(`
Compares every record with the rows derived from it (columns, tokens, totals, days, delivery times, runs of sequence
numbers, positions in the history), and rewrites wrong ones. It reads all messages; servers keep answering, and writers
wait briefly, at most for the time of counting all messages. It can be interrupted and repeated at any time.

Exit status: 0 everything agrees, 1 something cannot be repaired (or, with --dry-run, disagrees), 130 interrupted.

Examples:
  $ lanescan repair --dry-run
  $ lanescan repair`)
    .action(async ({ dryRun = false, ...flags }: ConfigFlags & { dryRun?: boolean }) => {
      const access = dryRun ? 'read' : 'write';
      await withStore(configOf(flags, context), context, { access, connections: 1 }, async (store) => {
        const report = await walkDerivedRows(store, dryRun ? 'compare' : 'repair', context);
        if (report === undefined) {
          context.err.write('Interrupted. What was repaired stays; run it again to continue.\n');
          context.exitCode = INTERRUPTED_STATUS;
          return;
        }
        context.out.write(summary(report, dryRun));
        if (report.disagreements.some(({ isRepairable }) => dryRun || !isRepairable))
          context.exitCode = UNREPAIRED_STATUS;
      });
    });
}

/** Compares or repairs all messages, with progress on standard error; undefined where it was interrupted. */
export async function walkDerivedRows(store: Store, work: 'compare' | 'repair', { err, signal }: CliContext) {
  const { count } = await store.countMessages();
  const title = work === 'compare' ? 'Comparing' : 'Repairing';
  const progress = createProgress(err, title, Math.max(count, 1), {
    describeAmount: (messages) => `${Math.round(messages).toLocaleString('en')} messages`,
  });
  try {
    return await store.derived[work]({ signal, advance: progress.advance, note: progress.note });
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    progress.end();
  }
}

function summary({ messages, disagreements }: DerivedReport, dryRun: boolean): string {
  const number = (value: number) => value.toLocaleString('en');
  const lines = disagreements.map(({ what, count, isRepairable }) => {
    const verdict = isRepairable ? (dryRun ? 'can be repaired' : 'repaired') : 'cannot be repaired';
    return `${verdict}: ${number(count)} ${what}\n`;
  });
  const compared = `Compared ${number(messages)} messages with their derived rows`;
  return lines.length === 0 ? `${compared}: everything agrees.\n` : `${compared}.\n${lines.join('')}`;
}
