/** Parses ISO 8601 date-times strictly. */

/** The last millisecond of the year 9999: later years do not have four digits in ISO 8601 and PostgreSQL. */
export const LATEST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Milliseconds since 1970 of an ISO 8601 date-time that names its time zone, or NaN. Dates that do
 * not exist (31 February) are NaN too (JavaScript's parser would turn them into March), and so are times before 1970 or
 * after 9999 in UTC. Digits beyond milliseconds are dropped.
 */
export function parseTime(text: string): number {
  return parse(text, Math.floor);
}

/**
 * The same, but digits beyond milliseconds round up. For bounds of a search: for whole milliseconds t, `t >= x` and
 * `t < x` hold exactly when they hold for x rounded up.
 */
export function parseTimeUp(text: string): number {
  return parse(text, Math.ceil);
}

function parse(text: string, round: (ms: number) => number): number {
  const match =
    /^(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:[Zz]|([+-])(\d\d):?(\d\d))$/.exec(text);
  if (!match) return Number.NaN;
  const [, toMinute = '', second = '00', fraction = '', sign, zoneHour = '0', zoneMinute = '0'] = match;
  const local = Date.parse(`${toMinute.toUpperCase()}:${second}Z`);
  // Date.parse takes 31 February for March, and 24:00 for the next day.
  const inCalendar = !Number.isNaN(local) && new Date(local).toISOString().startsWith(toMinute.toUpperCase());
  if (!inCalendar || Number(zoneHour) > 14 || Number(zoneMinute) > 59) return Number.NaN;
  const offsetMs = (Number(zoneHour) * 60 + Number(zoneMinute)) * 60_000;
  // Via a whole number of nanoseconds: a fraction of a second has no exact floating-point value.
  const fractionMs = round(Number(fraction.padEnd(9, '0')) / 1e6);
  const time = local + fractionMs - (sign === '-' ? -offsetMs : offsetMs);
  return time >= 0 && time <= LATEST_TIME ? time : Number.NaN;
}
