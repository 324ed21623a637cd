/** A record as it comes from outside: what is taken, in which spelling, and what is rejected in which words. */
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { describe, expect, it, test } from 'vitest';
import { chainFamilies } from '../../../src/domain/addresses.ts';
import { statuses } from '../../../src/domain/lifecycle.ts';
import { contractKeys, summaryKeys, wireRecord } from '../../../src/domain/message.ts';
import { parseMessage } from '../../../src/domain/records/message-parser.ts';
import { Message } from '../../../src/domain/records/message-schema.ts';
import { anyRecord, anyRecordNetworks } from '../../fixtures/any-record.ts';
import {
  acceptedAs,
  canonical,
  evmAddress,
  fuji,
  makeMessage,
  makeToken,
  makeVerifier,
  sepolia,
  solanaDevnet,
  svmAddress,
  svmSignature,
} from '../../fixtures.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

const recordValidator = Compile(Message);

/** A record in which every part of the specification is present. */
function fullRecord(): JsonObject {
  const message = makeMessage({
    status: 'SUCCESS',
    version: '2.0.0',
    tokenAmounts: [makeToken(sepolia, fuji, 'LINK')],
    verifiers: {
      items: [makeVerifier('Alice', { completedAt: '2026-01-01T01:00:00.000Z' }), makeVerifier('Bob')],
      optionalThreshold: 1,
    },
    executor: { address: evmAddress('executor') },
    fees: {
      fixedFeesDetails: {
        tokenAddress: evmAddress('link'),
        totalAmount: '42',
        items: [{ contractAddress: evmAddress('pool'), feeType: 'TOKEN_POOL', amount: '42' }],
      },
    },
  });
  const record = JSON.parse(JSON.stringify(message)) as JsonObject;
  setAt(record, '$.verifiers.items[0].metadata.logoUrl', 'https://example.org/logo.svg');
  return record;
}

function svmRecord(): JsonObject {
  const message = makeMessage({ destNetworkInfo: solanaDevnet });
  const record = JSON.parse(JSON.stringify(message)) as JsonObject;
  setAt(record, '$.extraArgs.accounts', [svmAddress('one'), svmAddress('two')]);
  return record;
}

function parentOf(record: JsonObject, path: string): { parent: JsonObject; key: string } {
  const keys = path.match(/[^$.[\]]+/g) ?? [];
  const parent = keys.slice(0, -1).reduce<Json>((part, key) => (part as JsonObject)[key] as Json, record);
  return { parent: parent as JsonObject, key: keys.at(-1) ?? '' };
}

function setAt(record: JsonObject, path: string, value: Json): void {
  const { parent, key } = parentOf(record, path);
  parent[key] = value;
}

function valueAt(record: unknown, path: string): Json | undefined {
  const { parent, key } = parentOf(record as JsonObject, path);
  return parent[key];
}

const withValue = (path: string, value: Json, record = fullRecord()) => {
  setAt(record, path, value);
  return record;
};

const without = (path: string, record = fullRecord()) => {
  const { parent, key } = parentOf(record, path);
  delete parent[key];
  return record;
};

function problemPaths(value: unknown, now?: number): string[] {
  const parsed = parseMessage(value, now);
  return parsed.ok ? [] : parsed.problems.map(({ path }) => path);
}
/** The problems of the full record with this value there. */
const problemsWith = (path: string, value: Json, now?: number) => problemPaths(withValue(path, value), now);

const pathsOf = (text: string) => text.split(/\s+/).map((path) => `$.${path}`);
const [token, verifier, fee] = ['tokenAmounts[0]', 'verifiers.items[0]', 'fees.fixedFeesDetails'];

const addressFields = pathsOf(`origin onramp sender receiver routerAddress executor.address
  ${token}.sourceTokenAddress ${token}.destTokenAddress ${token}.sourcePoolAddress
  ${verifier}.sourceAddress ${verifier}.destAddress ${fee}.tokenAddress ${fee}.items[0].contractAddress`);
