/** Closes a run with one plain line, and names every test that was skipped: a skip should never pass unseen. */
import type { Reporter, TestModule } from 'vitest/node';

export class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let passed = 0;
    let failed = unhandledErrors.length;
    const skipped: string[] = [];
    for (const module of modules) {
      if (module.state() === 'failed' && module.children.size === 0) failed++;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed++;
        else if (state === 'failed') failed++;
        else skipped.push(`${module.relativeModuleId}: ${test.fullName}`);
      }
    }
    for (const name of skipped) process.stdout.write(`SKIPPED ${name}\n`);
    process.stdout.write(`\n${passed} passed, ${failed} failed, ${skipped.length} skipped\n`);
  }
}
