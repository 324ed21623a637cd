import { base58, base64, hex } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  addressBytes,
  addressFromBytes,
  type ChainFamily,
  chainFamilies,
  parseAddress,
  parseTransactionHash,
  transactionHashBytes,
  zeroAddresses,
} from '../../src/domain/addresses.ts';

const bytesOf = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const hexOf = (length: number) => bytesOf(length).map((bytes) => hex.encode(bytes));

/** The stated rule, by arithmetic instead of by text. */
function numberKey(value: bigint): string {
  return value.toString(16).padStart(value < 1n << 160n ? 40 : 64, '0');
}

describe('EVM addresses', () => {
  // The examples of EIP-55, one of them all capitals and one all small.
  test.each([
    '0x52908400098527886E0F7030069857D2E4169EE7',
    '0x8617E340B3D01FA5F11F306F4090FD50E238070D',
    '0xde709f2102306220921060314715629080e2fb77',
    '0x27b1fdb04752bbc536007a920d24acb045561c26',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
    '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  ])('%s is shown with its EIP-55 checksum, from whatever spelling', (checksummed) => {
    const digits = checksummed.slice(2);
    const expected = { bytes: digits.toLowerCase(), text: checksummed };
    for (const spelling of [
      checksummed,
      checksummed.toLowerCase(),
      `0x${digits.toUpperCase()}`,
      `0X${digits}`,
      `0x${'0'.repeat(24)}${digits}`,
      checksummed.toLowerCase().replace(/[a-f]/, (letter) => letter.toUpperCase()),
    ]) {
      expect(parseAddress(spelling, 'EVM')).toEqual(expected);
      expect(addressBytes(spelling)).toEqual([expected.bytes]);
    }
  });

  it('has one key and one text for every address in every letter case, padded or not', () => {
    fc.assert(
      fc.property(hexOf(20), fc.boolean(), fc.infiniteStream(fc.boolean()), (digits, padded, capitals) => {
        const mixed = [...digits]
          .map((digit) => (capitals.next().value ? digit.toUpperCase() : digit))
          .join('');
        const spelling = parseAddress(`0x${padded ? '0'.repeat(24) : ''}${mixed}`, 'EVM');
        expect(spelling).toEqual(parseAddress(`0x${digits}`, 'EVM'));
        expect(spelling?.bytes).toBe(digits);
        expect(parseAddress(spelling?.text ?? '', 'EVM')).toEqual(spelling);
      }),
    );
  });

  it('stays right while more addresses pass than are remembered', { tags: 'slow' }, () => {
    for (let i = 0; i < 25_000; i++) {
      const digits = i.toString(16).padStart(40, '0');
      expect(parseAddress(`0x${digits}`, 'EVM')?.bytes).toBe(digits);
    }
    expect(parseAddress('0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359', 'EVM')?.text).toBe(
      '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    );
  });
});

describe('SVM addresses', () => {
  it('reads the system program as the number 0, and the token program as its 32 bytes', () => {
    expect(parseAddress('11111111111111111111111111111111', 'SVM')).toEqual({
      bytes: '00'.repeat(20),
      text: '11111111111111111111111111111111',
    });
    expect(parseAddress('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'SVM')?.bytes).toBe(
      '06ddf6e1d765a193d9cbe146ceeb79ac1cb485ed5f5b37913a8cf5857eff00a9',
    );
  });

  it('round-trips every 32 bytes, as a number; another letter case is another address or none', () => {
    fc.assert(
      fc.property(bytesOf(32), fc.integer({ min: 0, max: 32 }), (bytes, leadingZeros) => {
        bytes.fill(0, 0, leadingZeros);
        const text = base58.encode(bytes);
        const bytesAsNumber = numberKey(BigInt(`0x${hex.encode(bytes)}`));
        expect(parseAddress(text, 'SVM')).toEqual({ bytes: bytesAsNumber, text });
        expect(addressFromBytes(hex.encode(bytes), 'SVM')).toEqual({ bytes: bytesAsNumber, text });
        expect(addressBytes(text)).toEqual([bytesAsNumber]);
        for (const changed of [text.toLowerCase(), text.toUpperCase()]) {
          if (changed !== text) expect(parseAddress(changed, 'SVM')?.bytes).not.toBe(bytesAsNumber);
        }
      }),
    );
  });
});

describe.each(['APTOS', 'SUI'] as const)('%s addresses', (family) => {
  it('are shown with all 64 digits, from any number of them in any case', () => {
    const one = { bytes: `${'0'.repeat(39)}1`, text: `0x${'0'.repeat(63)}1` };
    expect(parseAddress('0x1', family)).toEqual(one);
    expect(parseAddress('0XA', family)).toEqual(parseAddress('0x0a', family));
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: (1n << 256n) - 1n }),
        fc.nat(256),
        fc.nat(64),
        (value, shift, width) => {
          const number = value >> BigInt(shift);
          const spelling = `0x${number.toString(16).padStart(width, '0')}`;
          const expected = { bytes: numberKey(number), text: `0x${number.toString(16).padStart(64, '0')}` };
          expect(parseAddress(spelling, family)).toEqual(expected);
          expect(parseAddress(spelling.toUpperCase(), family)).toEqual(expected);
          expect(parseAddress(expected.text, family)).toEqual(expected);
          expect(addressFromBytes(expected.text.slice(2), family)).toEqual(expected);
          expect(addressBytes(spelling)).toEqual([expected.bytes]);
        },
      ),
    );
  });

  it('may name a module or a type, which are not the account they belong to', () => {
    const coin = parseAddress('0x2::sui::SUI', family);
    expect(coin?.text).toBe(`0x${'0'.repeat(63)}2::sui::SUI`);
    expect(coin).toEqual(parseAddress(coin?.text ?? '', family));
    expect(coin?.bytes).not.toBe(parseAddress('0x2', family)?.bytes);
    expect(coin?.bytes).not.toBe(parseAddress('0x2::sui::Sui', family)?.bytes);
    expect(addressBytes('0x2::sui::SUI')).toEqual([coin?.bytes]);
  });
});

