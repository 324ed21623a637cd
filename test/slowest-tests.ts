/** Names the tests that took longest, so that a run says where its time went. */
import type { Reporter, TestModule } from 'vitest/node';

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
