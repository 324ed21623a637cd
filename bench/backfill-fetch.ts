/**
 * The reference of `backfill.ts`, in a separate process like the program: it only fetches logs and parses them.
 * `backfill-fetch.ts FILE`, where the file is a list of nodes with their filters; prints the milliseconds it took.
 */
import { readFileSync } from 'node:fs';

const nodes = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as readonly {
  readonly url: string;
  readonly filters: readonly unknown[];
}[];
const began = performance.now();
// The filters of a node one after the other, all nodes in parallel.
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
