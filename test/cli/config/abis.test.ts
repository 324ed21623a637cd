// @module-tag slow: starts the program for each file; domain/failures is the quick pass
/** The folder of ABIs: errors of the operator's own contracts name reasons, and a bad file is an error that names it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { encodeErrorResult, parseAbi } from 'viem';
import { afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { loadAbis } from '../../../src/cli/config/abi-folder.ts';
import { openTestStore } from '../../database.ts';
import { makeExecuted, makeExecutionDetails, makeMessage, makeSent } from '../../fixtures.ts';
import { buildProgram, configFile, freshFolder, lanescan, start } from '../program.ts';

const abi = parseAbi([
  'error TooSpicy(uint8 level, (address cook, string dish)[] orders)',
  'error InsufficientLiquidity(string remark)',
  'function cook()',
]);
const cook = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const spicy = encodeErrorResult({ abi, errorName: 'TooSpicy', args: [9, [{ cook, dish: 'curry' }]] });
/** An error of the operator that has the name of a known one, and means something else. */
const namesake = encodeErrorResult({ abi, errorName: 'InsufficientLiquidity', args: ['no ice'] });

const folderOf = (files: Readonly<Record<string, string>>): string => {
  const folder = freshFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  return folder;
};

beforeAll(buildProgram);
// The command line ran inside this process.
afterEach(() => void loadAbis({ abisFolder: null }));

async function storeWith(returnData: string) {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const message = makeMessage();
  const details = makeExecutionDetails(message, returnData);
  await store.apply([makeSent(message), makeExecuted(message, false), details]);
  return { message, env: { DATABASE_URL: store.url } };
}

describe.each([
  ['a plain list', JSON.stringify(abi)],
  ['an artifact', `\uFEFF${JSON.stringify({ contractName: 'Kitchen', bytecode: '0x00', abi })}`],
])('an ABI that is %s', (_kind, text) => {
  test('names the error in show and export, and says whose name it is', async () => {
    const { message, env } = await storeWith(spicy);
    const folder = folderOf({ 'kitchen.json': text, 'README.md': 'not an ABI' });
    const before = await lanescan(['show', message.messageId], { env });
    expect(before.stdout).toContain('an error that is not known here');

    const after = await lanescan(['show', message.messageId], { env: { ...env, LANESCAN_ABIS: folder } });
    expect(after.stdout).toContain(`TooSpicy(level: 9, orders: `);
    expect(after.stdout.replace(/\s+/g, ' ')).toContain(
      "The error's name comes from the ABIs that this server's operator has added.",
    );
    const file = await lanescan(['export', '--attempts', '--format', 'ndjson'], {
      env: { ...env, LANESCAN_ABIS: folder },
    });
    expect(JSON.parse(file.stdout).executionAttempts).toMatchObject([
      { reason: { code: 'TooSpicy', error: { namedBy: 'operator' } } },
    ]);
  });
});

test('an error with the name of a known one is not explained as that one', async () => {
  const { message, env } = await storeWith(namesake);
  const folder = folderOf({ 'bar.json': JSON.stringify(abi) });
  const { stdout } = await lanescan(['show', message.messageId], { env: { ...env, LANESCAN_ABIS: folder } });
  expect(stdout).toContain('InsufficientLiquidity(remark: no ice)');
  expect(stdout).not.toContain('does not hold enough');
});

test('serve and its worker processes name it too', async () => {
  const { message, env } = await storeWith(spicy);
  const cwd = path.dirname(configFile('abis: ./abis\n'));
  mkdirSync(path.join(cwd, 'abis'));
  writeFileSync(path.join(cwd, 'abis', 'kitchen.json'), JSON.stringify(abi));
  const server = start(['serve', '--port', '0', '--processes', '2'], { env, cwd });
  onTestFinished(async () => {
    server.child.kill();
    await server.outcome;
  });
  await server.untilSaid(/Reasons are also named by 2 errors of 1 ABI in \.\/abis/);
  const url = await server.untilListening();
  const answer = await fetch(`${url}/v2/messages/${message.messageId}/attempts`);
  expect(await answer.json()).toMatchObject({ attempts: [{ reason: { code: 'TooSpicy' } }] });
});

describe('a folder that cannot be used is an error that names the place', () => {
  const errors = (...list: readonly (readonly [name: string, ...inputs: object[]])[]) =>
    JSON.stringify(list.map(([name, ...inputs]) => ({ type: 'error', name, inputs })));
  const deep = (depth: number): object =>
    depth === 0 ? { type: 'uint8' } : { type: 'tuple', components: [deep(depth - 1)] };
  const many = Array.from({ length: 10_001 }, (_, n): [string] => [`E${n}`]);
  test.each([
    ['not JSON', '{"abi": [', /\/a\.json is not valid JSON/],
    ['no ABI', '{"name": "x"}', /\/a\.json is neither an ABI nor an artifact/],
    ['a type that is none', errors(['Bad', { type: 'uint7' }]), /\/a\.json has an error at place 1 \(Bad\)/],
    ['a name that is none', errors(['\u001b[31m']), /\/a\.json has an error at place 1 that/],
    ['tuples without end', errors(['Deep', deep(100)]), /\/a\.json has an error at place 1 \(Deep\)/],
    ['too many bytes', ' '.repeat(9 * 1024 * 1024), /\/a\.json has 9437184 bytes; at most 8388608/],
    ['too many errors', errors(...many), /have more than 10,000 errors/],
  ])('%s', async (_name, text, expected) => {
    const abis = folderOf({ 'a.json': text });
    expect(() => loadAbis({ abisFolder: abis })).toThrow(expected);
  });

  test('no such folder, or too many files; doctor says it', async () => {
    const missing = path.join(freshFolder(), 'none');
    expect(() => loadAbis({ abisFolder: missing })).toThrow(/Cannot read the folder of ABIs .*none/);
    const many = folderOf(Object.fromEntries(Array.from({ length: 501 }, (_, n) => [`${n}.json`, '[]'])));
    expect(() => loadAbis({ abisFolder: many })).toThrow(/has 501 JSON files; at most 500/);
    const { stdout, code } = await lanescan(['doctor', '--port', '0'], {
      env: { LANESCAN_ABIS: missing, DATABASE_URL: 'postgresql://localhost:1/none' },
    });
    expect(stdout).toMatch(/✗ ABIs: Cannot read the folder of ABIs/);
    expect(code).toBe(1);
  });
});
