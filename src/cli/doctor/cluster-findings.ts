/** Checks of `lanescan doctor` for a store on a cluster: workers, balance of their shards, settings. */
import type { ClusterStatus, WorkerStatus } from '../../store/cluster/cluster-status.ts';
import { counted, printable } from '../../text/format.ts';
import type { Finding } from './finding.ts';

/** A worker with so many times the shards of another one gets that much more of the work. */
const MAX_IMBALANCE = 2;

/** No findings for a store on one node. */
export function* clusterFindings(figures: ClusterStatus | undefined): Generator<Finding> {
  if (!figures) return;
  const { citusVersion, workers, isPublished, messageLocale } = figures;
  const shards = workers.reduce((sum, worker) => sum + worker.shards, 0);
  yield {
    severity: 'ok',
    what: `Cluster: Citus ${printable(citusVersion)}, ${counted(workers.length, 'worker')}, ${counted(shards, 'shard')} of each table`,
  };
  yield* localeFindings('The coordinator', messageLocale);
  for (const worker of workers) {
    yield workerFinding(worker);
    yield* localeFindings(`Worker ${printable(worker.address)}`, worker.messageLocale);
  }
  const numbers = workers.map((worker) => worker.shards);
  if (Math.max(...numbers) > MAX_IMBALANCE * Math.min(...numbers)) {
    yield {
      severity: 'warning',
      what: `Cluster: the shards are not balanced, from ${Math.min(...numbers)} to ${Math.max(...numbers)} on a worker`,
      remedy: `Move them while Lanescan runs: select citus_rebalance_start(shard_transfer_mode => 'force_logical')`,
    };
  }
  const hasAllWorkers = workers.every(({ isAway }) => !isAway);
  if (!isPublished && hasAllWorkers) {
    yield {
      severity: 'warning',
      what: 'Cluster: the latest changes are stored and not published yet',
      remedy:
        'If this stays, start a writer (an indexer or an import) and look at its log: it publishes first.',
    };
  }
}

/** Some errors of a worker reach a client without their code, so that only the words tell that it is away. */
function* localeFindings(node: string, locale: string | null): Generator<Finding> {
  if (locale === null || /^($|C\b|POSIX$|en)/.test(locale)) return;
  yield {
    severity: 'warning',
    what: `${node}: its messages are not in English (lc_messages = ${printable(locale)}), so writers may end instead of waiting for a worker that is away`,
    remedy: `Set lc_messages = 'C' in postgresql.conf of that node, and reload it.`,
  };
}

function workerFinding({ address, isAway, shards, bytes, prepared, wrongSettings }: WorkerStatus): Finding {
  const name = `Worker ${printable(address)}`;
  if (isAway) {
    return {
      severity: 'error',
      what: `${name}: does not answer; searches fail, and nothing is written until it is back`,
      remedy: 'Start it. Nothing else has to be restarted.',
    };
  }
  if (wrongSettings.length > 0) {
    return {
      severity: 'warning',
      what: `${name}: the database there lacks settings: ${wrongSettings.join(', ')}`,
      remedy: 'Run `lanescan migrate --distribute` again; it sets them, also while Lanescan runs.',
    };
  }
  const gigabytes = ((bytes ?? 0) / 1e9).toFixed(1);
  const pending = prepared ? `, ${counted(prepared, 'prepared transaction')}` : '';
  return { severity: 'ok', what: `${name}: ${counted(shards, 'shard')}, ${gigabytes} GB${pending}` };
}
