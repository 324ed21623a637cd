/** Exports: all records that match, from one snapshot of the database, in constant memory. */
import type pg from 'pg';
import type { Filters, SearchQuery } from '../../domain/filters/query.ts';
import type { Message } from '../../domain/message.ts';
import type { Layout } from '../cluster/layout.ts';
import type { SearchLookups } from '../cluster/search-lookups.ts';
import type { Read } from '../reads/reads.ts';
import { renderSql } from '../sql.ts';
import { sentAtOf } from '../write/message-row.ts';
import { readExecutionsOf } from './attempts.ts';
import { distributedSearchSql, exportSql, readLookups } from './search.ts';

/** All connections of the export pool are in use; the client may retry later. */
export class ExportsBusyError extends Error {}

const FIRST_ROWS = 50;
const MAX_ROWS_PER_FETCH = 500;
/** With executions, of which a message may have a hundred. */
const MAX_EXECUTIONS_ROWS = 50;
/** The aim for one fetch; the number of its rows is estimated from the rows before. */
const FETCH_BYTES = 1024 * 1024;

/**
 * Exports over the connections of a pool of their own, one connection each. When all are in use, the next export is rejected
 * at once instead of waiting. `cancel` stops the statement of a server process.
 *
 * Each export yields batches of records, newest first. A server-side cursor reads the snapshot of its transaction, whatever
 * is written meanwhile. The signal frees the connection at once, also during a fetch, and also when the generator is not
 * called again.
 */
export function createExporter(pool: pg.Pool, layout: Layout, cancel: (pid: number) => Promise<unknown>) {
  let activeExports = 0;

  /** `complete` reads more about a batch in its transaction. */
  async function* exportBatches<T>(
    filters: Filters,
    signal: AbortSignal | undefined,
    maxRows: number,
    complete: (records: readonly string[], read: Read) => T | Promise<T>,
  ): AsyncGenerator<T> {
    signal?.throwIfAborted();
    if (activeExports >= pool.options.max) throw new ExportsBusyError(`${activeExports} exports are running`);
    activeExports++;
    let client: pg.PoolClient;
    try {
      client = await pool.connect();
    } catch (error) {
      activeExports--;
      throw error;
    }
    // A broken connection rejects its query too. Without a listener, the event would end the process.
    const ignore = () => undefined;
    client.on('error', ignore);
    let isReleased = false;
    const release = (isBroken: boolean) => {
      if (isReleased) return;
      isReleased = true;
      activeExports--;
      signal?.removeEventListener('abort', stop);
      if (!isBroken) client.off('error', ignore);
      client.release(isBroken);
    };
    let isFetching = false;
    const stop = () => {
      // Closing the connection alone would let the server work on until it has a row to send.
      if (isFetching) cancel((client as unknown as { processID: number }).processID).catch(ignore);
      release(true);
    };
    signal?.addEventListener('abort', stop);

    const run = async <R>(work: () => Promise<{ readonly rows: R[] }>): Promise<R[]> => {
      signal?.throwIfAborted();
      isFetching = true;
      try {
        return (await work()).rows;
      } catch (error) {
        signal?.throwIfAborted();
        throw error;
      } finally {
        isFetching = false;
      }
    };
    const query = (text: string, values: unknown[] = []) =>
      run<string[]>(() => client.query({ text, values, rowMode: 'array' }));
    // One connection: reads that are started together run one after the other.
    let lastRead: Promise<unknown> = Promise.resolve();
    const read: Read = (text, values) => {
      const result = lastRead.then(() => run<never>(() => client.query(text, [...values])));
      lastRead = result.catch(ignore);
      return result;
    };
    let isEnded = false;
    try {
      signal?.throwIfAborted();
      const fetchRecords =
        layout === 'single'
          ? await openCursor(query, filters)
          : await openPages(query, filters, await readLookups(read, filters));
      for (let count = FIRST_ROWS; ; ) {
        const records = await fetchRecords(count);
        if (records.length === 0) break;
        yield await complete(records, read);
        const longest = records.reduce((length, record) => Math.max(length, record.length), 1);
        // Doubled at most, so that a fetch is not too large where records suddenly get longer.
        count = Math.max(1, Math.min(count * 2, maxRows, Math.floor(FETCH_BYTES / longest)));
      }
      isEnded = true;
    } finally {
      // A reader that stops early leaves an open transaction. After a failure the connection is not reused.
      if (!isReleased) {
        if (isEnded && layout === 'single') await query('rollback').catch(() => release(true));
        release(!isEnded);
      }
    }
  }

  return {
    /**
     * Everything that matches, newest first, from one snapshot, in batches; holds a connection until it ends.
     * Where all connections for exports are in use, the first batch throws an ExportsBusyError.
     */
    exportRecords: (filters: Filters, signal?: AbortSignal) =>
      exportBatches(filters, signal, MAX_ROWS_PER_FETCH, (records) => records),
    /** The same with the executions of each record by its message id (64 hexadecimal digits), from the same snapshot. */
    exportExecutions: (filters: Filters, signal?: AbortSignal) =>
      exportBatches(filters, signal, MAX_EXECUTIONS_ROWS, async (records, read) => ({
        records,
        executions: await readExecutionsOf(
          read,
          records.map((record) => (JSON.parse(record) as Message).messageId.slice(2)),
        ),
      })),
  };
}

type Query = (text: string, values?: unknown[]) => Promise<string[][]>;
/** The next records, at most `count`; none at the end. */
type FetchRecords = (count: number) => Promise<readonly string[]>;

/** A server-side cursor, which reads the snapshot of its transaction. */
async function openCursor(query: Query, filters: Filters): Promise<FetchRecords> {
  const { text, values } = renderSql(exportSql(filters));
  await query('begin read only isolation level repeatable read');
  await query(`declare matching no scroll cursor for ${text}`, values);
  return async (count) => (await query(`fetch ${count} from matching`)).map(([record]) => record ?? '');
}

/** Pages of keys, each of its own snapshot. On a cluster a cursor would first collect all rows on the coordinator. */
async function openPages(query: Query, filters: Filters, lookups: SearchLookups): Promise<FetchRecords> {
  let after: SearchQuery['after'] = null;
  return async (count) => {
    const page: SearchQuery = { filters, view: 'full', limit: count - 1, after };
    const { text, values } = renderSql(distributedSearchSql(page, lookups));
    const rows = await query(text, values);
    const [, , messageId, key] = rows.at(-1) ?? [];
    if (messageId !== undefined) after = { sentAt: sentAtOf(String(key)), messageId };
    return rows.map(([, record]) => record ?? '');
  };
}
