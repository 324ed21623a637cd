/** Where settings come from, and what `lanescan doctor` makes of them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type ConfigFlags, readConfig, settingKeys } from '../../../src/cli/config/config.ts';
import { openStore } from '../../../src/store/store.ts';
import { provideTestDatabase } from '../../database.ts';
import { makeMessage, makeSnapshot } from '../../fixtures.ts';
import { listenWith } from '../../listening.ts';
import { operatorErrorOf } from '../../operator-error.ts';
import {
  buildProgram,
  configFile,
  freshFolder,
  lanescan,
  lanescanOn,
  runProgram,
  sepoliaYaml,
} from '../program.ts';

const database = provideTestDatabase();
const doctor = (...args: readonly string[]) => lanescanOn(database, 'doctor', ...args);

describe('configuration', () => {
  const config = configFile('host: 0.0.0.0\nport: 1111\ndata: /from/yaml\nlogLevel: warn\n');

  test('flags win over the environment, that over the file, that over the defaults', () => {
    const flags: ConfigFlags = { config, port: '3333' };
    const environment = { LANESCAN_PORT: '2222', LANESCAN_DATA: '/from/env' };
    expect(readConfig(flags, environment)).toMatchObject({
      port: 3333,
      dataFolder: '/from/env',
      host: '0.0.0.0',
      logLevel: 'warn',
      origins: { port: '--port', data: 'LANESCAN_DATA', host: `host in ${config}` },
    });
    expect(readConfig({ config: configFile('') }, {})).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      dataFolder: './data',
      logLevel: 'info',
      databaseUrl: null,
      origins: { host: 'default', port: 'default' },
    });
  });

  test('LANESCAN_PORT wins over PORT, and LANESCAN_CONFIG names the file', () => {
    expect(readConfig({}, { LANESCAN_CONFIG: config, PORT: '1', LANESCAN_PORT: '2' })).toMatchObject({
      file: config,
      port: 2,
    });
    expect(readConfig({ config }, { PORT: '1' }).port).toBe(1);
  });

  test.each([
    ['an unknown variable', '', { LANESCAN_PROT: '1' }, /variable LANESCAN_PROT\. .* LANESCAN_PORT\?/],
    ['an unknown key', 'prot: 1', {}, /prot in \S+:1 is an unknown key\. Did you mean port\?/],
    ['a wrong value in the file', '\nport: lots', {}, /port in \S+:2 is "lots"\. It takes a port/],
    ['a key without a value', 'port:', {}, /port in \S+:1 is null\. It takes a port/],
    ['a wrong entry', 'labels:\n  - name: a\n    address: x\n', {}, /labels\[0\]\.address in \S+:3 is "x"/],
    ['a missing value', 'labels:\n\n  - name: a\n', {}, /labels\[0\]\.address in \S+:3 is missing/],
    ['a wrong explorer', 'explorers: {\n  sepolia: x }', {}, /explorers\.sepolia in \S+:2 is "x"/],
    ['an explorer of nowhere', 'explorers:\n  nowhere: none', {}, /explorers\.nowhere in \S+:2 is not a net/],
    ['a wrong value in the environment', '', { PORT: '70000' }, /PORT is 70000\. It takes a port/],
    ['a file that is a list', '- 1', {}, /is not a mapping of keys to values/],
    ['broken YAML', 'port: [1', {}, /is not valid YAML/],
    ['a file that is missing', null, {}, /Cannot read the configuration \/nowhere\/lanescan.yaml/],
  ])('%s fails at the start, in one line', async (_what, text, env, expected) => {
    const config = text === null ? '/nowhere/lanescan.yaml' : configFile(text);
    const { code, stderr } = await lanescan(['search', '--config', config], { env: { ...env } });
    expect(stderr).toMatch(expected);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(code).toBe(1);
  });

  test('a base path is a path of plain characters, with or without a slash at its end', async () => {
    const read = (basePath: string) => readConfig({ basePath }, {}).basePath;
    expect(['/', '', '/a', '/a/', '/a/b-c_1.2'].map(read)).toEqual(['', '', '/a', '/a', '/a/b-c_1.2']);
    const wrong = [
      'lanescan',
      '//',
      '/a//b',
      '/a/../b',
      '/.',
      '/a b',
      '/a?b',
      '/"x',
      '/%6c',
      'https://host/x',
    ];
    for (const value of [...wrong, `/${'a'.repeat(200)}`])
      expect(() => read(value), value).toThrow(/^--base-path is /);
    expect(await lanescan(['serve', '--base-path', 'lanescan'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--base-path is "lanescan". It takes a path such as /lanescan:'),
    });
    expect(readConfig({}, { LANESCAN_BASE_PATH: '/x' })).toMatchObject({
      basePath: '/x',
      origins: { basePath: 'LANESCAN_BASE_PATH' },
    });
    expect(readConfig({ config: configFile('basePath: /y') }, {}).basePath).toBe('/y');
  });

  test('a server may be told to drain for 300 s, and no longer', async () => {
    const read = (seconds: number) => readConfig({ config: configFile(`drainSeconds: ${seconds}`) }, {});
    expect(read(300).drainSeconds).toBe(300);
    const { message, remedy } = await operatorErrorOf(() => read(300.5));
    expect(`${message} ${remedy}`).toMatch(/drainSeconds .* is 300\.5.*from 0 to 300/);
  });

  test('the URL of the database may be in a file', async () => {
    const file = path.join(freshFolder(), 'database-url');
    writeFileSync(file, 'postgresql://me:secret@db.example/lanescan\n');
    expect(readConfig({}, { DATABASE_URL_FILE: file, DATABASE_REPLICA_URL_FILE: file })).toMatchObject({
      databaseUrl: 'postgresql://me:secret@db.example/lanescan',
      replicaUrls: ['postgresql://me:secret@db.example/lanescan'],
      origins: { database: 'DATABASE_URL_FILE' },
    });
    const errorOf = async (env: Record<string, string>) =>
      (await operatorErrorOf(() => readConfig({}, env))).message;
    const both = 'DATABASE_URL and DATABASE_URL_FILE are both set.';
    expect(await errorOf({ DATABASE_URL: 'x', DATABASE_URL_FILE: file })).toBe(both);
    const none = /Cannot read \S+\.none, which DATABASE_URL_FILE names: ENOENT/;
    expect(await errorOf({ DATABASE_URL_FILE: `${file}.none` })).toMatch(none);
    writeFileSync(file, '\n');
    expect(await errorOf({ DATABASE_URL_FILE: file })).toContain('is empty');
  });

  test('`lanescan config` prints every setting with its origin, and no secret', async () => {
    const secrets = ['hunter2', 'rpc-key-123456', 'a'.repeat(64)];
    const file = configFile(`port: 1111
apiKeys: [{ name: partner, sha256: "${'a'.repeat(64)}", perSecond: 5, burst: 10 }]
${sepoliaYaml('https://rpc.example/v3/rpc-key-123456')}`);
    const env = {
      DATABASE_URL: 'postgresql://me:hunter2@db.example:5433/lanescan?password=hunter2',
      LANESCAN_HOST: '0.0.0.0',
    };
    const args = ['config', '--config', file, '--log-level', 'warn'];
    const { code, stdout } = await lanescan(args, { env });
    expect(code).toBe(0);
    for (const secret of secrets) expect(stdout).not.toContain(secret);
    expect(stdout).toMatch(/^database +postgresql:\/\/db\.example:5433\/lanescan +DATABASE_URL$/m);
    expect(stdout).toMatch(/^host +0\.0\.0\.0 +LANESCAN_HOST$/m);
    expect(stdout).toMatch(new RegExp(`^port +1111 +port in ${file}$`, 'm'));
    expect(stdout).toMatch(/^logLevel +warn +--log-level$/m);
    expect(stdout).toMatch(/^drainSeconds +0 +default$/m);
    expect(stdout).toMatch(/^networks .*"rpc":\["rpc\.example"\]/m);
    const json = (await lanescan([...args, '--json'], { env })).stdout.trim().split('\n');
    const keys = json.map((line) => JSON.parse(line).key);
    expect(keys).toEqual(['database', 'replicas', ...settingKeys]);
  });

  test('lists without entries may be keys without values', () => {
    const text = 'chains:\nnetworks:\nwebhooks:\nlabels:\nexplorers:\nlive:';
    const config = readConfig({ config: configFile(text) }, {});
    expect({ chains: config.chains, live: config.live }).toEqual({ chains: [], live: {} });
    expect([config.read('networks'), config.read('webhooks'), config.read('labels')]).toEqual([[], [], []]);
    expect(config.read('explorers').size).toBe(0);
  });

  /** What Kubernetes sets in a namespace with a Service named so; `lanescan-index` becomes LANESCAN_INDEX. */
  const serviceVariables = (name: string, host: string, port: number, protocol = 'tcp') => {
    const url = `${protocol}://${host.includes(':') ? `[${host}]` : host}:${port}`;
    const ofPort = `${name}_PORT_${port}_${protocol.toUpperCase()}`;
    return {
      [`${name}_SERVICE_HOST`]: host,
      [`${name}_SERVICE_PORT`]: String(port),
      [`${name}_SERVICE_PORT_HTTP_API`]: String(port),
      [`${name}_PORT`]: url,
      [ofPort]: url,
      [`${ofPort}_PROTO`]: protocol,
      [`${ofPort}_PORT`]: String(port),
      [`${ofPort}_ADDR`]: host,
    };
  };

  test('variables that Kubernetes sets for Services named lanescan or lanescan-… are left out, and named once', async () => {
    const env = {
      ...serviceVariables('LANESCAN', '10.0.0.1', 8080),
      ...serviceVariables('LANESCAN_INDEX', 'fd00::1', 9090),
      ...serviceVariables('LANESCAN_PORT_AUTHORITY', '10.0.0.2', 53, 'udp'),
    };
    const { port, warnings, origins } = readConfig(
      { config: configFile('port: 1111') },
      { ...env, PORT: '2' },
    );
    expect({ port, origin: origins.port }).toEqual({ port: 2, origin: 'PORT' });
    expect(warnings).toHaveLength(1);
    for (const name of Object.keys(env)) expect(warnings[0]).toContain(name);
    expect(readConfig({}, { LANESCAN_PORT: '8081' })).toMatchObject({ port: 8081, warnings: [] });
    // The whole way: a verb works, and says so in one line.
    const { code, stderr } = await lanescan(['search'], { env: { ...env, DATABASE_URL: database.url } });
    expect(code).toBe(0);
    expect(stderr.match(/^Ignored as variables that Kubernetes sets .*$/gm)).toHaveLength(1);
  });

  test.each([
    ['LANESCAN_PROT', '8080'],
    ['LANESCAN_PROT', 'tcp://10.0.0.1:8080'],
    ['LANESCAN_PORT', 'tcp://somewhere'],
    ['LANESCAN_PORT', 'http://10.0.0.1:8080'],
    ['LANESCAN_SERVICE_HOST', 'localhost'],
    ['LANESCAN_SERVICE_PORT', 'http'],
    ['LANESCAN_PORT_8080_TCP_ADDR', '8080'],
    ['LANESCAN_PORT_8080', '8080'],
  ])('%s=%s is a mistake still', (name, value) => {
    expect(() => readConfig({ config: configFile('') }, { [name]: value })).toThrow(name);
  });
});

