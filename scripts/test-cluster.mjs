// Runs the suites of the store, of HTTP and of live push on a Citus cluster. CITUS_URL is a database on its coordinator.
import { spawnSync } from 'node:child_process';

if (!process.env.CITUS_URL) {
  console.error('Set CITUS_URL to the URL of a database on the coordinator of a Citus cluster.');
  process.exit(2);
}

/** What is about one server: its files, its replicas, its socket, the plans and triggers of local tables. */
const excluded = [
  'test/store/{connection-budget,driver-internals,embedded,embedded-upgrade,explain,migrate,replicas,sharding}.test.ts',
  'test/http/{availability,overload}.test.ts',
];

const suites = [
  'test/cluster',
  'test/store',
  'test/http',
  'test/live',
  'test/webhooks',
  'test/mirror',
  'test/export',
];
const { status } = spawnSync(
  'npx',
  [
    'vitest',
    'run',
    ...suites,
    ...excluded.flatMap((pattern) => ['--exclude', pattern]),
    ...process.argv.slice(2),
  ],
  { stdio: 'inherit' },
);
process.exit(status ?? 1);
