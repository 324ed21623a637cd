/** The measurements of a life on the terminal, and what a billion such messages would take. */
import { printDiskUse } from '../measurements/disk.ts';
import type { Measurement } from './measurement.ts';
import type { LifeResult } from './run.ts';

const columns: readonly (readonly [head: string, width: number, cell: (one: Measurement) => string])[] = [
  ['month', 6, ({ month }) => (month === null ? 'end' : String(month))],
  ['messages', 12, ({ messages }) => count(messages)],
  ['bytes/msg', 11, ({ disk }) => count(disk.bytesPerMessage)],
  ['dead rows', 11, ({ tables }) => count(tables.reduce((sum, { deadRows }) => sum + deadRows, 0))],
  ['WAL/msg', 9, ({ since }) => count(since.walBytesPerMessage)],
  ['rows/msg', 10, ({ since }) => since.rowsWrittenPerMessage.toFixed(1)],
  ['HOT', 8, ({ since }) => percent(since.hotShare)],
  ['cached', 9, ({ since }) => percent(since.cacheHitShare)],
  ['msg/s', 8, ({ since }) => count(since.messagesPerSecond)],
  ['p50 ms', 9, ({ searches }) => searches.p50Ms.toFixed(1)],
  ['p99 ms', 9, ({ searches }) => searches.p99Ms.toFixed(1)],
  ['RSS MiB', 9, ({ residentMebibytes }) => count(residentMebibytes)],
];

export function printMonthHeads(): void {
  console.log(columns.map(([head, width]) => head.padStart(width)).join(''));
}

/** Since the month before, except for messages, bytes, dead rows and memory, which are those of the moment. */
export function printMonth(measurement: Measurement): void {
  console.log(columns.map(([, width, cell]) => cell(measurement).padStart(width)).join(''));
}

export function printLife({ measurements, verdict }: LifeResult): void {
  const last = measurements.at(-1);
  if (!last) throw new Error('A run ends with a measurement.');
  printDiskUse(last.disk);
  console.log('\nTables of 1 MB and more');
  console.log(cells('', tableHeads));
  for (const { name, liveRows, deadRows, updates, hotUpdates, autovacuums, unusedShare } of last.tables)
    if (unusedShare !== null)
      console.log(
        cells(name, [
          ...[liveRows, deadRows, updates, hotUpdates, autovacuums].map(count),
          percent(unusedShare),
        ]),
      );
  console.log('\nIndexes of 1 MB and more: what is used of the leaf pages');
  for (const [name, density] of Object.entries(last.leafDensity))
    console.log(`  ${name.padEnd(44)}${percent(density).padStart(8)}`);
  const { terabytes, workers, messagesPerShard } = billionMessages(last.disk.bytesPerMessage);
  console.log(
    `\nA billion messages (calculated): ${terabytes.toFixed(1)} TB; on Citus ${workers} workers with 1 TB each, a shard of ` +
      `${count(messagesPerShard)} messages on each`,
  );
  const statuses = Object.entries(verdict.byStatus).filter(([, messages]) => messages > 0);
  console.log(
    `All ${count(verdict.messages)} messages are as generated: ` +
      `${statuses.map(([status, messages]) => `${count(messages)} ${status}`).join(', ')}; ` +
      `${count(verdict.compared)} records with their attempts and histories compared`,
  );
}

/** A worker with a disk of 1 TB is full to half, as docs/cluster.md plans: the rest is for growth, indexes that are built, and WAL. */
const BYTES_PER_WORKER = 0.52e12;

export function billionMessages(bytesPerMessage: number) {
  const bytes = 1e9 * bytesPerMessage;
  const workers = Math.ceil(bytes / BYTES_PER_WORKER);
  return { terabytes: bytes / 1e12, workers, messagesPerShard: Math.round(1e9 / workers) };
}

const tableHeads = ['live rows', 'dead rows', 'updates', 'HOT', 'autovacuums', 'dead or free'];

function cells(name: string, values: readonly string[]): string {
  return `  ${name.padEnd(20)}${values.map((value) => value.padStart(14)).join('')}`;
}

function count(number: number): string {
  return Math.round(number).toLocaleString('en');
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
