/** Every `lanescan` command in the documents and in the help names a command and options that exist. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import type { CliContext } from '../../src/cli/context.ts';
import { createProgram } from '../../src/cli/main.ts';

const repository = path.resolve(import.meta.dirname, '../..');
const documents = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'Dockerfile', 'compose.yaml'],
  ...readdirSync(path.join(repository, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(md|service)$/.test(file))
    .map((file) => `docs/${file}`),
];

const stream = { write: () => true };
const context = { environment: {}, out: stream, err: stream, exitCode: 0 } as unknown as CliContext;
const program = createProgram(context);

/** Commands at the beginning of a line of code, after variables and a prompt. */
function commandsIn(text: string): readonly string[] {
  const lines = [
    ...text.matchAll(
      /^ *(?:\$ )?(?:ExecStart=\/usr\/local\/bin\/)?(?:\w+=\S+ )*(?:npx )?lanescan ([a-z].*)$/gm,
    ),
  ];
  return lines.map(([, command = '']) => command.replace(/(\s#| \| | > ).*$/, '').trim());
}

function problemOf(text: string): string | undefined {
  const words = text.split(/\s+/);
  let command: Command = program;
  const next = () => command.commands.find((sub) => sub.name() === words[0]);
  for (let sub = next(); sub; sub = next()) {
    command = sub;
    words.shift();
  }
  if (command === program) return `${text}: no such command`;
  const known = command.options.flatMap(({ long, short }) => [long, short]);
  const unknown = words.filter((word) => word.startsWith('--') && ![...known, '--help'].includes(word));
  return unknown.length > 0 ? `${text}: no option ${unknown.join(', ')}` : undefined;
}

test.each(documents)('%s', (file) => {
  const commands = commandsIn(readFileSync(path.join(repository, file), 'utf8'));
  expect(commands.map(problemOf).filter((problem) => problem !== undefined)).toEqual([]);
});

test('the documents have such commands', () => {
  const all = documents.flatMap((file) => commandsIn(readFileSync(path.join(repository, file), 'utf8')));
  expect(all.length).toBeGreaterThan(40);
  expect(problemOf('serch')).toBe('serch: no such command');
  expect(problemOf('search --limti 3')).toBe('search --limti 3: no option --limti');
});
