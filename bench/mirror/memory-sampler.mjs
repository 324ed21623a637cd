/** Loaded into the measured process (`node --import`): writes its memory to a file, a line of JSON each time. */
import { appendFileSync } from 'node:fs';

const file = process.env.BENCH_MEMORY_FILE;
const intervalMs = Number(process.env.BENCH_MEMORY_INTERVAL_MS);

if (file !== undefined) {
  setInterval(() => {
    const { rss, heapUsed } = process.memoryUsage();
    const atSeconds = Math.round(process.uptime());
    appendFileSync(file, `${JSON.stringify({ atSeconds, residentBytes: rss, heapBytes: heapUsed })}\n`);
  }, intervalMs).unref();
}
