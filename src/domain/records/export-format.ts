/** The formats of an export: from stored records to the text of a file. */
import { attemptJson, attemptsOf, type ExecutionFacts, lastAttempt } from '../attempts.ts';
import type { Message } from '../message.ts';
import { csvHeader, csvLine } from './csv.ts';
import { ATTEMPTS_MEMBER } from './record-members.ts';

export const exportFormats = ['csv', 'ndjson'] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Columns of a CSV file with attempts: all of them as JSON, and why the last one failed. */
const attemptColumns = [ATTEMPTS_MEMBER, 'failureCode', 'failureReason'];

export function isExportFormat(text: string): text is ExportFormat {
  return (exportFormats as readonly string[]).includes(text);
}

/** The text before the first record. */
export function exportHead(format: ExportFormat, withAttempts = false): string {
  if (format === 'ndjson') return '';
  return csvHeader(withAttempts ? attemptColumns : []);
}

/** Records as they are stored, each with its line end. */
export function exportLines(records: readonly string[], format: ExportFormat): string {
  if (format === 'ndjson') return records.map((record) => `${record}\n`).join('');
  return records.map((record) => csvLine(JSON.parse(record) as Message)).join('');
}

/** Records, each with its attempts behind it, and its line end. */
export function exportLinesWithAttempts(
  records: readonly string[],
  executionsOf: (message: Message) => ExecutionFacts,
  format: ExportFormat,
): string {
  return records
    .map((record) => {
      const message = JSON.parse(record) as Message;
      const { facts, removed } = executionsOf(message);
      const attempts = attemptsOf(message, facts, removed);
      const all = JSON.stringify(attempts.map(attemptJson));
      // The record stays as it is stored, also where it has numbers that JavaScript cannot hold.
      if (format === 'ndjson') return `${record.slice(0, -1)},"${ATTEMPTS_MEMBER}":${all}}\n`;
      const reason = lastAttempt(attempts)?.reason;
      return csvLine(message, [all, reason?.code ?? null, reason?.text ?? null]);
    })
    .join('');
}
