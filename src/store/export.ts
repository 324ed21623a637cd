/** Exports: all records that match, from one snapshot of the database, in constant memory. */
import type pg from 'pg';
import type { Filters } from '../domain/query.ts';
import { exportSql } from './search.ts';
import { renderSql } from './sql.ts';

/** All connections of the export pool are in use; the client may retry later. */
export class ExportsBusyError extends Error {}

export type ExportRecords = (filters: Filters, signal?: AbortSignal) => AsyncGenerator<readonly string[]>;

const FIRST_ROWS = 50;
const MAX_ROWS_PER_FETCH = 500;
/** The aim for one fetch; the number of its rows is estimated from the rows before. */
const FETCH_BYTES = 1024 * 1024;

/**
 * Exports over the connections of a pool of their own, one connection each. When all are in use, the next export is refused
 * at once instead of waiting. `cancel` stops the statement of a server process.
 *
 * Each export yields batches of records, newest first. A server-side cursor reads the snapshot of its transaction, whatever
 * is written meanwhile. The signal frees the connection at once, also during a fetch, and also when the generator is not
 * called again.
 */
export function createExporter(pool: pg.Pool, cancel: (processId: number) => Promise<void>): ExportRecords {
  let activeExports = 0;

  return async function* exportRecords(filters, signal) {
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

    const query = async (text: string, values: unknown[] = []): Promise<string[][]> => {
      signal?.throwIfAborted();
      isFetching = true;
      try {
        return (await client.query({ text, values, rowMode: 'array' })).rows;
      } catch (error) {
        signal?.throwIfAborted();
        throw error;
      } finally {
        isFetching = false;
      }
    };
    let isEnded = false;
    try {
      signal?.throwIfAborted();
      const { text, values } = renderSql(exportSql(filters));
      await query('begin read only isolation level repeatable read');
      await query(`declare matching no scroll cursor for ${text}`, values);
      for (let count = FIRST_ROWS; ; ) {
        const rows = await query(`fetch ${count} from matching`);
        if (rows.length === 0) break;
        const records = rows.map(([record]) => record ?? '');
        yield records;
        const longest = records.reduce((length, record) => Math.max(length, record.length), 1);
        // Doubled at most, so that a fetch is not too large where records suddenly get longer.
        count = Math.max(1, Math.min(count * 2, MAX_ROWS_PER_FETCH, Math.floor(FETCH_BYTES / longest)));
      }
      isEnded = true;
    } finally {
      // A reader that stops early leaves an open transaction. After a failure the connection is not reused.
      if (!isReleased) {
        if (isEnded) await query('rollback').catch(() => release(true));
        release(!isEnded);
      }
    }
  };
}
