/** Local chains: hardhat as child processes on ports of their own, which never outlive their parent. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

export interface ChainProcess {
  readonly url: string;
  readonly pid: number;
  /** Ends the process and waits for it; nothing of it stays behind. */
  stop(): Promise<void>;
}

const folderOfLab = import.meta.dirname;
const hardhat = createRequire(import.meta.url).resolve('hardhat/internal/cli/bootstrap.js');
const START_LINE = /JSON-RPC server at (http:\/\/[\d.]+:\d+)/;

/** Resolves when the node answers. Every transaction makes a block at once. */
export async function startNode({ chainId }: { readonly chainId: number }): Promise<ChainProcess> {
  const folder = mkdtempSync(path.join(os.tmpdir(), `lanescan-node-${chainId}-`));
  const config = path.join(folderOfLab, 'hardhat.config.cjs');
  const args = [hardhat, '--config', config, 'node', '--hostname', '127.0.0.1', '--port', '0'];
  const child = spawn(process.execPath, args, {
    // hardhat insists on running below the folder in which it is installed.
    cwd: folderOfLab,
    // A home of its own: hardhat leaves files there. Without a terminal and without consent it reports to nobody.
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      LAB_NODE: JSON.stringify({ chainId, folder }),
      HARDHAT_DISABLE_TELEMETRY_PROMPT: 'true',
    },
    stdio: ['pipe', 'pipe', 'pipe'],
    // A Ctrl-C in the terminal is for the parent, which may still need the node to end well.
    detached: true,
  });
  const ended = once(child, 'exit').finally(() => rmSync(folder, { recursive: true, force: true }));
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  try {
    const url = await startedUrl(child);
    return { url, pid: child.pid ?? 0, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startedUrl(child: ChildProcess): Promise<string> {
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new Error('The node has no output to read.');
  let complaints = '';
  stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-4000);
  });
  for await (const line of createInterface({ input: stdout })) {
    const url = START_LINE.exec(line)?.[1];
    if (url === undefined) continue;
    // Whatever else it says must be read, or it would wait for a reader.
    stdout.resume();
    return url;
  }
  throw new Error(`The local node did not start: ${complaints || 'it said nothing'}`);
}
