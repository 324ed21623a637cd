/** `lanescan completion`: scripts that the shells accept, and that complete what there is. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { freshFolder, lanescan } from './program.ts';

async function scriptOf(shell: string): Promise<string> {
  const { code, stdout } = await lanescan(['completion', shell]);
  expect(code).toBe(0);
  const file = path.join(freshFolder(), `completion.${shell}`);
  writeFileSync(file, stdout);
  return file;
}

/** What a shell prints; its standard error must be empty. */
function run(shell: string, args: readonly string[]): readonly string[] {
  const { stdout, stderr, status } = spawnSync(shell, args, { encoding: 'utf8', cwd: freshFolder() });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return stdout.split('\n').filter((line) => line !== '');
}

const isInstalled = (shell: string) => spawnSync(shell, ['--version']).status === 0;

const cases: readonly (readonly [words: string, ...expected: string[]])[] = [
  ['sea', 'search'],
  ['search --sent', '--sent-after', '--sent-before'],
  ['search --status fa', 'failed'],
  ['audit --dest solana-d', 'solana-devnet'],
  ['export --format ', 'csv', 'ndjson'],
  ['webhooks rep', 'replay'],
  ['webhooks replay --pa', '--parked'],
  ['completion z', 'zsh'],
];

test.skipIf(!isInstalled('bash')).each(cases)('bash completes %s', async (line, ...expected) => {
  const words = line.split(' ');
  const all = ['lanescan', ...words].map((word) => `'${word}'`).join(' ');
  const completed = run('bash', [
    '-c',
    `source ${await scriptOf('bash')}; COMP_WORDS=(${all}); COMP_CWORD=${words.length}; _lanescan; printf '%s\\n' "\${COMPREPLY[@]}"`,
  ]);
  expect(completed.toSorted()).toEqual(expected.toSorted());
});

test.skipIf(!isInstalled('fish')).each(cases)('fish completes %s', async (line, ...expected) => {
  const completed = run('fish', ['-c', `source ${await scriptOf('fish')}; complete -C'lanescan ${line}'`]);
  expect(completed.map((line) => line.split('\t')[0]).toSorted()).toEqual(expected.toSorted());
});

test.skipIf(!isInstalled('zsh'))(
  'zsh loads it, with a function for every command',
  { tags: 'slow' },
  async () => {
    const [functions = ''] = run('zsh', [
      '-fc',
      `autoload -U compinit; compinit -u -D; source ${await scriptOf('zsh')}; print -r -- \${(k)functions[(I)_lanescan*]}`,
    ]);
    const { stdout } = await lanescan(['--help']);
    const commands = [...stdout.matchAll(/^ {2}([a-z]+) /gm)]
      .map(([, name]) => name)
      .filter((name) => name !== 'help');
    expect(commands.length).toBeGreaterThan(14);
    expect(functions.split(' ')).toEqual(expect.arrayContaining(commands.map((name) => `_lanescan_${name}`)));
  },
);

test('another shell is rejected with the choices', async () => {
  const { code, stderr } = await lanescan(['completion', 'tcsh']);
  expect(stderr).toMatch(/Allowed choices are bash, zsh, fish/);
  expect(code).toBe(2);
});
