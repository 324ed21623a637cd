/** Processes of the bench's own: each does one job when asked, and answers or says what went wrong. */
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface Reply<T> {
  readonly result?: T;
  readonly error?: string;
}

export interface Worker<Order, Result> {
  readonly pid: number;
  run(order: Order): Promise<Result>;
  stop(): Promise<void>;
}

export interface WorkerOptions {
  readonly nodeArgs?: readonly string[];
  /** The file for what it has to say. */
  readonly log?: string;
}

/** Starts `file`, which calls `answerOrders`. */
export function startWorker<Order, Result>(
  file: string,
  { nodeArgs = [], log }: WorkerOptions = {},
): Worker<Order, Result> {
  const child: ChildProcess = fork(fileURLToPath(new URL(file, import.meta.url)), {
    execArgv: [...nodeArgs, '--import', 'tsx'],
    ...(log !== undefined && { stdio: ['ignore', 'inherit', openSync(log, 'w'), 'ipc'] }),
    serialization: 'advanced',
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    pid: child.pid ?? 0,
    run: (order) =>
      new Promise((resolve, reject) => {
        const onExit = (code: number | null) => reject(new Error(`${file} ended with ${code}`));
        child.once('exit', onExit);
        child.once('message', (reply: Reply<Result>) => {
          child.off('exit', onExit);
          if (reply.error !== undefined) reject(new Error(reply.error));
          else resolve(reply.result as Result);
        });
        child.send(order as object);
      }),
    async stop() {
      child.kill();
      await ended;
    },
  };
}

/** In the process that was started: one order after the other. */
export function answerOrders<Order, Result>(work: (order: Order) => Promise<Result>): void {
  process.on('message', (order: Order) => {
    work(order).then(
      (result) => process.send?.({ result }),
      (error: Error) => process.send?.({ error: error.stack ?? error.message }),
    );
  });
  // Whoever started this is gone.
  process.on('disconnect', () => process.exit());
}

/** Installs a separate package, such as `bench/peers`. Returns whether it is installed; the script has printed why not. */
export function installPackage(folder: string): boolean {
  const script = fileURLToPath(new URL('../scripts/install-package.mjs', import.meta.url));
  const { status } = spawnSync(process.execPath, [script, folder], {
    stdio: ['ignore', process.stderr, process.stderr],
  });
  return status === 0;
}
