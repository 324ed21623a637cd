/**
 * The reference: fetches the same logs and parses them, nothing else, in a process of its own as the program is.
 * `fetch-logs.ts FILE` does the work, the file being a list of nodes with their filters; it prints the milliseconds.
 */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export interface LogFilters {
  readonly url: string;
  readonly filters: readonly unknown[];
}

/** Milliseconds. */
export async function fetchLogs(folder: string, nodes: readonly LogFilters[]): Promise<number> {
  const file = path.join(folder, 'filters.json');
  writeFileSync(file, JSON.stringify(nodes));
  const script = fileURLToPath(import.meta.url);
  const child = spawn(process.execPath, ['--import', 'tsx', script, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  for await (const text of child.stdout.setEncoding('utf8')) printed += text;
  const ms = Number(printed);
  if (!(ms > 0)) throw new Error('The logs could not be fetched.');
  return ms;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const nodes = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as readonly LogFilters[];
  const begunAt = performance.now();
  // Each node's one after the other, all nodes at once.
  await Promise.all(
    nodes.map(async ({ url, filters }) => {
      for (const [id, filter] of filters.entries()) {
        const response = await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_getLogs', params: [filter] }),
        });
        JSON.parse(await response.text());
      }
    }),
  );
  console.log(performance.now() - begunAt);
}
