/** Export: every message that matches, as one file. */
import { Readable } from 'node:stream';
import { ApiError } from '../../domain/errors.ts';
import { InvalidValueError, trueOrFalse } from '../../domain/filters/parameter-values.ts';
import type { Filters } from '../../domain/filters/query.ts';
import { parseFilters } from '../../domain/filters/search-parameters.ts';
import {
  type ExportFormat,
  exportFormats,
  exportHead,
  exportLines,
  exportLinesWithAttempts,
} from '../../domain/records/export-format.ts';
import { noExecutions } from '../../store/query/attempts.ts';
import { ExportsBusyError } from '../../store/query/export.ts';
import type { Store } from '../../store/store.ts';
import { SLICE_BYTES } from '../server/backpressure.ts';
import type { MediaType, Route } from '../server/route.ts';
import { filterQueryParameters } from './query-parameters.ts';

export interface ExportShape {
  readonly format: ExportFormat;
  /** Whether each message has the attempts to execute it beside its record. */
  readonly withAttempts: boolean;
}

/** The text of a file from its first line on, with the number of messages in each batch. Reads the first before it yields. */
export async function* exportBatches(
  store: Pick<Store, 'exportRecords' | 'exportExecutions'>,
  filters: Filters,
  { format, withAttempts }: ExportShape,
  signal?: AbortSignal,
): AsyncGenerator<{ readonly text: string; readonly rows: number }> {
  let head = exportHead(format, withAttempts);
  const batchOf = (lines: string, rows: number) => {
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

const mediaTypes: Readonly<Record<ExportFormat, MediaType>> = {
  csv: 'text/csv',
  ndjson: 'application/x-ndjson',
};

export const exportRoutes: readonly Route[] = [
  {
    path: '/v2/messages/export',
    mediaTypes: ['text/csv', 'application/x-ndjson'],
    isStreamed: true,
    operationId: 'exportMessages',
    tag: 'Messages',
    summary: 'Export messages',
    description:
      'Every message that matches all of the filters, newest first, as one file of any length: what the ' +
      'database held at the moment of the request, whatever is written meanwhile. `ndjson` is one whole record ' +
      'per line, ready for `lanescan import`; `csv` is a flat table with a header row, in which text that a ' +
      'spreadsheet would take for a formula is preceded by an apostrophe. A transfer that breaks off is not ' +
      'complete: a failure in the middle resets the connection. So does the end of the time of an export, 30 minutes: ' +
      'continue with `sentBefore`, one millisecond after the `sendTimestamp` of the last whole row, and leave out the rows ' +
      'that you have. A few exports run at once; further ones get 503 and `Retry-After`. An address may run two of them; ' +
      'further ones get 429. With `attempts=true` each message has its attempts to execute it as in ' +
      '`/v2/messages/{messageId}/attempts`: in `ndjson` as the member `executionAttempts` behind the record, in `csv` as ' +
      'the columns `executionAttempts` (JSON), `failureCode` and `failureReason` (of the last attempt). An import ' +
      'ignores them.',
    queryParameters: [
      {
        name: 'format',
        description: 'A table for spreadsheets, or whole records, one a line.',
        schema: { type: 'string', enum: [...exportFormats], default: 'csv' },
      },
      {
        name: 'attempts',
        description: 'Whether each message has its attempts to execute it, with the reasons of failures.',
        schema: { type: 'boolean', default: false },
      },
      ...filterQueryParameters,
    ],
    success: { description: 'The file.', headers: ['Content-Disposition'] },
    async handle(request, { store, live }) {
      const parsers = { format: exportFormat, attempts: trueOrFalse };
      const { filters, format = 'csv', attempts = false } = parseFilters(request.query, parsers);
      const moment = new Date().toISOString().slice(0, 19).replaceAll(':', '-');
      const headers = {
        'Content-Type': `${mediaTypes[format]}; charset=utf-8`,
        'Content-Disposition': `attachment; filename="lanescan-messages-${moment}Z.${format}"`,
        'Cache-Control': 'no-store',
      };
      if (request.method === 'HEAD') return { body: Readable.from([]), headers };

      const disconnected = request.disconnected();
      const releaseSlot = live.exports.acquire(request.client);
      const deadline = setTimeout(() => request.disconnect('deadline'), live.limits.exportMs).unref();
      const end = () => {
        releaseSlot();
        clearTimeout(deadline);
      };
      disconnected.addEventListener('abort', end, { once: true });
      try {
        const batches = exportBatches(store, filters, { format, withAttempts: attempts }, disconnected);
        // The first batch is read before the response begins: until then, a failure gets an error response.
        const first = await firstOf(batches, disconnected);
        const body = Readable.from(slices(first, batches), { objectMode: false });
        body.once('error', () => disconnected.aborted || request.disconnect('failure'));
        return { body, headers };
      } catch (error) {
        end();
        throw error;
      }
    },
  },
];

function exportFormat(text: string): ExportFormat {
  const format = exportFormats.find((known) => known === text);
  if (format) return format;
  throw new InvalidValueError(`takes ${exportFormats.join(' or ')}`);
}

type Batches = ReturnType<typeof exportBatches>;

async function firstOf(batches: Batches, disconnected: AbortSignal) {
  try {
    return await batches.next();
  } catch (error) {
    // A client that disconnects is not an internal error, which would alert the operator.
    if (disconnected.aborted) throw new ApiError('SERVICE_UNAVAILABLE', 'The connection was closed.');
    if (!(error instanceof ExportsBusyError)) throw error;
    throw new ApiError(
      'SERVICE_UNAVAILABLE',
      'The maximum number of exports is running. Try again when one of them may have ended, ' +
        'or page through GET /v2/messages.',
    );
  }
}

/**
 * The file in slices, like other long responses: a client that accepts none of them is cut off (`backpressure.ts`), which
 * ends the export's transaction and frees its connection.
 */
async function* slices(
  first: Awaited<ReturnType<Batches['next']>>,
  batches: Batches,
): AsyncGenerator<Buffer> {
  try {
    for (let batch = first; !batch.done; batch = await batches.next()) {
      const bytes = Buffer.from(batch.value.text);
      for (let at = 0; at < bytes.length; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES);
    }
  } finally {
    await batches.return(undefined);
  }
}
