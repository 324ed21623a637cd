/**
 * Text that a contract claims about itself: a name, a symbol. Anybody can deploy a contract, so it is hostile input.
 *
 * It is cut, invalid UTF-8 and characters that could disguise it (controls, bidirectional marks, invisible ones) become
 * U+FFFD, and it is one line. It may still lie: another token's symbol is a valid symbol. So it is shown beside the address,
 * never instead of it.
 */

const BYTES_PER_CHARACTER = 4;
/** Controls, format characters (also bidirectional ones), surrogates, private and unassigned characters, line breaks. */
export const DISGUISE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
/** Looks like a space or like nothing, and is a letter or a mark to Unicode: Hangul fillers, variation selectors and others. */
const BLANK =
  /\u034f|[\u115f\u1160]|[\u17b4\u17b5]|[\u2800\u3164\uffa0]|[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}]/gu;
/** Many combining marks on one letter would cover the lines around it. */
export const STACKED_MARKS = /(\p{M}{2})\p{M}+/gu;
const REPLACEMENT = '\ufffd';

/** Null where nothing is left to show. */
export function claimedText(bytes: Uint8Array, maxCharacters: number): string | null {
  // One character more than fits, so that a longer text is known to be cut.
  const decoded = new TextDecoder().decode(bytes.subarray(0, BYTES_PER_CHARACTER * (maxCharacters + 1)));
  return cleanClaim(decoded, maxCharacters);
}

/** The same for text. */
export function cleanClaim(text: string, maxCharacters: number): string | null {
  const clean = withoutDisguise(
    text.slice(0, 2 * BYTES_PER_CHARACTER * (maxCharacters + 1)).replace(/\0+$/, ''),
  )
    .replace(/\s+/gu, ' ')
    .trim();
  if (clean.replaceAll(REPLACEMENT, '').trim() === '') return null;
  const characters = [...clean];
  return characters.length <= maxCharacters ? clean : `${characters.slice(0, maxCharacters - 1).join('')}…`;
}

/** The text with U+FFFD in place of each character that could disguise it. */
export function withoutDisguise(text: string): string {
  return text.replace(DISGUISE, REPLACEMENT).replace(BLANK, REPLACEMENT).replace(STACKED_MARKS, '$1');
}

/** The text in quotation marks, which it cannot close itself. */
export function quoted(text: string, isCut = false): string {
  return `“${text.replace(/[“”„‟«»"]/g, "'")}${isCut ? '…' : ''}”`;
}
