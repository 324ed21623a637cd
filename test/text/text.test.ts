/** Words for terminal and browser: durations, untrusted text, data, and what is wrong with a message. */
import { describe, expect, test } from 'vitest';
import { age, counted, duration, printable } from '../../src/text/format.ts';
import { problemOf } from '../../src/text/message-problem.ts';
import { abiValues, textOf } from '../../src/text/payload.ts';
import { evmAddress, hashOf, makeMessage } from '../fixtures.ts';

const word = (digits: string) => digits.padStart(64, '0');
const hexOf = (text: string) => Buffer.from(text).toString('hex');

test.each([
  [0, '0 s', '0 s'],
  [999, '< 1 s', '0 s'],
  [12_000, '12 s', '12 s'],
  [60_000, '1 min', '1 min'],
  [70_000, '1 min 10 s', '1 min'],
  [3 * 3_600_000 + 5_000, '3 h', '3 h'],
  [(2 * 24 + 4) * 3_600_000, '2 d 4 h', '2 d'],
  [-70_000, '-1 min 10 s', 'in 1 min'],
])('%d ms are the duration %s and the age %s', (ms, asDuration, asAge) => {
  expect(duration(ms)).toBe(asDuration);
  expect(age(ms)).toBe(asAge);
});

test('counts have thousands separators and the right number of their noun', () => {
  expect([counted(1, 'message'), counted(1_200, 'message'), counted(2, 'address', 'addresses')]).toEqual([
    '1 message',
    '1,200 messages',
    '2 addresses',
  ]);
});

test('what could disguise a text is made visible', () => {
  expect(printable('a\u202eb\u200bc\n')).toBe('a\\u{202e}b\\u{200b}c\\u{a}');
  expect(printable('Grüße 你好 🙂')).toBe('Grüße 你好 🙂');
});

describe('data is read as plain ABI', () => {
  test.each([
    ['a number', word('251c'), ['uint256 9500']],
    ['an address', word(evmAddress(1).slice(2)), [expect.stringMatching(/^address 0x/)]],
    ['a negative number', `${'f'.repeat(63)}e`, ['int256 -2']],
    ['a hash', hashOf(1).slice(2), [`bytes32 ${hashOf(1)}`]],
    ['a text', word('20') + word('5') + hexOf('hello').padEnd(64, '0'), ['string hello']],
    ['bytes', word('20') + word('2') + 'fffe'.padEnd(64, '0'), ['bytes 0xfffe']],
    [
      'a number and a text',
      word('7') + word('40') + word('2') + hexOf('hi').padEnd(64, '0'),
      ['uint256 7', 'string hi'],
    ],
  ])('%s', (_name, digits, expected) => {
    expect(abiValues(`0x${digits}`)?.map(({ type, text }) => `${type} ${text}`)).toEqual(expected);
  });

  test('where it is that, and as text where it is text', () => {
    expect(abiValues('0x1234')).toBeNull();
    expect(abiValues(`0x${hashOf(1).slice(2).repeat(100)}`)).toBeNull();
    expect(textOf(`0x${hexOf('Grüße\n')}`)).toBe('Grüße\n');
    expect(textOf('0xfffe')).toBeNull();
    expect(textOf(`0x${hexOf('a\u0000b')}`)).toBeNull();
  });
});

describe('what is wrong with a message', () => {
  const failed = makeMessage({ status: 'FAILED', readyForManualExecution: true, tokenAmounts: [] });

  test('is nothing for one in flight that is not overdue, and what it waits for once it is', () => {
    const sent = makeMessage({ status: 'SENT', readyForManualExecution: false });
    expect(problemOf(sent, {})).toBeNull();
    expect(problemOf(sent, { isOverdue: true })?.whatHappened).toMatch(/^It waits for Ethereum Sepolia to /);
    expect(problemOf(makeMessage({ status: 'SUCCESS' }), { isOverdue: true })).toBeNull();
  });

  test('is the reason of its failure, who can fix it and how; without a reason, the likely ones', () => {
    expect(problemOf(failed, {})).toMatchObject({
      whatHappened: expect.stringMatching(
        /: the receiver reverted, or the gas limit of [\d,]+ was too low\.$/,
      ),
      consequence: 'Nothing is lost. Anybody with a wallet on Avalanche Fuji can execute it again.',
      advice: null,
    });
    const reason = { fixableBy: 'sender', advice: 'Send it\u202e again.' } as const;
    expect(problemOf(failed, { reason })).toMatchObject({
      whatHappened: 'It reached Avalanche Fuji, but its execution there failed.',
      advice: 'The sender can fix this. Send it\\u{202e} again.',
    });
  });
});
