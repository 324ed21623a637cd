/** Amounts and definitions of tokens, and names that contracts give themselves. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readSetting } from '../../../src/base/settings.ts';
import { claimedText, cleanClaim } from '../../../src/domain/names/claimed-text.ts';
import { tokensSetting } from '../../../src/domain/names/name-definitions.ts';
import {
  decimalsOfPool,
  shortWithDecimals,
  tokenAddress,
  withDecimals,
} from '../../../src/domain/names/tokens.ts';

test.each([
  ['0', 18, '0', '0'],
  ['1', 18, '0.000000000000000001', '< 0.000001'],
  ['1000000', 6, '1', '1'],
  ['10381000', 6, '10.381', '10.381'],
  ['587000666750000091', 18, '0.587000666750000091', '0.587'],
  ['1234567891234567', 6, '1,234,567,891.234567', '1,234,567,891.234567'],
  ['42', 0, '42', '42'],
  [String(2n ** 256n - 1n), 255, expect.stringMatching(/^0\.0{177}115792/), '< 0.000001'],
])('%s with %i decimals is %s, or %s', (amount, decimals, exact, short) => {
  expect(withDecimals(amount, decimals)).toEqual(exact);
  expect(shortWithDecimals(amount, decimals)).toBe(short);
});

test('the word of a pool counts as decimals only where it can be', () => {
  expect(decimalsOfPool(`0x${'6'.padStart(64, '0')}`)).toBe(6);
  expect(decimalsOfPool(`0x${'ff'.padStart(64, '0')}`)).toBeNull();
  expect(decimalsOfPool(`0x${'f'.repeat(64)}`)).toBeNull();
  expect(decimalsOfPool(null)).toBeNull();
});

test('bytes of a token are written as its family writes them', () => {
  expect(tokenAddress('779877a7b0d9e8603169ddbd7836e478b4624789', 'EVM')).toBe(
    '0x779877A7B0D9E8603169DdbD7836e478b4624789',
  );
  expect(tokenAddress('00'.repeat(20), 'SVM')).toBe('1'.repeat(32));
});

describe('tokens in lanescan.yaml', () => {
  const link = { network: 'sepolia', address: '0x779877a7b0d9e8603169ddbd7836e478b4624789', symbol: 'LINK' };
  const parse = (...tokens: readonly object[]) => readSetting(tokensSetting, tokens, ['tokens']);

  test('name what they change and no more', () => {
    expect(parse({ ...link, decimals: 18 })).toEqual([
      {
        network: '16015286601757825753',
        bytes: link.address.slice(2),
        address: '0x779877A7B0D9E8603169DdbD7836e478b4624789',
        symbol: 'LINK',
        decimals: 18,
      },
    ]);
  });

  test.each<[object, string]>([
    [{ ...link, network: 'nowhere' }, 'tokens[0].network is "nowhere".'],
    [{ ...link, address: '0x12' }, 'tokens[0].address is "0x12".'],
    [{ ...link, symbol: 'LI\u202eNK' }, 'tokens[0].symbol is "LI\u202eNK".'],
    [{ ...link, decimals: 256 }, 'tokens[0].decimals is 256.'],
    [{ ...link, decimal: 18 }, 'tokens[0].decimal is an unknown key.'],
  ])('%j is rejected', (token, problem) => {
    expect(() => parse(token)).toThrow(problem);
  });

  test('a token that is defined twice is rejected', () => {
    expect(() => parse(link, { ...link, symbol: 'OTHER' })).toThrow('tokens[1] is the same as tokens[0].');
  });
});

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