describe('TON addresses', () => {
  const hash = '83dfd552e63729b472fcbcc8c45ebcc6691702558b68ec7527e1ba403a0f31a8';
  const basechain = { bytes: `00000000${hash}`, text: `0:${hash}` };
  const masterchain = { bytes: `ffffffff${hash}`, text: `-1:${hash}` };
  const everyLetter = { bytes: `00000000${'fb'.repeat(32)}`, text: `0:${'fb'.repeat(32)}` };

  // Spellings printed by @ton/core 0.63.1.
  test.each([
    ['raw', `0:${hash}`, basechain],
    ['raw in capitals', `0:${hash.toUpperCase()}`, basechain],
    ['bounceable', 'EQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqB2N', basechain],
    ['non-bounceable', 'UQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqEBI', basechain],
    ['bounceable, test only', 'kQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqKYH', basechain],
    ['non-bounceable, test only', '0QCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqPvC', basechain],
    ['raw, masterchain', `-1:${hash}`, masterchain],
    ['masterchain, base64url', 'Ef-D39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqOLF', masterchain],
    ['masterchain, base64', 'Ef+D39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqOLF', masterchain],
    ['masterchain, test only', '0f-D39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqASK', masterchain],
    ['all of base64url', 'EQD7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-0EU', everyLetter],
    ['all of base64', 'EQD7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+0EU', everyLetter],
  ])('%s spelling is read', (_what, text, expected) => {
    expect(parseAddress(text, 'TON')).toEqual(expected);
    expect(addressBytes(text)).toEqual([expected.bytes]);
  });

  it('one changed character of a friendly spelling is found by its checksum', () => {
    const friendly = 'EQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqB2N';
    for (let i = 0; i < friendly.length; i++) {
      const damaged = friendly.slice(0, i) + (friendly[i] === 'A' ? 'B' : 'A') + friendly.slice(i + 1);
      expect(parseAddress(damaged, 'TON')).toBeUndefined();
    }
    expect(addressBytes(friendly.toLowerCase())).toEqual([]);
  });
});

