/** Exports: all records that match, from one snapshot of the database, in constant memory. */
import type pg from 'pg';
import type { Message } from '../domain/message.ts';
import type { Filters } from '../domain/query.ts';
import { type Executions, readExecutionsOf } from './attempts.ts';
import type { Read } from './reads/reads.ts';
import { exportSql } from './search.ts';
import { renderSql } from './sql.ts';

/** All connections of the export pool are in use; the client may retry later. */
export class ExportsBusyError extends Error {}

/** A batch of records, with the executions of each by its message id (64 hexadecimal digits). */
export interface ExecutionsBatch {
  readonly records: readonly string[];
  readonly executions: ReadonlyMap<string, Executions>;
}

export interface Exporter {
  /**
   * Everything that matches, newest first, from one snapshot, in batches; holds a connection until it ends.
   * Where all connections for exports are in use, the first batch throws an ExportsBusyError.
   */
  exportRecords(filters: Filters, signal?: AbortSignal): AsyncGenerator<readonly string[]>;
  /** The same records, from the same snapshot as their executions. */
  exportExecutions(filters: Filters, signal?: AbortSignal): AsyncGenerator<ExecutionsBatch>;
}

const FIRST_ROWS = 50;
const MAX_ROWS_PER_FETCH = 500;
/** With executions, of which a message may have a hundred. */
const MAX_EXECUTIONS_ROWS = 50;
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
export function createExporter(pool: pg.Pool, cancel: (processId: number) => Promise<void>): Exporter {
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
    const read: Read = (text, values) => run(() => client.query(text, [...values]));
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
        yield await complete(records, read);
        const longest = records.reduce((length, record) => Math.max(length, record.length), 1);
        // Doubled at most, so that a fetch is not too large where records suddenly get longer.
        count = Math.max(1, Math.min(count * 2, maxRows, Math.floor(FETCH_BYTES / longest)));
      }
      isEnded = true;
    } finally {
      // A reader that stops early leaves an open transaction. After a failure the connection is not reused.
      if (!isReleased) {
        if (isEnded) await query('rollback').catch(() => release(true));
        release(!isEnded);
      }
    }
  }

  return {
    exportRecords: (filters, signal) =>
      exportBatches(filters, signal, MAX_ROWS_PER_FETCH, (records) => records),
    exportExecutions: (filters, signal) =>
      exportBatches(filters, signal, MAX_EXECUTIONS_ROWS, async (records, read) => ({
        records,
        executions: await readExecutionsOf(read, records.map(messageIdOf)),
      })),
  };
}

function messageIdOf(record: string): string {
  return (JSON.parse(record) as Message).messageId.slice(2);
}