const hashFields = pathsOf('sendTransactionHash receiptTransactionHash');
const timeFields = pathsOf(`sendTimestamp receiptTimestamp ${verifier}.verification.timestamp`);
const decimalFields =
  pathsOf(`sequenceNumber nonce extraArgs.gasLimit ${fee}.totalAmount ${fee}.items[0].amount
  ${token}.amount ${token}.destGasAmount`);
const integerFields = pathsOf(
  'sendBlockNumber sendLogIndex deliveryTime finality verifiers.optionalThreshold',
);
const booleanFields = pathsOf(
  `readyForManualExecution extraArgs.allowOutOfOrderExecution ${verifier}.isRequired`,
);
const enumFields = pathsOf(`status verifiers.items[1].status ${fee}.items[0].feeType`);
const objectFields = pathsOf(`extraArgs fees ${fee} verifiers ${verifier}.metadata executor`);
const arrayFields = pathsOf(`tokenAmounts verifiers.items ${fee}.items`);
const hexFields = pathsOf(`data ${verifier}.verification.data`);
const textFields = pathsOf(`${token}.extraData version ${verifier}.metadata.name`);
const networkFields = pathsOf(
  'sourceNetworkInfo.name sourceNetworkInfo.chainSelector destNetworkInfo.chainId',
);

const nullableFields =
  pathsOf(`nonce routerAddress receiptTransactionHash receiptTimestamp deliveryTime data version
  verifiers executor ${token}.extraData ${token}.destGasAmount`);
const optionalFields = pathsOf(`${fee}.items ${verifier}.metadata.logoUrl`);

const scalarFields = [
  '$.messageId',
  ...[...addressFields, ...hashFields, ...timeFields, ...decimalFields, ...integerFields, ...booleanFields],
  ...[...enumFields, ...hexFields, ...textFields, ...networkFields],
];
/** Members that a source may leave out, because they can be derived; with what they become in the full record. */
const derivedFields: readonly (readonly [path: string, value: Json])[] = [
  ['$.finality', 0],
  ['$.readyForManualExecution', false],
  ['$.extraArgs.allowOutOfOrderExecution', true],
  ['$.verifiers.items', []],
  ['$.verifiers.optionalThreshold', 0],
  ['$.verifiers.items[0].destAddress', `0x${'0'.repeat(40)}`],
  ['$.verifiers.items[0].metadata', { name: 'Verifier' }],
  ['$.verifiers.items[0].metadata.name', 'Verifier'],
  ['$.verifiers.items[0].isRequired', true],
  ['$.verifiers.items[1].isRequired', false],
  ['$.verifiers.items[0].status', 'COMPLETED'],
  ['$.verifiers.items[1].status', 'PENDING'],
  ['$.sourceNetworkInfo.chainFamily', 'EVM'],
];
const requiredFields = [...scalarFields, ...objectFields, ...arrayFields].filter(
  (path) =>
    !nullableFields.includes(path) &&
    !optionalFields.includes(path) &&
    !derivedFields.some(([derived]) => derived === path),
);

describe('a complete record', () => {
  it('is accepted as it is, with nothing ignored', () => {
    for (const record of [fullRecord(), svmRecord(), JSON.parse(JSON.stringify(makeMessage()))]) {
      expect(parseMessage(record)).toEqual(acceptedAs(record));
      expect(recordValidator.Check(record)).toBe(true);
    }
  });

  it('covers every field of the record and its parts', () => {
    const leaves = (value: Json, path: string): string[] => {
      if (Array.isArray(value)) return value.length === 0 ? [path] : leaves(value[0] as Json, `${path}[0]`);
      if (value === null || typeof value !== 'object') return [path];
      return Object.entries(value).flatMap(([key, member]) => leaves(member, `${path}.${key}`));
    };
    const known = new Set([...scalarFields, ...optionalFields]);
    const untested = leaves(fullRecord(), '$').filter((path) => !known.has(path));
    // Networks are read by the same rules at both ends, verifiers at each place.
    expect(untested.sort()).toEqual(
      pathsOf(`destNetworkInfo.chainFamily destNetworkInfo.chainSelector destNetworkInfo.displayName destNetworkInfo.name
        sourceNetworkInfo.chainFamily sourceNetworkInfo.chainId sourceNetworkInfo.displayName ${verifier}.status`),
    );
  });
});

