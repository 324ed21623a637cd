import { OperatorError } from '../../base/operator-error.ts';
import { blockNoun } from '../../domain/chain-families.ts';
import type { NetworkStatus } from '../../ingest/engine/indexer.ts';
import { connectNetwork } from '../../ingest/families.ts';
import { counted, printable } from '../../text/format.ts';
import type { Command } from '../command.ts';
import type { Config, ConfigFlags } from '../config/config.ts';
import { sourcesToIndex } from '../config/destinations.ts';
import { type CliContext, configOf, withLogOption, withStoreOptions, withWriter } from '../context.ts';
import { knownLosses } from '../doctor/source-findings.ts';
import { logWriter, openLog } from '../output/command-log.ts';
import { createIndexProgress } from '../output/index-progress.ts';
import { lanescanVersion } from '../version.ts';

const INTERRUPTED_STATUS = 130;
const UNREAD_STATUS = 3;

export function addIndex(program: Command, context: CliContext): void {
  withLogOption(withStoreOptions(program.command('index')))
    .option('--once', 'read everything up to the heads of the chains, then exit')
    .option('--network <name...>', 'only these of the configured networks')
    .description('index the configured networks from their chains, and keep them up to date')
    .notes(`
The networks are those of lanescan.yaml (see lanescan.example.yaml); \`lanescan doctor\` tests their endpoints. Stopped
or killed at any moment, it resumes where it was. Several may run: a lease gives each network to one of them at a time.

With --once, a network whose endpoints fail 12 times in a row (two to three minutes) is given up until the next run.

Exit status: 0 up to date or stopped, 3 some ranges could not be read yet, a network was given up, or the history that was
read contradicts what the contracts count, 1 failure, 130 interrupted with --once.

Examples:
  $ lanescan index                                        follow all networks
  $ lanescan index --once                                 catch up, then exit
  $ lanescan index --network ethereum-mainnet-base-1      one network
  $ lanescan serve --index                                the same beside the API, in one process`)
    .action(async (flags: ConfigFlags & { once?: boolean; network?: readonly string[] }) => {
      const config = configOf(flags, context);
      const sources = chosenSources(config, context, flags.network);
      // Loaded on demand: no other command needs it.
      const { startIndexer } = await import('../../ingest/engine/indexer.ts');
      const progress = createIndexProgress(context.err, context.now);
      const log = await openLog(config, context, { stream: progress.logStream });
      await withWriter(config, context, 'real', logWriter(log, 'store'), async (store) => {
        const writeLog = logWriter(log, 'index');
        const indexer = startIndexer({
          sources,
          connect: connectNetwork,
          store,
          signal: context.signal,
          userAgent: `lanescan/${lanescanVersion}`,
          writeLog,
          once: flags.once === true,
        });
        progress.follow(indexer.statuses, writeLog);
        try {
          await indexer.ended;
        } finally {
          progress.end();
        }
        const statuses = indexer.statuses();
        context.out.write(`${describe(statuses)}\n`);
        const failed = statuses.reduce((sum, { worker }) => sum + (worker?.failedRanges ?? 0), 0);
        const selectors = sources.map(({ network }) => network.selector);
        const losses = [...(flags.once ? givenUp(statuses) : []), ...(await knownLosses(store, selectors))];
        for (const loss of losses) context.out.write(`${loss}\n`);
        if (context.signal.aborted && flags.once) context.exitCode = INTERRUPTED_STATUS;
        else if (flags.once && failed + losses.length > 0) context.exitCode = UNREAD_STATUS;
      });
    });
}

function givenUp(statuses: readonly NetworkStatus[]): readonly string[] {
  return statuses.flatMap(({ network, worker }) => {
    if (worker?.stuckBecause == null) return [];
    const owed = counted(worker.owedBlocks, blockNoun(network.family));
    const left = worker.owedBlocks > 0 ? `; ${owed} of history to go` : '';
    const reason = printable(worker.stuckBecause);
    return [
      `${network.name}: given up after repeated failures: ${reason}${left}. Fix the cause (see \`lanescan doctor\`) and run it again.`,
    ];
  });
}

/** The networks to index, all or those with these names. Throws an OperatorError for an empty list. */
export function chosenSources(config: Config, { environment }: CliContext, names: readonly string[] = []) {
  const sources = config.read('networks', environment);
  if (sources.length === 0) {
    throw new OperatorError(
      'No networks are configured.',
      'Name them under `networks` in lanescan.yaml; lanescan.example.yaml shows how.',
    );
  }
  const chosen = names.map((name) => {
    const source = sources.find(({ network }) =>
      [network.name, network.chainId, network.selector].includes(name.toLowerCase()),
    );
    if (source) return source;
    throw new OperatorError(
      `${printable(name)} is not among the configured networks.`,
      `They are ${sources.map(({ network }) => network.name).join(', ')}.`,
    );
  });
  return sourcesToIndex(
    chosen.length === 0 ? sources : sources.filter((source) => chosen.includes(source)),
    config,
  );
}

function describe(statuses: readonly NetworkStatus[]): string {
  const sum = (key: 'created' | 'updated' | 'removed' | 'failedRanges') =>
    statuses.reduce((total, { worker }) => total + (worker?.[key] ?? 0), 0);
  const [removed, failed] = [sum('removed'), sum('failedRanges')];
  return [
    `${counted(statuses.length, 'network')}: ${counted(sum('created'), 'new message')}`,
    counted(sum('updated'), 'update'),
    ...(removed > 0 ? [`${counted(removed, 'message')} removed by reorgs`] : []),
    ...(failed > 0 ? [`${counted(failed, 'range')} of blocks could not be read yet`] : []),
  ].join(', ');
}