describe('Canton addresses', () => {
  const fingerprint = `1220${'ab'.repeat(32)}`;

  it('keep the letter case of the party name, not of the fingerprint', () => {
    const text = `Alice-1::${fingerprint}`;
    const bytes = Buffer.from(text).toString('hex');
    expect(parseAddress(text, 'CANTON')).toEqual({ bytes, text });
    expect(parseAddress(`Alice-1::${fingerprint.toUpperCase()}`, 'CANTON')).toEqual({ bytes, text });
    expect(addressBytes(text)).toEqual([bytes]);
    expect(addressBytes(text.toLowerCase())).not.toEqual([bytes]);
  });

  it('may be 32 bytes of hex', () => {
    const bytes = 'ab'.repeat(32);
    expect(parseAddress(`0x${bytes.toUpperCase()}`, 'CANTON')).toEqual({ bytes, text: `0x${bytes}` });
  });
});

describe('what is no address', () => {
  const evm = '5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
  const modules = ['0x', '1', `0x${'1'.repeat(65)}`, '0xg', '0x2::', '0x2::1a', '0x2::a::b::c', '0x2::a<b>'];
  const hash = '83dfd552e63729b472fcbcc8c45ebcc6691702558b68ec7527e1ba403a0f31a8';
  const fingerprint = `1220${'ab'.repeat(32)}`;
  const wrong: Record<ChainFamily, readonly string[]> = {
    EVM: [
      ...['', '0x', evm, ` 0x${evm}`, `0x${evm}\n`, `0x${'0'.repeat(23)}1${evm}`, '1'.repeat(32)],
      ...[`0x${evm.slice(1)}`, `0x${evm}d`, `0x${evm.slice(0, -1)}g`],
    ],
    // 31, 33 and 64 bytes, and a character outside the alphabet.
    SVM: [
      ...['1'.repeat(31), '1'.repeat(33), base58.encode(new Uint8Array(64).fill(7)), `0x${evm}`],
      'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5D0',
    ],
    APTOS: modules,
    SUI: modules,
    // Workchains beyond int32, with a leading zero, and none; 36 zero bytes carry a right checksum, 0, but no known tag.
    TON: [`2147483648:${hash}`, `00:${hash}`, `:${hash}`, `0:${hash.slice(1)}`, 'A'.repeat(48), hash],
    CANTON: [
      ...[`::${fingerprint}`, `${'n'.repeat(186)}::${fingerprint}`, `é::${fingerprint}`, 'alice', '0xab'],
      `alice::1221${'ab'.repeat(32)}`,
    ],
  };
  test.each(chainFamilies)('of %s is rejected', (family) => {
    for (const text of wrong[family]) expect(parseAddress(text, family), text).toBeUndefined();
  });
});

describe('transaction hashes', () => {
  const digits = 'e5a1'.repeat(16);
  const digest = base58.encode(hex.decode(digits));
  const signature = base58.encode(hex.decode(digits + digits));
  const standard = base64.encode(hex.decode('fbef'.repeat(16)));
  const urlSafe = standard.replaceAll('+', '-').replaceAll('/', '_');
  const composite = `-1:${'AB'.repeat(32)}:47:${digits.toUpperCase()}`;

  test.each([
    ['EVM', `0x${digits.toUpperCase()}`, digits, `0x${digits}`],
    ['APTOS', `0x${digits.toUpperCase()}`, digits, `0x${digits}`],
    ['SVM', signature, digits + digits, signature],
    ['SUI', digest, digits, digest],
    ['SUI', `0x${digits}`, digits, digest],
    ['TON', digits.toUpperCase(), digits, digits],
    ['TON', `0X${digits}`, digits, digits],
    ['TON', standard, 'fbef'.repeat(16), 'fbef'.repeat(16)],
    ['TON', urlSafe, 'fbef'.repeat(16), 'fbef'.repeat(16)],
    ['TON', composite, digits, composite.toLowerCase()],
    ['CANTON', `1220${digits.toUpperCase()}`, `1220${digits}`, `1220${digits}`],
    ['CANTON', `0x${digits}`, digits, `0x${digits}`],
    ['CANTON', standard, 'fbef'.repeat(16), `0x${'fbef'.repeat(16)}`],
  ] as const)('%s reads %s', (family, text, bytes, shown) => {
    expect(parseTransactionHash(text, family)).toEqual({ bytes, text: shown });
    expect(parseTransactionHash(shown, family)).toEqual({ bytes, text: shown });
    expect(transactionHashBytes(text)).toEqual([bytes]);
  });

  test.each([
    ['EVM', digits],
    ['EVM', `0x${digits.slice(1)}`],
    ['EVM', `0x${digits}0`],
    ['EVM', signature],
    ['SVM', digest],
    ['SVM', `0x${digits}`],
    ['SVM', `${signature.slice(0, -1)}0`],
    ['SUI', signature],
    ['TON', `0:${digits}`],
    ['TON', `0:${digits}:x:${digits}`],
    ['TON', standard.slice(0, -1)],
    ['CANTON', `1221${digits}`],
  ] as const)('%s has no hash %s', (family, text) => {
    expect(parseTransactionHash(text, family)).toBeUndefined();
  });

  it('base64 whose unused bits are not zero spells nothing', () => {
    // The last character before the padding carries four bits of hash and two that must be 0.
    expect(transactionHashBytes(`${'A'.repeat(42)}E=`)).toHaveLength(1);
    expect(transactionHashBytes(`${'A'.repeat(42)}B=`)).toEqual([]);
  });

  it('a text with two meanings has both', () => {
    const ones = '1'.repeat(64);
    expect(transactionHashBytes(ones)).toEqual(['00'.repeat(64), ones]);
  });
});

