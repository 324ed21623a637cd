/** What derives from the settings: the JSON Schema for editors, and the tables of the documents. */
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readSetting } from '../../../src/base/settings.ts';
import { settings } from '../../../src/cli/config/settings.ts';
import { settingsDocuments, settingsJsonSchema } from '../../../src/cli/config/settings-documents.ts';
import { lanescan } from '../program.ts';

const root = new URL('../../../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, root), 'utf8');
const documents = Object.entries(settingsDocuments(read));

test.each(documents)('%s has every setting with its default (otherwise: npm run settings)', (name, text) => {
  expect(read(name)).toBe(text);
});

test('the table of the README names every key, flag and variable', () => {
  const rows = read('README.md')
    .split('\n')
    .filter((line) => line.startsWith('|'));
  const names = Object.entries(settings).flatMap(([key, schema]) => {
    const { flag, variables = [] } = schema as { flag?: string; variables?: readonly string[] };
    return [key, ...(flag ? [flag] : []), ...variables];
  });
  for (const name of [...names, 'DATABASE_URL', 'LANESCAN_CONFIG', 'LANESCAN_API_KEY'])
    expect(
      rows.some((row) => row.includes(`\`${name}\``)),
      name,
    ).toBe(true);
});

test('`lanescan config --schema` prints the schema, whatever the settings are', async () => {
  const { code, stdout } = await lanescan(['config', '--schema', '--config', '/nowhere'], {});
  expect({ code, stdout }).toEqual({ code: 0, stdout: read('lanescan.schema.json') });
});

const validate = new Ajv({ allowUnionTypes: true }).compile(JSON.parse(settingsJsonSchema()));

test('the example names the schema and is valid by it', () => {
  const text = read('lanescan.example.yaml');
  expect(text).toMatch(/^# yaml-language-server: \$schema=\.\/lanescan\.schema\.json\n/);
  expect(validate(parse(text)), JSON.stringify(validate.errors)).toBe(true);
});

test.each<[keyof typeof settings, readonly unknown[], readonly unknown[]]>([
  ['data', ['x'], ['', 1, true, null]],
  ['port', [0, 65_535], [-1, 65_536, 1.5, {}, []]],
  ['basePath', ['', '/', '/a', '/a/b.c/'], ['a', '//', '/a/../b', '/a b', 1]],
  ['logLevel', ['debug', 'silent'], ['loud', 1]],
  ['accessLog', [true, false], [1, 'yes']],
  ['drainSeconds', [0, 0.5, 300], [-1, 301, '1 s']],
  ['trustProxy', [false, 1, 10, ['10.0.0.1']], [true, 0, 11, 1.5, [], [1], {}]],
  ['rateLimit', [false, {}, { perSecond: 0.1 }], [true, { perSecond: 0 }, { burst: 1.5 }, { brust: 1 }, []]],
  ['live', [{}, { streams: 1 }], [{ streams: 0 }, { stream: 1 }, 5]],
  ['labels', [[], [{ address: `0x${'1'.repeat(40)}`, name: 'a' }]], [{}, [{ name: 'a' }], ['a']]],
  ['explorers', [{}, { sepolia: 'none' }], [[], { sepolia: 1 }]],
])('the program and the JSON Schema agree on %s', (key, valid, invalid) => {
  const isRead = (value: unknown) => {
    try {
      readSetting(settings[key], value, [key]);
      return true;
    } catch {
      return false;
    }
  };
  for (const value of [...valid, ...invalid]) {
    const expected = valid.includes(value);
    const shown = { value, read: isRead(value), schema: validate({ [key]: value }) };
    expect(shown).toEqual({ value, read: expected, schema: expected });
  }
});
