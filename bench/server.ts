/** Starts the built program: `lanescan serve` on a database, with its log in a file. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { familyOf } from './cpu.ts';

export const program = fileURLToPath(new URL('../bin/lanescan', import.meta.url));

/** The Node flags of the program; servers that are compared with it get the same. */
export const nodeArgsOfProgram: readonly string[] = readNodeArgs();

function readNodeArgs(): string[] {
  const [, args] = /^.*exec node (.*) "\$0"/m.exec(readFileSync(program, 'utf8')) ?? [];
  if (args === undefined) throw new Error(`${program} does not say how it starts Node`);
  return args.split(' ');
}

export interface RunningServer {
  readonly port: number;
  readonly pid: number;
  /** Resident memory in bytes, of all of its processes. */
  memory(): number;
  stop(): Promise<void>;
}

export interface ServerCommand {
  readonly command: string;
  readonly args: (port: number) => readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly log: string;
  /** Answers 200 once the server is ready. */
  readonly probe: string;
}

export interface LanescanOptions {
  readonly url: string;
  readonly log: string;
  /** Number of worker processes. */
  readonly processes: number;
  readonly nodeArgs?: readonly string[];
}

export function startLanescan({
  url,
  log,
  processes,
  nodeArgs = [],
}: LanescanOptions): Promise<RunningServer> {
  const serve = (port: number) => ['serve', '--port', String(port), '--processes', String(processes)];
  // NODE_OPTIONS does not accept the flags of the profiler.
  const node = [...nodeArgsOfProgram, ...nodeArgs, program];
  return startServer({
    command: nodeArgs.length === 0 ? program : process.execPath,
    args: (port) => (nodeArgs.length === 0 ? serve(port) : [...node, ...serve(port)]),
    env: { DATABASE_URL: url },
    log,
    probe: '/readyz',
  });
}

export async function startServer({ command, args, env, log, probe }: ServerCommand): Promise<RunningServer> {
  const port = await freePort();
  const output = openSync(log, 'w');
  const child = spawn(command, args(port), {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', output, output],
  });
  const ended = once(child, 'exit');
  for (let attempt = 0; ; attempt++) {
    const answer = await fetch(`http://127.0.0.1:${port}${probe}`).catch(() => undefined);
    await answer?.arrayBuffer();
    if (answer?.status === 200) break;
    if (child.exitCode !== null || attempt === 600) {
      child.kill();
      throw new Error(`The server does not start:\n${readFileSync(log, 'utf8').slice(-2_000)}`);
    }
    await delay(100);
  }
  const pid = child.pid ?? 0;
  return {
    port,
    pid,
    memory: () => familyOf(pid).reduce((sum, member) => sum + residentBytes(member), 0),
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

export async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address ? address.port : 0;
}

/** Linux only, as is what the bench is run on; elsewhere nothing is said of memory. */
export function residentBytes(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
