/** Two built Lanescan servers on one database, each on a port of its own, as they stand behind a proxy. */
import { onTestFinished } from 'vitest';
import { freePort } from '../chaos/deployment.ts';
import { type Running, start } from '../cli/program.ts';

/** What docs/operations tells operators to set behind a proxy. */
const documentedSettings = { LANESCAN_TRUST_PROXY: '1', LANESCAN_DRAIN_SECONDS: '5' };

export type ServerBehindProxy = Awaited<ReturnType<typeof startServer>>;

export function startTwoServers(databaseUrl: string) {
  return Promise.all([startServer(databaseUrl), startServer(databaseUrl)]);
}

export async function startServer(databaseUrl: string, settings: Readonly<Record<string, string>> = {}) {
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
    /** What the running process has logged. */
    log: () => running.said().stderr,
    /** How many requests of this route the running process has answered. */
    async answered(route: string) {
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      const counts = metrics
        .split('\n')
        .filter((line) => line.startsWith('lanescan_http_request_duration_seconds_count{'))
        .filter((line) => line.includes(`route="${route}"`));
      return counts.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    },
    /** SIGTERM, then a new process once the old one has ended; resolves when that one is ready. */
    async restart() {
      const { code, stderr } = await end('SIGTERM');
      if (code !== 0) throw new Error(`The server ended with status ${code}: ${stderr.slice(-2_000)}`);
      running = await launch();
    },
    /** kill -9, then a new process; resolves when that one is ready. */
    async crash() {
      await end('SIGKILL');
      running = await launch();
    },
  };
}
