import os from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { ClosingLineReporter, SlowestTestsReporter } from './test/reporters.ts';
import { hasTestsOf, isTier, testFiles, tiers } from './test/tiers.ts';

/**
 * Tests that start chain nodes, browsers or many processes: one such file keeps about two cores busy. The quick tier has few of
 * them, and they run beside the others.
 */
const heavy = [
  'test/browser/**/*.test.ts',
  'test/chaos/**/*.test.ts',
  'test/ingest/svm/lab.test.ts',
  'test/chain/{command,differential,failures,indexer,lab,manual-execution,networks-api,rescue}.test.ts',
  'test/ingest/evm/{contract-counters,contracts}.test.ts',
  'test/sdk/{checkout,lab-messages}.test.ts',
  'test/security/explorer-injection.test.ts',
];

/**
 * The quick tier loads the modules once for a worker instead of once for a file, which saves a quarter of the CPU time; the tier
 * of all tests shows that each file runs alone, too. Apart are http/rate-limit, which counts requests by time and was seen to
 * fail in a process that had run other files, and tests of the tiers.
 */
const shared = ['test/*/**/!(rate-limit).test.ts'];

const cores = os.availableParallelism();
/** Tests wait for PostgreSQL and other processes about as long as they compute. */
const waitingWorkers = Math.ceil(1.5 * cores);

/** `--mode` chooses the tier (test/tiers.ts); without it, all tests run. */
export default defineConfig(({ mode }) => {
  const tier = isTier(mode) ? mode : undefined;
  // Vitest would load a file only to skip every test in it, which takes a second or two per file.
  const leftOut = tier ? testFiles().filter((file) => !hasTestsOf(file, tier)) : [];
  const exclude = [...configDefaults.exclude, ...leftOut];
  const general = {
    // Generous, for machines that are slow or busy: they end what hangs, and measure nothing.
    testTimeout: 600_000,
    setupFiles: ['test/after-each-file.ts'],
    hookTimeout: 600_000,
    // The default is a second.
    expect: { poll: { timeout: 300_000 } },
    ...(tier && { tagsFilter: [tiers[tier]] }),
  };
  return {
    test: {
      tags: [
        { name: 'slow', description: 'Left out by `npm test`, run by `npm run test:slow`.' },
        { name: 'release', description: 'Run by `npm run test:release` and `npm run test:all` only.' },
      ],
      globalSetup: ['test/database.ts'],
      reporters: [
        'default',
        new SlowestTestsReporter(),
        new ClosingLineReporter({ tier, leftOutFiles: leftOut.length }),
      ],
      projects:
        tier === 'quick'
          ? [
              {
                test: {
                  ...general,
                  name: 'shared',
                  include: shared,
                  exclude,
                  isolate: false,
                  maxWorkers: waitingWorkers,
                },
              },
              {
                test: {
                  ...general,
                  name: 'apart',
                  include: ['test/**/*.test.ts'],
                  exclude: [...exclude, ...shared],
                  maxWorkers: waitingWorkers,
                },
              },
            ]
          : [
              {
                test: {
                  ...general,
                  name: 'light',
                  include: ['test/**/*.test.ts'],
                  exclude: [...exclude, ...heavy],
                  maxWorkers: waitingWorkers,
                  sequence: { groupOrder: 0 },
                },
              },
              {
                test: {
                  ...general,
                  name: 'heavy',
                  include: heavy,
                  exclude,
                  maxWorkers: Math.max(1, Math.floor(cores / 2)),
                  sequence: { groupOrder: 1 },
                },
              },
            ],
    },
  };
});