describe('a required member', () => {
  test.each(requiredFields)('%s that is missing or null is the one problem', (path) => {
    expect(problemPaths(without(path))).toEqual([path]);
    expect(problemsWith(path, null)).toEqual([path]);
  });

  it('of the networks is reported once, and not again at every address', () => {
    for (const end of ['sourceNetworkInfo', 'destNetworkInfo']) {
      for (const value of [undefined, null, 7, [], 'EVM']) {
        const path = `$.${end}`;
        expect(problemPaths(value === undefined ? without(path) : withValue(path, value))).toEqual([path]);
      }
      for (const value of [3, {}, '', 'a family', 'constructor']) {
        expect(problemsWith(`$.${end}.chainFamily`, value)).toEqual([`$.${end}.chainFamily`]);
      }
    }
  });

  it('of the SVM arguments is reported at its path', () => {
    for (const key of ['accountIsWritableBitmap', 'allowOutOfOrderExecution', 'tokenReceiver', 'accounts']) {
      const path = `$.extraArgs.${key}`;
      expect(problemPaths(without(path, svmRecord()))).toEqual([path]);
    }
  });
});

describe('a member of the wrong type', () => {
  const notStrings: Json[] = [7, true, {}, [], ['x']];
  const idTexts = ['', '0x12', 'x'.repeat(66), `0x${'g'.repeat(64)}`, `0x${'a'.repeat(65)}`, '0'.repeat(64)];
  const addressTexts = ['', '0x', '0x12', `0x${'g'.repeat(40)}`, svmAddress('x'), 'x'.repeat(10_000)];
  const timeTexts = [
    ...['', '2026-01-01', '2026-01-01T00:00:00', '2026-02-30T00:00:00Z', '17000000', '2026-01-01T24:00:00Z'],
    ...['2026-01-01T00:00:60Z', '2026-13-01T00:00:00Z', '1969-12-31T23:59:59Z', '1970-01-01T00:00:00+01:00'],
    ...['9999-12-31T23:59:59-01:00', '+010000-01-01T00:00:00Z', '2026-01-01T00:00:00+15:00'],
  ];
  const decimalTexts = ['', '-1', '1.5', '1e3', '0x10', ' 1', `1${'0'.repeat(99)}`, '9'.repeat(101), '١'];
  const uriTexts = [
    'x',
    ' https://example.org',
    'https://example.org/ü',
    'https://example.org/{}',
    'data:a b',
  ];
  const fullToken = valueAt(fullRecord(), `$.${token}`) as Json;
  const names = ['$.sourceNetworkInfo.name', '$.sourceNetworkInfo.chainId'];
  const selectors = ['', '-1', '18446744073709551616', 'sepolia'];
  const cases: [string, readonly string[], readonly Json[]][] = [
    ['message ids', ['$.messageId'], [...notStrings, ...idTexts]],
    ['addresses', addressFields, [...notStrings, ...addressTexts]],
    ['hashes', hashFields, [...notStrings, '', '0x12', svmSignature('x'), evmAddress('x')]],
    ['times', timeFields, [...notStrings, ...timeTexts]],
    ['decimals', decimalFields, [...notStrings, ...decimalTexts]],
    ['integers', integerFields, ['x', '', '1.5', 1.5, true, {}, [], 2 ** 53, 1e300]],
    ['booleans', booleanFields, ['true', 0, 1, {}, []]],
    ['states', enumFields, [...notStrings, '', 'SENT ', 'constructor']],
    ['kinds of fees', [`$.${fee}.items[0].feeType`], ['network', 'NOPE']],
    ['objects', objectFields, ['x', 7, true, [], [{}]]],
    ['arrays', arrayFields, ['x', 7, true, {}, { length: 0 }]],
    ['bytes', hexFields, [...notStrings, '', '0x0', '0xgg', 'abcd', '0X12', ' 0x12']],
    ['versions', ['$.version'], [...notStrings, '', '1', 'one', '1.6.', 'v1.6.0', '1.6.0 ']],
    ['networks', ['$.sourceNetworkInfo.chainSelector'], [...notStrings, ...selectors]],
    ['names', names, [...notStrings, '', 'x'.repeat(1001)]],
    ['logos that are no URI', [`$.${verifier}.metadata.logoUrl`], [...notStrings, ...uriTexts]],
    ['more tokens than any message has', ['$.tokenAmounts'], [Array(40_000).fill(fullToken)]],
  ];
  test.each(cases)('is the one problem: %s', (_, paths, values) => {
    for (const path of paths)
      for (const value of values)
        expect(problemsWith(path, value), `${path} = ${JSON.stringify(value).slice(0, 80)}`).toEqual([path]);
  });

  it('is reported element by element inside arrays', () => {
    for (const path of arrayFields)
      expect(problemsWith(path, ['x', null, 7, []])).toEqual(
        [0, 1, 2, 3].map((index) => `${path}[${index}]`),
      );
    const accounts = '$.extraArgs.accounts';
    const wrong = withValue(accounts, [svmAddress('a'), 7, 'x', evmAddress('a')], svmRecord());
    expect(problemPaths(wrong)).toEqual([1, 2, 3].map((index) => `${accounts}[${index}]`));
  });

  it('is reported with the value and what it must be', () => {
    const path = '$.tokenAmounts[0].amount';
    const problem = 'is "-5"; it must be a positive integer below 2^256 as a string';
    expect(parseMessage(withValue(path, '-5'))).toEqual({ ok: false, problems: [{ path, problem }] });
  });
});

