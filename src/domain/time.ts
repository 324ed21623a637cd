/**
 * Milliseconds since 1970 of an ISO 8601 date-time that names its time zone, or NaN. Dates that a calendar
 * does not have (31 February) are NaN too, where JavaScript's own parser would carry them over.
 */
export function parseTime(text: string): number {
  const match =
    /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:[Zz]|([+-])(\d\d):?(\d\d))$/.exec(
      text,
    );
  if (!match) return Number.NaN;
  const [
    ,
    year,
    month,
    day,
    hour,
    minute,
    second = '0',
    fraction = '',
    sign,
    zoneHour = '0',
    zoneMinute = '0',
  ] = match;
  const local = Date.UTC(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
    Number(fraction.padEnd(3, '0').slice(0, 3)),
  );
  const inCalendar = new Date(local).toISOString().startsWith(`${year}-${month}-${day}T${hour}:${minute}`);
  if (!inCalendar || Number(zoneHour) > 14 || Number(zoneMinute) > 59 || Number(year) < 1970)
    return Number.NaN;
  const offset = (Number(zoneHour) * 60 + Number(zoneMinute)) * 60_000;
  return local - (sign === '-' ? -offset : offset);
}
