/**
 * compose.yaml, as far as it can be tested without a container runtime: its services are the programs of the operating system,
 * with the commands, files, secrets, variables and host names of compose.yaml, in mounts and a network of their own (bubblewrap).
 * Not run here: `docker compose`, the images, and Grafana, which Debian does not have; its files are checked.
 */
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { systemPostgres } from '../chaos/system-postgres.ts';
import { buildProgram, freshFolder } from '../cli/program.ts';
import { canRunAsRoot, mountsAt } from './packing.ts';

const repository = path.resolve(import.meta.dirname, '../..');
const read = (file: string) => fs.readFileSync(path.join(repository, file), 'utf8');

interface Service {
  readonly image: string;
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly read_only?: boolean;
}
const compose = parse(read('compose.yaml'), { merge: true }) as {
  readonly services: Readonly<Record<'server' | 'indexer' | 'database' | 'prometheus' | 'grafana', Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const { server, indexer, database, prometheus, grafana } = compose.services;
/** The path on the host, or a name of a volume, and the path in the container. */
const mountsOf = ({ volumes = [] }: Service) =>
  volumes.map((volume) => volume.split(':') as [source: string, target: string]);

describe('compose.yaml', () => {
  test('mounts files that exist, or that its first lines create', () => {
    const created = ['./lanescan.yaml'];
    for (const [source] of Object.values(compose.services).flatMap(mountsOf)) {
      if (source.startsWith('./'))
        expect(fs.existsSync(path.join(repository, source)) || created.includes(source), source).toBe(true);
      else expect(Object.keys(compose.volumes)).toContain(source);
    }
    for (const { secrets = [] } of Object.values(compose.services))
      for (const secret of secrets) expect(Object.keys(compose.secrets)).toContain(secret);
    for (const { file } of Object.values(compose.secrets))
      expect(read('compose.yaml')).toContain(`> ${file.slice(2)}`);
  });

  test('runs commands of Lanescan, read-only', () => {
    expect(server).toMatchObject({ command: ['serve'], read_only: true });
    expect(indexer).toMatchObject({ command: ['index'], read_only: true });
  });

  test('provisions Grafana with the Prometheus and the dashboard that it mounts', () => {
    const [source] = parse(read('docs/operations/grafana/datasources/prometheus.yaml')).datasources;
    expect(Object.keys(compose.services)).toContain(new URL(source.url).hostname);
    const [provider] = parse(read('docs/operations/grafana/dashboards/lanescan.yaml')).providers;
    const folders = mountsOf(grafana).map(([, target]) => path.dirname(target));
    expect(folders).toContain(provider.options.path);
    const [target] = parse(read('docs/operations/prometheus.yaml')).scrape_configs[0].static_configs[0]
      .targets;
    expect(target).toBe('server:8080');
  });
});

const canRun = canRunAsRoot('the services of compose.yaml', 'bwrap prometheus openssl curl setpriv');

/** Users of the images. */
const [NODE, NOBODY, POSTGRES] = [1000, 65_534, 999];
const TIMEOUT_MS = 300_000;

/** The commands in the first lines, but for docker. */
function firstLines(): string {
  const commands = [...read('compose.yaml').matchAll(/^# {5}(.*)$/gm)].map(([, command = '']) => command);
  expect(commands.at(-1)).toMatch(/^docker compose up /);
  return commands.slice(0, -1).join('\n');
}

/** One query of each panel, as Grafana sends it. */
function dashboardQueries(): readonly string[] {
  const { panels } = JSON.parse(read('docs/operations/grafana-dashboard.json')) as {
    readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
  };
  return panels.flatMap(({ targets = [] }) => targets).map(({ expr }) => expr.replaceAll('$job', 'lanescan'));
}

test.skipIf(!canRun)(
  'PostgreSQL, the server, the indexer and Prometheus work together with the files of compose.yaml',
  { tags: 'release', timeout: TIMEOUT_MS },
  async () => {
    await buildProgram();
    const folder = freshFolder();
    fs.chmodSync(folder, 0o755);
    const inFolder = (name: string) => path.join(folder, name);
    fs.mkdirSync(inFolder('etc'));
    for (const name of ['ssl', 'alternatives', 'ld.so.cache', 'openssl', 'nsswitch.conf'])
      if (fs.existsSync(`/etc/${name}`))
        fs.cpSync(`/etc/${name}`, inFolder(`etc/${name}`), { recursive: true });
    fs.writeFileSync(
      inFolder('etc/passwd'),
      `root:x:0:0::/:/bin/sh\npostgres:x:${POSTGRES}:${POSTGRES}::/:/bin/sh\nnode:x:${NODE}:${NODE}::/:/bin/sh\n`,
    );
    fs.writeFileSync(
      inFolder('etc/hosts'),
      ['localhost', ...Object.keys(compose.services)].map((name) => `127.0.0.1 ${name}\n`).join(''),
    );
    for (const file of ['lanescan.example.yaml', 'docs']) {
      fs.cpSync(path.join(repository, file), inFolder(`project/${file}`), { recursive: true });
    }
    // Where other users can read it, wherever the repository is.
    for (const part of ['bin', 'dist', 'package.json', 'openapi.json'])
      fs.cpSync(path.join(repository, part), inFolder(`app/${part}`), { recursive: true });
    fs.mkdirSync(inFolder('app/node_modules'));
    const created = spawnSync('sh', ['-ec', firstLines()], { cwd: inFolder('project'), encoding: 'utf8' });
    expect(created.status, created.stderr).toBe(0);

    const mounts = new Map(
      [server, indexer, prometheus]
        .flatMap(mountsOf)
        .map(([source, target]) => [
          target,
          source.startsWith('./') ? path.join(inFolder('project'), source) : inFolder(source),
        ]),
    );
    for (const [name, { file }] of Object.entries(compose.secrets))
      mounts.set(`/run/secrets/${name}`, path.join(inFolder('project'), file));
    for (const [name, owner] of Object.entries({ prometheus: NOBODY, database: POSTGRES })) {
      fs.mkdirSync(inFolder(name));
      fs.chownSync(inFolder(name), owner, owner);
    }

    const as = (user: number) =>
      `setpriv --reuid ${user} --regid ${user} --clear-groups --bounding-set=-all --no-new-privs`;
    const withVariables = ({ environment = {} }: Service) =>
      `env ${Object.entries(environment)
        .map(([name, value]) => `${name}=${value}`)
        .join(' ')}`;
    const {
      POSTGRES_USER: user,
      POSTGRES_DB: name,
      POSTGRES_PASSWORD_FILE: password,
    } = database.environment ?? {};
    const healthCheck = database.healthcheck?.test.slice(1).join(' ');
    const queries = dashboardQueries();
    expect(queries.length).toBeGreaterThan(20);
    const script = `set -e
until_true() { for attempt in $(seq 600); do "$@" > /dev/null 2>&1 && return; sleep 0.2; done; echo "never: $*" >&2; exit 1; }
# What the image of PostgreSQL does with its variables.
${as(POSTGRES)} ${systemPostgres}/initdb -D ${inFolder('database')} --username=${user} --pwfile=${password} --auth=scram-sha-256 > /dev/null
${as(POSTGRES)} ${systemPostgres}/postgres -D ${inFolder('database')} -k /tmp > /tmp/database.log 2>&1 &
until_true env PGHOST=database ${systemPostgres}/${healthCheck}
PGPASSWORD=$(cat ${password}) ${systemPostgres}/createdb --host database --username ${user} ${name}
${as(NODE)} ${withVariables(server)} /app/bin/lanescan ${server.command?.join(' ')} > /tmp/server.log 2>&1 &
until_true curl --fail --silent http://server:8080/readyz
set -a; for name in $(grep -o '[A-Z_]*_RPC' /etc/lanescan/lanescan.yaml); do eval "$name=http://127.0.0.1:1/"; done; set +a
${as(NODE)} ${withVariables(indexer)} /app/bin/lanescan ${indexer.command?.join(' ')} > /tmp/indexer.log 2>&1 &
${as(NOBODY)} prometheus ${prometheus.command?.join(' ')} > /tmp/prometheus.log 2>&1 &
is_up() { curl --silent 'http://prometheus:9090/api/v1/query?query=up' | grep '"job":"lanescan".*"1"\\]'; }
is_indexing() { curl --silent http://server:8080/v2/networks | grep ethereum-testnet-sepolia; }
until_true is_up
until_true is_indexing
curl --silent http://prometheus:9090/api/v1/rules; echo
curl --silent http://prometheus:9090/api/v1/label/__name__/values; echo
while read -r query; do curl --silent http://prometheus:9090/api/v1/query --data-urlencode "query=$query"; echo; done < ${inFolder('queries')}
`;
    fs.writeFileSync(inFolder('queries'), `${queries.join('\n')}\n`);
    const own = ['app', 'dev', 'proc', 'etc', 'run', 'tmp', 'prometheus'];
    const system = fs
      .readdirSync('/', { withFileTypes: true })
      .filter((entry) => !own.includes(entry.name))
      .flatMap((entry) =>
        entry.isSymbolicLink()
          ? ['--symlink', fs.readlinkSync(`/${entry.name}`), `/${entry.name}`]
          : ['--ro-bind', `/${entry.name}`, `/${entry.name}`],
      );
    const { status, stdout, stderr } = spawnSync(
      'bwrap',
      [
        ...system,
        ...['--dev', '/dev', '--proc', '/proc', '--perms', '1777', '--tmpfs', '/tmp', '--tmpfs', '/run'],
        ...mountsAt('--bind', { '/etc': inFolder('etc'), [folder]: folder }),
        ...mountsAt('--ro-bind', {
          '/app': inFolder('app'),
          '/app/node_modules': path.join(repository, 'node_modules'),
        }),
        ...[...mounts].flatMap(([target, source]) => [
          '--perms',
          '0755',
          '--dir',
          path.dirname(target),
          '--bind',
          source,
          target,
        ]),
        ...['--unshare-pid', '--unshare-net', '--die-with-parent', '--clearenv', '--chdir', '/'],
        ...['--setenv', 'PATH', `${path.dirname(process.execPath)}:/usr/sbin:/usr/bin:/sbin:/bin`],
        ...['bash', '-c', `trap 'tail -n 5 /tmp/*.log >&2' EXIT\n${script}`],
      ],
      { encoding: 'utf8', timeout: TIMEOUT_MS },
    );
    expect(status, stderr).toBe(0);
    const [rules, names, ...answers] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const alerts = rules.data.groups.flatMap(
      ({ rules: ofGroup }: { rules: { health: string }[] }) => ofGroup,
    );
    expect(alerts.length).toBeGreaterThan(9);
    expect(alerts.filter(({ health }: { health: string }) => health === 'err')).toEqual([]);
    expect(names.data).toContain('lanescan_messages');
    expect(answers).toHaveLength(queries.length);
    expect(answers.filter(({ status: answered }) => answered !== 'success')).toEqual([]);
  },
);
