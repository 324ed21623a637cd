/**
 * Closes a run with one plain line. Names every test that was skipped, or a file that was skipped as a whole: no skip passes
 * unseen. Tests of the other tier are not skipped tests; a line says how many there are.
 */
import type { Reporter, TestModule } from 'vitest/node';
import { type Tier, tierOf } from './tiers.ts';

export class ClosingLineReporter implements Reporter {
  readonly #tier: Tier | undefined;
  readonly #leftOutFiles: number;

  /** Takes the tier of the run, undefined for all of them, and how many files are left out as a whole. */
  constructor({ tier, leftOutFiles }: { tier: Tier | undefined; leftOutFiles: number }) {
    this.#tier = tier;
    this.#leftOutFiles = leftOutFiles;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0;
    let failed = unhandledErrors.length;
    let leftOut = 0;
    const isLeftOut = (tags: readonly string[]) => this.#tier !== undefined && tierOf(tags) !== this.#tier;
    let skipped = 0;
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      const skippedHere: string[] = [];
      for (const test of tests) {
        const { state } = test.result();
        if (state === 'passed') passed++;
        else if (state === 'failed') failed++;
        else if (isLeftOut(test.tags)) leftOut++;
        else skippedHere.push(test.fullName);
      }
      const isWhole = skippedHere.length > 1 && skippedHere.length === tests.length;
      const names = isWhole ? [`all ${tests.length} tests`] : skippedHere;
      for (const name of names) process.stdout.write(`SKIPPED ${module.relativeModuleId}: ${name}\n`);
      skipped += skippedHere.length;
      // A file that does not load, or whose preparations fail, has no failed test and has failed all the same.
      if (module.state() === 'failed' && !tests.some((test) => test.result().state === 'failed')) failed++;
    }
    if (this.#tier) {
      const others = `${this.#leftOutFiles} files and ${leftOut} tests of other files are of other tiers`;
      process.stdout.write(`\nThis was the ${this.#tier} tier: ${others}; npm run test:all runs all.\n`);
    }
    process.stdout.write(`\n${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  }
}