describe('the rules between members', () => {
  const amount = '$.tokenAmounts[0].amount';
  const verification = { data: '0x01', timestamp: '2026-01-01T00:00:00Z' };
  type Rule = [rule: string, path: string, accepted: readonly Json[], rejected: readonly Json[]];
  const hasBits =
    (bits: bigint) =>
    (path: string): Rule => [`${path} has ${bits} bits`, path, [`${2n ** bits - 1n}`], [`${2n ** bits}`]];

  test.each<Rule>([
    ['an amount is not zero', amount, [], ['0', '000', '0'.repeat(40)]],
    ...pathsOf('sequenceNumber nonce').map(hasBits(64n)),
    ...pathsOf(`${token}.amount extraArgs.gasLimit ${fee}.totalAmount`).map(hasBits(256n)),
    ['a COMPLETED verifier has a verification', '$.verifiers.items[0].verification', [], [null]],
    ['a PENDING verifier has none', '$.verifiers.items[1].verification', [], [verification]],
    ['every status of the specification is taken', '$.status', statuses, []],
    // Clocks of two chains disagree.
    ['a delivery may take negative time', '$.deliveryTime', [-5], [9e15, -9e15]],
    ...integerFields
      .filter((path) => path !== '$.deliveryTime')
      .map((path): Rule => [`${path} is not negative`, path, [], [-5]]),
  ])('%s', (_rule, path, accepted, rejected) => {
    for (const value of accepted) expect(problemsWith(path, value)).toEqual([]);
    for (const value of rejected) expect(problemsWith(path, value)).toEqual([path]);
  });
});

