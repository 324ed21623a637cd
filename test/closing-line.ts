/**
 * Closes a run with one plain line. Names every test that was skipped: no skip passes unseen. Tests of the other tier are
 * not skipped tests; a line says how many there are.
 */
import type { Reporter, TestModule } from 'vitest/node';
import type { Tier } from './tiers.ts';

const otherTiers: Readonly<Record<Exclude<Tier, 'all'>, string>> = {
  quick: 'slow tests, which npm run test:all runs too',
  slow: 'quick tests, which npm test runs',
};

export class ClosingLineReporter implements Reporter {
  readonly #tier: Tier;
  readonly #leftOutFiles: number;

  /** Takes the tier of the run, and how many files are left out as a whole. */
  constructor({ tier, leftOutFiles }: { tier: Tier; leftOutFiles: number }) {
    this.#tier = tier;
    this.#leftOutFiles = leftOutFiles;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0;
    let failed = unhandledErrors.length;
    let leftOut = 0;
    const isLeftOut = (isSlow: boolean) => this.#tier !== 'all' && isSlow !== (this.#tier === 'slow');
    const skipped: string[] = [];
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      for (const test of tests) {
        const { state } = test.result();
        if (state === 'passed') passed++;
        else if (state === 'failed') failed++;
        else if (isLeftOut(test.tags.includes('slow'))) leftOut++;
        else skipped.push(`${module.relativeModuleId}: ${test.fullName}`);
      }
      // A file that does not load, or whose preparations fail, has no failed test and has failed all the same.
      if (module.state() === 'failed' && !tests.some((test) => test.result().state === 'failed')) failed++;
    }
    for (const name of skipped) process.stdout.write(`SKIPPED ${name}\n`);
    if (this.#tier !== 'all') {
      const others = `${this.#leftOutFiles} files and ${leftOut} tests of other files have ${otherTiers[this.#tier]}.`;
      process.stdout.write(`\nThis was the ${this.#tier} tier: ${others}\n`);
    }
    process.stdout.write(`\n${passed} passed, ${failed} failed, ${skipped.length} skipped\n`);
  }
}
