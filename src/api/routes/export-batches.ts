/** The batches of an export as text, for the HTTP response and for the command. */

import type { Filters } from '../../domain/filters/query.ts';
import {
  type ExportFormat,
  exportHead,
  exportLines,
  exportLinesWithAttempts,
} from '../../domain/records/export-format.ts';
import { noExecutions } from '../../store/query/attempts.ts';
import type { Store } from '../../store/store.ts';

export interface ExportShape {
  readonly format: ExportFormat;
  /** Whether each message has the attempts to execute it beside its record. */
  readonly withAttempts: boolean;
}

export interface ExportBatch {
  readonly text: string;
  /** Messages in it. */
  readonly rows: number;
}

/** The text of a file from its first line on. The first batch is read before anything is yielded. */
export async function* exportBatches(
  store: Pick<Store, 'exportRecords' | 'exportExecutions'>,
  filters: Filters,
  { format, withAttempts }: ExportShape,
  signal?: AbortSignal,
): AsyncGenerator<ExportBatch> {
  let head = exportHead(format, withAttempts);
  const batchOf = (lines: string, rows: number): ExportBatch => {
    const text = head + lines;
    head = '';
    return { text, rows };
  };
  if (withAttempts) {
    for await (const { records, executions } of store.exportExecutions(filters, signal)) {
      const lines = exportLinesWithAttempts(
        records,
        ({ messageId }) => executions.get(messageId.slice(2)) ?? noExecutions,
        format,
      );
      yield batchOf(lines, records.length);
    }
  } else {
    for await (const records of store.exportRecords(filters, signal))
      yield batchOf(exportLines(records, format), records.length);
  }
  if (head !== '') yield batchOf('', 0);
}
