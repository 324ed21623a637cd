/** The progress of long work: share, speed, and an estimate of the time left. */
import { expect, test } from 'vitest';
import { createProgress } from '../../src/cli/output/progress-bar.ts';

function progressOf(total: number | null) {
  const lines: string[] = [];
  const clock = { ms: 0 };
  const progress = createProgress({ write: () => true }, 'Importing', total, {
    writeLine: (line) => lines.push(line),
    now: () => clock.ms,
  });
  const advance = (atMs: number, bytes: number) => {
    clock.ms = atMs;
    progress.advance(bytes);
    return lines.at(-1);
  };
  return { advance };
}

test('estimates the time left from what is done', () => {
  const { advance } = progressOf(100_000_000);
  expect(advance(10_000, 5_000_000)).toBe('Importing: 5% · 0.5 MB/s · about 3 min 10 s left');
  expect(advance(20_000, 45_000_000)).toBe('Importing: 50% · 2.5 MB/s · about 20 s left');
});

test('estimates nothing for a pipe, whose end is unknown, and at the end', () => {
  expect(progressOf(null).advance(10_000, 5_000_000)).toBe('Importing: 5.0 MB · 0.5 MB/s');
  expect(progressOf(5_000_000).advance(10_000, 5_000_000)).toBe('Importing: 100% · 0.5 MB/s');
});
