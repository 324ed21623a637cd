/** The formats of an export: from stored records to the text of a file. */
import { csvHeader, csvLine } from './csv.ts';
import type { Message } from './message.ts';

export const exportFormats = ['csv', 'ndjson'] as const;
export type ExportFormat = (typeof exportFormats)[number];

export function isExportFormat(text: string): text is ExportFormat {
  return (exportFormats as readonly string[]).includes(text);
}

/** The text before the first record. */
export function exportHead(format: ExportFormat): string {
  return format === 'csv' ? csvHeader : '';
}

/** Records as they are stored, each with its line end. */
export function exportLines(records: readonly string[], format: ExportFormat): string {
  if (format === 'ndjson') return records.map((record) => `${record}\n`).join('');
  return records.map((record) => csvLine(JSON.parse(record) as Message)).join('');
}
