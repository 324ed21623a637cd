/** One process of `raw-rows.ts`: searches pages through the store, which has raw rows, or over a pool of the driver. */
import { createHash } from 'node:crypto';
import pg from 'pg';
import type { SearchQuery } from '../src/domain/filters/query.ts';
import { SEARCH_SETTINGS, searchSql } from '../src/store/query/search.ts';
import { renderSql } from '../src/store/sql.ts';
import { openStore } from '../src/store/store.ts';
import { answerOrders } from './child.ts';
import { createWorld } from './data/world.ts';

export interface RawRowsOrder {
  readonly url: string;
  readonly rawRows: boolean;
  readonly messages: number;
  /** Rows of each page. */
  readonly rows: number;
  readonly searches: number;
  readonly inFlight: number;
  /** The same seed is the same pages. */
  readonly seed: number;
  /** Whether the pages are hashed, instead of measured. */
  readonly isCheck: boolean;
}

export interface RawRowsReport {
  /** Of this process, for one search. */
  readonly cpuUs: number;
  readonly wallUs: number;
  readonly bytes: number;
  readonly rssMb: number;
  /** Of all pages, in their order; null where they were measured. */
  readonly hash: string | null;
}

interface Searcher {
  search(query: SearchQuery): Promise<{ readonly json: Buffer; readonly records: readonly string[] }>;
}

let opened: Promise<Searcher> | undefined;

/** The driver alone: the same statement, prepared, and the texts of its records joined; two connections, as raw rows use. */
async function openDriver(url: string): Promise<Searcher> {
  const pool = new pg.Pool({ connectionString: url, max: 2, options: SEARCH_SETTINGS });
  return {
    async search(query) {
      const { rows } = await pool.query({ name: 'page', rowMode: 'array', ...renderSql(searchSql(query)) });
      const records = rows.slice(0, query.limit).map(([, record]) => record as string);
      return { json: Buffer.from(`[${records.join()}]`), records };
    },
  };
}

answerOrders<RawRowsOrder, RawRowsReport>(async (order) => {
  opened ??= order.rawRows
    ? openStore({ place: { url: order.url }, schema: 'expect' })
    : openDriver(order.url);
  const store = await opened;
  const { envelope } = createWorld(order.messages);
  const queries = Array.from({ length: order.searches }, (_, index) => {
    // In the newer half, where every page is full.
    const half = order.messages >> 1;
    const { sentAtMs, messageId } = envelope(half + (((order.seed + index) * 7_919) % half));
    const after = { sentAt: sentAtMs, messageId: messageId.slice(2) };
    return { filters: {}, view: 'full', limit: order.rows, after } as const;
  });

  if (order.isCheck) {
    const hash = createHash('sha256');
    for (const query of queries) {
      const { json, records } = await store.search(query);
      if (records.length !== order.rows) throw new Error(`A page has ${records.length} rows`);
      hash.update(json);
    }
    return { cpuUs: 0, wallUs: 0, bytes: 0, rssMb: 0, hash: hash.digest('hex') };
  }

  let next = 0;
  let bytes = 0;
  const searchOn = async (): Promise<void> => {
    for (let query = queries[next++]; query; query = queries[next++]) {
      const { json } = await store.search(query);
      bytes += json.length;
    }
  };
  const startedAt = performance.now();
  const cpuBefore = process.cpuUsage();
  await Promise.all(Array.from({ length: order.inFlight }, searchOn));
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    cpuUs: (user + system) / order.searches,
    wallUs: ((performance.now() - startedAt) * 1_000) / order.searches,
    bytes,
    rssMb: process.memoryUsage.rss() / 2 ** 20,
    hash: null,
  };
});
