/** `lanescan completion`: shell completions, generated from the commands and options of the program. */
import { type Command as AnyCommand, Argument, type Option } from 'commander';
import { statuses } from '../../domain/lifecycle.ts';
import { knownNetworks } from '../../domain/networks/networks.ts';
import type { Command } from '../command.ts';
import type { CliContext } from '../context.ts';
import { writeOut } from '../output/output.ts';

const writers = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;
type Shell = keyof typeof writers;
const shells = Object.keys(writers) as Shell[];

export function addCompletion(program: Command, context: CliContext): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'the shell to complete in').choices(shells))
    .description('print a completion script for a shell')
    .notes(`
Completes commands, options, statuses and names of networks.

Examples:
  $ lanescan completion bash > /etc/bash_completion.d/lanescan
  $ lanescan completion zsh > /usr/local/share/zsh/site-functions/_lanescan
  $ lanescan completion fish > ~/.config/fish/completions/lanescan.fish`)
    .action(async (shell: Shell) => {
      await writeOut(context.out, writers[shell](commandsOf(program)));
    });
}

interface CompletedCommand {
  /** With the command above it: `webhooks list`. */
  readonly path: string;
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** Fixed values of its first argument; subcommands too. */
  readonly words: readonly { readonly text: string; readonly description: string }[];
}

interface CompletedOption {
  /** All spellings, the long one last. */
  readonly flags: readonly string[];
  readonly description: string;
  /** Undefined for a switch; `[]` for a value that the shell completes as a file. */
  readonly values?: readonly string[];
}

/** The program itself first, with an empty path. */
function commandsOf(program: Command): readonly CompletedCommand[] {
  const describe = (command: AnyCommand, path: string): readonly CompletedCommand[] => {
    const [argument] = command.registeredArguments;
    const subcommands = command.commands.map((sub) => ({
      text: sub.name(),
      description: firstLine(sub.description()),
    }));
    const choices = (argument?.argChoices ?? []).map((text) => ({ text, description: text }));
    const own: CompletedCommand = {
      path,
      description: firstLine(command.description()),
      options: [...command.options.map(optionOf), { flags: ['-h', '--help'], description: 'show help' }],
      words: [...subcommands, ...choices],
    };
    const inner = command.commands.flatMap((sub) => describe(sub, `${path} ${sub.name()}`.trim()));
    return [own, ...inner];
  };
  return describe(program, '');
}

function optionOf({ long, short, flags, description, argChoices }: Option): CompletedOption {
  const spellings = [short, long].filter((flag) => flag !== undefined && flag !== null);
  const [, valueName] = /<(\w+)>/.exec(flags) ?? [];
  const described = { flags: spellings, description: firstLine(description) };
  if (valueName === undefined) return described;
  return { ...described, values: argChoices ?? valuesOf(valueName) };
}

function valuesOf(valueName: string): readonly string[] {
  if (valueName === 'network') return knownNetworks().map(({ name }) => name);
  if (valueName === 'statuses') return statuses.map((status) => status.toLowerCase());
  if (valueName === 'level') return ['debug', 'info', 'warn', 'error', 'silent'];
  return [];
}

/** Descriptions go into single quotes: quotes and what shells expand are left out. */
function firstLine(text: string): string {
  return (text.split('\n', 1)[0] ?? '').replace(/['"`$\\:[\]]/g, '');
}

function bashCompletion(commands: readonly CompletedCommand[]): string {
  const cases = commands.map(({ path, options, words }) => {
    const all = [...words.map(({ text }) => text), ...options.flatMap(({ flags }) => flags)];
    return `    '${path}') words='${all.join(' ')}' ;;`;
  });
  const valued = new Map(
    commands.flatMap(({ options }) =>
      options.flatMap(({ flags, values }) => (values ? flags.map((flag) => [flag, values] as const) : [])),
    ),
  );
  const values = [...valued].map(([flag, words]) =>
    words.length === 0
      ? `    ${flag}) COMPREPLY=($(compgen -f -- "$current")); return ;;`
      : `    ${flag}) COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$current")); return ;;`,
  );
  const paths = commands.map(({ path }) => path).filter((path) => path !== '');
  return `# bash completion for lanescan
_lanescan() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" path='' words='' word
  case "$previous" in
${values.join('\n')}
  esac
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
      ${paths.map((path) => `'${path}'`).join('|')}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ "\${#COMPREPLY[@]}" -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}
complete -F _lanescan lanescan
`;
}

function zshCompletion(commands: readonly CompletedCommand[]): string {
  const functionName = (path: string) => `_lanescan${path === '' ? '' : `_${path.replaceAll(' ', '_')}`}`;
  const optionSpec = ({ flags, description, values }: CompletedOption) => {
    const value =
      values === undefined ? '' : values.length === 0 ? ':value:_files' : `:value:(${values.join(' ')})`;
    return flags.map((flag) => `    '${flag}[${description}]${value}' \\`).join('\n');
  };
  const functions = commands.map(({ path, options, words }) => {
    const specs = options.map(optionSpec).join('\n');
    const subcommands = words.filter(({ text }) =>
      commands.some((command) => command.path === `${path} ${text}`.trim()),
    );
    if (subcommands.length === 0) {
      const argument = words.length === 0 ? '_files' : `(${words.map(({ text }) => text).join(' ')})`;
      return `${functionName(path)}() {\n  _arguments \\\n${specs}\n    '*:argument:${argument}'\n}\n`;
    }
    const list = subcommands.map(({ text, description }) => `      '${text}:${description}'`).join('\n');
    const cases = subcommands
      .map(({ text }) => `        ${text}) ${functionName(`${path} ${text}`.trim())} ;;`)
      .join('\n');
    return `${functionName(path)}() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \\
${specs}
    '1:command:->command' '*::argument:->argument'
  case $state in
    command)
      local -a commands=(
${list}
      )
      _describe command commands ;;
    argument)
      case $words[1] in
${cases}
      esac ;;
  esac
}
`;
  });
  return `#compdef lanescan
${functions.join('\n')}
compdef _lanescan lanescan
`;
}

function fishCompletion(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ path, options, words }) => {
    const names = path.split(' ').filter((name) => name !== '');
    const inner = words.map(({ text }) => text);
    const seen = names.map((name) => `__fish_seen_subcommand_from ${name}`);
    const notYet = inner.length > 0 ? [`not __fish_seen_subcommand_from ${inner.join(' ')}`] : [];
    const condition = (parts: readonly string[]) =>
      parts.length === 0 ? '' : ` -n '${parts.join('; and ')}'`;
    const wordLines = words.map(
      ({ text, description }) =>
        `complete -c lanescan${condition([...seen, ...notYet])} -f -a '${text}' -d '${description}'`,
    );
    const optionLines = options.map(({ flags, description, values }) => {
      const spelt = flags
        .map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
        .join(' ');
      const value = values === undefined ? '' : values.length === 0 ? ' -r' : ` -x -a '${values.join(' ')}'`;
      return `complete -c lanescan${condition(seen.length > 0 ? seen : notYet)} ${spelt} -d '${description}'${value}`;
    });
    return [...wordLines, ...optionLines];
  });
  return `# fish completion for lanescan\n${lines.join('\n')}\n`;
}
