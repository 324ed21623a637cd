/** The files that operators install, checked by the programs that read them, where these are installed. */
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { freshFolder } from '../cli/program.ts';

const repository = path.resolve(import.meta.dirname, '../..');
const operations = path.join(repository, 'docs/operations');
const units = fs.readdirSync(operations).filter((file) => file.endsWith('.service'));

const run = (program: string, ...args: readonly string[]) => {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  return { isInstalled: error === undefined, status, text: `${stdout}${stderr}` };
};
const isInstalled = (program: string) => run(program, '--version').isInstalled;

test.skipIf(!isInstalled('systemd-analyze')).each(units)(
  'systemd accepts %s, and rates it as well protected',
  (unit) => {
    // The program need not be installed where a package would put it.
    const text = fs.readFileSync(path.join(operations, unit), 'utf8');
    const file = path.join(freshFolder(), unit);
    fs.writeFileSync(
      file,
      text.replace('ExecStart=lanescan', `ExecStart=${path.join(repository, 'bin/lanescan')}`),
    );
    const verified = run('systemd-analyze', 'verify', '--man=no', file);
    expect(verified).toMatchObject({ status: 0, text: '' });
    // From 0, protected, to 10, exposed.
    const rated = run('systemd-analyze', 'security', '--offline=true', '--threshold=20', file);
    expect(rated.status, rated.text).toBe(0);
  },
);

test.each(units)('%s runs a command that exists, with time to stop', (unit) => {
  const text = fs.readFileSync(path.join(operations, unit), 'utf8');
  const [, command = ''] = /^ExecStart=lanescan (\w+) /m.exec(text) ?? [];
  expect(['serve', 'index']).toContain(command);
  const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(text) ?? [];
  // drainSeconds as behind a proxy, plus 25 s.
  expect(Number(seconds)).toBeGreaterThanOrEqual(30);
});

test.skipIf(!isInstalled('promtool'))('Prometheus accepts its configuration and the alert rules', () => {
  const checked = run('promtool', 'check', 'config', path.join(operations, 'prometheus.yaml'));
  expect(checked.status, checked.text).toBe(0);
  expect(checked.text).toMatch(/SUCCESS: \d{2} rules found/);
});

test.skipIf(!isInstalled('caddy'))('Caddy accepts its configuration', () => {
  const file = path.join(operations, 'Caddyfile');
  const checked = run('caddy', 'validate', '--adapter', 'caddyfile', '--config', file);
  expect(checked.status, checked.text).toBe(0);
});