describe('any text', () => {
  it('never throws, gives whole bytes in small letters, and a text that means the same', () => {
    const parts = ['0x', '0X', ':', '::', '1220', '=', 'EQ', '-1:', '\u0000', 'é', ...'0aA1zZ+/-_ '];
    const pieces = fc.constantFrom(...parts);
    const anything = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(pieces, { maxLength: 80 }).map((p) => p.join('')),
    );
    fc.assert(
      fc.property(anything, fc.constantFrom(...chainFamilies), (text, family) => {
        for (const parse of [parseAddress, parseTransactionHash]) {
          const spelling = parse(text, family);
          if (!spelling) continue;
          expect(spelling.bytes).toMatch(/^(?:[0-9a-f]{2}){20,255}$/);
          expect(parse(spelling.text, family)).toEqual(spelling);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('is rejected at once when it is longer than any spelling', () => {
    // A decoder that took them for numbers would not come to an end.
    for (const character of ['1', 'z', '0', 'A', ':']) {
      expect(addressBytes(character.repeat(1_000_000))).toEqual([]);
      expect(transactionHashBytes(character.repeat(1_000_000))).toEqual([]);
    }
  });
});

describe('addresses that other chains tell as bytes', () => {
  it('are EVM’s bare or padded to 32 bytes', () => {
    fc.assert(
      fc.property(hexOf(20), (digits) => {
        const spelling = parseAddress(`0x${digits}`, 'EVM');
        expect(addressFromBytes(digits, 'EVM')).toEqual(spelling);
        expect(addressFromBytes(digits.toUpperCase(), 'EVM')).toEqual(spelling);
        expect(addressFromBytes('0'.repeat(24) + digits, 'EVM')).toEqual(spelling);
        expect(addressFromBytes(`1${'0'.repeat(23)}${digits}`, 'EVM')).toBeUndefined();
      }),
    );
  });

  it('are TON’s workchain, which may be negative, and hash', () => {
    fc.assert(
      fc.property(fc.integer(), hexOf(32), (workchain, hash) => {
        const spelling = {
          bytes: (workchain >>> 0).toString(16).padStart(8, '0') + hash,
          text: `${workchain}:${hash}`,
        };
        expect(parseAddress(spelling.text, 'TON')).toEqual(spelling);
        expect(addressFromBytes(spelling.bytes, 'TON')).toEqual(spelling);
      }),
    );
  });

  test.each(chainFamilies)('have the length that %s gives them', (family) => {
    const lengths = { EVM: [20, 32], SVM: [32], APTOS: [32], SUI: [32], TON: [36], CANTON: [32] }[family];
    for (let length = 0; length <= 70; length++) {
      expect(addressFromBytes('00'.repeat(length), family) !== undefined).toBe(
        (lengths as readonly number[]).includes(length),
      );
    }
    for (const noBytes of ['0x', 'zz'.repeat(32), '0'.repeat(63), `0x${'0'.repeat(62)}`]) {
      expect(addressFromBytes(noBytes, family)).toBeUndefined();
    }
  });
});

test.each(chainFamilies)('the zero address of %s is canonical', (family) => {
  expect(parseAddress(zeroAddresses[family], family)?.text).toBe(zeroAddresses[family]);
  expect(parseAddress(zeroAddresses[family], family)?.bytes).toMatch(/^0+$/);
});
