/** Checks of `lanescan doctor` for a store on a cluster: workers, balance of their shards, settings. */
import type { ClusterFigures, WorkerFigures } from '../store/cluster/cluster-figures.ts';
import type { Finding } from './doctor.ts';
import { counted, printable } from './terminal-text.ts';

/** A worker with so many times the shards of another one gets that much more of the work. */
const MAX_IMBALANCE = 2;

/** No findings for a store on one node. */
export function* clusterFindings(figures: ClusterFigures | undefined): Generator<Finding> {
  if (!figures) return;
  const { citusVersion, workers, isPublished } = figures;
  const shards = workers.reduce((sum, worker) => sum + worker.shards, 0);
  yield {
    severity: 'ok',
    what: `Cluster: Citus ${printable(citusVersion)}, ${counted(workers.length, 'worker')}, ${counted(shards, 'shard')} of each table`,
  };
  for (const worker of workers) yield workerFinding(worker);
  const numbers = workers.map((worker) => worker.shards);
  if (Math.max(...numbers) > MAX_IMBALANCE * Math.min(...numbers)) {
    yield {
      severity: 'warning',
      what: `Cluster: the shards are not balanced, from ${Math.min(...numbers)} to ${Math.max(...numbers)} on a worker`,
      remedy: 'Move them while Lanescan runs: select rebalance_table_shards()',
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

function workerFinding({ address, isAway, shards, bytes, prepared, wrongSettings }: WorkerFigures): Finding {
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
      remedy: 'Run `lanescan migrate --distribute` again with all other processes stopped; it sets them.',
    };
  }
  const gigabytes = ((bytes ?? 0) / 1e9).toFixed(1);
  const pending = prepared ? `, ${counted(prepared, 'prepared transaction')}` : '';
  return { severity: 'ok', what: `${name}: ${counted(shards, 'shard')}, ${gigabytes} GB${pending}` };
}
