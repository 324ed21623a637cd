/** Connections of tests to PostgreSQL. */
import pg from 'pg';
import { onTestFinished } from 'vitest';

/** A connection that the caller ends. */
export async function connectTo(url: string, options: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, ...options });
  await client.connect();
  return client;
}

/** A connection that ends with the test. */
export async function connectForTest(url: string): Promise<pg.Client> {
  const client = await connectTo(url);
  onTestFinished(() => client.end());
  return client;
}

/** The rows of one statement, on a connection of its own. The server may end it, or itself, meanwhile. */
export async function queryOnce<Row extends pg.QueryResultRow>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const client = await connectTo(url);
  client.on('error', () => undefined);
  try {
    return (await client.query<Row>(text, [...values])).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

interface PlanNode {
  readonly Plans?: readonly PlanNode[];
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
}

/** The rows of tables that a statement examines, also those that its conditions reject. */
export async function countExaminedRows(
  client: pg.ClientBase,
  text: string,
  values: readonly unknown[],
): Promise<number> {
  const { rows } = await client.query(`explain (analyze, format json) ${text}`, [...values]);
  const countOf = (node: PlanNode): number => {
    const below = (node.Plans ?? []).reduce((sum, child) => sum + countOf(child), 0);
    const examined = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0);
    return node.Plans ? below : Math.round(node['Actual Loops'] * examined);
  };
  return countOf(rows[0]['QUERY PLAN'][0].Plan);
}

/** The URL of another database on the server of a URL. */
export function urlOfDatabase(url: string, database: string): string {
  const other = new URL(url);
  other.pathname = `/${database}`;
  return other.href;
}
