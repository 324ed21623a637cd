/** All records that match, from one snapshot of the database, in constant memory. */
import type pg from 'pg';
import type { Filters } from '../domain/query.ts';
import { exportSql } from './search.ts';
import { renderSql } from './sql.ts';

/** Every connection that is meant for exports is at work: another one has to come back later. */
export class ExportsBusyError extends Error {}

export type ExportRecords = (filters: Filters, signal?: AbortSignal) => AsyncGenerator<readonly string[]>;

const FIRST_ROWS = 50;
const MAX_ROWS_PER_FETCH = 500;
/** What one fetch should bring; the length of the rows before tells how many that may be. */
const FETCH_BYTES = 1024 * 1024;

/**
 * Exports over the connections of a pool that serves nothing else, one connection each; one more than there
 * are connections is refused at once instead of waiting. `cancel` stops what a server process is working on.
 *
 * Each yields batches of records, newest first. The server-side cursor reads what the transaction saw when it
 * began, whatever is written meanwhile. The signal frees the connection at once, in the middle of a fetch and
 * also when nobody asks the generator again.
 */
export function createExporter(pool: pg.Pool, cancel: (processId: number) => Promise<void>): ExportRecords {
  let underWay = 0;

  return async function* exportRecords(filters, signal) {
    signal?.throwIfAborted();
    if (underWay >= pool.options.max) throw new ExportsBusyError(`${underWay} exports are under way`);
    underWay++;
    let client: pg.PoolClient;
    try {
      client = await pool.connect();
    } catch (error) {
      underWay--;
      throw error;
    }
    // A connection that breaks rejects the query at work as well; unheard, the event would end the process.
    const ignore = () => undefined;
    client.on('error', ignore);
    let isReleased = false;
    const release = (isBroken: boolean) => {
      if (isReleased) return;
      isReleased = true;
      underWay--;
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
        // Doubling at most: where records suddenly grow long, few of them have been asked for.
        count = Math.max(1, Math.min(count * 2, MAX_ROWS_PER_FETCH, Math.floor(FETCH_BYTES / longest)));
      }
      isEnded = true;
    } finally {
      // A reader that had enough leaves a transaction behind; a connection after a failure is not worth keeping.
      if (!isReleased) {
        if (isEnded) await query('rollback').catch(() => release(true));
        release(!isEnded);
      }
    }
  };
}
