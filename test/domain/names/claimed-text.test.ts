/** Names that contracts give themselves: cut, on one line, and without characters that disguise them. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { claimedText, cleanClaim } from '../../../src/domain/names/claimed-text.ts';

const utf8 = (text: string) => new TextEncoder().encode(text);

test.each([
  ['USDC', 'USDC'],
  ['  Wrapped\n\tEther  ', 'Wrapped\ufffd\ufffdEther'],
  ['USD\u202eCDSU', 'USD\ufffdCDSU'],
  ['US\u200bDC', 'US\ufffdDC'],
  ['\u2066LINK\u2069', '\ufffdLINK\ufffd'],
  ['A\u0000B', 'A\ufffdB'],
  ['LINK\u0000\u0000', 'LINK'],
  ['\u3164\u3164', null],
  ['\u0000\u0000', null],
  ['', null],
  ['   ', null],
  ['Z\u0301\u0301\u0301\u0301\u0301', 'Z\u0301\u0301'],
  ['<script>alert(1)</script>', '<script>alert(1)</script>'],
])('%j is shown as %j', (given, shown) => {
  expect(claimedText(utf8(given), 64)).toBe(shown);
});

test('a text of a megabyte is cut, with a sign that it was', () => {
  const shown = claimedText(utf8('USDC '.repeat(200_000)), 24);
  expect(shown).toBe('USDC USDC USDC USDC USD…');
  expect([...(shown ?? '')]).toHaveLength(24);
});

test('bytes that are not UTF-8 become replacement characters, and only those are nothing', () => {
  expect(claimedText(Uint8Array.of(0x41, 0xff, 0xfe, 0x42), 24)).toBe('A\ufffd\ufffdB');
  expect(claimedText(Uint8Array.of(0xff, 0xfe, 0xc0), 24)).toBeNull();
});

test('whatever the bytes are, the text is short, on one line, printable and stays as it is when cleaned again', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), fc.integer({ min: 2, max: 64 }), (bytes, max) => {
      const text = claimedText(bytes, max);
      if (text === null) return;
      expect([...text].length).toBeLessThanOrEqual(max);
      expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/u);
      expect(text).toBe(text.trim());
      expect(cleanClaim(text, max)).toBe(text);
    }),
  );
});