describe('with the clock of the reader', () => {
  const now = Date.UTC(2026, 10, 17);
  const problemsNow = (path: string, value: Json) => problemsWith(path, value, now);

  test.each(timeFields)('%s may be a day ahead of it, and no more', (path) => {
    expect(problemsNow(path, '2026-11-18T00:00:00.000Z')).toEqual([]);
    for (const later of ['2026-11-18T00:00:00.001Z', '2027-01-01T00:00:00+14:00', '9999-12-31T23:59:59Z'])
      expect(problemsNow(path, later)).toEqual([path]);
  });

  it('is named in the problem, because it may be the clock that is wrong', () => {
    const [path, text] = ['$.sendTimestamp', '9999-01-01T00:00:00Z'];
    const limit = '2026-11-18T00:00:00.000Z, a day after the clock of this computer';
    const problems = [{ path, problem: `is "${text}"; it must be no later than ${limit}` }];
    expect(parseMessage(withValue(path, text), now)).toEqual({ ok: false, problems });
  });

  it('no delivery takes longer than since 1970', () => {
    const most = now + 86_400_000;
    for (const possible of [most, -most]) expect(problemsNow('$.deliveryTime', possible)).toEqual([]);
    for (const absurd of [most + 1, -most - 1, 9_000_000_000_000_000])
      expect(problemsNow('$.deliveryTime', absurd)).toEqual(['$.deliveryTime']);
  });
});

describe('a nullable member', () => {
  test.each(nullableFields)('%s that is absent becomes null', (path) => {
    const message = canonical(without(path));
    expect(valueAt(message, path)).toBeNull();
    expect(message).toEqual(canonical(withValue(path, null)));
    expect(recordValidator.Check(message)).toBe(true);
  });

  test.each(optionalFields)('%s, being optional, stays away when it is absent', (path) => {
    const { parent, key } = parentOf(canonical(without(path)) as unknown as JsonObject, path);
    expect(parent).not.toHaveProperty(key);
  });
});

