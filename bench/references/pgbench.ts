/** The same statements from PostgreSQL's own load generator, which costs next to nothing itself. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Cluster } from '../data/database.ts';
import { literal } from '../literal.ts';

const run = promisify(execFile);

export interface PgbenchOrder {
  readonly cluster: Cluster;
  readonly database: string;
  readonly statements: readonly { readonly text: string; readonly values: readonly unknown[] }[];
  readonly connections: number;
  readonly seconds: number;
  readonly scriptFile: string;
}

export async function hasPgbench(): Promise<boolean> {
  return run('pgbench', ['--version']).then(
    () => true,
    () => false,
  );
}

/** Statements a second. */
export async function runPgbench(order: PgbenchOrder): Promise<number> {
  const { host, user, port } = order.cluster.embedded.connection;
  await writeFile(order.scriptFile, order.statements.map(literalStatement).join(''));
  const { stdout } = await run('pgbench', [
    ...['-h', host, '-p', String(port), '-U', user, '-n', '-j', '2', '-f', order.scriptFile],
    ...['-c', String(order.connections), '-T', String(order.seconds), order.database],
  ]);
  const rate = /tps = ([\d.]+)/.exec(stdout)?.[1];
  if (rate === undefined || !/number of failed transactions: 0 /.test(stdout)) {
    throw new Error(`pgbench failed:\n${stdout}`);
  }
  return Number(rate) * order.statements.length;
}

function literalStatement({ text, values }: PgbenchOrder['statements'][number]): string {
  const filled = text.replace(/\$(\d+)/g, (_, number) => literal(values[Number(number) - 1]));
  return `${filled.replace(/\s+/g, ' ')};\n`;
}
