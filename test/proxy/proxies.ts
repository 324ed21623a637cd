/** The real nginx, HAProxy and Caddy, started with the configuration files of docs/operations. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { until } from '../api/live/live-server.ts';
import { freePort } from '../chaos/deployment.ts';
import { installedProgram } from '../installed-program.ts';

const documented = path.resolve(import.meta.dirname, '../../docs/operations');

export type ProxyName = 'nginx' | 'haproxy' | 'caddy';

function findProgram(program: string, debianPackage = program): string | undefined {
  const places = [`/usr/sbin/${program}`, `/usr/bin/${program}`];
  return installedProgram(program, places, debianPackage, 'its tests in test/proxy');
}

const programs = {
  nginx: findProgram('nginx', 'nginx-light'),
  haproxy: findProgram('haproxy'),
  caddy: findProgram('caddy'),
} as const;

export const isInstalled = (name: ProxyName) => programs[name] !== undefined;

/** A documented file with its site-specific values replaced. Every value must be there: the file may have changed. */
function configurationWith(
  file: string,
  replacements: readonly (readonly [from: string, to: string])[],
): string {
  let text = readFileSync(path.join(documented, file), 'utf8');
  for (const [from, to] of replacements) {
    if (!text.includes(from))
      throw new Error(`docs/operations/${file} does not contain ${JSON.stringify(from)}`);
    text = text.replaceAll(from, to);
  }
  return text;
}

/** Starts the proxy in front of servers on these ports, for one test. */
export async function startProxy(name: ProxyName, ports: readonly [string, string]) {
  const port = await freePort();
  const folder = mkdtempSync(path.join(os.tmpdir(), `lanescan-${name}-`));
  const servers = ports.map(
    (serverPort, index) => [`10.0.0.1${index + 1}:8080`, `127.0.0.1:${serverPort}`] as const,
  );
  return run(name, folder, port, configurations[name](folder, port, servers), '/readyz');
}

/** Starts the proxy with Lanescan on this port below /lanescan; it passes the prefix on, or removes it. */
export async function startSubPathProxy(
  name: 'nginx' | 'caddy',
  serverPort: string,
  isPrefixRemoved: boolean,
) {
  const port = await freePort();
  const folder = mkdtempSync(path.join(os.tmpdir(), `lanescan-${name}-`));
  const configuration = subPathConfigurations[name](folder, port, serverPort, isPrefixRemoved);
  return run(name, folder, port, configuration, '/lanescan/readyz');
}

async function run(
  name: ProxyName,
  folder: string,
  port: string,
  { file, args }: { readonly file: string; readonly args: readonly string[] },
  probe: string,
) {
  const child = spawn(programs[name] ?? name, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    // Where Caddy keeps its state.
    env: { ...process.env, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  });
  let said = '';
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const ended = once(child, 'close');
  onTestFinished(async () => {
    // Caddy would wait for a stream whose client is gone, for a minute.
    child.kill(name === 'caddy' ? 'SIGKILL' : 'SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  await until(async () => {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`${name} ended, with the configuration ${file}: ${said}`);
    return (await fetch(`${url}${probe}`).catch(() => undefined))?.status === 200;
  });
  return { url, port: Number(port) };
}

type Replacements = readonly (readonly [string, string])[];

function nginxIn(folder: string, port: string, servers: Replacements) {
  const file = path.join(folder, 'nginx.conf');
  writeFileSync(
    file,
    configurationWith('nginx.conf', [
      ...servers,
      ['listen 80;', `listen 127.0.0.1:${port};`],
      ['user www-data;', ''],
      ['/var/log/nginx/error.log', 'stderr'],
      ['/var/log/nginx/access.log', `${folder}/access.log`],
      // Folders that nginx creates at its start, in places where only root may.
      ['http {', `http {\n${nginxFolders(folder)}`],
    ]),
  );
  return { file, args: nginxArgs(folder, file) };
}

function nginxFolders(folder: string): string {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return kinds.map((kind) => `${kind}_temp_path ${folder}/${kind};`).join('\n');
}

function nginxArgs(folder: string, file: string): readonly string[] {
  const global = `daemon off; pid ${folder}/nginx.pid;${process.getuid?.() === 0 ? ' user root;' : ''}`;
  return ['-c', file, '-e', 'stderr', '-g', global];
}

/** A site of its own, which includes the documented locations. */
function nginxSubPathIn(folder: string, port: string, serverPort: string, isPrefixRemoved: boolean) {
  const file = path.join(folder, 'nginx.conf');
  const documentedLocations = configurationWith('nginx-sub-path.conf', [
    ['http://127.0.0.1:8080', `http://127.0.0.1:${serverPort}`],
  ]);
  const removing = `location /lanescan/ { proxy_pass http://127.0.0.1:${serverPort}/; proxy_buffering off; }`;
  writeFileSync(
    file,
    `events {} http { access_log ${folder}/access.log; ${nginxFolders(folder)}
server { listen 127.0.0.1:${port}; location / { return 200 "another site"; }
${isPrefixRemoved ? removing : documentedLocations} } }`,
  );
  return { file, args: nginxArgs(folder, file) };
}

function haproxyIn(folder: string, port: string, servers: Replacements) {
  const file = path.join(folder, 'haproxy.cfg');
  writeFileSync(
    file,
    configurationWith('haproxy.cfg', [
      ...servers,
      ['bind :80\n', `bind 127.0.0.1:${port}\n`],
      ['log /dev/log local0', 'log stdout format raw local0'],
      // A container may be allowed fewer file descriptors than a server of one's own.
      ['maxconn 20000', 'maxconn 1000'],
      ['    user haproxy\n    group haproxy\n    chroot /var/lib/haproxy\n', ''],
    ]),
  );
  return { file, args: ['-db', '-f', file] };
}

function caddyIn(folder: string, port: string, servers: Replacements) {
  const file = path.join(folder, 'Caddyfile');
  writeFileSync(
    file,
    configurationWith('Caddyfile', [
      ...servers,
      // Without TLS, for there is no certificate authority; and without the administration on a fixed port.
      ['lanescan.example {', `http://127.0.0.1:${port} {\n\tbind 127.0.0.1`],
      ['\temail admin@lanescan.example', '\tadmin off'],
    ]),
  );
  return { file, args: ['run', '--adapter', 'caddyfile', '--config', file] };
}

function caddySubPathIn(folder: string, port: string, serverPort: string, isPrefixRemoved: boolean) {
  const file = path.join(folder, 'Caddyfile');
  const site = configurationWith('Caddyfile-sub-path', [
    ['lanescan.example {', `http://127.0.0.1:${port} {\n\tbind 127.0.0.1\n\trespond "another site"`],
    ['127.0.0.1:8080', `127.0.0.1:${serverPort}`],
    ...(isPrefixRemoved ? ([['\thandle /lanescan', '\thandle_path /lanescan']] as const) : []),
  ]);
  writeFileSync(file, `{\n\tadmin off\n}\n${site}`);
  return { file, args: ['run', '--adapter', 'caddyfile', '--config', file] };
}

const subPathConfigurations = { nginx: nginxSubPathIn, caddy: caddySubPathIn } as const;
const configurations = { nginx: nginxIn, haproxy: haproxyIn, caddy: caddyIn } as const;
