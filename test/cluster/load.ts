/**
 * Everything that uses a store on a cluster at once, as processes: an import, an indexer of two virtual chains, and the program's
 * server with a reader of its event stream and a receiver of its webhooks. Processes can be killed and are started again. What
 * was acknowledged or delivered is recorded.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { onTestFailed, onTestFinished } from 'vitest';
import { EventReader, until } from '../api/live/live-server.ts';
import { freePort } from '../chaos/deployment.ts';
import { configFile, type Running, start } from '../cli/program.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { makeCcipWorld } from '../virtual-chain/ccip-chain.ts';
import { startProvider } from '../virtual-chain/endpoint.ts';
import { openAgain, SECRET, startReceiver } from '../webhooks/receiver.ts';
import { followedSender } from './batches.ts';

export type LoadProcess = 'writer' | 'indexer' | 'server';

export type Load = Awaited<ReturnType<typeof startLoad>>;

const RESTART_MS = 500;
/** At work, this many batches are accepted in this time: a busy machine recovers slowly. */
const BATCHES_AT_WORK = 2;
export const RECOVERY_MS = 180_000;
const DATABASE_AWAY = /Cannot use the database|ECONNREFUSED|starting up|in recovery|shutting down/;

/** The database goes with the test. */
export async function startLoad(options: {
  /** Of both chains, in the end. */
  readonly blocks: number;
  /** In each direction, over all blocks. */
  readonly messages: number;
  /** How many of the blocks are there in the beginning. */
  readonly firstBlocks: number;
  /** An empty and distributed one by default. */
  readonly database?: TestDatabase;
}) {
  const { blocks, messages, firstBlocks, database = await createTestDatabase() } = options;
  onTestFinished(() => database.drop());
  const databaseUrl = database.url;
  const store = await openAgain(databaseUrl);
  const world = makeCcipWorld({ blocks, messages });
  const chains = [world.a, world.b];
  for (const chain of chains) chain.grow(firstBlocks - blocks);
  const providers = await Promise.all(chains.map((chain) => startProvider(chain)));
  for (const provider of providers) onTestFinished(() => provider.close());
  const networks = chains.map((chain, index) => ({
    network: chain.network.name,
    rpc: [providers[index]?.url.href],
    routers: [chain.router],
    requestsPerSecond: 10_000,
    pollSeconds: 0.05,
  }));

  const receiver = await startReceiver();
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the configuration file
  const hook = { name: 'ops', url: receiver.url, secret: '${SECRET}', allowPrivate: true };
  const config = configFile(JSON.stringify({ webhooks: [{ ...hook, filters: { sender: followedSender } }] }));
  const port = await freePort();
  const serverUrl = `http://127.0.0.1:${port}`;

  const failures: string[] = [];
  const searches = { answered: 0, refused: 0 };
  const stream = new EventReader();
  let acknowledged = 0;
  let isOver = false;
  const expectedEnds = new Set<ChildProcess>();

  /** A process that finds no database when it starts ends, and its supervisor starts it again. Later it has to live on. */
  const watch = (
    name: LoadProcess,
    child: ChildProcess,
    written: () => string,
    hasStarted: () => boolean = () => true,
  ): ChildProcess => {
    onTestFinished(() => void child.kill('SIGKILL'));
    child.once('exit', (code, signal) => {
      if (expectedEnds.has(child) || isOver) return;
      if (!hasStarted() && DATABASE_AWAY.test(written())) void delay(RESTART_MS).then(() => restart(name));
      else failures.push(`The ${name} ended with ${signal ?? code}: ${written().slice(-2_000)}`);
    });
    return child;
  };
  const restart = (name: LoadProcess) => {
    if (isOver) return;
    if (name === 'writer') writer = startWriter();
    else if (name === 'indexer') indexer = startIndexer();
    else server = startServer();
  };
  const spawnScript = (name: LoadProcess, script: string, args: readonly string[]) => {
    let text = '';
    const file = fileURLToPath(new URL(script, import.meta.url));
    const child = spawn(process.execPath, ['--import', 'tsx', file, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH },
    });
    child.stdin.on('error', () => undefined);
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    let hasWritten = false;
    child.stdout.once('data', () => {
      hasWritten = true;
    });
    const [written, hasStarted] = [() => text, () => hasWritten];
    watch(name, child, written, hasStarted);
    return child;
  };

  const startWriter = () => {
    const child = spawnScript('writer', 'writer-process.ts', [databaseUrl, String(acknowledged)]);
    let line = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (line + chunk).split('\n');
      line = lines.pop() ?? '';
      for (const batch of lines) acknowledged = Math.max(acknowledged, Number(batch) + 1);
    });
    return child;
  };
  const startIndexer = () => {
    const child = spawnScript('indexer', '../chaos/indexer-process.ts', [
      databaseUrl,
      JSON.stringify(networks),
    ]);
    child.stdout.resume();
    child.stdin.write('go\n');
    return child;
  };
  const startServer = (): Running => {
    const running = start(['serve', '--port', port, '--config', config], {
      env: { DATABASE_URL: databaseUrl, SECRET },
    });
    const written = () => running.said().stderr;
    watch('server', running.child, written, () => written().includes('listens on'));
    return running;
  };
  const untilReady = () =>
    until(async () => (await fetch(`${serverUrl}/readyz`).catch(() => undefined))?.status === 200);

  const end = async (child: ChildProcess, signal: NodeJS.Signals) => {
    expectedEnds.add(child);
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, 'exit');
  };

  const serverLines = (pattern: RegExp): string =>
    server
      .said()
      .stderr.split('\n')
      .filter((line) => pattern.test(line))
      .slice(-20)
      .join('\n');
  const requestIdOf = (body: string | undefined) =>
    new RegExp(/"requestId":"([\w-]+)"/.exec(body ?? '')?.[1] ?? '^$');
  /** Only 200 and 503 are answers, whatever is killed. */
  const searching = async () => {
    while (!isOver) {
      const response = await fetch(`${serverUrl}/v2/messages?limit=50`).catch(() => undefined);
      const text = await response?.text().catch(() => undefined);
      if (response?.status === 200) searches.answered++;
      else searches.refused++;
      if (response && response.status !== 200 && response.status !== 503)
        failures.push(
          `A search was answered with ${response.status}: ${text}\n${serverLines(requestIdOf(text))}`,
        );
      await delay(100);
    }
  };

  let server = startServer();
  onTestFailed(() => void process.stderr.write(`The server warned:\n${serverLines(/"level":[4-6]0/)}\n`));
  await untilReady();
  // A subscription begins with the changes after its first start.
  await until(async () => (await store.webhooks.backlog()).length > 0);
  let indexer = startIndexer();
  let writer = startWriter();
  const following = stream.follow(
    () => serverUrl,
    () => isOver,
  );
  const clients = [following, searching()];

  return {
    /** Of the test; the processes have their own. */
    store,
    ...{ databaseUrl, world, providers, stream, receiver, searches },
    /** Processes that ended although nobody killed them, with what they wrote. */
    failures: failures as readonly string[],
    /** Batches that were acknowledged: all below this number. */
    get acknowledged() {
      return acknowledged;
    },
    /** Lets the chains go on. */
    growChains(count: number) {
      for (const chain of chains) chain.grow(Math.min(count, blocks - chain.head));
    },
    /** Kills with -9, and starts it again. */
    async kill(name: LoadProcess) {
      const victim = { writer, indexer, server: server.child }[name];
      await end(victim, 'SIGKILL');
      restart(name);
    },
    /** Waits until the store has accepted more batches and the stream has got changes, or a process has failed. */
    async untilAtWork() {
      const batches = acknowledged + BATCHES_AT_WORK;
      const { length } = stream.changes;
      await until(
        () => failures.length > 0 || (acknowledged >= batches && stream.changes.length > length),
        RECOVERY_MS,
      );
    },
    /** Ends the import after a whole batch. */
    async stopWriter() {
      expectedEnds.add(writer);
      writer.stdin.end();
      if (writer.exitCode === null) await once(writer, 'exit');
    },
    async stop() {
      isOver = true;
      await stream.disconnect();
      await Promise.all(clients);
      await end(indexer, 'SIGKILL');
      await end(server.child, 'SIGTERM');
    },
  };
}
