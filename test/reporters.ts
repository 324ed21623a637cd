/** What a run says at its end: where its time went, which tests were skipped, and how many passed. */
import type { Reporter, TestModule } from 'vitest/node';
import { type Tier, tierOf } from './tiers.ts';

/** Tests that are named as the slowest. */
const SHOWN = 20;

export class SlowestTestsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) =>
      [...module.children.allTests()].map((test) => ({
        milliseconds: test.diagnostic()?.duration ?? 0,
        name: `${module.relativeModuleId}: ${test.fullName}`,
      })),
    );
    const run = tests.filter(({ milliseconds }) => milliseconds > 0);
    if (run.length <= SHOWN) return;
    const slowest = run.sort((one, other) => other.milliseconds - one.milliseconds).slice(0, SHOWN);
    process.stdout.write(`\nThe slowest ${SHOWN} tests:\n`);
    for (const { milliseconds, name } of slowest) {
      process.stdout.write(`${(milliseconds / 1000).toFixed(1).padStart(7)} s  ${name}\n`);
    }
  }
}

/**
 * Closes a run with one plain line. Names every test that was skipped, or a file that was skipped as a whole: no skip passes
 * unseen. Tests of the other tier are not skipped tests; a line says how many there are.
 */
export class ClosingLineReporter implements Reporter {
  readonly #run: { readonly tier: Tier | undefined; readonly leftOutFiles: number };

  /** Takes the tier of the run, undefined for all of them, and how many files are left out as a whole. */
  constructor(run: { readonly tier: Tier | undefined; readonly leftOutFiles: number }) {
    this.#run = run;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const { tier, leftOutFiles } = this.#run;
    const isLeftOut = (tags: readonly string[]) => tier !== undefined && tierOf(tags) !== tier;
    let [passed, failed, leftOut, skipped] = [0, unhandledErrors.length, 0, 0];
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
    if (tier) {
      const others = `${leftOutFiles} files and ${leftOut} tests of other files are of other tiers`;
      process.stdout.write(`\nThis was the ${tier} tier: ${others}; npm run test:all runs all.\n`);
    }
    process.stdout.write(`\n${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  }
}
