// @module-tag release: runs the whole benchmark on small data
/** The benchmark's command: it measures a small world from beginning to end, and says what it cannot do. */
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const script = fileURLToPath(new URL('../../bench/main.ts', import.meta.url));

async function bench(...args: readonly string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', script, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exit = new Promise<number | null>((resolve) => child.on('exit', resolve));
  const [out, err, status] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
  return { out, err, status };
}

test('measures what it is asked to, beside its limits, and writes it down', async () => {
  const results = await mkdtemp(path.join(os.tmpdir(), 'lanescan-bench-results-'));
  onTestFinished(() => rm(results, { recursive: true, force: true }));
  const run = await bench(
    ...['--quick', '--size', '2k,4k', '--only', 'searches,pages,growth', '--results', results],
    ...['--workload', '^(lane|page 1|a sender, repeated)$', '--seconds', '0.2', '--rounds', '1'],
  );
  expect(run).toMatchObject({ status: 0, out: expect.stringContaining('Goals') });
  expect(run.err).toContain('Left out: page 1, for which 2,000 messages are too few');

  const files = await readdir(results);
  expect(files).toEqual(['quick-searches-pages-growth-2k-4k.json']);
  const { machine, findings, verdicts } = JSON.parse(
    await readFile(path.join(results, files[0] ?? ''), 'utf8'),
  );
  expect(machine).toMatchObject({ cores: os.cpus().length, node: process.version });
  const measured = findings.searches.map(({ workload, size }: { workload: string; size: number }) =>
    [workload, size].join(),
  );
  expect(measured).toEqual([
    'lane,2000',
    'a sender, repeated,2000',
    'lane,4000',
    'page 1,4000',
    'a sender, repeated,4000',
  ]);
  for (const { ratios, looks, answerBytes } of findings.searches) {
    expect(Object.keys(ratios)).toEqual(
      expect.arrayContaining(['HTTP limit', 'database limit', 'framework alone']),
    );
    for (const ratio of Object.values(ratios)) expect(ratio).toBeGreaterThan(0);
    expect(looks.close).toBeGreaterThan(0);
    expect(looks.oracle).toBeGreaterThan(0);
    expect(answerBytes).toBeGreaterThan(1_000);
  }
  expect(findings.growth).toHaveLength(1);
  expect(verdicts.length).toBeGreaterThan(0);
});

test.each([
  [['--size', '1x'], 'Sizes are like 100k'],
  [['--size', '1k'], 'from 2k on'],
  [['--only', 'peers,everything'], 'The parts are searches'],
  [['--workload', '(('], 'no regular expression'],
  [['--only', 'pages', '--workload', '^lane$'], '--workload ^lane$ matches none of pages'],
  [['--only', 'growth', '--size', '1m'], 'growth needs two sizes'],
  [['--seconds', '0'], 'number up to 3600'],
  [['--rounds', '1.5'], 'whole number'],
  [['--fast'], "unknown option '--fast'"],
])('%j is rejected with what to do', async (args, problem) => {
  const { status, out, err } = await bench(...args);
  expect({ status, out }).toEqual({ status: 1, out: '' });
  expect(err).toContain(problem);
  expect(err).toContain('npm run bench -- --help');
  expect(err).not.toMatch(/^\s+at /m);
});
