/** Text for a terminal: width in cells, wrapping, colours. */
import { decodePercent, hasUnescapedPassword } from '../../base/url-parts.ts';
import { printable } from '../../text/format.ts';
import type { TerminalStream } from '../context.ts';

export const ARROW = ' → ';

const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;
const DOUBLE_WIDTH =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;

/** Width of the text in terminal cells. */
export function cellsOf(text: string): number {
  if (PRINTABLE_ASCII.test(text)) return text.length;
  let cells = 0;
  for (const character of text) cells += cellsOfCharacter(character);
  return cells;
}

function cellsOfCharacter(character: string): number {
  if (/\p{M}/u.test(character)) return 0;
  return DOUBLE_WIDTH.test(character) ? 2 : 1;
}

/** Pads or shortens the text to exactly this many cells. */
export function fitted(text: string, cells: number, align: 'left' | 'right' = 'left'): string {
  const cut = clipped(text, cells);
  const space = ' '.repeat(cells - cellsOf(cut));
  return align === 'left' ? cut + space : space + cut;
}

export function clipped(text: string, cells: number): string {
  if (cellsOf(text) <= cells) return text;
  let cut = '';
  let taken = 1;
  for (const character of text) {
    taken += cellsOfCharacter(character);
    if (taken > cells) break;
    cut += character;
  }
  return `${cut}…`;
}

/** `source → dest`; both names are shortened where they do not fit. */
export function clippedLane(source: string, dest: string, cells: number): string {
  const room = cells - cellsOf(ARROW);
  const shown = clipped(source, Math.max(Math.floor(room / 2), room - cellsOf(dest)));
  return `${shown}${ARROW}${clipped(dest, room - cellsOf(shown))}`;
}

/** Wraps at spaces, to this many cells where the words allow it. */
export function wrapped(text: string, cells: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && cellsOf(line) + 1 + cellsOf(word) > cells) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}

/** A database URL without its secrets, which may be before the host or in the parameters. */
export function databaseName(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || hasUnescapedPassword(url)) return 'at an unreadable URL';
  const { username, host, pathname, searchParams } = url;
  const user = username || searchParams.get('user') || '';
  const place = host || searchParams.get('host') || '';
  return printable(`${decodePercent(user)}${user ? '@' : ''}${place}${decodePercent(pathname)}`);
}

const codes = { red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36, dim: 2, bold: 1 } as const;
export type Colour = keyof typeof codes;
export type Paint = (text: string, ...colours: readonly Colour[]) => string;

/** Colours on a terminal, unless NO_COLOR is set (https://no-color.org). */
export function createPaint(stream: TerminalStream, environment: NodeJS.ProcessEnv): Paint {
  if (!wantsColour(stream, environment)) return (text) => text;
  return (text, ...colours) =>
    colours.length === 0
      ? text
      : `\u001b[${colours.map((colour) => codes[colour]).join(';')}m${text}\u001b[0m`;
}

export function wantsColour(stream: TerminalStream, environment: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && !environment.NO_COLOR && environment.TERM !== 'dumb';
}
