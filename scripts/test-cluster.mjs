// Runs the suites of the store, of HTTP, of live push, of the indexer and of chaos on a Citus cluster. CITUS_URL is a database on its coordinator.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';

if (!process.env.CITUS_URL) {
  console.error('Set CITUS_URL to the URL of a database on the coordinator of a Citus cluster.');
  process.exit(2);
}

if (!process.env.CITUS_STOP_WORKER || !process.env.CITUS_START_WORKER) {
  console.error(
    'NOT TESTED: a worker that is away. Set CITUS_STOP_WORKER and CITUS_START_WORKER to shell commands that stop and start the worker of the port $WORKER_PORT.',
  );
}

/** What is about one server: its files, its replicas, its socket, the plans and triggers of local tables, an export's transaction. */
const excluded =
  /^test\/(store\/([a-z]+\/)?(connection-budget|connection-watch|crowded-message|driver-internals|embedded|embedded-upgrade|explain|migrate|replicas|sharding)|api\/server\/(availability|metrics|overload)|export\/connections|lanes\/completeness)\.test\.ts$/;

const suites = [
  'test/store',
  'test/lanes',
  'test/api',
  'test/webhooks',
  'test/ingest/mirror',
  'test/export',
  'test/ingest/import/import.test.ts',
  ...['attempts', 'consistency', 'failures', 'indexer', 'tokens'].map((name) => `test/chain/${name}.test.ts`),
  'test/chaos/chaos.test.ts',
];

/** By name: the projects of vitest.config.ts have exclusions of their own, and take none from the command line. */
function filesOf(suite) {
  if (suite.endsWith('.ts')) return [suite];
  return readdirSync(suite, { recursive: true })
    .map((file) => `${suite}/${file}`)
    .filter((file) => file.endsWith('.test.ts') && !excluded.test(file));
}

function run(...vitestArguments) {
  const options = [...vitestArguments, '--passWithNoTests', ...process.argv.slice(2)];
  return spawnSync('npx', ['vitest', 'run', ...options], { stdio: 'inherit' }).status ?? 1;
}

const statuses = [
  run(...suites.flatMap(filesOf)),
  // By themselves and one after the other: they crash and stop nodes, which all databases of the cluster share.
  run('test/cluster', '--no-file-parallelism'),
];
process.exit(Math.max(...statuses));
