/**
 * The reference of `backfill.ts`, in a process of its own as the program is: fetches logs and parses them, nothing else.
 * `backfill-fetch.ts FILE`, the file being a list of nodes with their filters; says how many milliseconds it took.
 */
import { readFileSync } from 'node:fs';

const nodes = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as readonly {
  readonly url: string;
  readonly filters: readonly unknown[];
}[];
const began = performance.now();
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
console.log(performance.now() - began);