describe('the canonical spelling', () => {
  const spelledAs = (path: string, value: Json, record = fullRecord()) =>
    valueAt(canonical(withValue(path, value, record)), path);

  it('of EVM addresses has a checksum, whatever the letter case and padding', () => {
    const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
    const digits = address.slice(2);
    const spellings = [address.toLowerCase(), `0x${digits.toUpperCase()}`, `0x${'0'.repeat(24)}${digits}`];
    for (const path of addressFields)
      for (const spelling of spellings) expect(spelledAs(path, spelling)).toBe(address);
  });

  it('of SVM addresses is the given one', () => {
    for (const path of ['$.receiver', '$.extraArgs.tokenReceiver', '$.extraArgs.accounts[0]'])
      expect(spelledAs(path, svmAddress('x'), svmRecord())).toBe(svmAddress('x'));
  });

  it('of ids, hashes and data is lower case', () => {
    const upper = `0x${'AB'.repeat(32)}`;
    for (const path of ['$.messageId', ...hashFields, ...hexFields])
      expect(spelledAs(path, upper)).toBe(upper.toLowerCase());
  });

  test.each([
    ['2026-03-01T00:00:00Z', '2026-03-01T00:00:00.000Z'],
    ['2026-03-01T00:00Z', '2026-03-01T00:00:00.000Z'],
    ['2026-03-01t00:00:00z', '2026-03-01T00:00:00.000Z'],
    ['2026-03-01T02:00:00+02:00', '2026-03-01T00:00:00.000Z'],
    ['2026-02-28T19:30:00-0430', '2026-03-01T00:00:00.000Z'],
    ['2026-03-01T00:00:00.123456789Z', '2026-03-01T00:00:00.123Z'],
    ['2026-03-01T00:00:00,5Z', '2026-03-01T00:00:00.500Z'],
    ['2024-02-29T23:59:59.999Z', '2024-02-29T23:59:59.999Z'],
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('of the time %s is %s', (given, expected) => {
    for (const path of timeFields) expect(spelledAs(path, given)).toBe(expected);
  });

  it('of a network is judged anew in every record, also where one before had it right', () => {
    expect(parseMessage(fullRecord()).ok).toBe(true);
    for (const path of ['$.sourceNetworkInfo.name', '$.sourceNetworkInfo.chainFamily']) {
      const wrong = withValue(path, path.endsWith('name') ? '' : 'SUI');
      // The second time it is no better than the first.
      for (const _ of [1, 2]) expect(problemPaths(wrong)).toContain(path);
    }
    const other = parseMessage(withValue('$.sourceNetworkInfo.displayName', 'Another'));
    expect(other.ok && other.message.sourceNetworkInfo.displayName).toBe('Another');
    const more = parseMessage(withValue('$.sourceNetworkInfo.colour', 'blue'));
    expect(more.ok && more.kept).toEqual(['$.sourceNetworkInfo.colour']);
    // What was wrong, or said otherwise, is not what the next record gets.
    expect(parseMessage(fullRecord())).toEqual(acceptedAs(fullRecord()));
  });

  it('of numbers has no leading zeros', () => {
    for (const path of decimalFields) {
      expect(spelledAs(path, '0042')).toBe('42');
      expect(spelledAs(path, `${'0'.repeat(60)}42`)).toBe('42');
    }
    expect(spelledAs('$.sequenceNumber', '000')).toBe('0');
    const selector = sepolia.chainSelector;
    expect(spelledAs('$.sourceNetworkInfo.chainSelector', `00${selector}`)).toBe(selector);
  });

  it('of a network has the display name that is known, unless another is given', () => {
    const path = '$.sourceNetworkInfo.displayName';
    expect(canonical(without(path)).sourceNetworkInfo.displayName).toBe(sepolia.displayName);
    expect(spelledAs(path, 'My own')).toBe('My own');
  });
});

describe('several problems', () => {
  it('are all reported in one pass', () => {
    const wrong = pathsOf(`fees messageId sender ${token}.amount verifiers.items[1].status`);
    const record = without('$.sendTimestamp');
    for (const path of wrong) setAt(record, path, 7);
    expect(problemPaths(record).sort()).toEqual([...wrong, '$.sendTimestamp'].sort());
  });

  it('of an empty object are all its required members, each once', () => {
    const required = requiredFields.filter((path) => /^\$\.\w+$/.test(path));
    expect(problemPaths({}).sort()).toEqual([...required, '$.sourceNetworkInfo', '$.destNetworkInfo'].sort());
    expect(problemsWith('$.extraArgs', {})).toEqual(['$.extraArgs.gasLimit']);
  });
});

test.each(derivedFields)('%s, where a source left it out, is derived and listed', (path, value) => {
  for (const record of [withValue(path, null), without(path)]) {
    const parsed = parseMessage(record);
    expect(parsed).toMatchObject({ ok: true, derived: [path] });
    expect(parsed.ok && valueAt(parsed.message, path)).toEqual(value);
    expect(parsed.ok && recordValidator.Check(parsed.message)).toBe(true);
  }
});

it('a family that is not known here is named, and its addresses are texts without spaces, up to 300 characters', () => {
  const cosmos = withValue('$.sourceNetworkInfo.chainFamily', 'COSMOS');
  expect(parseMessage(cosmos)).toMatchObject({ ok: true, unknown: [expect.stringContaining('COSMOS')] });
  const network = { name: 'star', chainSelector: '99', chainId: 's', chainFamily: 'Star' };
  const others = { receiver: 'star1', tokenAmounts: [], receiptTransactionHash: 'STAR-TX-1' };
  const record = { ...withValue('$.destNetworkInfo', network), ...others };
  expect(parseMessage(record)).toMatchObject({ ok: true, unknown: ['chain family Star'] });
  for (const text of ['', 'with a space', 'x'.repeat(301)])
    expect(problemPaths({ ...record, receiver: text })).toEqual(['$.receiver']);
});

describe('members that the contract does not have', () => {
  const extendedRecord = (members: Record<string, Json>) => ({ ...fullRecord(), ...members });

  it('are kept behind those that it has, and listed, those of arrays once for each element', () => {
    const record = fullRecord();
    for (const path of pathsOf(`extra sourceNetworkInfo.nonce ${token}.symbol extraArgs.more`))
      setAt(record, path, { deep: [1] });
    for (const index of [0, 1]) setAt(record, `$.verifiers.items[${index}].weight`, 1);
    setAt(record, '$.fees.bpsFeeDetails', [{ bps: 20, amount: '7', payee: 'x' }]);
    const parsed = parseMessage(record);
    expect(parsed).toMatchObject({ ok: true, message: record, ignored: [], derived: [] });
    expect(parsed.ok && [...parsed.kept].sort()).toEqual(
      pathsOf(`extra extraArgs.more sourceNetworkInfo.nonce tokenAmounts[].symbol
        verifiers.items[].weight verifiers.items[].weight`),
    );
    if (!parsed.ok) return;
    const { json, summaryLength } = wireRecord(parsed.message);
    expect(Object.keys(JSON.parse(json)).slice(0, 27)).toEqual(contractKeys);
    // A member of a network that is named like the first field behind the summary does not cut it short.
    expect(Object.keys(JSON.parse(`${[...json].slice(0, summaryLength).join('')}}`))).toEqual(summaryKeys);
  });

  it('make the same record in whatever order they come', () => {
    const one = canonical(extendedRecord({ zeta: 1, alpha: 2, offramp: evmAddress('offramp') }));
    const other = canonical(extendedRecord({ offramp: evmAddress('offramp'), alpha: 2, zeta: 1 }));
    expect(wireRecord(one).json).toBe(wireRecord(other).json);
    expect(Object.keys(one).slice(27)).toEqual(['offramp', 'alpha', 'zeta']);
  });

  it('are dropped and listed where they are too large, too deep, or cannot be', () => {
    const deep = JSON.parse(`${'['.repeat(100)}${']'.repeat(100)}`) as Json;
    const outside = { long: 'x'.repeat(70_000), deep, 'not a name': 1 };
    const unusable = { ...outside, offramp: 'no address', encodedMessage: 'zz' };
    const parsed = parseMessage(extendedRecord({ ...unusable, kept: 1 }));
    expect(parsed).toMatchObject({ ok: true, kept: ['$.kept'] });
    const paths = Object.keys(unusable).map((key) => `$.${key}`);
    expect(parsed.ok && [...parsed.ignored].sort()).toEqual(paths.sort());
  });
});

describe('hostile input', () => {
  it('that is no object at all is one problem', () => {
    for (const value of [null, undefined, 7, 'x', true, [], [fullRecord()]])
      expect(problemPaths(value)).toEqual(['$']);
  });

  it('cannot reach a prototype', () => {
    const text = JSON.stringify(fullRecord());
    const poison =
      '"__proto__":{"polluted":true,"sender":"x"},"constructor":{"prototype":{"polluted":true}},"toString":1';
    const poisoned = text.replace('{', `{${poison},`).replace(/"name":/g, `${poison},"name":`);
    const parsed = parseMessage(JSON.parse(poisoned));
    expect(parsed).toMatchObject({ ok: true, message: canonical(fullRecord()) });
    expect(parsed.ok && parsed.ignored).toEqual(
      expect.arrayContaining(['$.__proto__', '$.constructor', '$.toString', '$.sourceNetworkInfo.__proto__']),
    );
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(parsed.ok && parsed.message)).toBe(Object.prototype);
  });

  it('does not borrow members from a prototype', () => {
    const borrowed = JSON.parse(`{"__proto__":${JSON.stringify(fullRecord())}}`);
    expect(problemPaths(borrowed)).toContain('$.messageId');
  });

  it('may be nested a hundred thousand deep', () => {
    const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) as Json;
    for (const path of ['$.sender', '$.tokenAmounts', '$.data', '$.status', '$.fees', '$.unknown'])
      expect(() => parseMessage(withValue(path, deep))).not.toThrow();
  });

  it('may be as long as it likes, and is told of in a short line', () => {
    const huge = 'x'.repeat(2_100_000);
    for (const path of scalarFields) {
      const parsed = parseMessage(withValue(path, huge));
      expect(parsed.ok).toBe(false);
      if (!parsed.ok) for (const { problem } of parsed.problems) expect(problem.length).toBeLessThan(300);
    }
    expect(problemsWith('$.data', `0x${'ab'.repeat(2_000_000)}`)).toEqual(['$.data']);
    const payload = `0x${'ab'.repeat(500_000)}`;
    expect(canonical(withValue('$.data', payload)).data).toBe(payload);
  });

  it('keeps every character of a text', () => {
    const name = 'tab\t newline\n quote" back\\slash \u0000 nul \u2028 😀 \ud800 lone';
    expect(canonical(withValue('$.sourceNetworkInfo.name', name)).sourceNetworkInfo.name).toBe(name);
  });

  it('never throws, whatever JSON stands in whatever place', () => {
    const places = ['$', ...scalarFields, ...objectFields, ...arrayFields, '$.extraArgs.accounts'];
    const place = fc.constantFrom(...places);
    fc.assert(
      fc.property(fc.array(fc.tuple(place, fc.jsonValue())), fc.boolean(), (changes, isSvm) => {
        let record: unknown = isSvm ? svmRecord() : fullRecord();
        for (const [path, value] of changes) {
          try {
            if (path === '$') record = value;
            else setAt(record as JsonObject, path, value as Json);
          } catch {
            // A change above may have taken the place away.
          }
        }
        const parsed = parseMessage(record);
        if (!parsed.ok) {
          expect(parsed.problems.length).toBeGreaterThan(0);
          for (const { path } of parsed.problems) expect(path).toMatch(/^\$/);
        } else expect(recordValidator.Check(parsed.message)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('whatever is accepted', () => {
  const summaryOf = (message: Message) => Object.fromEntries(summaryKeys.map((key) => [key, message[key]]));

  it('passes the schema, is a fixed point, and survives the wire, for every family of chains', () => {
    expect(Object.keys(anyRecordNetworks).sort()).toEqual([...chainFamilies, 'new'].sort());
    let accepted = 0;
    fc.assert(
      fc.property(anyRecord, (value) => {
        const parsed = parseMessage(value);
        if (!parsed.ok) {
          // Executors are drawn from every family, and times reach beyond the years we take.
          for (const { path } of parsed.problems) expect(path).toMatch(/^\$\.executor|imestamp$/);
          return;
        }
        accepted++;
        const { message } = parsed;
        expect([...recordValidator.Errors(message)]).toEqual([]);
        expect(parseMessage(message)).toEqual({ ...parsed, ignored: [], derived: [], unknown: [] });

        const { json, summaryLength } = wireRecord(message);
        expect(JSON.parse(json)).toEqual(message);
        const keys = Object.keys(JSON.parse(json));
        expect(keys).toEqual(Object.keys(message));
        expect(keys.slice(0, 27)).toEqual(contractKeys);
        const summary = JSON.parse(`${[...json].slice(0, summaryLength).join('')}}`);
        expect(Object.keys(summary)).toEqual(keys.slice(0, 9));
        expect(summary).toEqual(summaryOf(message));
        expect(wireRecord(JSON.parse(json)).json).toBe(json);
      }),
      { numRuns: 400 },
    );
    expect(accepted).toBeGreaterThan(150);
  });

  test.each(['plain', '😀', 'a😀b👩‍👩‍👧‍👦', '\ud800', '\udc00\ud800', '"\\}', '\u0000'])(
    'has a summary that is cut by characters, with the network name %j',
    (name) => {
      const message = makeMessage({ sourceNetworkInfo: { ...sepolia, name } });
      const { json, summaryLength } = wireRecord(message);
      const summary = JSON.parse(`${[...json].slice(0, summaryLength).join('')}}`);
      // Spelled out, not imported: these are the words of the contract, and `summaryKeys` is what is judged by them.
      const contract =
        'messageId origin sender receiver status sourceNetworkInfo destNetworkInfo sendTransactionHash sendTimestamp';
      expect(Object.keys(summary)).toEqual(contract.split(' '));
      expect(summary).toEqual(summaryOf(message));
    },
  );
});
