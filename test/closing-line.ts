/**
 * Closes a run with one plain line. Names every test that was skipped: no skip passes unseen. The slow tests that
 * `npm test` leaves out are not skipped tests, for `npm run test:all` runs them; a line says how many there are.
 */
import type { Reporter, TestModule } from 'vitest/node';

export class ClosingLineReporter implements Reporter {
  readonly #isQuick: boolean;
  readonly #slowFiles: number;

  /** Takes the tier of the run, and how many files are left out as a whole. */
  constructor({ isQuick, slowFiles }: { isQuick: boolean; slowFiles: number }) {
    this.#isQuick = isQuick;
    this.#slowFiles = slowFiles;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0;
    let failed = unhandledErrors.length;
    let slow = 0;
    const skipped: string[] = [];
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      for (const test of tests) {
        const { state } = test.result();
        if (state === 'passed') passed++;
        else if (state === 'failed') failed++;
        else if (this.#isQuick && test.tags.includes('slow')) slow++;
        else skipped.push(`${module.relativeModuleId}: ${test.fullName}`);
      }
      // A file that does not load, or whose preparations fail, has no failed test and has failed all the same.
      if (module.state() === 'failed' && !tests.some((test) => test.result().state === 'failed')) failed++;
    }
    for (const name of skipped) process.stdout.write(`SKIPPED ${name}\n`);
    if (this.#isQuick) {
      process.stdout.write(
        `\nThis was the quick tier: ${this.#slowFiles} slow files and ${slow} slow tests of other files are left to npm run test:all.\n`,
      );
    }
    process.stdout.write(`\n${passed} passed, ${failed} failed, ${skipped.length} skipped\n`);
  }
}
