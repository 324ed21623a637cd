/** Checks of `lanescan doctor` for the disk: what is free, what the store takes, and how long that lasts. */
import { statfs } from 'node:fs/promises';
import path from 'node:path';
import { type DiskUsage, daysLeft, type Growth, type Pace } from '../../store/query/disk-usage.ts';
import { age, counted, grouped, printable } from '../../text/format.ts';
import { type Finding, failure, ok, warning } from './finding.ts';

const LOW_SPACE_BYTES = 1e9;
/** A larger disk takes an order, an approval and a window of maintenance: a month in many places. */
const WARNING_DAYS = 30;
/** What is found on Friday evening has to hold until Monday. */
const FAULT_DAYS = 3;
const DAYS_PER_YEAR = 365;
/** The pace will not stay the same for longer. */
const MAX_YEARS = 10;

const MORE_SPACE =
  'Enlarge the disk, or stop Lanescan and move the data folder to a larger one. `lanescan_table_bytes` in the metrics shows what takes the space.';

export async function diskFinding(dataFolder: string): Promise<Finding> {
  const folder = path.resolve(dataFolder);
  for (let existing = folder; ; existing = path.dirname(existing)) {
    try {
      const { bavail, bsize } = await statfs(existing);
      const free = bavail * bsize;
      const what = `Disk of ${printable(dataFolder)}: ${(free / 1e9).toFixed(1)} GB free`;
      return free >= LOW_SPACE_BYTES
        ? ok(what)
        : warning(what, 'Free some space, or choose another folder with --data.');
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const isMissing = code === 'ENOENT' || code === 'ENOTDIR';
      if (isMissing && existing !== path.dirname(existing)) continue;
      return warning(
        `Disk of ${printable(dataFolder)}: ${printable(message)}`,
        'Check the path, or choose another folder with --data.',
      );
    }
  }
}

/** What the store takes, and how fast that grows. */
export function growthFindings({ databaseBytes, disk, messages, growth }: DiskUsage): readonly Finding[] {
  const { bytesPerMessage } = growth;
  const database = databaseBytes === null ? 'unknown while a worker is away' : bytesText(databaseBytes);
  const wal = disk === null ? '' : `, and ${bytesText(disk.walBytes)} of write-ahead log`;
  const each =
    bytesPerMessage === null
      ? 'too few messages to tell what one takes'
      : `${bytesText(bytesPerMessage)} a message (${grouped(messages)})`;
  return [ok(`Size: ${database}${wal}; ${each}`), growthFinding(growth, disk)];
}

function growthFinding(growth: Growth, disk: DiskUsage['disk']): Finding {
  const { recorded, sent, isLoad, expected } = growth;
  if (recorded === null) return ok('Growth: unknown, with less than an hour of history');
  const lately = `${paceText(recorded)}, as recorded in the last ${age(recorded.spanMs)}`;
  const pace = !isLoad
    ? lately
    : sent === null
      ? `${lately}; that is a load of history, and no whole day of messages shows the pace after it`
      : `${paceText(sent)}, as sent in the last ${age(sent.spanMs)}; history was loaded lately: ${lately}`;
  if (disk === null)
    return ok(`Growth: ${pace}. The free space of the database server cannot be seen from here`);
  const days = daysLeft(disk, expected);
  const loadDays = isLoad ? daysLeft(disk, recorded) : null;
  const lasts =
    days === null ? 'How long the disk lasts is unknown' : `At that pace the disk lasts ${lasting(days)}`;
  const isFullByLoad = loadDays !== null && loadDays < FAULT_DAYS;
  const butLoad = isFullByLoad ? `, but the load fills it in ${lasting(loadDays)} if it takes so long` : '';
  const what = `Growth: ${pace}. ${lasts}${butLoad}`;
  if (days !== null && days < FAULT_DAYS) return failure(what, MORE_SPACE);
  if ((days !== null && days < WARNING_DAYS) || isFullByLoad) return warning(what, MORE_SPACE);
  return ok(what);
}

function paceText({ messagesPerDay, bytesPerDay }: Pace): string {
  const bytes = bytesPerDay === null ? '' : ` (${bytesText(bytesPerDay)})`;
  return `${counted(Math.round(messagesPerDay), 'message')} a day${bytes}`;
}

function lasting(days: number): string {
  if (days < 1) return counted(Math.floor(days * 24), 'hour');
  const years = days / DAYS_PER_YEAR;
  if (years > MAX_YEARS) return `more than ${MAX_YEARS} years`;
  return years < 2 ? counted(Math.floor(days), 'day') : `${Math.floor(years)} years`;
}

/** @example bytesText(4126) // '4.1 kB' */
function bytesText(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}
