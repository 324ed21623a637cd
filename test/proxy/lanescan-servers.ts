/** Two built Lanescan servers on one database, each on a port of its own, as they stand behind a proxy. */
import { onTestFinished } from 'vitest';
import { freePort } from '../chaos/deployment.ts';
import { type Running, start } from '../cli/program.ts';

/** What docs/operations tells operators to set behind a proxy. */
const documentedSettings = { LANESCAN_TRUST_PROXY: '1', LANESCAN_DRAIN_SECONDS: '5' };

export interface ServerBehindProxy {
  readonly port: string;
  /** What the running process has logged. */
  log(): string;
  /** How many requests of this route the running process has answered. */
  answered(route: string): Promise<number>;
  /** SIGTERM, then a new process once the old one has ended; resolves when that one is ready. */
  restart(): Promise<void>;
  /** kill -9, then a new process; resolves when that one is ready. */
  crash(): Promise<void>;
}

export async function startTwoServers(
  databaseUrl: string,
): Promise<readonly [ServerBehindProxy, ServerBehindProxy]> {
  return Promise.all([startServer(databaseUrl), startServer(databaseUrl)]);
}

export async function startServer(
  databaseUrl: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<ServerBehindProxy> {
  const port = await freePort();
  const launch = async (): Promise<Running> => {
    const env = { DATABASE_URL: databaseUrl, ...documentedSettings, ...settings };
    const running = start(['serve', '--port', port], { env });
    await running.untilSaid(/listens on/);
    return running;
  };
  const end = async (signal: NodeJS.Signals) => {
    running.child.kill(signal);
    return running.outcome;
  };
  let running = await launch();
  onTestFinished(async () => void (await end('SIGKILL')));
  return {
    port,
    log: () => running.said().stderr,
    async answered(route) {
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      const counts = metrics
        .split('\n')
        .filter((line) => line.startsWith('lanescan_http_request_duration_seconds_count{'))
        .filter((line) => line.includes(`route="${route}"`));
      return counts.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    },
    async restart() {
      const { code, stderr } = await end('SIGTERM');
      if (code !== 0) throw new Error(`The server ended with status ${code}: ${stderr.slice(-2_000)}`);
      running = await launch();
    },
    async crash() {
      await end('SIGKILL');
      running = await launch();
    },
  };
}