describe('doctor', () => {
  beforeAll(async () => {
    await buildProgram();
    const store = await openStore({ place: { url: database.url } });
    await store.apply([1, 2].map((number) => makeSnapshot(makeMessage({ number }))));
    await store.close();
  });

  test('finds all in order with an embedded database and ./lanescan.yaml', { tags: 'slow' }, async () => {
    const cwd = path.dirname(configFile('port: 0\n'));
    expect((await runProgram(['migrate'], { cwd })).code).toBe(0);
    const { code, stdout } = await runProgram(['doctor'], { cwd });
    expect(stdout).toMatch(/^✓ Lanescan \d+\.\d+\.\d+\S* on Node \d+/);
    expect(stdout).toContain(
      '✓ Configuration from lanescan.yaml: host 127.0.0.1, port 0 (port in lanescan.yaml), data ./data',
    );
    expect(stdout).toMatch(/Disk of \.\/data: [\d.]+ GB free/);
    expect(stdout).toMatch(/✓ Database: embedded PostgreSQL 18/);
    expect(stdout).toMatch(/✓ Schema: up to date, \d+ migrations?\n/);
    expect(stdout).toContain('✓ Content: 0 real messages');
    expect(stdout).toMatch(/No problems/);
    expect(code).toBe(0);
  });

  test('a server: what it holds, and whether the port is free, ours or taken', async () => {
    const other = await listenWith((_request, response) => void response.end('hello'));
    const ours = await listenWith((_request, response) => {
      response.setHeader('X-Request-ID', 'x').end('{"status":"ok"}');
    });
    const taken = await doctor('--port', other.port);
    expect(taken.stdout).toMatch(/✓ Database: server PostgreSQL/);
    expect(taken.stdout).toMatch(/✓ Content: 2 real messages, the newest sent \d+ d ago/);
    expect(taken.stdout).toMatch(
      /✗ Port: 127\.0\.0\.1:\d+ is taken by another program\n {2}→ Stop that program/,
    );
    expect(taken.stdout).toMatch(/1 problem to fix/);
    expect(taken.code).toBe(1);
    const lanescans = await doctor('--port', ours.port);
    expect(lanescans.stdout).toMatch(/✓ Port: Lanescan already answers on/);
    expect(lanescans.code).toBe(0);
  });

  test('webhooks are checked too, and a secret is never shown', async () => {
    const hook = `{ name: ops, url: "https://example.org/hook", secret: "\${OPS_SECRET}" }`;
    const args = ['--port', '0', '--config', configFile(`webhooks:\n  - ${hook}\n`)];
    const without = await doctor(...args);
    expect(without.stdout).toMatch(/✗ Webhooks: webhooks\[0\]\.secret .*OPS_SECRET.*not set\.\n {2}→ /);
    expect(without.code).toBe(1);
    const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;
    const env = { DATABASE_URL: database.url, OPS_SECRET: secret };
    const complete = await lanescan(['doctor', ...args], { env });
    expect(complete.stdout).toContain('✓ Webhooks: ops\n');
    expect(complete.stdout).not.toContain(secret);
    expect(complete.code).toBe(0);
  });

  test.each([
    ['broken YAML', 'port: [1', /✗ Configuration: .* is not valid YAML/],
    ['an unknown key', 'prot: 1', /✗ Configuration: prot in .* unknown key\.\n {2}→ Did you mean port\?/],
  ])('%s is reported, not stumbled over', async (_what, text, expected) => {
    const { code, stdout, stderr } = await lanescan(['doctor', '--config', configFile(text)]);
    expect(stdout).toMatch(expected);
    expect(stdout).toMatch(/! Database, disk and port were not checked/);
    expect(stderr).toBe('');
    expect(code).toBe(1);
  });

  test('a data folder that cannot be used', async () => {
    const folder = freshFolder();
    writeFileSync(path.join(folder, 'file'), '');
    mkdirSync(path.join(folder, 'odd/postgres'), { recursive: true });
    writeFileSync(path.join(folder, 'odd/postgres/notes'), '');
    for (const [data, problem] of Object.entries({
      'file/data': /✗ Database: The data folder .* cannot be used: part of its path is a file/,
      odd: /✗ Database: .* is not a PostgreSQL database\.\n {2}→ Move it away/,
    })) {
      const { code, stdout } = await lanescan(['doctor', '--port', '0', '--data', path.join(folder, data)]);
      expect(stdout).toMatch(problem);
      expect(code).toBe(1);
    }
  });
});
