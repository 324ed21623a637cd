import type { Command } from 'commander';
import type { ConfigFlags } from './config.ts';
import { type CliContext, configOf, withStore, withStoreOptions } from './context.ts';

export function addMigrate(program: Command, context: CliContext): void {
  withStoreOptions(program.command('migrate'))
    .description('bring the database schema up to date (every other verb does so by itself)')
    .addHelpText(
      'after',
      `
Examples:
  $ lanescan migrate
  $ DATABASE_URL=postgresql://… lanescan migrate      before a rolling upgrade`,
    )
    .action((flags: ConfigFlags) =>
      withStore(configOf(flags, context), context, {}, async ({ migrations }) => {
        const { applied, total } = migrations;
        for (const name of applied) context.out.write(`applied ${name}\n`);
        context.out.write(
          applied.length === 0 ? `Up to date: ${total} migrations.\n` : `Done: ${total} migrations.\n`,
        );
      }),
    );
}
