/** What the database and its driver give alone: the same statements in a loop, a connection for each that waits. */
import pg from 'pg';
import { SEARCH_SETTINGS } from '../../src/store/query/search.ts';
import { answerOrders } from '../child.ts';

export interface DatabaseOrder {
  readonly url: string;
  readonly statements: readonly { readonly text: string; readonly values: readonly unknown[] }[];
  readonly from: number;
  readonly connections: number;
  readonly seconds: number;
  /** Named statements are parsed once a connection. */
  readonly isPrepared: boolean;
}

export interface DatabaseReport {
  readonly requests: number;
  readonly seconds: number;
  readonly rows: number;
}

/** Connections are kept between orders: a server's are, too. */
let pool: { url: string; clients: pg.Client[] } = { url: '', clients: [] };

async function connect(url: string, connections: number): Promise<readonly pg.Client[]> {
  if (pool.url === url && pool.clients.length === connections) return pool.clients;
  await Promise.all(pool.clients.map((client) => client.end()));
  const clients = Array.from(
    { length: connections },
    () => new pg.Client({ connectionString: url, options: `-c timezone=UTC ${SEARCH_SETTINGS}` }),
  );
  await Promise.all(clients.map((client) => client.connect()));
  pool = { url, clients };
  return clients;
}

const names = new Map<string, string>();

answerOrders<DatabaseOrder, DatabaseReport>(async (order) => {
  const clients = await connect(order.url, order.connections);
  let requests = 0;
  let rows = 0;
  let next = order.from;
  const began = performance.now();
  const deadline = began + order.seconds * 1000;
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() < deadline) {
        const statement = order.statements[next++ % order.statements.length];
        if (!statement) return;
        const { text } = statement;
        if (order.isPrepared && !names.has(text)) names.set(text, `s${names.size}`);
        const name = order.isPrepared ? names.get(text) : undefined;
        const result = await client.query({
          text,
          values: [...statement.values],
          rowMode: 'array',
          ...(name !== undefined && { name }),
        });
        rows += result.rows.length;
        requests++;
      }
    }),
  );
  return { requests, seconds: (performance.now() - began) / 1000, rows };
});
