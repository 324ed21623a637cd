/** Formats times, numbers, hashes and untrusted text for display. */
import type { Message, NetworkInfo } from '../domain/message.ts';
import { grouped } from '../domain/names/tokens.ts';

export { grouped };

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A duration in its two largest units: `12 s`, `1 m 10 s`, `3 h`, `2 d 4 h`. */
export function duration(ms: number): string {
  const total = Math.max(0, ms);
  if (total < SECOND_MS) return total === 0 ? '0 s' : '< 1 s';
  if (total < MINUTE_MS) return `${Math.floor(total / SECOND_MS)} s`;
  if (total < HOUR_MS) return twoUnits(total, MINUTE_MS, 'm', SECOND_MS, 's');
  if (total < DAY_MS) return twoUnits(total, HOUR_MS, 'h', MINUTE_MS, 'm');
  return twoUnits(total, DAY_MS, 'd', HOUR_MS, 'h');
}

function twoUnits(total: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((total % large) / small);
  return `${Math.floor(total / large)} ${largeName}${rest > 0 ? ` ${rest} ${smallName}` : ''}`;
}

/** An age in its largest unit, for a column of times. */
export function age(ms: number): string {
  if (ms < SECOND_MS) return 'now';
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  return `${Math.floor(ms / DAY_MS)} d`;
}

/** An age in its largest unit, in words: `19 minutes`. */
export function ageInWords(ms: number): string {
  if (ms < MINUTE_MS) return counted(Math.max(0, Math.floor(ms / SECOND_MS)), 'second');
  if (ms < HOUR_MS) return counted(Math.floor(ms / MINUTE_MS), 'minute');
  if (ms < DAY_MS) return counted(Math.floor(ms / HOUR_MS), 'hour');
  return counted(Math.floor(ms / DAY_MS), 'day');
}

/** `2026-11-15 04:26:00 UTC` */
export function exactTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

/** `04:26:00` */
export function clockTime(iso: string): string {
  return iso.slice(11, 19);
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `15 Nov` */
export function dayName(iso: string): string {
  return `${Number(iso.slice(8, 10))} ${months[Number(iso.slice(5, 7)) - 1] ?? ''}`;
}

/** `1.2 k`, `3.4 M`: for narrow cells. */
export function compact(number: number): string {
  if (number < 1_000) return String(number);
  if (number < 10_000) return `${(number / 1_000).toFixed(1)}k`;
  if (number < 1_000_000) return `${Math.round(number / 1_000)}k`;
  return `${(number / 1_000_000).toFixed(1)}M`;
}

export function counted(number: number, noun: string): string {
  return `${grouped(number)} ${noun}${number === 1 ? '' : 's'}`;
}

/** Never `0 %` for a share above zero. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return '–';
  const share = (part / whole) * 100;
  if (share > 0 && share < 0.1) return '< 0.1 %';
  return `${share >= 99.95 && part < whole ? '99.9' : Number(share.toFixed(1))} %`;
}

/** 0x and 64 hexadecimal digits. */
export function isMessageId(text: string): boolean {
  return /^0x[0-9a-fA-F]{64}$/.test(text);
}

export function shortHash(text: string): string {
  if (text.length <= 14) return text;
  const head = text.startsWith('0x') ? 6 : 4;
  return `${text.slice(0, head)}…${text.slice(-4)}`;
}

// Control characters, format characters (also bidirectional overrides), private and unassigned ones.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Untrusted text on one line, with all characters that could disguise it made visible. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}

export function networkName({ displayName, name }: NetworkInfo): string {
  const chosen = printable(displayName?.trim() || name);
  return chosen.length > 60 ? `${chosen.slice(0, 59)}…` : chosen;
}

/** The raw integer for a cell, where the decimals are not known. */
export function shortInteger(amount: string): string {
  return amount.length > 13 ? `${amount.slice(0, 4)}…e${amount.length - 4}` : grouped(amount);
}

export function laneWords({
  sourceNetworkInfo,
  destNetworkInfo,
}: Pick<Message, 'sourceNetworkInfo' | 'destNetworkInfo'>): string {
  return `${networkName(sourceNetworkInfo)} → ${networkName(destNetworkInfo)}`;
}
