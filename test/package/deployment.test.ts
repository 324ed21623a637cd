// @module-tag release: packs and installs the program, and starts PostgreSQL, nginx and two services
/**
 * "A complete deployment" of docs/operations.md, carried out as it is printed: as root, on the real nginx, PostgreSQL and
 * Prometheus tools, in mounts and a network of its own (bubblewrap). Stand-ins are: `apt-get`, which must find each package
 * installed; the registry, from which the packed repository comes; and systemd, whose units are started by a script that
 * knows the lines it needs (user, environment, credentials). What the units protect is checked by operators-kit.test.ts.
 */
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemPostgres } from '../chaos/system-postgres.ts';
import { freshFolder } from '../cli/program.ts';
import { canRunAsRoot, mountsAt, npm, packRepository, quiet } from './packing.ts';

const repository = path.resolve(import.meta.dirname, '../..');
const TIMEOUT_MS = 900_000;

const canDeploy = canRunAsRoot(
  'the deployment of docs/operations.md',
  'bwrap nginx promtool prometheus psql openssl curl runuser systemd-analyze',
);

/** The commands of each step, in order. */
function stepsOf(markdown: string): readonly string[] {
  const [, section = ''] = /^## A complete deployment\n([\s\S]*?)^The tests carry/m.exec(markdown) ?? [];
  return [...section.matchAll(/^ {3}```(?:sh)?\n([\s\S]*?)^ {3}```$/gm)].map(([, code = '']) =>
    code.replace(/^ {3}/gm, ''),
  );
}

/** Stand-ins for what a sandbox has not, as programs of these names. */
const standIns: Readonly<Record<string, string>> = {
  'apt-get': `[ "$1" = install ] && shift && dpkg --status "$@" > /dev/null`,
  npm: `case "$*" in
  'install --global lanescan') test -x /usr/local/bin/lanescan ;;
  'root --global') echo /usr/local/lib/node_modules ;;
  *) echo "npm $* is not a step" >&2; exit 1 ;;
esac`,
  systemctl: `start_unit() {
  unit=/etc/systemd/system/$1.service
  systemd-analyze verify --man=no "$unit" || exit 1
  command=$(sed -n 's/^ExecStart=//p' "$unit"); user=$(sed -n 's/^User=//p' "$unit")
  credentials=/run/credentials/$1
  install -d -o "$user" -m 0700 "$credentials"
  sed -n 's/^LoadCredential=//p' "$unit" | while IFS=: read -r name file; do
    install -o "$user" -m 0400 "$file" "$credentials/$name"
  done
  set -a
  for file in $(sed -n 's/^EnvironmentFile=-*//p' "$unit"); do . "$file"; done
  for line in $(sed -n 's/^Environment=//p' "$unit" | sed "s|%d|$credentials|"); do eval "$line"; done
  set +a
  setpriv --reuid "$user" --regid "$user" --clear-groups --bounding-set=-all --no-new-privs $command \\
    > "/var/log/$1.log" 2>&1 &
}
case "$*" in
  daemon-reload) ;;
  'enable --now '*) shift 2; for name; do (start_unit "$name"); done ;;
  'reload nginx') nginx ;;
  *) echo "systemctl $* is not a step" >&2; exit 1 ;;
esac`,
};

/** As Debian starts it: passwords on the network, the system's users on the socket. */
const startPostgres = `install -d -o postgres /run/postgresql
runuser -u postgres -- ${systemPostgres}/initdb -D /var/lib/postgresql/deployment --auth-local=peer --auth-host=scram-sha-256 > /dev/null
runuser -u postgres -- ${systemPostgres}/pg_ctl -D /var/lib/postgresql/deployment -w -l /var/lib/postgresql/deployment.log -o '-k /run/postgresql' start > /dev/null
`;

const waitUntilReady = `for attempt in $(seq 300); do
  curl --silent --fail http://localhost/readyz > /dev/null && break
  sleep 1
done
`;

describe.skipIf(!canDeploy)('the complete deployment of docs/operations.md', () => {
  test('works as printed, step by step', { timeout: TIMEOUT_MS }, async () => {
    const steps = stepsOf(fs.readFileSync(path.join(repository, 'docs/operations.md'), 'utf8'));
    expect(steps).toHaveLength(8);
    const preparing = steps.slice(0, 6);
    const [backup = '', look = ''] = steps.slice(6);

    const folder = freshFolder();
    fs.chmodSync(folder, 0o755);
    const mounted = (name: string) => path.join(folder, name);
    const installed = mounted('local');
    fs.mkdirSync(installed);
    await npm(['install', '--global', '--prefix', installed, await packRepository(folder), ...quiet], folder);
    spawnSync('cp', ['-a', '/etc', mounted('etc')]);
    for (const name of ['run', 'var-log', 'var-backups', 'postgres']) fs.mkdirSync(mounted(name));
    fs.mkdirSync(path.join(mounted('var-log'), 'nginx'));
    fs.mkdirSync(mounted('bin'));
    for (const [name, script] of Object.entries(standIns)) {
      const file = path.join(mounted('bin'), name);
      fs.writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    }
    spawnSync('chown', ['postgres', mounted('postgres')]);

    const script = [
      'set -e',
      startPostgres,
      ...preparing,
      waitUntilReady,
      'echo BACKUP',
      // A line of a crontab: five fields, then the command.
      backup.trim().replace(/^(\S+\s+){5}/, ''),
      'pg_restore --list /var/backups/lanescan.dump | grep -c TABLE',
      'echo LOOK',
      'set +e',
      look,
      'echo; echo INDEXER; cat /var/log/lanescan-index.log; echo SERVER; head -3 /var/log/lanescan.log',
      "stat -c '%U %a' /etc/lanescan/database-url /etc/lanescan/index.env",
    ].join('\n');
    const mounts = mountsAt('--bind', {
      '/etc': mounted('etc'),
      '/run': mounted('run'),
      '/usr/local': installed,
      '/var/log': mounted('var-log'),
      '/var/backups': mounted('var-backups'),
      '/var/lib/postgresql': mounted('postgres'),
    });
    const programs = `${mounted('bin')}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${path.dirname(process.execPath)}`;
    const { status, stdout, stderr } = spawnSync(
      'bwrap',
      [
        ...['--bind', '/', '/', '--dev', '/dev', '--unshare-pid', '--proc', '/proc', '--unshare-net'],
        ...['--die-with-parent', ...mounts, '--dir', '/run/credentials', '--clearenv'],
        ...['--setenv', 'HOME', '/root', '--setenv', 'PATH', programs],
        ...['bash', '-c', script],
      ],
      { encoding: 'utf8', timeout: TIMEOUT_MS },
    );
    const said = `${stdout}\n${stderr}`;
    expect(status, said).toBe(0);
    const [, afterBackup = ''] = stdout.split('BACKUP\n');
    expect(Number.parseInt(afterBackup, 10), said).toBeGreaterThan(20);
    const [, doctor = ''] = stdout.split('LOOK\n');
    // nginx answers for a server that is ready.
    expect(doctor, said).toMatch(/^HTTP\/1\.1 200 /m);
    expect(doctor, said).toContain('"status":"ready"');
    expect(doctor, said).toContain('ethereum-testnet-sepolia');
    // The endpoint of the example does not exist; the indexer says so and goes on.
    expect(said).toMatch(/rpc\.example/);
    expect(stdout).toContain('root 600\nroot 600');
  });
});
