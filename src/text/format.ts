/** Formats times, numbers, hashes and untrusted text, for terminal and browser alike. */
import { DISGUISE, STACKED_MARKS } from '../domain/names/claimed-text.ts';
import { grouped } from '../domain/names/tokens.ts';

export { grouped };

const SECOND_MS = 1_000;

/** From the largest: a unit, its symbol, and its noun. */
const units: readonly (readonly [ms: number, symbol: string, noun: string])[] = [
  [86_400_000, 'd', 'day'],
  [3_600_000, 'h', 'hour'],
  [60_000, 'min', 'minute'],
  [SECOND_MS, 's', 'second'],
];

/** The amounts in each unit, from the largest that is not zero. */
function amountsOf(ms: number): readonly { amount: number; symbol: string; noun: string }[] {
  let rest = ms;
  const amounts = units.map(([unitMs, symbol, noun]) => {
    const amount = Math.floor(rest / unitMs);
    rest %= unitMs;
    return { amount, symbol, noun };
  });
  const first = amounts.findIndex(({ amount }) => amount > 0);
  return amounts.slice(first);
}

/** A duration in its two largest units: `12 s`, `1 min 10 s`, `3 h`, `2 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < SECOND_MS) return ms === 0 ? '0 s' : '< 1 s';
  const [first, second] = amountsOf(ms);
  const parts = [first, second].filter((part) => part !== undefined && part.amount > 0);
  return parts.map((part) => `${part?.amount} ${part?.symbol}`).join(' ');
}

/** An age in its largest unit: `19 min`. */
export function age(ms: number): string {
  if (ms < 0) return ms > -SECOND_MS ? '0 s' : `in ${age(-ms)}`;
  const [{ amount, symbol } = { amount: 0, symbol: 's' }] = amountsOf(ms);
  return `${amount} ${symbol}`;
}

/** The same with a noun: `19 minutes`. */
export function ageInWords(ms: number): string {
  const [{ amount, noun } = { amount: 0, noun: 'second' }] = amountsOf(Math.max(0, ms));
  return counted(amount, noun);
}

/** An age beside the clock of this computer; a time in the future means that clocks disagree. */
export function howOld(ms: number): string {
  return ms > -SECOND_MS ? `${age(ms)} old` : `${age(-ms)} ahead of this clock`;
}

/** `2026-11-15 04:26:00 UTC` */
export function exactTime(iso: string): string {
  return `${iso.slice(0, 10)} ${clockTime(iso)} UTC`;
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

/** `1.2k`, `3.4M`: for narrow cells. */
export function compact(number: number): string {
  if (number < 1_000) return String(number);
  if (number < 10_000) return `${(number / 1_000).toFixed(1)}k`;
  if (number < 1_000_000) return `${Math.round(number / 1_000)}k`;
  return `${(number / 1_000_000).toFixed(1)}M`;
}

/** @example counted(1, 'message') // '1 message', counted(1200, 'message') // '1,200 messages' */
export function counted(number: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(number)} ${number === 1 ? noun : plural}`;
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

/** @example shortened('0x58521b02…', 8, 6) // '0x58521b02…860ca4' */
export function shortened(text: string, head: number, tail: number): string {
  const start = (text.startsWith('0x') ? 2 : 0) + head;
  return text.length <= start + tail + 1 ? text : `${text.slice(0, start)}…${text.slice(-tail)}`;
}

export function shortHash(text: string): string {
  return text.length <= 14 ? text : shortened(text, 4, 4);
}

/** The raw integer for a cell, where the decimals are not known. */
export function shortInteger(amount: string): string {
  return amount.length > 13 ? `${amount.slice(0, 4)}…e${amount.length - 4}` : grouped(amount);
}

/** Untrusted text on one line, with all characters that could disguise it made visible. */
export function printable(text: string): string {
  return text
    .replace(DISGUISE, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
    .replace(STACKED_MARKS, '$1');
}

/** The same JSON with control characters as escapes. */
export function printableJson(json: string): string {
  return json.replace(DISGUISE, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
