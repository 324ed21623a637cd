import { defineConfig } from 'vitest/config';
import { ClosingLineReporter } from './test/closing-line.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/lab/node_modules/**'],
    globalSetup: ['test/database.ts'],
    reporters: ['default', new ClosingLineReporter()],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Two cores, one shared PostgreSQL: more workers only wait for each other.
    maxWorkers: 2,
  },
});
